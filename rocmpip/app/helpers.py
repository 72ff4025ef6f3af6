"""Helper processes of one resolution: they fetch, decode and sift pages, and hand over only the files that fit.

A page of 5 MB lists five thousand files of which some forty fit the target. What the resolver needs of the others (all
hashes of a version it chose, the reasons why nothing fits) it asks for later, by name.

They are forked before any thread exists, speak with their maker over a socket each, and end with it.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import pickle
import queue
import select
import signal
import socket
import struct
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, overload

import msgspec

from rocmpip.app.crew import Handler, Job
from rocmpip.index.client import Client
from rocmpip.index.fast import FastPages, Slim, SlimPage
from rocmpip.model.errors import InternalError
from rocmpip.model.packages import Absent, File
from rocmpip.plan.gather import fitting
from rocmpip.plan.listing import Row, Rules

_HEAD = struct.Struct("!IIB")
_PACKED, _PICKLED, _FAILED = range(3)
_THREADS = 12


class Packed(msgspec.Struct, array_like=True, gc=False):
    """A ``Slim`` on its way between processes."""

    filename: str
    url: str
    raw: bytes
    requires_python: str | None
    yanked: bool | str | None
    metadata: bytes
    size: int | None


class _Answer(msgspec.Struct, array_like=True, gc=False):
    """The rows of one page; ``url`` is the base of their links."""

    index: str
    name: str
    url: str
    rows: list[Packed]


_decode = msgspec.msgpack.Decoder(_Answer).decode
_encode = msgspec.msgpack.Encoder().encode


class Sifted(Sequence[Row]):
    """The rows of a page that may fit. ``more`` asks the helper for the others. True even when it is empty."""

    def __init__(self, helpers: Helpers, helper: int, key: tuple[str, str], rows: Sequence[Row]) -> None:
        self._helpers = helpers
        self._helper = helper
        self._key = key
        self._rows = rows

    def more(self, marks: Sequence[str] = ()) -> Sequence[Row]:
        """All rows whose file name holds one of ``marks``; all rows of the page without marks."""
        found: Sequence[Row] = self._helpers.ask(self._helper, ("more", *self._key, tuple(marks)))
        return found

    def __bool__(self) -> bool:
        return True

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)


class Helpers:
    """``count`` processes behind the interface of ``crew.Fetchers``. Not for threads."""

    def __init__(self, client: Client, rules: Rules, count: int) -> None:
        """Raises OSError when no process can be made."""
        self._pages = FastPages(client)
        self._sockets: list[socket.socket] = []
        self._children: list[int] = []
        self._poll = select.poll()
        self._handlers: dict[int, Handler] = {}
        self._here: deque[tuple[Handler, Any, Exception | None]] = deque()
        self._number = 0
        for _ in range(count):
            self._fork(client, rules)

    @property
    def open(self) -> int:
        return len(self._handlers) + len(self._here)

    def _fork(self, client: Client, rules: Rules) -> None:
        ours, theirs = socket.socketpair()
        child = os.fork()
        if child == 0:
            for other in (ours, *self._sockets):
                other.close()
            _Helper(theirs, client, rules).run()
        theirs.close()
        self._poll.register(ours.fileno(), select.POLLIN)
        self._sockets.append(ours)
        self._children.append(child)

    def put(self, job: Job, handler: Handler) -> None:
        """Jobs that are neither pages nor metadata are seldom: they run here and now."""
        try:
            self._here.append((handler, job(), None))
        except Exception as problem:
            self._here.append((handler, None, problem))

    def page(self, index: str, name: str, handler: Handler) -> None:
        self._send(self._number % len(self._sockets), ("page", index, name), handler)

    def metadata(self, file: File, handler: Handler) -> None:
        self._send(self._number % len(self._sockets), ("metadata", file), handler)

    def until(self) -> float:
        return min(float(self.ask(helper, ("until",))) for helper in range(len(self._sockets)))

    def ask(self, helper: int, question: tuple[Any, ...]) -> Any:
        """Ask one helper and wait for its answer; what else arrives meanwhile is kept for ``run_one``."""
        answer: list[tuple[Any, Exception | None]] = []

        def handler(result: Any, problem: Exception | None) -> None:
            answer.append((result, problem))

        number = self._send(helper, question, handler)
        while number in self._handlers:
            self._receive(None)
        mine = next(item for item in self._here if item[0] is handler)
        self._here.remove(mine)
        if mine[2] is not None:
            raise mine[2]
        return mine[1]

    def run_one(self, *, wait: bool) -> bool:
        if not self._here and self._handlers:
            self._receive(None if wait else 0)
        if not self._here:
            return False
        handler, result, problem = self._here.popleft()
        handler(result, problem)
        return True

    def close(self) -> None:
        for sock in self._sockets:
            sock.close()
        for child in self._children:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        self._sockets, self._children = [], []

    def _send(self, helper: int, question: tuple[Any, ...], handler: Handler) -> int:
        self._number += 1
        self._handlers[self._number] = handler
        _write(self._sockets[helper], self._number, _PICKLED, pickle.dumps(question, 5))
        return self._number

    def _receive(self, timeout: float | None) -> None:
        """Read one answer of every helper that has one. ``timeout`` in milliseconds."""
        for number, _ in self._poll.poll(timeout):
            self._take(next(place for place, sock in enumerate(self._sockets) if sock.fileno() == number))

    def _take(self, helper: int) -> None:
        message = _read(self._sockets[helper])
        if message is None:
            raise InternalError("a helper process of the resolver ended unexpectedly", hint="run the command again")
        number, kind, body = message
        handler = self._handlers.pop(number)
        if kind == _PACKED:
            self._here.append((handler, self._unpacked(helper, body), None))
            return
        value = pickle.loads(body)  # noqa: S301 - from our own child
        self._here.append((handler, None, value) if kind == _FAILED else (handler, value, None))

    def _unpacked(self, helper: int, body: bytes) -> Sequence[Row]:
        answer = _decode(body)
        place = SlimPage(self._pages, answer.index, answer.url, ())
        rows = [
            Slim(
                one.filename,
                one.url,
                msgspec.Raw(one.raw),
                one.requires_python,
                one.yanked,
                msgspec.Raw(one.metadata),
                size=one.size,
                place=place,
            )
            for one in answer.rows
        ]
        return Sifted(self, helper, (answer.index, answer.name), rows)


def _write(sock: socket.socket, number: int, kind: int, body: bytes) -> None:
    sock.sendall(_HEAD.pack(number, len(body), kind) + body)


def _read(sock: socket.socket) -> tuple[int, int, bytes] | None:
    """(number, kind, body) of one message; None at the end of the connection."""
    head = sock.recv(_HEAD.size, socket.MSG_WAITALL)
    if len(head) < _HEAD.size:
        return None
    number, length, kind = _HEAD.unpack(head)
    body = sock.recv(length, socket.MSG_WAITALL) if length else b""
    return (number, kind, body) if len(body) == length else None


class _Helper:
    """The child: one thread reads questions, some fetch, the main one decodes, sifts and answers. It ends with its maker."""

    def __init__(self, sock: socket.socket, client: Client, rules: Rules) -> None:
        self._sock = sock
        self._rules = rules
        self._client = client
        self._pages = FastPages(client)
        self._ready: queue.SimpleQueue[tuple[int, tuple[Any, ...], Any, Exception | None]] = queue.SimpleQueue()
        self._waiting: queue.SimpleQueue[tuple[int, tuple[Any, ...]]] = queue.SimpleQueue()
        self._threads = 0
        self._busy = 0
        self._seen: dict[tuple[str, str], SlimPage] = {}

    def run(self) -> NoReturn:
        try:
            # Ctrl-C is for the maker: it closes the socket, and that is the end.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _thread.start_new_thread(self._listen, ())
            while True:
                self._answer(*self._ready.get())
        finally:
            os._exit(1)

    def _listen(self) -> None:
        while (message := _read(self._sock)) is not None:
            number, _, body = message
            question = pickle.loads(body)  # noqa: S301 - from our maker
            if question[0] in ("more", "until"):
                self._ready.put((number, question, None, None))
                continue
            self._busy += 1
            self._waiting.put((number, question))
            if self._threads < min(_THREADS, self._busy):
                self._threads += 1
                _thread.start_new_thread(self._fetch, ())
        os._exit(0)

    def _fetch(self) -> None:
        while True:
            number, question = self._waiting.get()
            try:
                result: Any
                if question[0] == "page":
                    result = self._pages.fetch(question[1], question[2])
                else:
                    result = self._client.metadata(question[1])
            except Exception as problem:
                self._ready.put((number, question, None, problem))
            else:
                self._ready.put((number, question, result, None))
            self._busy -= 1

    def _answer(self, number: int, question: tuple[Any, ...], result: Any, problem: Exception | None) -> None:
        kind, body = _FAILED, b""
        if problem is None:
            try:
                kind, body = self._worked(question, result)
            except Exception as broken:
                problem = broken
        if problem is not None:
            body = _pickled_problem(problem)
        _write(self._sock, number, kind, body)

    def _worked(self, question: tuple[Any, ...], result: Any) -> tuple[int, bytes]:
        if question[0] == "metadata":
            return _PICKLED, pickle.dumps(result, 5)
        if question[0] == "until":
            return _PICKLED, pickle.dumps(self._pages.until, 5)
        key = question[1], question[2]
        if question[0] == "more":
            page = self._seen[key]
            marks = question[3]
            rows = [row for row in page.rows if not marks or any(mark in row.filename for mark in marks)]
            return self._packed(key, page, rows)
        decoded = self._pages.decode(result)
        if isinstance(decoded, Absent):
            return _PICKLED, pickle.dumps((), 5)
        if any(not isinstance(row, Slim) for row in decoded.rows[:1]):
            return _PICKLED, pickle.dumps(list(decoded.rows), 5)
        self._seen[key] = decoded
        return self._packed(key, decoded, fitting(decoded.rows, self._rules))

    def _packed(self, key: tuple[str, str], page: SlimPage, rows: Sequence[Row]) -> tuple[int, bytes]:
        packed = [
            (row.filename, row.url, bytes(row.raw), row.requires_python, row.yanked, row.advertised(), row.size)
            for row in rows
            if isinstance(row, Slim)
        ]
        return _PACKED, _encode((*key, page.url, packed))


def _pickled_problem(problem: Exception) -> bytes:
    try:
        return pickle.dumps(problem, 5)
    except Exception:
        return pickle.dumps(InternalError(f"{type(problem).__name__}: {problem}"), 5)
