"""What the environment of Python says reaches pip, as with the pip command."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import rocmpip

pytestmark = pytest.mark.pip


def test_a_pythonpath_that_names_the_working_directory_counts(
    venv: Callable[..., Path], tmp_path: Path, clean_env: dict[str, str]
) -> None:
    """pip drops a first sys.path entry that is the working directory: that must not be the one of PYTHONPATH."""
    info = tmp_path / "here" / "here.egg-info"
    info.mkdir(parents=True)
    (info / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: here\nVersion: 1.0\n")
    env = {**clean_env, "VIRTUAL_ENV": str(venv(with_pip=True).parent.parent)}
    shown = rocmpip("show", "here", env={**env, "PYTHONPATH": str(info.parent)}, cwd=info.parent)
    assert (shown.returncode, "Name: here" in shown.stdout) == (0, True), shown.stderr
    assert rocmpip("show", "here", env=env, cwd=info.parent).returncode == 1


DROPPED = """
import os, signal, sys, time, weakref
import rocmpip.app.lock
from rocmpip.__main__ import main
class Thing: pass
def work(argv):
    thing = Thing()
    heard = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGINT))
    del thing
    time.sleep(60)
rocmpip.app.lock.main = work
sys.argv[1:] = ["lock", "x"]
sys.exit(main())
"""


def test_an_interrupt_that_python_drops_comes_once_more(clean_env: dict[str, str]) -> None:
    """What a weak reference's callback raises goes nowhere: Python prints it and goes on."""
    done = subprocess.run(
        [sys.executable, "-c", DROPPED], env=clean_env, capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr) == (130, "")
