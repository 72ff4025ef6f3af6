"""SIGTERM as an exception, so that every ``finally`` runs."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rocmpip.model.errors import Interrupted


@contextmanager
def interrupted_by_sigterm(words: str) -> Iterator[None]:
    """Within the block SIGTERM raises Interrupted (143) with these words. Outside the main thread signals are left alone."""

    def stop(number: int, frame: FrameType | None) -> None:
        problem = Interrupted(words)
        problem.exit_code = 143
        raise problem

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread: a library use
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
