"""Who fetches for the resolver: a few threads, or two helper processes that decode and sort as well.

Python runs one thread at a time, so only waiting is worth a thread: decoding and deciding happen in the one that asks.
Helper processes take the decoding off it too, which a set of a hundred projects needs to keep two processors busy.
"""

from __future__ import annotations

import _thread
import contextlib
import queue
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from rocmpip.index.client import Client
from rocmpip.index.fast import FastPages, Fetched, SlimPage
from rocmpip.model.packages import File
from rocmpip.plan.listing import Row

Job = Callable[[], Any]
Handler = Callable[[Any, "Exception | None"], None]


class Fetchers(Protocol):
    """``put``, ``page`` and ``metadata`` never wait long; ``run_one`` calls the handler of something finished."""

    @property
    def open(self) -> int:
        """Jobs whose handler has not been called yet."""
        ...

    def put(self, job: Job, handler: Handler) -> None:
        """Run ``job``; ``handler(result, None)`` or ``handler(None, problem)`` follows in ``run_one``."""
        ...

    def page(self, index: str, name: str, handler: Handler) -> None:
        """Fetch a project page; its result is a sequence of rows, empty when the index has no such project."""
        ...

    def metadata(self, file: File, handler: Handler) -> None:
        """Fetch the core metadata of a file; its result is bytes."""
        ...

    def until(self) -> float:
        """The moment (seconds since 1970) at which the first of the fetched pages goes stale."""
        ...

    def run_one(self, *, wait: bool) -> bool:
        """Handle one finished job; with ``wait``, wait for one. False when none was there (or none is open)."""
        ...

    def close(self) -> None:
        """Drop what has not begun. What is under way ends within its own time limits, unheard."""
        ...


class Crew:
    """Threads."""

    def __init__(self, client: Client, size: int) -> None:
        self._client = client
        self._pages = FastPages(client)
        self._size = size
        self._jobs: queue.SimpleQueue[tuple[Job, Handler] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[Handler, Any, Exception | None]] = queue.SimpleQueue()
        self._threads = 0
        self.open = 0

    def put(self, job: Job, handler: Handler) -> None:
        self.open += 1
        self._jobs.put((job, handler))
        if self._threads < min(self._size, self.open):
            self._threads += 1
            # Not threading.Thread: its start() waits until the new thread has run, which costs a turn of the lock each.
            _thread.start_new_thread(self._work, ())

    def page(self, index: str, name: str, handler: Handler) -> None:
        self.put(lambda: self._pages.fetch(index, name), lambda got, problem: self._decoded(got, problem, handler))

    def _decoded(self, got: Fetched, problem: Exception | None, handler: Handler) -> None:
        rows: Sequence[Row] = ()
        if problem is None:
            try:
                page = self._pages.decode(got)
            except Exception as broken:
                problem = broken
            else:
                rows = page.rows if isinstance(page, SlimPage) else ()
        handler(rows, problem)

    def metadata(self, file: File, handler: Handler) -> None:
        self.put(lambda: self._client.metadata(file), handler)

    def until(self) -> float:
        return self._pages.until

    def run_one(self, *, wait: bool) -> bool:
        if not self.open:
            return False
        try:
            handler, result, problem = self._done.get(block=wait)
        except queue.Empty:
            return False
        self.open -= 1
        handler(result, problem)
        return True

    def close(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._jobs.get_nowait()
        for _ in range(self._threads):
            self._jobs.put(None)

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, handler = item
            try:
                result = job()
            except Exception as problem:  # told to whoever asks for the result
                self._done.put((handler, None, problem))
            else:
                self._done.put((handler, result, None))
