"""Run a helper program with a time limit and a bounded output, leaving nothing behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

OUTPUT_LIMIT = 4 * 1024 * 1024


class Unanswered(Exception):
    """The program could not be started, ran out of time, or said too much. The text says which."""


def output_of(argv: Sequence[str], *, env: Mapping[str, str], time_limit: float) -> tuple[int, str]:
    """Exit code and stdout. The whole process group is killed at the limit, and on any way out. Raises Unanswered."""
    try:
        child = subprocess.Popen(
            list(argv),
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError) as problem:
        raise Unanswered(f"cannot be started: {getattr(problem, 'strerror', None) or problem}") from None
    try:
        with _terminable():
            data = _read(child, time.monotonic() + time_limit, time_limit)
    finally:
        _end(child)
    return child.returncode, data.decode("utf-8", "replace")


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM unwinds the stack, so that the child ends too; where someone handles it already, that stays."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _read(child: subprocess.Popen[bytes], deadline: float, time_limit: float) -> bytes:
    """All of stdout, then the exit. A grandchild that keeps the pipe open is not waited for."""
    assert child.stdout is not None
    pipe = child.stdout.fileno()
    os.set_blocking(pipe, False)
    data = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            if time.monotonic() > deadline:
                raise Unanswered(f"gave no answer within {time_limit:g} s and was stopped")
            exited = child.poll() is not None
            if selector.select(0.05):
                chunk = os.read(pipe, 65536)
                if not chunk:
                    break
                data += chunk
                if len(data) > OUTPUT_LIMIT:
                    raise Unanswered("printed more than can be an answer and was stopped")
            elif exited:
                break
    try:
        child.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise Unanswered(f"gave no answer within {time_limit:g} s and was stopped") from None
    return bytes(data)


def _end(child: subprocess.Popen[bytes]) -> None:
    # No such group: all of it is gone already.
    with contextlib.suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    if child.stdout is not None:
        child.stdout.close()
