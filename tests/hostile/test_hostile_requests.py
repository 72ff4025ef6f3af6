"""Requirement files and options as nobody should write them: an answer in words and in time, never a traceback."""

from __future__ import annotations

import hashlib
import json
import os
import random

import pytest

from tests.hostile.target import Target, load, run_raw

pytestmark = pytest.mark.pip


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"-r r.txt\ntorch\n", 1),
        (random.Random(7).randbytes(5000), 1),
        (b"torch\0\neinops\n", 1),
        (b"# -*- coding: nosuch -*-\ntorch\n", 1),
        (b"# -*- coding: zip -*-\ntorch\n", 1),
        (b"torch; " + b"(" * 3000 + b"os_name" + b")" * 3000, 1),
        (b"torch " + b"(" * 3000, 1),
        (b"torch==2.9.1\x1b[31m\n", 1),
        (b"--no-such-option\ntorch\n", 1),
        (b"--index-url\ntorch\n", 1),
        (b"", 0),
        (b"\xef\xbb\xbftorch==2.9.1\r\neinops\r\n", 0),
        ("torch==2.9.1\n".encode("utf-16"), 0),
        (b"# caf\xe9\ntorch\n", 0),
        (b"einops\n" * 10_000, 0),
        (b"torch[" + b",".join(b"e%d" % number for number in range(1000)) + b"]\n", 0),
        (b"torch; python_version < '3'\n", 0),
    ],
    ids=lambda value: repr(value[:16]) + str(len(value)) if isinstance(value, bytes) else str(value),
)
def test_files(target: Target, content: bytes, code: int) -> None:
    (target.cwd / "r.txt").write_bytes(content)
    told = target.json("--dry-run", "-r", "r.txt", code=code, timeout=60)
    if code:
        assert told["errors"][0]["message"]


@pytest.mark.parametrize("line", [b"\0", b"torch\n"], ids=["binary", "lines"])
def test_a_file_of_100_megabytes(target: Target, line: bytes) -> None:
    (target.cwd / "r.txt").write_bytes(line * (100_000_000 // len(line)))
    error = target.json("--dry-run", "-r", "r.txt", code=1, timeout=60)["errors"][0]
    assert "too large" in error["message"] and error["hint"]


def test_files_that_are_no_files(target: Target) -> None:
    for place in ("/", "/dev/zero", "/dev/null/x", "missing.txt", "-", "", "a" * 5000):
        target.json("--dry-run", "-r", place, code=1, timeout=60)
    os.mkfifo(target.cwd / "pipe")
    done = run_raw(["(echo torch > pipe) & $ROCMPIP install --dry-run --json --python", str(target.python), "-r pipe"],
                   target.env, target.cwd)  # fmt: skip
    assert load(done.stdout)["result"]["plan"][0]["name"] == "torch"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--timeout", "nan", "torch"), 2),
        (("--timeout", "-5", "torch"), 2),
        (("--timeout", "0", "torch"), 2),
        (("--retries", "x", "torch"), 2),
        (("--config-settings", "x", "torch"), 2),
        (("--no-such",), 2),
        (("-r",), 2),
        (("--python",), 2),
        (("--index-url", "x", "einops"), 42),
        (("--proxy", "http://127.0.0.1:1", "--retries", "0", "einops"), 42),
        (("törch",), 1),
        (("torch; foo == 'x'",), 1),
        (("/etc/passwd",), 1),
        (("./nothing.whl",), 1),
        ((".",), 1),
        (("torch==99999999999999999999.0",), 40),
        (("torch==1!2.9.1",), 40),
        (("nvidia-cublas-cu12",), 40),
        (("--only-binary", ":all:", "flash-attn", "torch"), 40),
        (("--no-binary", ":all:", "torch"), 40),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_words(target: Target, words: tuple[str, ...], code: int) -> None:
    error = target.json("--dry-run", *words, code=code)["errors"][0]
    assert error["message"] and "failed inside" not in error["message"]


def test_interpreters_that_are_none(target: Target) -> None:
    target.file("not-executable", "#!/bin/sh\n")
    broken = target.fresh()
    for name in ("python3.11", "python", "python3"):
        (broken.parent / name).unlink(missing_ok=True)
    (broken.parent / "python").write_text("#!/bin/sh\nexit 3\n")
    (broken.parent / "python").chmod(0o755)
    talking = target.cwd / "talks"
    talking.write_text("#!/bin/sh\nprintf 'rocmpip-interpreter:{]\\n'\n")
    talking.chmod(0o755)
    for place in (
        "/nope",
        "/etc/passwd",
        "/dev/zero",
        str(target.cwd),
        "not-executable",
        str(talking),
        str(broken),
        "\x1b[31m",
    ):
        done = run_raw([f"$ROCMPIP --python $'{place}' install --dry-run --json torch".replace("\x1b", "\\e")],
                       target.env, target.cwd)  # fmt: skip
        told = load(done.stdout)
        assert done.returncode == 1 and told["errors"][0]["message"], (place, done.stdout)
        assert "Traceback" not in done.stderr
    done = run_raw(["$ROCMPIP install --dry-run --json torch"], {**target.env, "VIRTUAL_ENV": "/gone"}, target.cwd)
    assert load(done.stdout)["errors"][0]["code"] == 1


def test_hash_mode(target: Target) -> None:
    """The right hashes install and are checked; another build's, or none, are told as what they are."""
    rows = target.json("--dry-run", "torch==2.9.1")["result"]["plan"]
    right = "".join(f"{row['name']}=={row['version']} --hash=sha256:{row['sha256']}\n" for row in rows)
    target.ok("install", "-q", "--require-hashes", "-r", target.file("right.txt", right))
    assert target.torch() == "2.9.1+rocm6.4"
    target.fresh()
    wrong = right.replace(rows[0]["sha256"], "0" * 64)
    words = ("--require-hashes", "-r", target.file("wrong.txt", wrong))
    error = target.json(*words, code=1)["errors"][0]
    assert error["message"].startswith("none of the hashes of torch==2.9.1+rocm6.4 (wrong.txt:1) is that of a ROCm build")
    done = target.run("install", *words)
    assert done.returncode == 1 and "none of the hashes of torch" in done.stderr and target.installed() == {}
    other = right.replace(rows[-1]["sha256"], "0" * 64)
    words = ("--require-hashes", "-r", target.file("other.txt", other))
    assert rows[-1]["name"] in target.json(*words, code=40)["errors"][0]["message"]
    assert target.run("install", *words).returncode == 1 and target.installed() == {}
    einops = next(row for row in target.json("--dry-run", "einops")["result"]["plan"])
    text = f"torch==2.9.1\neinops==0.8.1 --hash=sha256:{einops['sha256']}\n"
    error = target.json("-r", target.file("missing.txt", text), code=1)["errors"][0]
    assert "torch==2.9.1" in error["message"] and target.installed() == {}


def test_a_report_of_all_steps(target: Target) -> None:
    """--report: pip runs more than once, and there is one report, with the files' own places."""
    for words in (("--dry-run",), ()):
        target.ok("install", "-q", *words, "--report", "r.json", "torch", "einops")
        report = json.loads((target.cwd / "r.json").read_text())
        rows = {row["metadata"]["name"].lower(): row for row in report["install"]}
        assert report["version"] == "1" and {"torch", "einops", "filelock", "pytorch-triton-rocm"} <= set(rows)
        assert [name for name, row in sorted(rows.items()) if row["requested"]] == ["einops", "torch"]
        assert "/whl/rocm6.4/torch-2.9.1" in rows["torch"]["download_info"]["url"]
        assert rows["einops"]["download_info"]["url"].startswith(target.replica.files.url)


@pytest.mark.parametrize("place", ["--target", "--prefix", "--root"])
def test_other_places(target: Target, place: str) -> None:
    target.ok("install", "-q", place, str(target.folder / "place"), "torch")
    assert target.installed() == {}
    assert list((target.folder / "place").rglob("torch-2.9.1+rocm6.4.dist-info"))


def test_ways_to_install(target: Target) -> None:
    target.ok("install", "-q", "--no-deps", "torch==2.8.0")
    assert target.installed() == {"torch": "2.8.0+rocm6.4"}
    target.ok("install", "-q", "-U", "--upgrade-strategy", "eager", "torch")
    assert target.torch() == "2.9.1+rocm6.4"
    init = next((target.python.parent.parent / "lib").glob("python3*")) / "site-packages" / "torch" / "__init__.py"
    before = init.stat().st_ino, init.stat().st_mtime_ns
    target.ok("install", "-q", "--force-reinstall", "--no-deps", "torch")
    assert (init.stat().st_ino, init.stat().st_mtime_ns) != before
    target.ok("install", "-q", "--pre", "--ignore-installed", "torch")
    assert target.torch() == "2.9.1+rocm6.4"


def test_a_wheel_given_by_hand_is_checked(target: Target) -> None:
    """A local file with the hash of another: nothing of it is installed."""
    wheel = next(artifact for artifact, _ in target.replica.simple.projects["einops"] if "0.8.1" in artifact.filename)
    target.file(wheel.filename, wheel.content[:200])
    error = target.json(f"./{wheel.filename}", code=1)["errors"][0]
    assert f"{wheel.filename} cannot be used: it is no wheel" in error["message"] and error["hint"]
    done = target.run("install", f"./{wheel.filename}")
    assert done.returncode == 1 and "einops" in done.stderr
    assert "einops" not in target.installed()
    target.file(wheel.filename, wheel.content)
    digest = hashlib.sha256(wheel.content).hexdigest()
    target.ok("install", "-q", "-r", target.file("r.txt", f"./{wheel.filename} --hash=sha256:{digest}\n"))
    assert target.installed() == {"einops": "0.8.1"}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("torch", "--uploaded-prior-to", "2020-01-01"), 44),
        (("accelerate", "--only-deps"), 44),
        (("-r", "pylock.toml"), 40),
        (("-r", "pylock.missing.toml"), 1),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_promises_that_cannot_be_kept(target: Target, words: tuple[str, ...], code: int) -> None:
    """Never in silence: an upload date that ROCm's indexes do not know, a lock with a CUDA torch."""
    wheel = "torch-2.9.1-cp311-cp311-manylinux_2_28_x86_64.whl"
    target.file(
        "pylock.toml",
        'lock-version = "1.0"\ncreated-by = "x"\n[[packages]]\nname = "torch"\nversion = "2.9.1"\n[[packages.wheels]]\n'
        f'name = "{wheel}"\nurl = "https://files.example/{wheel}"\nhashes = {{sha256 = "{"0" * 64}"}}\n',
    )
    for dry in ("--dry-run",), ():
        error = target.json(*dry, *words, code=code)["errors"][0]
        assert error["message"]
    assert target.run("install", *words).returncode == code
    assert target.installed() == {}
