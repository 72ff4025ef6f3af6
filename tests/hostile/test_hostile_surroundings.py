"""Full disks, folders that cannot be, limits of the system, several at once, other users."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.target import Target, run_raw
from tests.support.other_python import make_other_python

pytestmark = pytest.mark.pip

PYENV = os.environ.get("PYENV_ROOT", "")
BUILD = ("install", "-q", "torch", "tiny-torch-ext")


@pytest.mark.parametrize("variable", ["ROCMPIP_CACHE_DIR", "ROCMPIP_STATE_DIR", "TMPDIR", "HOME"])
def test_folders_that_cannot_be(target: Target, variable: str) -> None:
    """A cache is done without; where logs and wheels cannot be kept, a build ends with words, and torch stays."""
    file = target.cwd / target.file("a-file", b"")
    done = target.run(*BUILD, **{variable: str(file)})
    if variable == "ROCMPIP_STATE_DIR":
        assert done.returncode == 1 and "ROCMPIP_STATE_DIR" in done.stderr
        told = target.json("torch", "tiny-torch-ext", code=1, ROCMPIP_STATE_DIR=str(file))
        assert told["errors"][0]["name"] == "system"
    else:
        assert done.returncode == 0, done.stderr
    assert target.torch() in ("", "2.9.1+rocm6.4")
    target.ok("install", "-q", "torch")


def limited(target: Target, kind: int, amount: int, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rocmpip", "--python", str(target.python), *words]
    return subprocess.run(
        command, env=target.env, cwd=target.cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
        check=False, preexec_fn=lambda: resource.setrlimit(kind, (amount, amount)),
    )  # fmt: skip


@pytest.mark.parametrize("size", [200, 1500, 3000])
def test_files_that_cannot_grow(target: Target, size: int) -> None:
    """As on a full disk: every write beyond some bytes fails. No traceback of ours, no half torch, and then it works."""
    done = limited(target, resource.RLIMIT_FSIZE, size, "install", "torch", "einops")
    assert "failed inside" not in done.stdout + done.stderr and "rocmpip/" not in done.stderr, done.stderr[-2000:]
    assert target.torch() in ("", "2.9.1+rocm6.4")
    target.ok("install", "-q", "torch", "einops")
    assert target.torch() == "2.9.1+rocm6.4"


@pytest.mark.parametrize("number", [10, 12, 20])
def test_few_open_files(target: Target, number: int) -> None:
    done = limited(target, resource.RLIMIT_NOFILE, number, "install", "--dry-run", "torch")
    assert "Traceback" not in done.stderr and "failed inside" not in done.stderr
    assert done.returncode == 0 or "open files" in done.stderr.lower()


@pytest.mark.parametrize("where", [">&-", "2>&-", "<&- >&- 2>&-", "| head -n 1", ">/dev/full"])
@pytest.mark.parametrize("words", ["--dry-run torch", "--dry-run torch --json", "--dry-run torch==99 --json"])
def test_streams(target: Target, words: str, where: str) -> None:
    line = f"$ROCMPIP --python {target.python} install {words} {where}; echo ${{PIPESTATUS[0]}} > code"
    done = run_raw([line], target.env, target.cwd)
    assert "Traceback" not in done.stdout + done.stderr and "Exception ignored" not in done.stderr
    code = int((target.cwd / "code").read_text())
    assert code == (40 if "99" in words else 1 if where == ">/dev/full" else 0), done.stderr


def test_five_at_once(target: Target) -> None:
    """One environment, one cache, one state folder: some may lose against each other, none breaks anything for good."""
    command = [sys.executable, "-m", "rocmpip", "--python", str(target.python), *BUILD]
    running = [
        subprocess.Popen(
            command, env=target.env, cwd=target.cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )
        for _ in range(5)
    ]  # fmt: skip
    outputs = [child.communicate(timeout=240)[0] for child in running]
    assert 0 in [child.returncode for child in running], outputs
    assert not any("failed inside" in output for output in outputs), outputs
    target.ok(*BUILD)
    assert target.torch() == "2.9.1+rocm6.4" and not target.half_done()
    entries = list((target.folder / "state").rglob("tiny_torch_ext-*.whl"))
    assert len(entries) == 1
    target.fresh()
    done = target.ok("install", "torch", "tiny-torch-ext")
    assert "from the wheelhouse" in done.stderr or "compiling" not in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_is_refused_by_the_router(target: Target, tmp_path: Path) -> None:
    from rocmpip.index.client import Client
    from rocmpip.model.request import IndexOptions
    from rocmpip.model.routing import Route
    from rocmpip.router.server import Router

    client = Client(IndexOptions(index_url=target.env["PIP_INDEX_URL"]))
    router = Router(lambda name: Route(name, "plain", indexes=(target.env["PIP_INDEX_URL"],)), client)
    router.start()
    try:
        code = f"import urllib.request as u; print(u.urlopen({router.url.rstrip('/') + '/einops/'!r}, timeout=10).status)"
        mine = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
        assert mine.stdout.strip() == "200", mine.stderr
        # Without Python of ours: the other user may not be able to read it.
        host, port = router.url.split("/")[2].split(":")
        path = "/" + router.url.rstrip("/").split("/", 3)[3] + "/einops/"
        raw = f"exec 3<>/dev/tcp/{host}/{port}; printf 'GET {path} HTTP/1.0\\r\\n\\r\\n' >&3; head -c 500 <&3"
        other = subprocess.run(
            ["bash", "-c", raw], capture_output=True, text=True, timeout=30, check=False, preexec_fn=lambda: os.setuid(65534)
        )
        assert "einops" not in other.stdout and "200" not in other.stdout.partition("\n")[0]
    finally:
        router.close()
        client.close()


def _interpreters() -> dict[str, str]:
    """Version → interpreter that runs, of every Python here that is not too old; our own at least."""
    found = {".".join(map(str, sys.version_info[:2])): sys.executable}
    for version in ("3.10", "3.11", "3.12", "3.13", "3.14"):
        places = [*map(str, sorted(Path(PYENV, "versions").glob(f"{version}.*/bin/python{version}"))), f"python{version}"]
        place = next((place for place in places if _runs(place)), None)
        if place is not None:
            found.setdefault(version, place)
    return found


def _runs(python: str) -> bool:
    try:
        return subprocess.run([python, "-c", ""], capture_output=True, timeout=30, check=False).returncode == 0
    except OSError:
        return False


PYTHONS = _interpreters()


@pytest.mark.parametrize("version", PYTHONS)
def test_the_pythons_of_this_machine(target: Target, version: str) -> None:
    target.fresh(PYTHONS[version])
    rows = target.json("--dry-run", "torch")["result"]["plan"]
    assert f"-cp{version.replace('.', '')}-" in rows[0]["filename"]
    target.ok("install", "-q", "torch", "einops")
    assert target.torch() == "2.9.1+rocm6.4"


@pytest.mark.parametrize("version", ["3.10.14", "3.12.4", "3.13.1", "3.14.0"])
def test_other_pythons(target: Target, tmp_path: Path, version: str) -> None:
    """Whatever runs rocmpip, the plan is for the target's Python."""
    target.python = make_other_python(tmp_path / "other", version)
    rows = target.json("--dry-run", "torch", "einops", ROCMPIP_ROCM="7.2")["result"]["plan"]
    assert rows[0]["name"] == "torch" and f"-cp{''.join(version.split('.')[:2])}-" in rows[0]["filename"]


PIPS = ["23.3.2", "24.3.1", "25.3", "26.3", *(["23.0.1"] if sys.version_info < (3, 12) else [])]


@pytest.mark.parametrize("version", PIPS)
def test_the_targets_own_pip(target: Target, pip_path: Callable[[str], Path], version: str) -> None:
    """That pip runs, whatever its age, and the router's address stays out of its words even when it fails."""
    site = next((target.fresh().parent.parent / "lib").glob("python3*")) / "site-packages"
    for part in pip_path(version).iterdir():
        shutil.copytree(part, site / part.name)
    target.ok("install", "torch", "flash-attn")
    assert target.torch() == "2.9.1+rocm6.4" and target.installed()["flash-attn"] == "2.8.3.post2"
    assert target.installed()["pip"] == version
    target.replica.files.failures["/packages/einops/"] = 404
    done = target.run("install", "-v", "--force-reinstall", "--no-deps", "einops")
    assert done.returncode == 1 and "einops" in done.stderr
