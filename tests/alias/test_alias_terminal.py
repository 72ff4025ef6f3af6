"""In a terminal: questions, passwords, progress bars, Ctrl-C and the window's size behave as under pip."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rocmpip.demo.wheels import Wheel
from tests.alias.terminal_servers import private_index, routed_env, slow_index
from tests.support.environments import installed, put

pytestmark = pytest.mark.pip

TRAMPOLINE = (
    "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.executable, sys.argv[1:])"
)


class Terminal:
    """A child on a terminal of its own."""

    def __init__(self, words: list[str], env: dict[str, str], cwd: Path, columns: int = 100, module: str = "rocmpip") -> None:
        self.master, self.slave = pty.openpty()
        slave = self.slave
        self.resize(columns)
        # A width that the environment names would win over the window's, and pip draws no bars where it sees CI.
        env = {name: value for name, value in env.items() if name not in ("COLUMNS", "LINES", "CI")}
        command = [sys.executable, "-c", TRAMPOLINE, sys.executable, "-m", module, *words]
        self.child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=cwd)
        self.said = ""

    def resize(self, columns: int) -> None:
        """Make the window so wide; the kernel tells the programs in it."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))

    def until(self, pattern: str, seconds: float = 60) -> str:
        """Read until ``pattern`` has been said; what was said so far."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.said):
            assert time.monotonic() < end, f"{pattern!r} never came:\n{self.said}"
            self._read(0.2)
            assert self.child.poll() is None or re.search(pattern, self.said) or self._read(0.2), self.said
        return self.said

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self.master], [], [], seconds)
        if ready:
            self.said += os.read(self.master, 65536).decode("utf-8", "replace")
        return bool(ready)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def end(self, seconds: float = 60) -> int:
        """Read until the child has ended; its exit code."""
        end = time.monotonic() + seconds
        while self.child.poll() is None:
            assert time.monotonic() < end, self.said
            self._read(0.1)
        while self._read(0.1):
            pass
        return int(self.child.returncode)

    def echoes(self) -> bool:
        return bool(termios.tcgetattr(self.slave)[3] & termios.ECHO)

    def close(self) -> None:
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        os.close(self.slave)
        os.close(self.master)


@pytest.fixture
def python(venv: Callable[..., Path]) -> Path:
    return venv(with_pip=True)


@pytest.fixture
def start(python: Path, tmp_path: Path, clean_env: dict[str, str]) -> Iterator[Callable[..., Terminal]]:
    """``start("install", …)`` on a machine with a GPU, so that installs are routed."""
    env = routed_env(clean_env, tmp_path, python)
    made: list[Terminal] = []

    def run(*words: str, columns: int = 100, module: str = "rocmpip") -> Terminal:
        made.append(Terminal(list(words), env, tmp_path, columns, module))
        return made[-1]

    yield run
    for one in made:
        one.close()


def test_the_question_of_uninstall(start: Callable[..., Terminal], python: Path) -> None:
    put(python, Wheel("thing", "1.0"))
    terminal = start("uninstall", "thing")
    terminal.until(r"Proceed \(Y/n\)\? ")
    terminal.type("n\n")
    assert terminal.end() == 0
    assert "thing" in installed(python)
    terminal = start("uninstall", "thing")
    terminal.until(r"Proceed \(Y/n\)\? ")
    terminal.type("y\n")
    assert terminal.end() == 0
    assert "Successfully uninstalled thing-1.0" in terminal.said


def test_the_password_of_an_index(start: Callable[..., Terminal], python: Path) -> None:
    with private_index() as index:
        terminal = start("install", "--no-cache-dir", "--index-url", index, "private-thing")
        terminal.until(f"User for {index.split('/')[2]}: ")
        terminal.type("me\n")
        terminal.until("Password: ")
        terminal.type("tr0ub4dor\n")
        assert terminal.end() == 0, terminal.said
    assert "Successfully installed private-thing-1.0" in terminal.said
    assert "tr0ub4dor" not in terminal.said
    assert installed(python)["private-thing"] == "1.0"


def test_a_wrong_password_and_none(start: Callable[..., Terminal]) -> None:
    with private_index() as index:
        terminal = start("install", "--no-cache-dir", "--index-url", index, "private-thing")
        terminal.until("User for ")
        terminal.type("me\n")
        terminal.until("Password: ")
        terminal.type("wrong\n")
        assert terminal.end() == 42
        assert "wants other credentials" in terminal.said
        silent = start("install", "--no-input", "--no-cache-dir", "--index-url", index, "private-thing")
        assert silent.end() == 42
        assert "User for" not in silent.said and "wants credentials" in silent.said


def test_ctrl_c_at_the_password_leaves_the_terminal_as_it_was(start: Callable[..., Terminal]) -> None:
    with private_index() as index:
        terminal = start("install", "--no-cache-dir", "--index-url", index, "private-thing")
        terminal.until("User for ")
        terminal.type("me\n")
        terminal.until("Password: ")
        terminal.type("\x03")
        assert terminal.end() == 130
    assert terminal.echoes()
    assert "Traceback" not in terminal.said


def test_the_windows_width_reaches_pip(start: Callable[..., Terminal]) -> None:
    wide, narrow = start("install", "--help", columns=150), start("install", "--help", columns=60)
    assert (wide.end(), narrow.end()) == (0, 0)
    assert max(map(len, wide.said.splitlines())) > 110
    assert wide.said.count("\n") < narrow.said.count("\n")


def bars(said: str) -> list[str]:
    """The progress bars of what a terminal got, each as it was drawn, without colours and movements of the cursor."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said)
    return [line.rstrip() for line in re.split(r"[\r\n]+", plain) if "\u2501" in line]


@pytest.mark.parametrize("module", ["pip", "rocmpip"])
def test_the_progress_bar_follows_the_window(start: Callable[..., Terminal], python: Path, module: str) -> None:
    with slow_index() as (index, rest):
        target = ["--python", str(python)] if module == "pip" else []
        terminal = start(*target, "install", "--no-cache-dir", "--index-url", index, "large-thing", columns=120, module=module)
        terminal.until(r"1\.\d+/3\.\d MB")
        wide, before = bars(terminal.said), len(terminal.said)
        terminal.resize(46)
        terminal.until(rf"(?s)^.{{{before}}}(?:.*?\x1b\[2K){{8}}")  # drawn anew a few times
        rest.set()
        assert terminal.end() == 0, terminal.said
    narrow = bars(terminal.said[before:])
    assert max(map(len, wide)) > 60
    assert narrow and len(narrow[-1]) <= 46
    assert installed(python)["large-thing"] == "1.0"
