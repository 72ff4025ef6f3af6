"""Hundreds of small GETs at once, on non-blocking sockets in the caller's own thread, each parsed once in C.

A cold lock asks up to a thousand small things. httpcore spends 0.2 ms of processor time on each and 25 ms on its import, and
threads that wait for the interpreter's lock triple that (docs/explanation/architecture.md has the numbers). So the plain
case has a short road: a direct connection, a complete answer with status 200 or 404, parsed by httptools. Everything else
(redirects, credentials that are asked for, retries, proxies, errors of any kind) ends in None, and the asker takes the road
through ``fetch``, which knows what to do and what to say.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httptools

from rocmpip import __version__
from rocmpip.index.address import Address
from rocmpip.index.proxies import Proxies
from rocmpip.index.response import unpacked_body
from rocmpip.index.tls import Tls

if TYPE_CHECKING:
    from ssl import SSLSocket

_TAKEN = frozenset((200, 404))
_PIECE = 2**16
_HEAD = 2**16
"""Bytes of a head. One that has no end must not be read to the limit of a page."""
_READ = selectors.EVENT_READ
_WRITE = selectors.EVENT_WRITE
_Origin = tuple[str, str, int]


class Plain:
    """An answer as it came. ``headers`` have lower-case names."""

    __slots__ = ("headers", "pieces", "status")

    def __init__(self, status: int, headers: dict[str, str], pieces: list[bytes]) -> None:
        self.status = status
        self.headers = headers
        self.pieces = pieces

    def body(self, most: int) -> bytes | None:
        """Decompressed; None beyond ``most`` bytes, and for what is broken or packed in another way than was asked for."""
        return unpacked_body(b"".join(self.pieces), self.headers.get("content-encoding", ""), most)


Done = Callable[["Plain | None"], None]


class Burst:
    """For one thread. ``size``: connections to one origin at a time."""

    def __init__(self, tls: Tls, proxies: Proxies, timeout: float, size: int) -> None:
        self._tls = tls
        self._proxies = proxies
        self._timeout = timeout
        self._size = size
        self._selector = selectors.DefaultSelector()
        self._origins: dict[_Origin, _Lines] = {}
        self._busy: set[_Line] = set()

    def get(self, address: Address, headers: dict[str, str], most: int, done: Done) -> bool:
        """Ask; ``done`` follows in ``wait`` with an answer of at most ``most`` bytes on the wire, or with None.

        False, and nothing more, where this road is closed (behind a proxy, or after its origin disappointed once), and for a
        request that cannot be said in HTTP.
        """
        lines = self._origins.get(address.origin)
        if lines is None:
            lines = self._origins[address.origin] = _Lines(closed=bool(self._proxies.of(address)))
        words = _words(address, headers)
        if lines.closed or not words:
            return False
        lines.waiting.append(_Question(address, words, most, done))
        self._start(lines)
        return True

    def watch(self, fd: int, readable: Callable[[], None]) -> None:
        """Have ``readable`` called in ``wait`` whenever ``fd`` has something to read."""
        self._selector.register(fd, _READ, readable)

    def unwatch(self, fd: int) -> None:
        self._selector.unregister(fd)

    def wait(self, seconds: float | None) -> None:
        """Do what can be done; wait for that at most ``seconds`` (None: as long as it takes)."""
        if self._busy:
            left = max(0.0, min(line.until for line in self._busy) - time.monotonic())
            seconds = left if seconds is None else min(seconds, left)
        for key, events in self._selector.select(seconds):
            if isinstance(key.data, _Line):
                self._step(key.data, events)
            else:
                key.data()
        if self._busy:
            now = time.monotonic()
            for line in [line for line in self._busy if line.until <= now]:
                self._fail(line)

    def close(self) -> None:
        for lines in self._origins.values():
            for line in lines.all:
                line.sock.close()
            lines.all.clear()
        self._selector.close()

    # One connection ---------------------------------------------------------------------------------------------------

    def _start(self, lines: _Lines) -> None:
        """Give waiting questions to idle connections, and to new ones while there may be more."""
        while lines.waiting:
            if lines.idle:
                line = lines.idle.pop()
            elif len(lines.all) < self._size:
                try:
                    line = self._connect(lines, lines.waiting[0].address)
                except Exception:  # whatever it is, the careful road meets it again and tells it
                    self._close_road(lines)
                    return
            else:
                return
            line.begin(lines.waiting.popleft(), time.monotonic() + self._timeout)
            self._busy.add(line)
            if line.ready:
                self._step(line, _WRITE)

    def _connect(self, lines: _Lines, address: Address) -> _Line:
        if lines.place is None:
            # As bytes: for a text Python loads its tables of international names, which takes 5 ms.
            host = address.host.encode("ascii") if address.host.isascii() else address.host
            lines.place = socket.getaddrinfo(host, address.port, type=socket.SOCK_STREAM)[0]
        family, kind, protocol, _, place = lines.place
        sock = socket.socket(family, kind, protocol)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.connect_ex(place)
        line = _Line(sock, lines)
        lines.all.add(line)
        self._selector.register(sock, _WRITE, line)
        line.events = _WRITE
        return line

    def _step(self, line: _Line, events: int) -> None:
        try:
            if not line.ready and not self._opened(line):
                return
            if line.question is None:
                self._drop(line)  # an idle connection that says something, or is closed from the other side
                return
            if line.unsent and not self._sent(line):
                return
            if events & _READ and self._received(line):
                self._finish(line)
        except (BlockingIOError, InterruptedError):
            return
        except Exception as problem:
            if _wants(problem):
                self._listen(line, _WRITE if _wants(problem) == "write" else _READ)
            else:
                self._fail(line)

    def _opened(self, line: _Line) -> bool:
        """Whether the connection stands, TLS and all."""
        if not line.connected:
            error = line.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                raise OSError(error)
            line.connected = True
            assert line.question is not None
            address = line.question.address
            if address.scheme == "https":
                self._selector.unregister(line.sock)
                line.sock = self._tls.context(address).wrap_socket(
                    line.sock, server_hostname=address.host, do_handshake_on_connect=False
                )
                self._selector.register(line.sock, _WRITE, line)
        if hasattr(line.sock, "do_handshake"):
            line.sock.do_handshake()
        line.ready = True
        return True

    def _sent(self, line: _Line) -> bool:
        sent = line.sock.send(line.unsent)
        line.unsent = line.unsent[sent:]
        self._listen(line, _WRITE if line.unsent else _READ)
        return not line.unsent

    def _received(self, line: _Line) -> bool:
        """Whether the answer is complete."""
        assert line.question is not None
        while True:
            data = line.sock.recv(_PIECE)
            line.got += len(data)
            if not data and line.reader.endless:
                return True  # without a length the end of the connection is the end of the answer
            if not data or line.got > line.question.most:
                raise ConnectionError
            line.parser.feed_data(data)
            if not line.reader.headed and line.got > _HEAD:
                raise ConnectionError
            if line.reader.complete:
                return True
            if not hasattr(line.sock, "pending") and len(data) < _PIECE:
                return False

    def _listen(self, line: _Line, events: int) -> None:
        if line.events != events:
            line.events = events
            self._selector.modify(line.sock, events, line)

    # Ends -------------------------------------------------------------------------------------------------------------

    def _finish(self, line: _Line) -> None:
        question, reader, lines = line.question, line.reader, line.lines
        assert question is not None
        status = line.parser.get_status_code()
        self._busy.discard(line)
        line.question = None
        line.answered += 1
        if reader.extra or not reader.stays:
            self._drop(line)
        else:
            lines.idle.append(line)
        plain = status in _TAKEN and not reader.extra
        question.done(Plain(status, reader.headers, reader.pieces) if plain else None)
        self._start(lines)

    def _fail(self, line: _Line) -> None:
        """A connection that the server had closed meanwhile is replaced; all else closes this road for its origin."""
        question, lines = line.question, line.lines
        again = question is not None and line.answered and not line.got and line.until > time.monotonic()
        self._drop(line)
        if question is None:
            return
        if again:
            lines.waiting.appendleft(question)
            self._start(lines)
        else:
            self._close_road(lines)
            question.done(None)

    def _close_road(self, lines: _Lines) -> None:
        lines.closed = True
        while lines.waiting:
            lines.waiting.popleft().done(None)

    def _drop(self, line: _Line) -> None:
        self._busy.discard(line)
        if line in line.lines.all:
            line.lines.all.discard(line)
            self._selector.unregister(line.sock)
            line.sock.close()
        if line in line.lines.idle:
            line.lines.idle.remove(line)


class _Question:
    __slots__ = ("address", "done", "most", "words")

    def __init__(self, address: Address, words: bytes, most: int, done: Done) -> None:
        self.address = address
        self.words = words
        self.most = most
        self.done = done


def _words(address: Address, headers: dict[str, str]) -> bytes:
    """The request as it goes onto the wire; b"" for one that would be more than its own lines, or that has no bytes."""
    rows = [f"GET {address.target} HTTP/1.1", f"Host: {address.authority}", f"User-Agent: rocmpip/{__version__}"]
    rows += [f"{name}: {text}" for name, text in headers.items()]
    if any("\n" in row or "\r" in row or "\0" in row for row in rows):
        return b""
    try:
        return "\r\n".join((*rows, "", "")).encode("latin-1")
    except UnicodeEncodeError:
        return b""


class _Lines:
    """The connections to one origin, and who waits for one."""

    __slots__ = ("all", "closed", "idle", "place", "waiting")

    def __init__(self, *, closed: bool) -> None:
        self.closed = closed
        self.waiting: deque[_Question] = deque()
        self.all: set[_Line] = set()
        self.idle: list[_Line] = []
        self.place: Any = None
        """What the name was resolved to."""


class _Line:
    """One connection, and the exchange that it is at."""

    def __init__(self, sock: socket.socket | SSLSocket, lines: _Lines) -> None:
        self.sock: Any = sock
        self.lines = lines
        self.events = 0
        self.connected = False
        self.ready = False
        self.answered = 0
        self.question: _Question | None = None
        self.unsent = b""
        self.until = 0.0
        self.got = 0
        self._expect()

    def _expect(self) -> None:
        self.reader = _Reader()
        self.parser = self.reader.parser = httptools.HttpResponseParser(self.reader)

    def begin(self, question: _Question, until: float) -> None:
        self.question = question
        self.unsent = question.words
        self.until = until
        self.got = 0
        self._expect()


class _Reader:
    """httptools' callbacks."""

    __slots__ = ("complete", "endless", "extra", "headed", "headers", "parser", "pieces", "stays")

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.pieces: list[bytes] = []
        self.complete = False
        self.headed = False
        self.endless = False
        """The head has come, and it names no length."""
        self.parser: Any = None
        self.stays = False
        """The connection stays open for another question. The parser knows only while it tells of the end: then it starts anew."""
        self.extra = False
        """Bytes beyond the answer have come: who knows what the next one would be."""

    def on_message_begin(self) -> None:
        self.extra = self.complete

    def on_header(self, name: bytes, value: bytes) -> None:
        key, text = name.lower().decode("latin-1"), value.decode("latin-1")
        self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_body(self, body: bytes) -> None:
        self.pieces.append(body)

    def on_headers_complete(self) -> None:
        self.headed = True
        self.endless = not self.headers.keys() & {"content-length", "transfer-encoding"}

    def on_message_complete(self) -> None:
        self.complete = True
        if self.parser is not None:
            self.stays = self.parser.should_keep_alive()
            self.parser = None  # it holds us: without this only the garbage collector would free the pieces


def _wants(problem: Exception) -> str:
    """What TLS waits for: "read", "write", or "" when ``problem`` is something else."""
    return {"SSLWantReadError": "read", "SSLWantWriteError": "write"}.get(type(problem).__name__, "")
