"""A few threads that fetch for the resolver, and a queue that brings back what they got.

Python runs one thread at a time, so only waiting is worth a thread: decoding and deciding happen in the one that asks.
(Two helper processes that decode were tried: what they save they lose again by handing over what they found.)
"""

from __future__ import annotations

import _thread
import contextlib
import queue
from collections.abc import Callable, Sequence
from typing import Any

from rocmpip.index.client import Client
from rocmpip.index.fast import FastPages, Fetched, SlimPage
from rocmpip.model.packages import File
from rocmpip.plan.listing import Row

Job = Callable[[], Any]
Handler = Callable[[Any, "Exception | None"], None]


class Crew:
    """``put``, ``page`` and ``metadata`` never wait; ``run_one`` calls the handler of something finished, in its caller's thread."""

    def __init__(self, client: Client, size: int) -> None:
        self._client = client
        self._pages = FastPages(client)
        self._size = size
        self._jobs: queue.SimpleQueue[tuple[Job, Handler] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[Handler, Any, Exception | None]] = queue.SimpleQueue()
        self._threads = 0
        self.open = 0
        """Jobs whose handler has not been called yet."""

    def put(self, job: Job, handler: Handler) -> None:
        """Run ``job`` in a thread; ``handler(result, None)`` or ``handler(None, problem)`` follows in ``run_one``."""
        self.open += 1
        self._jobs.put((job, handler))
        if self._threads < min(self._size, self.open):
            self._threads += 1
            # Not threading.Thread: its start() waits until the new thread has run, which costs a turn of the lock each.
            _thread.start_new_thread(self._work, ())

    def page(self, index: str, name: str, handler: Handler) -> None:
        """Fetch a project page; its result is a sequence of rows, empty when the index has no such project."""
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
        """Fetch the core metadata of a file; its result is bytes."""
        self.put(lambda: self._client.metadata(file), handler)

    def until(self) -> float:
        """The moment (seconds since 1970) at which the first of the fetched pages goes stale."""
        return self._pages.until

    def run_one(self, *, wait: bool) -> bool:
        """Handle one finished job; with ``wait``, wait for one. False when none was there (or none is open)."""
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
        """Drop the jobs that have not begun. Those under way end within their own time limits, unheard."""
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
