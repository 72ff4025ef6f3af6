"""One child of a build: its log, its progress, and that nothing of it is left when it is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rocmpip.build.run import Log, ninja_count, plain, run_logged
from rocmpip.model.errors import Interrupted


def sh(script: str, log: Log, tmp_path: Path, **more: object) -> int:
    return run_logged(["/bin/sh", "-c", script], env=dict(os.environ), cwd=tmp_path, log=log, **more)  # type: ignore[arg-type]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "logs" / "build.log", ("hunter22",))


def text(log: Log) -> str:
    log.flush()
    return log.path.read_text()


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(condition, seconds: float = 10.0) -> bool:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def test_both_streams_and_the_exit_code(log: Log, tmp_path: Path) -> None:
    assert sh("echo out; echo err >&2; exit 3", log, tmp_path) == 3
    assert sorted(text(log).split()) == ["err", "out"]


def test_a_signal_is_told(log: Log, tmp_path: Path) -> None:
    assert sh("kill -9 $$", log, tmp_path) == -9


def test_the_log_is_private_and_has_no_secret(log: Log, tmp_path: Path) -> None:
    script = "echo password hunter22; echo https://me:token@pypi.example/x; printf 'no newline hunter22'"
    assert sh(script, log, tmp_path) == 0
    assert "hunter22" not in text(log) and "me:token" not in text(log) and text(log).count("****") == 3
    assert log.path.stat().st_mode & 0o077 == 0


def test_progress_without_escapes(log: Log, tmp_path: Path) -> None:
    seen: list[tuple[str, tuple[int, int] | None]] = []
    script = "printf '\\033[32m[3/9] c++ a.o\\033[0m\\n'; sleep 0.6; printf 'a\\rb\\r'; sleep 0.6"
    assert sh(script, log, tmp_path, on_beat=lambda line, count: seen.append((line, count))) == 0
    assert ("[3/9] c++ a.o", (3, 9)) in seen
    assert ("b", (3, 9)) in seen
    assert "\x1b[32m" in text(log), "the full log keeps what came"


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("[12/345] c++", (12, 345)),
        ("  [1/2] x", (1, 2)),
        ("[1/2", None),
        ("see [3/4]", None),
        ("[a/b] c", None),
        ("[99999999/1]", None),
    ],
)
def test_ninja(line: str, count: tuple[int, int] | None) -> None:
    assert ninja_count(line) == count


def test_plain() -> None:
    assert plain("\x1b]0;title\x07a\x1b[1;31mb\x1b[K\x00c\td") == "abc\td"


def test_a_background_server_is_neither_waited_for_nor_left(log: Log, tmp_path: Path) -> None:
    """A compile cache's server keeps the pipe open; in the build's group it goes with it."""
    assert sh("(sleep 300; touch waited) & echo $! > pid; echo done", log, tmp_path) == 0
    assert not (tmp_path / "waited").exists()
    assert wait_for(lambda: not alive(int((tmp_path / "pid").read_text())))
    assert "done" in text(log)


def test_output_after_the_pipe_was_closed(log: Log, tmp_path: Path) -> None:
    assert sh("exec >&- 2>&-; sleep 0.4; exit 5", log, tmp_path) == 5


def test_a_very_long_line(log: Log, tmp_path: Path) -> None:
    assert sh("head -c 3000000 /dev/zero | tr '\\0' x", log, tmp_path) == 0
    assert text(log).replace("\n", "") == "x" * 3_000_000


def test_stubborn_children_are_killed_when_we_stop(log: Log, tmp_path: Path) -> None:
    """A grandchild that ignores SIGTERM ends all the same."""
    script = (
        f"{sys.executable} -c 'import signal,time,os; signal.signal(15, signal.SIG_IGN); "
        'open("pid","w").write(str(os.getpid())); time.sleep(300)\' & wait'
    )

    def stop(line: str, count: object) -> None:
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sh(script, log, tmp_path, on_beat=stop)
    assert wait_for(lambda: not alive(int((tmp_path / "pid").read_text())))


_CHILD = """
import os, sys
from pathlib import Path
from rocmpip.build.run import Log, run_logged, sigterm_raises
from rocmpip.model.errors import Interrupted
folder = Path(sys.argv[1])
log = Log(folder / "log")
try:
    with sigterm_raises():
        run_logged(["/bin/sh", "-c", "sleep 300 & echo $! > deep; echo $$ > top; wait"], env=dict(os.environ), cwd=folder, log=log)
except (KeyboardInterrupt, Interrupted) as problem:
    print(type(problem).__name__, getattr(problem, "exit_code", ""), flush=True)
"""


@pytest.mark.parametrize(("number", "words"), [(signal.SIGINT, "KeyboardInterrupt"), (signal.SIGTERM, "Interrupted 143")])
def test_ctrl_c_and_sigterm_end_the_whole_group(number: int, words: str, tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", _CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert wait_for(lambda: (tmp_path / "top").exists() and (tmp_path / "top").read_text().strip() != "")
    child.send_signal(number)
    out, _ = child.communicate(timeout=30)
    assert out.strip() == words
    for name in ("top", "deep"):
        assert not alive(int((tmp_path / name).read_text()))


def test_in_a_thread_signals_are_left_alone(log: Log, tmp_path: Path) -> None:
    from rocmpip.build.run import sigterm_raises

    codes = []

    def work() -> None:
        with sigterm_raises():
            codes.append(sh("exit 0", log, tmp_path))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert codes == [0]
    assert issubclass(Interrupted, Exception)


def test_ulimits_reach_the_child(log: Log, tmp_path: Path) -> None:
    import resource

    wanted = min(16_384, resource.getrlimit(resource.RLIMIT_STACK)[1] // 1024) if resource.getrlimit(
        resource.RLIMIT_STACK
    )[1] != resource.RLIM_INFINITY else 16_384  # fmt: skip
    code = sh("ulimit -s; ulimit -n", log, tmp_path, ulimits={"stack": wanted, "nofile": 321, "other": 5})
    assert code == 0 and text(log).split() == [str(wanted), "321"]


def test_a_hard_limit_is_told(log: Log, tmp_path: Path) -> None:
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert sh("ulimit -n", log, tmp_path, ulimits={"nofile": hard * 2}) == 0
    assert "less than" in text(log) and text(log).split()[-1] == str(hard)
