"""pip as a child that shares our terminal and our fate: exit codes, Ctrl-C, SIGTERM, our own death."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rocmpip.model.errors import InputError
from rocmpip.target.pip import PipCommand
from rocmpip.target.run import pip_output, run_pip

STAND_IN = '''
"""Stands in for pip: says what happens to it in a file beside it."""
import os, subprocess, sys, time
folder = os.environ["STAND_IN"]
def say(name, text=""):
    path = os.path.join(folder, name)
    with open(path + ".new", "a") as stream: stream.write(str(text))
    os.replace(path + ".new", path)
say("argv", "|".join(sys.argv))
if sys.argv[1:2] == ["exit"]: sys.exit(int(sys.argv[2]))
if sys.argv[1:2] == ["echo"]:
    print(sys.stdin.read(), end=""); print("to stderr", file=sys.stderr); sys.exit(0)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
say("grandchild", child.pid)
say("pid", os.getpid())
try:
    time.sleep(600)
except KeyboardInterrupt:
    try:
        # A roll-back: a second interrupt here would break it.
        time.sleep(0.3)
    except KeyboardInterrupt:
        say("broken")
    child.kill(); child.wait()
    say("rolled-back")
    sys.exit(1)
'''

DRIVER = """
import os, sys
from rocmpip.model.errors import Interrupted
from rocmpip.target.pip import PipCommand
from rocmpip.target.run import run_pip
try:
    code = run_pip(PipCommand((sys.argv[1], "-m", "pip"), (26, 3)), ["install"], env=os.environ)
except Interrupted as stop:
    code = stop.exit_code
sys.exit(code)
"""


@pytest.fixture
def stand_in(venv: Callable[..., Path], tmp_path: Path) -> tuple[str, Path]:
    """(interpreter with the stand-in as its pip, folder in which the stand-in tells)."""
    python: Path = venv()
    package = next((python.parent.parent / "lib").glob("python3*")) / "site-packages" / "pip"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(STAND_IN)
    told = tmp_path / "told"
    told.mkdir()
    return str(python), told


def command(python: str) -> PipCommand:
    return PipCommand((python, "-m", "pip"), (26, 3))


@pytest.mark.parametrize("code", [0, 1, 2, 23, 120])
def test_pips_exit_code_is_ours(stand_in: tuple[str, Path], clean_env: dict[str, str], code: int) -> None:
    python, told = stand_in
    assert run_pip(command(python), ["exit", str(code)], env={**clean_env, "STAND_IN": str(told)}) == code
    assert (told / "argv").read_text() == f"pip|exit|{code}"


def test_output_that_is_kept(stand_in: tuple[str, Path], clean_env: dict[str, str]) -> None:
    python, told = stand_in
    done = pip_output(command(python), ["echo"], env={**clean_env, "STAND_IN": str(told)})
    assert (done.code, done.stdout, done.stderr) == (0, "", "to stderr\n")


TALKER = """
import sys
print("the first line")
for number in range(200_000): sys.stdout.write(f"row {number} of a long build\\n")
print("the last line", file=sys.stderr)
assert not sys.stdout.isatty() and sys.stdout.fileno() == 1 and sys.stdout.buffer and sys.stdout.encoding
ENDING
"""


@pytest.mark.parametrize(
    ("ending", "code", "last"),
    [
        ("sys.exit(3)", 3, "the last line"),
        ("raise ValueError('a crash')", 1, "ValueError: a crash"),
        ("", 0, None),
        ("sys.exit(0)", 0, None),
    ],
)
def test_what_pip_said_is_kept_when_it_fails(
    stand_in: tuple[str, Path], clean_env: dict[str, str], tmp_path: Path, ending: str, code: int, last: str | None
) -> None:
    """The start and the end of it, whatever its length; after a success there is no file, not even that of an earlier pip."""
    python, _ = stand_in
    main = next(Path(python).parent.parent.glob("lib/python3*/site-packages/pip/__main__.py"))
    main.write_text(TALKER.replace("ENDING", ending))
    said = tmp_path / "said.txt"
    said.write_text("of an earlier pip")
    driver = DRIVER.replace("env=os.environ)", "env=os.environ, transcript=pathlib.Path(sys.argv[2]))")
    words = [sys.executable, "-c", "import pathlib\n" + driver, python, str(said)]
    done = subprocess.run(words, capture_output=True, env=clean_env, check=False)
    assert done.returncode == code
    assert done.stdout.count(b"\n") == 200_001
    if last is None:
        assert not said.exists()
        return
    text = said.read_text()
    assert text.startswith("the first line\nrow 0 of") and text.endswith(last + "\n")
    assert "row 199999 of" in text and len(text) < 5 * 1024 * 1024


def test_stdin_reaches_pip_and_stdout_can_go_to_stderr(stand_in: tuple[str, Path], clean_env: dict[str, str]) -> None:
    python, told = stand_in
    code = DRIVER.replace('["install"], env=os.environ', '["echo"], env=os.environ, stdout_to_stderr=True')
    done = subprocess.run(
        [sys.executable, "-c", code, python],
        input=b"typed",
        capture_output=True,
        env={**clean_env, "STAND_IN": str(told)},
        check=True,
    )
    assert done.stdout == b""
    assert done.stderr == b"typedto stderr\n"


def test_an_interpreter_that_does_not_run(clean_env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "python").write_text("not a program")
    with pytest.raises(InputError, match="does not run"):
        run_pip(command(str(tmp_path / "python")), [], env=clean_env)


def wait_for(happened: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(0.02)


def gone(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"


@pytest.fixture
def running(stand_in: tuple[str, Path], clean_env: dict[str, str]) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """rocmpip's part waiting for a stand-in that works, in a session of their own."""
    python, told = stand_in
    child = subprocess.Popen(
        [sys.executable, "-c", DRIVER, python], env={**clean_env, "STAND_IN": str(told)}, start_new_session=True
    )
    try:
        wait_for(lambda: (told / "pid").exists(), "the start of pip")
        yield child, told
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for name in ("pid", "grandchild"):
            process = int((told / name).read_text())
            if not gone(process):
                os.kill(process, signal.SIGKILL)


Running = tuple["subprocess.Popen[bytes]", Path]


def test_ctrl_c_reaches_pip_once_and_it_rolls_back(running: Running) -> None:
    child, told = running
    os.killpg(child.pid, signal.SIGINT)
    assert child.wait(20) == 130
    assert (told / "rolled-back").exists()
    assert not (told / "broken").exists()


def test_an_interrupt_for_us_alone_is_passed_on(running: Running) -> None:
    child, told = running
    os.kill(child.pid, signal.SIGINT)
    assert child.wait(20) == 130
    assert (told / "rolled-back").exists()
    assert not (told / "broken").exists()


def test_sigterm_ends_pip_and_what_it_started(running: Running) -> None:
    child, told = running
    os.kill(child.pid, signal.SIGTERM)
    assert child.wait(20) == 143
    for name in ("pid", "grandchild"):
        wait_for(lambda name=name: gone(int((told / name).read_text())), f"the end of {name}")  # type: ignore[misc]
    # As after Ctrl-C: pip's temporary folders must not stay behind.
    assert (told / "rolled-back").exists()
    assert not (told / "broken").exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells a child of its parent's death")
def test_pip_dies_with_us(running: Running) -> None:
    child, told = running
    child.kill()
    child.wait(20)
    for name in ("pid", "grandchild"):
        wait_for(lambda name=name: gone(int((told / name).read_text())), f"the end of {name}")  # type: ignore[misc]


REAL_DRIVER = """
import os, sys
from rocmpip.model.errors import Interrupted
from rocmpip.target.environment import find_environment
from rocmpip.target.pip import pip_command
from rocmpip.target.ready import ready_pip
from rocmpip.target.run import neutral_environment, run_pip
env = neutral_environment(os.environ, router_url=sys.argv[2], empty_folder=sys.argv[3])
os.sched_getaffinity = lambda pid: set(range(int(sys.argv[4])))
pip = pip_command(find_environment(sys.argv[1], env=env))
try:
    with ready_pip(pip, os.environ, None) as ready:
        code = run_pip(pip, ["install", "some-package"], env=env, ready=ready)
except Interrupted as stop:
    code = stop.exit_code
sys.exit(code)
"""


@pytest.mark.pip
@pytest.mark.parametrize("processors", [1, 2], ids=["started-then", "ready"])
@pytest.mark.parametrize("with_pip", [True, False])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_real_pip_ends_in_its_own_words(
    venv: Callable[..., Path],
    clean_env: dict[str, str],
    tmp_path: Path,
    with_pip: bool,
    number: int,
    code: int,
    processors: int,
) -> None:
    python = venv(with_pip=with_pip)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/simple/"
        with subprocess.Popen(
            [sys.executable, "-c", REAL_DRIVER, str(python), url, str(tmp_path), str(processors)],
            env=clean_env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as child:
            # pip asks and gets no answer: it is at work when the signal comes.
            connection, _ = server.accept()
            os.killpg(child.pid, number)
            output, _ = child.communicate(timeout=30)
            connection.close()
    assert child.returncode == code
    assert "Traceback" not in output
    if number == signal.SIGINT:
        assert output.count("Operation cancelled by user") == 1


CALLBACK = """
import os, signal, sys, time, weakref
class Thing: pass
thing = Thing()
heard = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGINT))
try:
    del thing
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(7)
sys.exit("the interrupt was lost")
"""


def test_an_interrupt_that_python_drops_comes_once_more(
    stand_in: tuple[str, Path], clean_env: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    """What a weak reference's callback raises goes nowhere: Python prints it and goes on."""
    python, _ = stand_in
    next(Path(python).parent.parent.glob("lib/python3*/site-packages/pip/__main__.py")).write_text(CALLBACK)
    assert run_pip(command(python), [], env=clean_env) == 7
    assert "Traceback" not in capfd.readouterr().err


SHUTDOWN = """
import atexit, os, signal
atexit.register(os.kill, os.getpid(), signal.SIGINT)
"""


def test_an_interrupt_after_pip_is_done_leaves_its_exit_code(
    stand_in: tuple[str, Path], clean_env: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    python, _ = stand_in
    next(Path(python).parent.parent.glob("lib/python3*/site-packages/pip/__main__.py")).write_text(SHUTDOWN)
    assert run_pip(command(python), [], env=clean_env) == 0
    assert capfd.readouterr().err == ""


IGNORING = """
import os, signal, sys
os.kill(os.getppid(), signal.SIGINT)  # rocmpip itself
os.kill(os.getpid(), signal.SIGINT)
sys.exit(5)
"""


def test_interrupts_that_are_ignored_stay_so(stand_in: tuple[str, Path], clean_env: dict[str, str]) -> None:
    """In the background of a script SIGINT is ignored: a Ctrl-C is for what runs in front."""
    python, _ = stand_in
    next(Path(python).parent.parent.glob("lib/python3*/site-packages/pip/__main__.py")).write_text(IGNORING)
    words = ["/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-c", DRIVER, python]
    done = subprocess.run(words, env=clean_env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (5, "")
