"""pip itself as a person meets it behind rocmpip: every pip in use, its progress and colours on a terminal, its exit code."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import rocmpip
from tests.support.environments import installed, site_packages
from tests.support.replica import Replica

pytestmark = pytest.mark.pip

VERSIONS = ["23.3.2", "24.3.1", "26.3"]
if sys.version_info < (3, 12):
    VERSIONS.insert(0, "23.0.1")


@pytest.fixture
def env(replica: Replica, tmp_path: Path) -> dict[str, str]:
    (tmp_path / "machine").mkdir()
    return replica.env(tmp_path, ROCMPIP_SYSROOT=str(tmp_path / "machine"), ROCMPIP_GFX="gfx942", ROCMPIP_ROCM="6.4")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_environments_own_pip_does_it(
    version: str, env: dict[str, str], venv: Callable[..., Path], pip_path: Callable[[str], Path]
) -> None:
    python = venv()
    shutil.copytree(pip_path(version), site_packages(python), dirs_exist_ok=True)
    done = rocmpip("install", "--python", str(python), "accelerate", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert installed(python)["torch"] == "2.9.1+rocm6.4"
    assert installed(python)["pip"] == version
    assert "Successfully installed" in done.stdout


def on_a_terminal(command: list[str], env: dict[str, str]) -> tuple[int, str]:
    """Run a command whose three streams are one terminal; (exit code, what was seen there)."""
    ours, theirs = pty.openpty()
    # pip draws no bars where it sees CI.
    env = {name: value for name, value in env.items() if name not in ("COLUMNS", "LINES", "CI")}
    with subprocess.Popen(command, env={**env, "TERM": "xterm"}, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other side is closed: how a pty says that it is over
                break
            if not part:
                break
            seen += part
    os.close(ours)
    return process.returncode, seen.decode("utf-8", "replace")


def test_pips_progress_colours_and_exit_code_reach_the_terminal(
    env: dict[str, str], venv: Callable[..., Path], pip_path: Callable[[str], Path]
) -> None:
    python = venv()
    shutil.copytree(pip_path("26.3"), site_packages(python), dirs_exist_ok=True)
    command = [sys.executable, "-m", "rocmpip", "install", "--python", str(python)]
    code, seen = on_a_terminal([*command, "accelerate"], env)
    assert code == 0, seen
    assert "\x1b[32;1mrocmpip:\x1b[0m torch 2.9.1+rocm6.4 from" in seen
    bar = seen.rpartition("Installing collected packages")[2]
    assert "━" in bar and "\x1b[?25l" in bar
    assert "Successfully installed" in bar
    code, seen = on_a_terminal([*command, "requests==99"], env)
    assert code == 1
    assert "\x1b[31mERROR: No matching distribution found for requests==99" in seen
