"""HTTP/1.1 for one user on 127.0.0.1: GET and HEAD, kept connections, small bounds on everything.

The standard library's server would cost more to import than all pages of an install cost to answer.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator

from rocmpip.model.record import Struct, field
from rocmpip.router.peer import can_tell, peer_uid

_HEAD_BYTES = 16 * 1024
_CONNECTIONS = 128
_IDLE_SECONDS = 120.0
_HEAD_SECONDS = 10.0
_SEND_SECONDS = 120.0
_REASONS = {
    200: "OK",
    206: "Partial Content",
    302: "Found",
    304: "Not Modified",
    404: "Not Found",
    416: "Range Not Satisfiable",
}


class Question(Struct, frozen=True):
    """One request. Header names are lower-case."""

    method: str
    target: str
    headers: dict[str, str]


class Reply(Struct, frozen=True):
    """``stream`` sends a body of ``length`` bytes (None: until the connection ends) instead of ``body``."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    stream: Iterator[bytes] | None = None
    length: int | None = None
    close: Callable[[], None] = field(default=lambda: None)


NOT_FOUND = Reply(404)
Handler = Callable[[Question], Reply]


class Server:
    """Answers with ``handler`` from the call of ``start`` to ``close``. One thread a connection, at most 128."""

    def __init__(self, handler: Handler, port: int, *, uid_check: bool) -> None:
        self._handler = handler
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._closing = threading.Event()
        self.refused = 0
        """Connections of other users that were closed at once."""
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind(("127.0.0.1", port))
            self._listener.listen(_CONNECTIONS)
        except BaseException:
            self._listener.close()
            raise
        self.port: int = self._listener.getsockname()[1]
        self.uid_check = uid_check and can_tell(self._listener)
        """Whether connections of other users are closed."""
        self._thread = threading.Thread(target=self._accept, name="rocmpip-router", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """No port and no connection is open after this. Safe to call twice."""
        with self._lock:
            self._closing.set()
            still = list(self._open)
        # shutdown wakes the thread that waits in accept; close alone would not.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in still:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(5)

    @property
    def closing(self) -> bool:
        return self._closing.is_set()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                if self._closing.is_set():
                    return
                time.sleep(0.05)  # no descriptors left: wait until some are given back
                continue
            # When all are taken the next one waits: refusing it would fail an install.
            while len(self._open) >= _CONNECTIONS and not self._closing.wait(0.01):
                pass
            with self._lock:
                closing = self._closing.is_set()
                if not closing:
                    self._open.add(connection)
            if closing:
                connection.close()
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        try:
            if self.uid_check and peer_uid(connection) != os.geteuid():
                self.refused += 1
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            rest = b""
            while not self._closing.is_set():
                head, rest = _read_head(connection, rest)
                question = _parse(head) if head else None
                if question is None:
                    if head:
                        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    return
                if not self._answer(connection, question):
                    return
        except (OSError, ValueError):
            # The other side went away, or was too slow: nothing to tell.
            return
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _answer(self, connection: socket.socket, question: Question) -> bool:
        """True when the connection can be used again."""
        connection.settimeout(_SEND_SECONDS)
        if question.method not in ("GET", "HEAD"):
            connection.sendall(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return False
        reply = self._handler(question)
        try:
            length = len(reply.body) if reply.stream is None else reply.length
            keep = length is not None and question.headers.get("connection", "").lower() != "close"
            lines = [f"HTTP/1.1 {reply.status} {_REASONS.get(reply.status, 'Answer')}"]
            lines += [f"{name}: {value}" for name, value in reply.headers]
            if length is not None:
                lines.append(f"Content-Length: {length}")
            lines += ["Cache-Control: no-store", f"Connection: {'keep-alive' if keep else 'close'}", "", ""]
            head = "\r\n".join(lines).encode("latin-1", "replace")
            if question.method == "HEAD":
                connection.sendall(head)
                return keep
            connection.sendall(head + reply.body)
            sent = 0
            for chunk in reply.stream or ():
                connection.sendall(chunk)
                sent += len(chunk)
            return keep and (reply.stream is None or sent == length)
        finally:
            reply.close()


def _read_head(connection: socket.socket, data: bytes) -> tuple[bytes, bytes]:
    """The next request's head and what came after it; b"" when the other side is done. Raises OSError when it is too slow."""
    connection.settimeout(_IDLE_SECONDS)
    until = 0.0
    while (place := data.find(b"\r\n\r\n")) < 0:
        if len(data) > _HEAD_BYTES:
            return data[:1], b""  # no request of ours is that long: parsed as a bad one
        more = connection.recv(65536)
        if not more:
            return b"", b""
        now = time.monotonic()
        until = until or now + _HEAD_SECONDS
        connection.settimeout(max(0.001, until - now))
        data += more
    return data[:place], data[place + 4 :]


def _parse(head: bytes) -> Question | None:
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or len(lines) > 100:
        return None
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            return None
        headers[name.strip().lower()] = value.strip()
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        return None  # nothing here takes a body
    if words[2] == "HTTP/1.0":
        headers["connection"] = "close"
    return Question(words[0], words[1], headers)
