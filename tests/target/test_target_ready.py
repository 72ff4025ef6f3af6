"""A pip that loads itself while the plan is made: the same pip, only sooner; and no trace of one that is not wanted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from rocmpip.target.pip import PipCommand
from rocmpip.target.ready import ReadyPip, ready_pip
from rocmpip.target.run import run_pip
from tests.target.test_target_run import gone, wait_for

TELLER = """
import json, os, sys
if sys.argv[1:] == ["install", "--help"]:
    print("help"); print("a warning", file=sys.stderr)
    sys.path.insert(0, "changed")
    sys.exit(0)
state = {"argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd(), "pid": os.getpid(), "path": sys.path, "typed": sys.stdin.read()}
with open(os.environ["TOLD"], "w") as stream: json.dump(state, stream)
print("from pip")
sys.exit(7)
"""

DRIVER = """
import os, sys
from pathlib import Path
from rocmpip.target.pip import PipCommand
from rocmpip.target.ready import ready_pip
from rocmpip.target.run import run_pip
os.sched_getaffinity = lambda pid: set(range(int(sys.argv[2])))
pip = PipCommand((sys.argv[1], "-m", "pip"), (26, 3))
env = {**os.environ, "PIP_INDEX_URL": "http://127.0.0.1:9/", "ODD": "\\udc80", "no_proxy": "127.0.0.1"}
with ready_pip(pip, os.environ, sys.argv[3]) as ready:
    assert (ready is None) == (sys.argv[2] == "1")
    sys.exit(run_pip(pip, ["install", "a b", "c"], env=env, cwd=sys.argv[3], stdout_to_stderr=sys.argv[4] == "stderr", ready=ready))
"""


@pytest.fixture
def python(venv: Callable[..., Path]) -> Path:
    """The interpreter of an environment whose pip tells what it was given."""
    found: Path = venv()
    package = next((found.parent.parent / "lib").glob("python3*")) / "site-packages" / "pip"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(TELLER)
    return found


def told(python: Path, folder: Path, env: Mapping[str, str], processors: int, stream: str) -> tuple[object, ...]:
    import json

    said = folder / f"told-{processors}.json"
    words = [sys.executable, "-W", "error", "-c", DRIVER, str(python), str(processors), str(folder), stream]
    done = subprocess.run(
        words, input="typed", env={**env, "TOLD": str(said), "PIP_QUIET": "1"}, capture_output=True, text=True, check=False
    )
    state = json.loads(said.read_text())
    state["env"].pop("TOLD")
    state.pop("pid")
    return done.returncode, done.stdout, done.stderr, state


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_it_is_the_pip_that_would_be_started(python: Path, clean_env: dict[str, str], tmp_path: Path, stream: str) -> None:
    """Arguments, environment, working directory, module path, stdin, streams and exit code."""
    alone = told(python, tmp_path, clean_env, 1, stream)
    assert told(python, tmp_path, clean_env, 2, stream) == alone
    code, out, err, state = alone
    assert code == 7
    assert (out, err) == (("from pip\n", "") if stream == "stdout" else ("", "from pip\n"))
    assert isinstance(state, dict) and state["typed"] == "typed" and state["argv"] == ["pip", "install", "a b", "c"]
    assert state["env"]["PIP_INDEX_URL"] == "http://127.0.0.1:9/" and state["env"]["ODD"] == "\udc80"


def pip(python: Path) -> PipCommand:
    return PipCommand((str(python), "-m", "pip"), (26, 3))


def test_its_process_becomes_pip(python: Path, clean_env: dict[str, str], tmp_path: Path) -> None:
    import json

    env = {**clean_env, "TOLD": str(tmp_path / "told.json")}
    ready = ReadyPip(pip(python), env, None)
    child = ready._child
    assert child is not None
    assert run_pip(pip(python), ["x"], env=env, ready=ready) == 7
    assert json.loads((tmp_path / "told.json").read_text())["pid"] == child.pid
    assert run_pip(pip(python), ["x"], env=env, ready=ready) == 7, "it serves once; then pip is started"
    assert json.loads((tmp_path / "told.json").read_text())["pid"] != child.pid
    ready.dismiss()


@pytest.mark.parametrize(
    ("more", "cwd"),
    [({"PYTHONPATH": "elsewhere"}, None), ({"LD_LIBRARY_PATH": "/opt"}, None), ({"LC_ALL": "C"}, None), ({}, "/")],
)
def test_it_is_left_alone_where_it_was_started_as_something_else(
    python: Path, clean_env: dict[str, str], tmp_path: Path, more: dict[str, str], cwd: str | None
) -> None:
    env = {**clean_env, "TOLD": str(tmp_path / "told.json"), **more}
    ready = ReadyPip(pip(python), clean_env, None)
    child = ready._child
    assert child is not None
    assert ready.take(pip(python), ["x"], env, cwd, stdout_to_stderr=False) is None
    assert run_pip(pip(python), ["x"], env=env, cwd=cwd, ready=ready) == 7
    ready.dismiss()
    assert child.returncode == 0


@pytest.mark.parametrize("when", ["early", "late"])
def test_one_that_dies_is_not_missed(python: Path, clean_env: dict[str, str], tmp_path: Path, when: str) -> None:
    env = {**clean_env, "TOLD": str(tmp_path / "told.json")}
    with ready_pip(pip(python), env, None) as ready:
        if ready is not None:
            child = ready._child
            assert child is not None
            if when == "late":
                time.sleep(0.3)
            child.kill()
        assert run_pip(pip(python), ["x"], env=env, ready=ready) == 7


def test_a_pip_that_cannot_even_print_its_help_tells_when_it_is_run(
    python: Path, clean_env: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    next(python.parent.parent.glob("lib/python3*/site-packages/pip/__main__.py")).write_text("raise SystemExit('broken pip')")
    ready = ReadyPip(pip(python), clean_env, None)
    assert run_pip(pip(python), ["install"], env=clean_env, ready=ready) == 1
    ready.dismiss()
    assert capfd.readouterr() == ("", "broken pip\n")


WAITING = """
import os, sys, time
from rocmpip.target.pip import PipCommand
from rocmpip.target.ready import ReadyPip
ready = ReadyPip(PipCommand((sys.argv[1], "-m", "pip"), (26, 3)), os.environ, None)
print(ready._child.pid, flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    ready.dismiss()
    sys.exit(9)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere nothing gets ready")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_one_that_waits_hears_no_interrupt_and_ends_with_its_maker(
    python: Path, clean_env: dict[str, str], number: signal.Signals
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAITING, str(python)],
        env=clean_env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        assert child.stdout is not None
        waiting = int(child.stdout.readline())
        os.kill(waiting, signal.SIGINT)
        time.sleep(0.2)
        assert not gone(waiting)
        if number == signal.SIGINT:
            os.killpg(child.pid, number)
        else:
            child.kill()
        _, said = child.communicate(timeout=20)
    assert (child.returncode, said) == ((9, "") if number == signal.SIGINT else (-9, ""))
    wait_for(lambda: gone(waiting), "the end of the pip that waits")
