"""Ctrl-C, SIGTERM and kill -9 at the turning points of an install: no orphan, no half torch, no folder left, and the next run succeeds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from tests.hostile.target import Target, processes_with

pytestmark = pytest.mark.pip

MOMENTS = {
    "chosen": "its wheels have kernels for",
    "torch": "torch 2.9.1+rocm6.4 from",
    "unpacking": "unpacking the source",
    "requirements": "installing its build requirements",
    "compiling": "compiling",
    "built": "built in",
}
SIGNALS: dict[str, Callable[[int], None]] = {
    "ctrl-c": lambda pid: os.killpg(pid, signal.SIGINT),
    "sigint": lambda pid: os.kill(pid, signal.SIGINT),
    "sigterm": lambda pid: os.kill(pid, signal.SIGTERM),
    "sigterm to all": lambda pid: os.killpg(pid, signal.SIGTERM),
    "kill": lambda pid: os.kill(pid, signal.SIGKILL),
}
WORDS = ("install", "torch", "tiny-torch-ext")


def start(target: Target, mark: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rocmpip", "--python", str(target.python), *WORDS]
    return subprocess.Popen(
        command, env={**target.env, "ROCMPIP_TEST_MARK": mark}, cwd=target.cwd, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def gone(mark: str, seconds: float = 15) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not processes_with(mark):
            return True
        time.sleep(0.05)
    return False


PAIRS = [
    ("chosen", "sigterm"),
    ("torch", "ctrl-c"),
    ("torch", "sigterm to all"),
    ("unpacking", "sigint"),
    ("requirements", "ctrl-c"),
    ("requirements", "kill"),
    ("compiling", "sigint"),
    ("compiling", "sigterm"),
    ("compiling", "kill"),
    ("built", "ctrl-c"),
]
"""Every moment and every signal; all thirty pairs of them were tried and take eight minutes."""


@pytest.mark.parametrize(("moment", "kind"), PAIRS)
def test_a_signal_at(target: Target, moment: str, kind: str) -> None:
    mark = f"{target.folder.name}-{os.getpid()}"
    child = start(target, mark)
    assert child.stderr is not None
    said = []
    for line in child.stderr:
        said.append(line)
        if MOMENTS[moment] in line:
            break
    SIGNALS[kind](child.pid)
    rest = child.stderr.read()
    child.wait(30)
    text = "".join(said) + rest
    assert "Traceback" not in text, text
    assert gone(mark), processes_with(mark)
    assert target.torch() in ("", "2.9.1+rocm6.4") and not target.half_done()
    if kind == "kill":
        assert child.returncode == -signal.SIGKILL
    elif child.returncode != 0:  # 0: it was quicker
        wanted = signal.SIGTERM if kind.startswith("sigterm") else signal.SIGINT
        # A death by the signal itself is what a shell shows as the same code.
        assert child.returncode in (128 + wanted, -wanted), text
        assert target.left_behind() == [], text
    target.ok(*WORDS)
    assert target.torch() == "2.9.1+rocm6.4" and target.installed()["tiny-torch-ext"] == "1.0"


@pytest.mark.parametrize("seconds", [0.05, 0.2, 0.4, 0.7])
def test_a_signal_while_it_starts(target: Target, seconds: float) -> None:
    """Whatever module is being imported: words at most."""
    for number in (signal.SIGINT, signal.SIGTERM):
        child = start(target, "start")
        time.sleep(seconds)
        child.send_signal(number)
        _, text = child.communicate(timeout=30)
        # Before the first line of ours runs, Python itself may print its own.
        assert "Traceback" not in text or "rocmpip/" not in text, text
        assert child.returncode in (0, 1, 128 + number, -number), text
        if child.returncode == 1:
            assert seconds < 0.3, text
    target.ok("install", "-q", "torch")


def test_an_interrupted_replacement_keeps_a_torch_that_imports(target: Target) -> None:
    """The old torch or the new one, as pip leaves it: its folder is moved aside in one step and comes back."""
    target.ok("install", "-q", "torch==2.8.0")
    command = [sys.executable, "-m", "rocmpip", "--python", str(target.python), "install", "torch==2.9.1"]
    child = subprocess.Popen(
        command, env=target.env, cwd=target.cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, start_new_session=True,
    )  # fmt: skip
    assert child.stdout is not None
    for line in child.stdout:
        if "Downloading torch" in line or "Collecting torch" in line:
            break
    os.killpg(child.pid, signal.SIGINT)
    child.communicate(timeout=30)
    assert target.torch() in ("2.8.0+rocm6.4", "2.9.1+rocm6.4")
    target.ok("install", "-q", "torch==2.9.1")
    assert target.torch() == "2.9.1+rocm6.4"


def test_json_tells_an_interrupt(target: Target) -> None:
    command = [sys.executable, "-m", "rocmpip", "--python", str(target.python), *WORDS, "--json"]
    child = subprocess.Popen(
        command, env=target.env, cwd=target.cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip
    assert child.stderr is not None
    for line in child.stderr:
        if MOMENTS["compiling"] in line:
            break
    child.send_signal(signal.SIGTERM)
    stdout, _ = child.communicate(timeout=30)
    assert child.returncode == 143
    assert '"code": 143' in stdout and stdout.count('"schema"') == 1
