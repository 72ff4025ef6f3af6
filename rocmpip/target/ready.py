"""A pip that is started before it is known what it has to do, so that it loads itself while the plan is made.

Half of a small install is pip's own start. Another process can do that on another core meanwhile: it has pip print its help,
unseen, and then waits for arguments and environment. Where there is none, pip is started when it is needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocmpip.target.pip import PipCommand

WATCHED = str(Path(__file__).with_name("watched.py"))
_PROCESS = ("PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", "OPENSSL_", "TMP", "TEMP")
"""How the names of variables begin that count when a process starts, or once in its life."""
_SECONDS_TO_END = 2.0
_SECONDS_TO_LOAD = 120.0
"""A cold file server is slow; but what hangs shall not hang us."""


class ReadyPip:
    """A process in the target's interpreter that has loaded pip, for one use. End it with ``dismiss`` if it was not taken."""

    def __init__(self, command: PipCommand, env: Mapping[str, str], cwd: str | None) -> None:
        """Raises OSError when it cannot be started."""
        self._command = command
        self._cwd = cwd
        self._start = {**{name: value for name, value in env.items() if not name.startswith("PIP_")}, **command.env}
        self._line, theirs = socket.socketpair()
        # Ctrl-C is not for it until it is pip: it waits for that with its interrupt held back, and ends when its line does.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._child: subprocess.Popen[bytes] | None = subprocess.Popen(
                [command.python, WATCHED, str(os.getpid()), "--ready", str(theirs.fileno()), command.runner],
                env={**self._start, "PIP_CONFIG_FILE": os.devnull},
                cwd=cwd,
                pass_fds=(theirs.fileno(),),
            )
        except OSError:
            self._line.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()

    def take(
        self, command: PipCommand, args: Sequence[str], env: Mapping[str, str], cwd: str | None, *, stdout_to_stderr: bool
    ) -> subprocess.Popen[bytes] | None:
        """The process, which is ``pip ARGS`` from now on; None when it is gone, or was started as something else."""
        child = self._child
        if child is None or (command, cwd) != (self._command, self._cwd) or _process(env) != _process(self._start):
            return None
        order = {"arguments": list(args), "environment": {**env, **command.env}, "stdout": 2 if stdout_to_stderr else 1}
        try:
            self._line.settimeout(_SECONDS_TO_LOAD)
            self._line.sendall(json.dumps(order).encode() + b"\n")
            taken = self._line.recv(1)
        except OSError:
            return None
        if not taken:
            return None
        self._child = None
        self._line.close()
        return child

    def dismiss(self) -> None:
        """End it, unless it was taken. It ends by itself once it has loaded pip; nothing of that may be cut short."""
        self._line.close()
        if self._child is not None:
            try:
                self._child.wait(_SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
            self._child = None


def _process(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_PROCESS)}


@contextlib.contextmanager
def ready_pip(command: PipCommand, env: Mapping[str, str], cwd: str | None) -> Iterator[ReadyPip | None]:
    """A pip that gets ready during the block; None where that brings nothing (one core) or cannot be."""
    ready = None
    if sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1:
        with contextlib.suppress(OSError):
            ready = ReadyPip(command, env, cwd)
    try:
        yield ready
    finally:
        if ready is not None:
            ready.dismiss()
