"""A few threads that run small jobs in the order they came. Less to import than concurrent.futures, and no futures."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable

Job = Callable[[], object]


class Crew:
    """``put`` never waits. A job's exception is dropped: whoever needs its result asks for it and gets the exception."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._lock = threading.Lock()
        self._closed = False

    def put(self, job: Job) -> None:
        """Run ``job`` soon, unless the crew was closed."""
        if self._closed:
            return
        self._jobs.put(job)
        with self._lock:
            if self._jobs.qsize() > self._idle and len(self._threads) < self._size:
                thread = threading.Thread(target=self._work, daemon=True)
                self._threads.append(thread)
                thread.start()

    def close(self) -> None:
        """Forget the jobs that have not begun; those that have run on and find no one waiting."""
        self._closed = True
        with contextlib.suppress(queue.Empty):
            while True:
                self._jobs.get_nowait()
        for _ in self._threads:
            self._jobs.put(None)

    def _work(self) -> None:
        while True:
            self._idle += 1
            job = self._jobs.get()
            self._idle -= 1
            if job is None:
                return
            with contextlib.suppress(Exception):
                job()
