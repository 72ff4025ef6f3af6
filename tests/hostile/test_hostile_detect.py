"""``rocmpip detect`` on broken trees and in broken surroundings: a note or an error, within seconds, and no escape on the terminal."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.target import run_raw
from tests.support.commands import rocmpip

Sysroot = Callable[..., Path]
NODE = "sys/class/kfd/kfd/topology/nodes/1"


def detect(root: Path, *words: str, **env: str) -> tuple[int, dict[str, Any], str]:
    """(exit code, envelope, the text form) of two runs."""
    full = {**os.environ, "ROCMPIP_SYSROOT": str(root), **env}
    texts = []
    for form in (["--json"], []):
        done = subprocess.run(
            [sys.executable, "-m", "rocmpip", "detect", *form, *words],
            env=full, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False,
        )  # fmt: skip
        said = done.stdout.decode(errors="surrogateescape") + done.stderr.decode(errors="surrogateescape")
        assert "Traceback" not in said and "failed inside" not in said, said
        assert not any(ord(char) < 32 and char != "\n" for char in said), said
        texts.append(done)
    told = json.loads(texts[0].stdout)
    assert texts[0].returncode == texts[1].returncode == (told["errors"][0]["code"] if told["errors"] else 0)
    return texts[0].returncode, told, texts[1].stdout.decode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        random.Random(1).randbytes(100_000),
        b"gfx_target_version " + b"9" * 5000 + b"\n",
        b"gfx_target_version -90402\nsimd_count 1\n",
        b"gfx_target_version 90402\nsimd_count 1216\nvendor_id 4098\nlocation_id " + b"9" * 30 + b"\ndevice_id -5\n",
        b"gfx_target_version\x1b[31m 90402\n\x1b]0;title\x07 1\n",
        "gfx_target_version ９０４０２\n".encode(),
        b"\n" * 1_000_000,
    ],
    ids=lambda content: f"{content[:12]!r}{len(content)}",
)
def test_broken_properties(sysroot: Sysroot, content: bytes) -> None:
    root = sysroot(["mi300x"], "6.4.0-47")
    (root / NODE / "properties").write_bytes(content)
    code, told, _ = detect(root)
    assert code == 0 and (told["result"]["gpus"] or told["result"]["notes"])


@pytest.mark.parametrize("kind", ["fifo", "loop", "folder", "device", "huge"])
def test_what_is_no_plain_file(sysroot: Sysroot, kind: str) -> None:
    root = sysroot(["mi300x"], "6.4.0-47")
    path = root / NODE / "properties"
    content = path.read_bytes()
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
        (root / "dev/zero").symlink_to("zero")
    else:
        path.write_bytes(content)
        os.truncate(path, 100_000_000)
    code, told, _ = detect(root)
    assert code == 0 and any(f"/{NODE}" in note for note in told["result"]["notes"])


def test_a_thousand_nodes_and_names_that_are_none(sysroot: Sysroot) -> None:
    root = sysroot(["mi300x"], "6.4.0-47")
    nodes = (root / NODE).parent
    for number in range(2, 1001):
        shutil.copytree(nodes / "1", nodes / str(number))
    for name in (b"\xff\xfe", b"\x1b[31m", b"9" * 200, b"..x"):
        Path(os.fsdecode(os.fsencode(nodes) + b"/" + name)).mkdir()
    _, told, _ = detect(root)
    assert len(told["result"]["gpus"]) == 1000 and told["result"]["gfx_targets"] == ["gfx942"]


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"6.4.0\x1b[31m-47\n", b"9" * 5000, b"6.4\n" * 1_000_000, b"x.y.z"])
def test_broken_versions(sysroot: Sysroot, content: bytes) -> None:
    root = sysroot(["mi300x"], "6.4.0-47")
    for path in root.glob("opt/rocm-*/.info/version"):
        path.write_bytes(content)
    code, told, _ = detect(root)
    assert code == 0 and told["result"]["rocm"][0]["version"].startswith("6.4")


@pytest.mark.parametrize(
    "place",
    ["/nonsense", "", "\x1b[31m", "/", "/dev/zero", "relative/x", "~", "/proc", "a" * 5000, "/opt/rocm/../../../..", "/a\nb"],
)
def test_roots_that_are_none(sysroot: Sysroot, place: str) -> None:
    code, told, _ = detect(sysroot(["mi300x"], "6.4.0-47"), ROCM_PATH=place, HIP_PATH=place)
    assert code == 0
    assert [row["version"] for row in told["result"]["rocm"] if row["chosen"]] == ["6.4.0"]


@pytest.mark.parametrize(
    ("variable", "value", "code"),
    [
        ("ROCMPIP_GFX", "gfx", 45),
        ("ROCMPIP_GFX", "\x1b[31m", 45),
        ("ROCMPIP_ROCM", "6", 45),
        ("ROCMPIP_ROCM", "９.４", 45),
        ("ROCMPIP_SYSROOT", "/nope", 45),
        ("ROCMPIP_CONFIG", "/dev/zero", 45),
        ("ROCMPIP_CONFIG", "/", 45),
        ("ROCMPIP_PYTHON", "/nope\x1b[31m", 0),
        ("VIRTUAL_ENV", "/dev/zero", 0),
        ("VIRTUAL_ENV", "\udcff", 0),
        ("HIP_VISIBLE_DEVICES", "\x1b", 0),
        ("ROCR_VISIBLE_DEVICES", "GPU-\x1b[31m", 0),
        ("HSA_OVERRIDE_GFX_VERSION", "9" * 5000, 0),
        ("HOME", "/dev/null", 0),
        ("PATH", "", 0),
        ("PYTHONIOENCODING", "ascii:strict", 0),
    ],
    ids=lambda value: ascii(value)[:24],
)
def test_variables(sysroot: Sysroot, variable: str, value: str, code: int) -> None:
    found, told, _ = detect(sysroot(["mi300x"], "6.4.0-47"), **{variable: value})
    assert found == code
    if code:
        assert told["errors"][0]["hint"]


COMMANDS = (
    ("detect", "--json"),
    ("install", "--dry-run", "--json", "x"),
    ("lock", "x"),
    ("doctor", "--json"),
    ("env", "--json"),
    ("build", "x"),
    ("run", "true"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize(("option", "value"), [("gfx", "banana"), ("rocm", "six")])
def test_a_bad_setting_ends_every_command_alike(
    sysroot: Sysroot, tmp_path: Path, command: tuple[str, ...], option: str, value: str
) -> None:
    """On the command line it is wrong usage; in a variable and in a file it is a wrong setting."""
    file = tmp_path / "config.toml"
    file.write_text(f'{option} = "{value}"\n')
    variable = f"ROCMPIP_{option.upper()}"
    env = {**os.environ, "ROCMPIP_SYSROOT": str(sysroot(["mi300x"], "6.4.0-47"))}
    for more, code, source in (({variable: value}, 45, variable), ({"ROCMPIP_CONFIG": str(file)}, 45, str(file))):
        done = rocmpip(*command, env={**env, **more}, cwd=tmp_path)
        assert (done.returncode, source in done.stdout + done.stderr) == (code, True), done.stderr
    if command[0] != "run":
        words = (command[0], f"--{option}", value, *command[1:])
        done = rocmpip(*words, env=env, cwd=tmp_path)
        assert (done.returncode, f"--{option}" in done.stdout + done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("where", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "| head -c 5", ">/dev/full", "2>/dev/full"])
@pytest.mark.parametrize("words", ["detect", "detect --json", "detect --nonsense --json"])
def test_streams(sysroot: Sysroot, tmp_path: Path, words: str, where: str) -> None:
    env = {**os.environ, "ROCMPIP_SYSROOT": str(sysroot(["mi300x"], "6.4.0-47"))}
    done = run_raw([f"$ROCMPIP {words} {where}; echo ${{PIPESTATUS[0]}} > code"], env, tmp_path)
    assert "Traceback" not in done.stdout + done.stderr and "Exception ignored" not in done.stderr
    wanted = 2 if "nonsense" in words else 1 if where == ">/dev/full" else 0
    assert int((tmp_path / "code").read_text()) == wanted, done.stderr


def test_a_working_folder_that_is_gone(sysroot: Sysroot, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    env = {**os.environ, "ROCMPIP_SYSROOT": str(sysroot(["mi300x"], "6.4.0-47"))}
    done = run_raw(["cd gone && rmdir ../gone && $ROCMPIP detect"], env, tmp_path)
    assert done.returncode == 0 and "gfx942" in done.stdout, done.stderr
