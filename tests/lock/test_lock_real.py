"""``rocmpip lock`` against the replica: what the file says, that plain pip installs it, that it stays and when it does not."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmpip.lock import pylock, text
from rocmpip.model.packages import normalise
from tests.support.commands import envelope, rocmpip
from tests.support.replica import Replica

pytestmark = pytest.mark.pip

Lock = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def lock(replica: Replica, venv: Callable[..., Path], tmp_path: Path) -> Lock:
    """``lock("torch", gfx="gfx942", rocm="6.4")`` in an empty folder; nothing of the machine under the tests is seen."""
    (tmp_path / "machine").mkdir()
    python = venv()

    def run(*words: str, gfx: str = "gfx942", rocm: str = "6.4", **env: str) -> subprocess.CompletedProcess[str]:
        more = {"ROCMPIP_SYSROOT": str(tmp_path / "machine"), **env}
        if gfx:
            more["ROCMPIP_GFX"] = gfx
        if rocm:
            more["ROCMPIP_ROCM"] = rocm
        done = rocmpip("lock", "--python", str(python), *words, env=replica.env(**more), cwd=tmp_path)
        assert "Traceback" not in done.stderr
        return done

    return run


def versions(frozen: str) -> dict[str, str]:
    """The output of pip freeze, names normalised."""
    return {normalise(line.split("==")[0]): line.split("==")[1] for line in frozen.split()}


def good(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_file_says_what_it_is_for_and_pins_everything(lock: Lock) -> None:
    content = good(lock("torch", "accelerate"))
    written = text.read(content)
    assert written.pins["torch"] == "2.9.1+rocm6.4"
    assert written.coordinates["gfx"] == "gfx942"
    assert written.coordinates["rocm"] == "6.4"
    assert written.coordinates["family"].endswith("rocm6.4")
    assert written.coordinates["install"].startswith("pip install --require-hashes")
    assert all(written.hashes[name] for name in written.pins)
    assert written.via["torch"] == ("accelerate", "the command line")
    assert not re.search(r"^nvidia|\+cu", content, re.MULTILINE)
    assert len(re.findall(r"^--(?:extra-)?index-url ", content, re.MULTILINE)) == 2  # PyPI, and the family's beside it
    assert re.search(r"^--extra-index-url .*/whl/rocm6\.4$", content, re.MULTILINE)


@pytest.mark.parametrize("file", ["requirements.lock", "pylock.toml"])
@pytest.mark.parametrize("gfx", ["gfx942", ""], ids=["rocm", "plain"])
def test_plain_pip_installs_it_with_hashes_and_it_is_what_was_locked(
    lock: Lock, venv: Callable[..., Path], replica: Replica, tmp_path: Path, file: str, gfx: str
) -> None:
    """In a fresh environment, by the command that the lock names. pip reads pylock files from 26.1 on and takes their hashes by itself."""
    names = ["torch"] if gfx else ["packaging", "jinja2", "typing-extensions"]
    good(lock(*names, "-o", file, gfx=gfx, rocm="6.4" if gfx else ""))
    written = (pylock if file == "pylock.toml" else text).read((tmp_path / file).read_text())
    assert set(names) <= set(written.pins)
    python = venv()

    def pip(*words: str) -> str:
        command = [sys.executable, "-m", "pip", "--python", str(python), *words]
        done = subprocess.run(command, cwd=tmp_path, env=replica.env(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    install = written.coordinates["install"].split()
    assert ("--require-hashes" in install) is (file != "pylock.toml")
    pip(*install[1:])
    pip("check")
    assert versions(pip("freeze", "--all")) == written.pins


def test_pylock_is_valid_and_says_the_same(lock: Lock, tmp_path: Path) -> None:
    from packaging.pylock import Pylock

    good(lock("torch", "-o", "pylock.toml"))
    good(lock("torch", "-o", "plain.txt"))
    content = (tmp_path / "pylock.toml").read_text()
    written = pylock.read(content)
    assert written.pins == text.read((tmp_path / "plain.txt").read_text()).pins
    assert written.coordinates["gfx"] == "gfx942"
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    assert Pylock.from_dict(tomllib.loads(content)).packages


def test_a_second_run_changes_no_byte(lock: Lock, tmp_path: Path) -> None:
    for name in ("requirements.lock", "pylock.toml"):
        good(lock("torch", "accelerate", "-o", name))
        before = (tmp_path / name).read_bytes()
        good(lock("torch", "accelerate", "-o", name))
        assert (tmp_path / name).read_bytes() == before


def test_existing_pins_stay_until_told(lock: Lock, tmp_path: Path) -> None:
    requirements = tmp_path / "in.txt"
    requirements.write_text("numpy<2\nfilelock\n")
    good(lock("-r", "in.txt", "-o", "out.txt", gfx="", rocm=""))
    first = text.read((tmp_path / "out.txt").read_text()).pins
    requirements.write_text("numpy\nfilelock\n")
    good(lock("-r", "in.txt", "-o", "out.txt", gfx="", rocm=""))
    assert text.read((tmp_path / "out.txt").read_text()).pins == first
    good(lock("-r", "in.txt", "-o", "out.txt", "--upgrade-package", "filelock", gfx="", rocm=""))
    assert text.read((tmp_path / "out.txt").read_text()).pins["numpy"] == first["numpy"]
    good(lock("-r", "in.txt", "-o", "out.txt", "--upgrade", gfx="", rocm=""))
    assert text.read((tmp_path / "out.txt").read_text()).pins["numpy"] != first["numpy"]


def test_check_tells_what_no_longer_fits(lock: Lock, tmp_path: Path) -> None:
    requirements = tmp_path / "in.txt"
    requirements.write_text("torch\n")
    words = ("-r", "in.txt", "-o", "out.txt")
    missing = lock(*words, "--check")
    assert missing.returncode == 43
    good(lock(*words))
    before = (tmp_path / "out.txt").read_bytes()
    good(lock(*words, "--check"))
    requirements.write_text("torch\nfilelock>=3.16\naccelerate\n")
    changed = lock(*words, "--check")
    assert changed.returncode == 43
    assert "accelerate" in changed.stderr
    requirements.write_text("torch\n")
    other_machine = lock(*words, "--check", rocm="7.0")
    assert other_machine.returncode == 43
    assert "ROCm: the lock is for 6.4, here is 7.0" in other_machine.stderr
    assert (tmp_path / "out.txt").read_bytes() == before


def test_for_other_targets_from_a_machine_without_a_gpu(lock: Lock, tmp_path: Path) -> None:
    targets = ("--for", "gfx=gfx942+gfx90a,rocm=6.4,python=3.12", "--for", "gfx=gfx1100,rocm=7.0,python=3.11")
    good(lock("torch", *targets, "-o", "req.txt", gfx="", rocm=""))
    first, second = sorted(tmp_path.glob("req-*.txt"))
    seven, six = text.read(first.read_text()), text.read(second.read_text())
    assert (six.pins["torch"], six.coordinates["gfx"]) == ("2.9.1+rocm6.4", "gfx942, gfx90a")
    assert six.coordinates["python"] == "3.12"
    assert (seven.pins["torch"], seven.coordinates["python"]) == ("2.10.0+rocm7.0", "3.11")
    assert first.name == "req-gfx1100-rocm7.0-py311.txt"


def test_several_targets_need_a_file_name(lock: Lock) -> None:
    done = lock("torch", "--for", "rocm=6.4", "--for", "rocm=7.0")
    assert done.returncode == 2
    assert lock("torch", "--for", "cpu").returncode == 2


def test_torch_that_another_package_pulls_in_comes_from_rocm_too(lock: Lock) -> None:
    assert text.read(good(lock("accelerate"))).pins["torch"] == "2.9.1+rocm6.4"


def test_rocm_without_a_gpu_asks_which(lock: Lock) -> None:
    done = lock("torch", gfx="")
    assert done.returncode == 40
    assert "--gfx" in done.stderr


def test_no_credential_reaches_the_file(lock: Lock, replica: Replica, tmp_path: Path) -> None:
    index = replica.env()["PIP_INDEX_URL"]
    secret = index.replace("http://", "http://me:s3cr3t@")
    done = lock("filelock", "--index-url", secret, "-o", "out.txt", gfx="", rocm="")
    good(done)
    content = (tmp_path / "out.txt").read_text()
    assert "s3cr3t" not in content + done.stderr + done.stdout
    assert "filelock==" in content
    other = lock("filelock", "--index-url", secret, "-o", "pylock.toml", gfx="", rocm="")
    good(other)
    assert "s3cr3t" not in (tmp_path / "pylock.toml").read_text() + other.stderr


def test_json_is_one_envelope_for_success_and_failure(lock: Lock) -> None:
    told = envelope(lock("torch", "--json"))
    assert told["command"] == "lock"
    rows = {row["name"]: row["version"] for row in told["result"]["locks"][0]["packages"]}
    assert rows["torch"] == "2.9.1+rocm6.4"
    failed = envelope(lock("torch==99", "--json"))
    assert failed["errors"][0]["code"] == 40


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("-e", "."), 1, "'.' (command line) cannot be locked"),
        (("git+https://example.invalid/a.git",), 1, "'git+https://example.invalid/a.git' (command line) cannot be locked"),
        ((), 2, "nothing to lock"),
    ],
)
def test_what_cannot_be_locked_is_refused(lock: Lock, tmp_path: Path, words: tuple[str, ...], code: int, told: str) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname="x"\nversion="1"\n')
    done = lock(*words, gfx="", rocm="")
    assert (done.returncode, done.stdout) == (code, "")
    assert f"ERROR: {told}" in done.stderr and "next: " in done.stderr


def test_files_without_hashes_are_downloaded_after_saying_so(lock: Lock) -> None:
    done = lock("torch", "--channel", "nightly", gfx="gfx942", rocm="7.14")
    assert done.returncode == 0, done.stderr
    assert "published without a hash" in done.stderr
    assert all(text.read(done.stdout).hashes.values())


def test_why_and_tree_read_the_lock(lock: Lock, tmp_path: Path, replica: Replica) -> None:
    good(lock("torch", "-o", "out.txt"))
    env = replica.env(ROCMPIP_SYSROOT=str(tmp_path / "machine"))
    why = rocmpip("why", "mpmath", "--lock", "out.txt", env=env, cwd=tmp_path)
    assert why.returncode == 0, why.stderr
    assert re.search(r"torch 2\.9\.1\+rocm6\.4 → sympy [\d.]+ → mpmath [\d.]+", why.stdout)
    tree = rocmpip("tree", "--lock", "out.txt", env=env, cwd=tmp_path)
    assert tree.stdout.startswith("torch 2.9.1+rocm6.4\n├── ")
    assert rocmpip("why", "nothing-such", "--lock", "out.txt", env=env, cwd=tmp_path).returncode == 1


def test_sync_makes_the_environment_the_lock(lock: Lock, venv: Callable[..., Path], replica: Replica, tmp_path: Path) -> None:
    good(lock("torch", "-o", "out.txt"))
    python = venv(with_pip=True)
    env = replica.env(ROCMPIP_SYSROOT=str(tmp_path / "machine"), ROCMPIP_GFX="gfx942", ROCMPIP_ROCM="6.4")
    subprocess.run(
        [str(python), "-m", "pip", "install", "-q", "--no-deps", "requests", "numpy"], env=env, check=True, cwd=tmp_path
    )

    def sync(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return rocmpip("sync", "out.txt", "--python", str(python), *words, env={**env, **more}, cwd=tmp_path)

    refused = sync(ROCMPIP_GFX="gfx1100")
    assert refused.returncode == 44
    assert "gfx1100" in refused.stderr
    dry = envelope(sync("--dry-run", "--json"))
    assert dry["result"]["installed"]["torch"] == "2.9.1+rocm6.4"
    assert "requests" in dry["result"]["extra"]
    done = sync("--remove-extras")
    assert done.returncode == 0, done.stderr
    frozen = subprocess.run(
        [str(python), "-m", "pip", "freeze", "--exclude", "setuptools"], env=env, capture_output=True, text=True, check=True
    ).stdout
    wanted = text.read((tmp_path / "out.txt").read_text()).pins
    assert versions(frozen) == {k: v for k, v in wanted.items() if k != "setuptools"}
    again = envelope(sync("--json"))
    assert again["result"]["installed"] == {}


@pytest.mark.parametrize(
    ("output", "ignore"),
    [
        ("Dockerfile", ".dockerignore"),
        ("Dockerfile.mi300", "Dockerfile.mi300.dockerignore"),
        ("images/Dockerfile", "images/Dockerfile.dockerignore"),
    ],
)
def test_the_ignore_file_lies_where_builders_look(
    lock: Lock, replica: Replica, tmp_path: Path, output: str, ignore: str
) -> None:
    """In the build context, which is the lock's folder; for a Dockerfile of another name or place beside it, under its name."""
    good(lock("requests", "-o", "requirements.lock"))
    (tmp_path / "images").mkdir()
    done = rocmpip("dockerfile", "requirements.lock", "-o", output, env=replica.env(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{output} and {ignore} are written" in done.stderr
    assert (tmp_path / ignore).read_text() == "*\n!requirements.lock\n"
    assert [path.name for path in tmp_path.rglob("*dockerignore")] == [Path(ignore).name]
