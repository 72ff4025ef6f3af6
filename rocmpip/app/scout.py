"""Processes that go ahead over the indexes while the first one loads and runs the resolver.

Python runs one thread at a time, and half of what a cold lock costs is fetching, unpacking and sorting pages that the
resolver takes one file of. Scouts do that half on other cores and send home a listing's versions and best files.
They are sent before anything else is loaded; the errand follows when the command line is read. Where there can be none,
and where they fail, the first process does all by itself. This module must stay light: it is loaded first.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

_MOST = 2
"""More scouts find no more to do at a time: a set opens a few names with each answer."""
_ROOM = 2**20
"""Bytes that a pipe holds, so that neither side waits for the other to read."""


class Scouts:
    """The scouts under way, for their maker, who ends them by ``wait`` or ``dismiss``. Each sees to its share of the names."""

    def __init__(self, pid: int, ends: list[tuple[int, int]]) -> None:
        self.pid = pid
        """Of the first; the others are its children."""
        self.ends = ends
        """For each our ends of its two pipes, to read and to write."""

    def close(self) -> None:
        """Close our ends; a scout that sees that ends too."""
        for end in (end for pair in self.ends for end in pair):
            with suppress(OSError):
                os.close(end)
        self.ends = []

    def wait(self) -> None:
        """Until they have ended, which they do when they are told to, and when our ends are closed."""
        if self.pid:
            with suppress(OSError):
                os.waitpid(self.pid, 0)
            self.pid = 0

    def dismiss(self) -> None:
        """End them, whatever they are at. Without effect on those that have ended."""
        self.close()
        if self.pid:
            with suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)
            self.wait()


def send_scouts() -> Scouts | None:
    """Start scouts; None where that cannot be or brings nothing.

    A process with several threads is not forked: a lock that another thread holds would be held for ever.
    """
    threads = sys.modules.get("threading")
    if sys.platform != "linux" or (threads is not None and threads.active_count() > 1):
        return None
    count = min(_MOST, len(os.sched_getaffinity(0)))
    if count < 2:
        return None
    try:
        pipes = [(_pipe(), _pipe()) for _ in range(count)]
        pid = os.fork()
    except OSError:
        return None
    if pid:
        for home, away in pipes:
            os.close(home[1])
            os.close(away[0])
        return Scouts(pid, [(home[0], away[1]) for home, away in pipes])
    code = 1
    try:
        for home, away in pipes:
            os.close(home[0])
            os.close(away[1])
        from rocmpip.app.scout_child import serve

        serve([(away[0], home[1]) for home, away in pipes])
        code = 0
    finally:
        # Nothing of what the maker has under way may happen twice, whatever comes: its buffers are its own to write.
        os._exit(code)


def _pipe() -> tuple[int, int]:
    import fcntl

    reading, writing = os.pipe()
    with suppress(AttributeError, OSError):  # the usual 64 KiB only cost time
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _ROOM)
    return reading, writing
