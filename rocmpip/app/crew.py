"""Fetches for the resolver: hundreds of plain questions in one burst, and a few threads for whatever is not plain.

Python runs one thread at a time, so only waiting is worth a thread, and even that costs: the burst waits for all of its
connections in the asker's own thread. A question that its short road leaves goes to a thread, which takes the careful one.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import queue
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from rocmpip.index.burst import Burst, Plain
from rocmpip.index.client import Client
from rocmpip.index.fast import FastPages, Fetched, SlimPage
from rocmpip.index.fetch import Answer
from rocmpip.model.packages import File
from rocmpip.plan.listing import Row

Job = Callable[[], Any]
Handler = Callable[[Any, "Exception | None"], None]


class NotThere(Exception):
    """What was asked for on a guess is not where its index says it is. To look elsewhere costs more than a guess is worth."""


class Crew:
    """``put``, ``page`` and ``metadata`` never wait; ``run_one`` calls the handler of something finished, in its caller's thread."""

    def __init__(self, client: Client, size: int) -> None:
        self._client = client
        self._pages = FastPages(client)
        self._size = size
        self._burst: Burst | None = None
        self._ready: deque[Callable[[], None]] = deque()
        """Handlers of what is finished, with what they are to be called with."""
        self._jobs: queue.SimpleQueue[tuple[Job, Handler] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[Handler, Any, Exception | None]] = queue.SimpleQueue()
        self._threads = 0
        self._bell: _Bell | None = None
        self.open = 0
        """Questions whose handler has not been called yet."""

    # Questions --------------------------------------------------------------------------------------------------------

    def put(self, job: Job, handler: Handler) -> None:
        """Run ``job`` in a thread; ``handler(result, None)`` or ``handler(None, problem)`` follows in ``run_one``."""
        self.open += 1
        self._jobs.put((job, handler))
        if self._bell is None:
            self._bell = _Bell()
            self.watch(self._bell.reading, self._rung)
        if self._threads < min(self._size, self.open):
            self._threads += 1
            # Not threading.Thread: its start() waits until the new thread has run, which costs a turn of the lock each.
            _thread.start_new_thread(self._work, (self._bell,))

    def page(self, index: str, name: str, handler: Handler) -> None:
        """Fetch a project page; its result is a sequence of rows, empty when the index has no such project."""

        def decoded(got: Fetched, problem: Exception | None) -> None:
            self._decoded(got, problem, handler)

        def came(plain: Plain | None, url: str) -> None:
            body = plain.body(self._client.limits.page_bytes) if plain is not None else None
            if plain is None or body is None:
                self.put(lambda: self._pages.fetch(index, name), decoded)
                return
            known = self._pages.answered(index, name, Answer(plain.status, plain.headers, body, url))
            if known is None:
                # HTML, say: the client reads what has come, and asks no second time.
                self.put(lambda: self._pages.settled(index, name), decoded)
            else:
                decoded(known, None)

        asked = self._pages.question(index, name)
        if asked is None or not self._ask(*asked, self._client.limits.page_bytes, came):
            self.put(lambda: self._pages.fetch(index, name), decoded)

    def metadata(self, file: File, handler: Handler, guess: Callable[[], bool] = lambda: False) -> None:
        """Fetch the core metadata of a file; its result is bytes.

        ``guess`` is asked when the index has none where it said: True, nobody needs it so far, ends in NotThere, False in a
        look into the file itself.
        """
        kept = self._client.kept_metadata(file)
        if kept is not None:
            self.open += 1
            self._ready.append(lambda: self._end(handler, kept, None))
            return

        def came(plain: Plain | None, _: str) -> None:
            body = plain.body(self._client.limits.metadata_bytes) if plain is not None and plain.status == 200 else None
            if body is None:
                if plain is not None and plain.status == 404 and guess():
                    handler(None, NotThere())
                else:
                    self.put(lambda: self._client.metadata(file), handler)
                return
            try:
                data = self._client.metadata_answer(file, body)
            except Exception as problem:  # told to whoever asks for the result
                handler(None, problem)
            else:
                handler(data, None)

        asked = self._client.metadata_question(file)
        if asked is None or not self._ask(*asked, self._client.limits.metadata_bytes, came, first=True):
            self.put(lambda: self._client.metadata(file), handler)

    def watch(self, fd: int, readable: Callable[[], None]) -> None:
        """Have ``readable`` called while waiting, whenever ``fd`` has something to read."""
        self._open_burst().watch(fd, readable)

    def unwatch(self, fd: int) -> None:
        self._open_burst().unwatch(fd)

    def until(self) -> float:
        """The moment (seconds since 1970) at which the first of the fetched pages goes stale."""
        return self._pages.until

    # Answers ----------------------------------------------------------------------------------------------------------

    def run_one(self, *, wait: bool) -> bool:
        """Handle one finished question; with ``wait``, wait for one. False when none was there (or none is open)."""
        while self.open:
            # A look costs little, and what has come may be more urgent than what lies here.
            self.look(None if wait and not self._ready else 0.0)
            if self._ready:
                self._ready.popleft()()
                return True
            if not wait:
                return False
        return False

    def look(self, seconds: float | None) -> None:
        """See what has come; wait for it at most ``seconds`` (None: until something has)."""
        self._open_burst().wait(seconds)

    def close(self) -> None:
        """Drop the questions that have not begun. Threads under way end within their own time limits, unheard."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._jobs.get_nowait()
        for _ in range(self._threads):
            self._jobs.put(None)
        if self._burst is not None:
            self._burst.close()
            self._burst = None

    # Inside -----------------------------------------------------------------------------------------------------------

    def _open_burst(self) -> Burst:
        if self._burst is None:
            self._burst = self._client.burst(self._size)
        return self._burst

    def _ask(
        self,
        address: Any,
        headers: dict[str, str],
        most: int,
        came: Callable[[Plain | None, str], None],
        *,
        first: bool = False,
    ) -> bool:
        # Metadata is quickly read and opens the next questions; a page takes a while.
        keep = self._ready.appendleft if first else self._ready.append

        def done(plain: Plain | None) -> None:
            keep(lambda: self._came(came, plain, address.url))

        if not self._open_burst().get(address, headers, most, done):
            return False
        self.open += 1
        return True

    def _came(self, came: Callable[[Plain | None, str], None], plain: Plain | None, url: str) -> None:
        self.open -= 1
        came(plain, url)

    def _end(self, handler: Handler, result: Any, problem: Exception | None) -> None:
        self.open -= 1
        handler(result, problem)

    def _rung(self) -> None:
        assert self._bell is not None
        self._bell.heard()
        with contextlib.suppress(queue.Empty):
            while True:
                handler, result, problem = self._done.get_nowait()
                self._ready.append(lambda handler=handler, result=result, problem=problem: self._end(handler, result, problem))  # type: ignore[misc]

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

    def _work(self, bell: _Bell) -> None:
        while (item := self._jobs.get()) is not None:
            job, handler = item
            try:
                result = job()
            except Exception as problem:  # told to whoever asks for the result
                self._done.put((handler, None, problem))
            else:
                self._done.put((handler, result, None))
            bell.ring()


class _Bell:
    """A pipe by which threads wake the one that waits. Closed when the last of them has let go of it."""

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()
        os.set_blocking(self.reading, False)
        os.set_blocking(self._writing, False)

    def ring(self) -> None:
        with contextlib.suppress(OSError):  # full means: rung already
            os.write(self._writing, b"!")

    def heard(self) -> None:
        with contextlib.suppress(OSError):
            os.read(self.reading, 4096)

    def __del__(self) -> None:
        os.close(self.reading)
        os.close(self._writing)
