"""A build does not go on for an install that is over, however that ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rocmpip.build.run import Log, run_logged

PROGRAM = """
import sys
from pathlib import Path
from rocmpip.build.run import Log, run_logged
folder = Path(sys.argv[1])
compiler = ["/bin/sh", "-c", 'sleep 300 & echo $! > child; echo $$ > parent.new; mv parent.new parent; wait']
run_logged(compiler, env={"PATH": "/usr/bin:/bin"}, cwd=folder, log=Log(folder / "log"))
"""


def alive(process: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def wait_until_gone(*processes: int) -> None:
    end = time.monotonic() + 30
    while any(map(alive, processes)):
        assert time.monotonic() < end, "a compiler is left"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_compilers_end_with_their_maker(tmp_path: Path, number: signal.Signals) -> None:
    maker = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stderr=subprocess.DEVNULL)
    end = time.monotonic() + 30
    while not (tmp_path / "parent").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    compilers = [int((tmp_path / name).read_text()) for name in ("parent", "child")]
    assert all(map(alive, compilers))
    maker.send_signal(number)
    maker.wait(30)
    wait_until_gone(*compilers)


def test_a_build_that_ends_leaves_no_guard(tmp_path: Path) -> None:
    before = set(Path("/proc").glob("[0-9]*"))
    files = len(list(Path("/proc/self/fd").iterdir()))
    log = Log(tmp_path / "log")
    assert run_logged(["/bin/sh", "-c", "echo built; exit 3"], env={"PATH": "/usr/bin:/bin"}, cwd=tmp_path, log=log) == 3
    log.close()
    assert "built" in (tmp_path / "log").read_text()
    mine = [path for path in set(Path("/proc").glob("[0-9]*")) - before if parent_of(path) == os.getpid()]
    assert mine == []
    assert len(list(Path("/proc/self/fd").iterdir())) <= files


def parent_of(process: Path) -> int:
    with contextlib.suppress(OSError):
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    return 0
