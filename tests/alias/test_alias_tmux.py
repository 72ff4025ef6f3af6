"""The same in tmux, a terminal that people use: what stands on its screen is what they see."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rocmpip.demo.wheels import Wheel
from tests.alias.terminal_servers import private_index, routed_env, slow_index
from tests.support.environments import installed, put

pytestmark = [pytest.mark.pip, pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")]
_LIMIT = 90.0


class Window:
    """One window of a tmux server of its own, with one command in it."""

    def __init__(self, socket: Path, env: dict[str, str], cwd: Path, words: list[str], columns: int) -> None:
        self._words = ["tmux", "-u", "-S", str(socket), "-f", "/dev/null"]
        self._env = {name: value for name, value in env.items() if name not in ("COLUMNS", "LINES", "CI", "TMUX")}
        # The shell outlives the command, and Ctrl-C too: the last words stay on the screen.
        line = f'trap : INT; {shlex.join(words)}; echo "ended with $?"; read -r end'
        self.tmux("new-session", "-d", "-x", str(columns), "-y", "40", "-c", str(cwd), "sh", "-c", line)

    def tmux(self, *words: str) -> str:
        done = subprocess.run([*self._words, *words], env=self._env, capture_output=True, text=True, timeout=30, check=True)
        return done.stdout

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def until(self, pattern: str) -> str:
        """Look until ``pattern`` stands on the screen; the screen then."""
        end = time.monotonic() + _LIMIT
        while not re.search(pattern, seen := self.screen()):
            assert time.monotonic() < end, f"{pattern!r} never came:\n{seen}"
            time.sleep(0.05)
        return seen

    def line(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")

    def end(self) -> tuple[int, str]:
        """The command's exit code, and the screen at its end."""
        seen = self.until(r"ended with \d+")
        match = re.search(r"ended with (\d+)", seen)
        assert match is not None
        return int(match.group(1)), seen

    def close(self) -> None:
        subprocess.run([*self._words, "kill-server"], env=self._env, capture_output=True, timeout=30, check=False)


Start = Callable[..., Window]


@pytest.fixture
def python(venv: Callable[..., Path]) -> Path:
    return venv(with_pip=True)


@pytest.fixture
def start(python: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, clean_env: dict[str, str]) -> Iterator[Start]:
    """``start("install", …)`` on a machine with a GPU, so that installs are routed; ``module="pip"`` for pip itself."""
    env = {**routed_env(clean_env, tmp_path, python), "LC_ALL": "C.UTF-8"}
    made: list[Window] = []

    def run(*words: str, module: str = "rocmpip", columns: int = 100) -> Window:
        target = ["--python", str(python)] if module == "pip" else []
        # A socket's path may have 107 bytes.
        socket = tmp_path_factory.mktemp("t") / "s"
        made.append(Window(socket, env, tmp_path, [sys.executable, "-m", module, *target, *words], columns))
        return made[-1]

    yield run
    for one in made:
        one.close()


def test_the_question_of_uninstall(start: Start, python: Path) -> None:
    put(python, Wheel("thing", "1.0"))
    for answer, left in (("n", True), ("y", False)):
        window = start("uninstall", "thing")
        window.until(r"Proceed \(Y/n\)\?")
        window.line(answer)
        code, seen = window.end()
        assert code == 0, seen
        assert ("Successfully uninstalled thing-1.0" not in seen) is left
        assert any(python.parent.parent.rglob("thing/__init__.py")) is left


def test_a_password_is_asked_for_and_not_shown(start: Start, python: Path) -> None:
    with private_index() as index:
        window = start("install", "--no-cache-dir", "--index-url", index, "private-thing")
        window.until("User for .*:")
        window.line("me")
        window.until("Password:")
        window.line("tr0ub4dor")
        code, seen = window.end()
    assert code == 0, seen
    assert "tr0ub4dor" not in seen
    assert installed(python)["private-thing"] == "1.0"


@pytest.mark.parametrize("module", ["pip", "rocmpip"])
def test_ctrl_c_in_a_download_is_told_in_pips_words(start: Start, python: Path, module: str) -> None:
    with slow_index() as (index, _):
        window = start("install", "--no-cache-dir", "--index-url", index, "large-thing", module=module)
        window.until(r"1\.\d+/3\.\d MB")
        window.tmux("send-keys", "C-c")
        code, seen = window.end()
    assert "ERROR: Operation cancelled by user" in seen
    assert "Traceback" not in seen
    assert code == (1 if module == "pip" else 130)
    assert "large-thing" not in installed(python)


def test_the_progress_bar_follows_the_window(start: Start, python: Path) -> None:
    with slow_index() as (index, rest):
        window = start("install", "--no-cache-dir", "--index-url", index, "large-thing", columns=120)
        wide = window.until(r"[━╸╺]{40} 1\.\d+/3\.\d MB")
        window.tmux("resize-window", "-x", "46", "-y", "40")
        narrow = window.until(r"(?m)^ *[━╸╺]{3,30} 1\.\d+/3\.\d ")
        rest.set()
        code, seen = window.end()
    assert code == 0, seen
    assert max(map(len, wide.splitlines())) > 60
    assert max(len(line) for line in narrow.splitlines()) <= 46
    assert installed(python)["large-thing"] == "1.0"
