"""One HTTP/1.1 exchange on one connection, every read of it under a deadline.

Why not a library: pages and metadata are hundreds of small answers, and per answer a raw connection costs about a third of what
the general clients cost, and nothing to import. The surface is small: requests without a body, answers framed by length, chunks
or end of connection.
"""

from __future__ import annotations

import socket
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rocmpip.index.wire_errors import Cut, Malformed, Stalled, TooLarge

if TYPE_CHECKING:
    from rocmpip.index.limits import Deadline

_HEAD_BYTES = 128 * 1024
_CHUNK = 256 * 1024


class Connection:
    """A connected socket with a read buffer. Not for two threads at once."""

    def __init__(self, sock: socket.socket, read_timeout: float) -> None:
        self.sock = sock
        self.read_timeout = read_timeout
        self.used = False
        self._buffer = b""

    def close(self) -> None:
        self._buffer = b""
        self.sock.close()

    def clean(self) -> bool:
        """True when nothing waits to be read: left-over bytes would be taken for the next answer."""
        if self._buffer:
            return False
        try:
            self.sock.setblocking(False)
            self.sock.recv(1)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError as problem:
            # TLS says "want read" where a plain socket says "would block".
            return type(problem).__name__ == "SSLWantReadError"
        return False

    def send(self, data: bytes, deadline: Deadline) -> None:
        try:
            self.sock.settimeout(min(self.read_timeout, deadline.remaining()))
            self.sock.sendall(data)
        except TimeoutError:
            raise Stalled("the server does not take the request") from None
        except OSError as problem:
            raise Cut(f"the connection broke while asking ({problem})", begun=False) from None

    def receive(self, deadline: Deadline, most: int = _CHUNK) -> bytes:
        """What is there, at most ``most`` bytes; b"" at the end of the connection."""
        if self._buffer:
            data, self._buffer = self._buffer[:most], self._buffer[most:]
            return data
        left = deadline.remaining()
        try:
            self.sock.settimeout(min(self.read_timeout, left))
            return self.sock.recv(most)
        except TimeoutError:
            deadline.remaining()  # says so when it was the whole that took too long
            raise Stalled(f"the server sent nothing for {self.read_timeout:g} s") from None
        except OSError as problem:
            raise Cut(f"the connection broke ({problem})") from None

    def until(self, mark: bytes, most: int, deadline: Deadline) -> bytes:
        """Bytes before ``mark``, which is consumed."""
        data = self._buffer
        self._buffer = b""
        start = 0
        while (place := data.find(mark, start)) < 0:
            if len(data) > most:
                raise Malformed(f"the server's answer has more than {most} bytes of head")
            start = max(0, len(data) - len(mark) + 1)
            try:
                more = self.receive(deadline)
            except Cut as problem:
                problem.begun = bool(data)
                raise
            if not more:
                if not data:
                    raise Cut("the server closed the connection without an answer", begun=False)
                raise Cut("the server closed the connection in the middle of its answer")
            data += more
        self._buffer = data[place + len(mark) :]
        return data[:place]


class Response:
    """A status, headers (lower-case names) and a body that is read once."""

    def __init__(self, connection: Connection, method: str, deadline: Deadline) -> None:
        self.connection = connection
        self.deadline = deadline
        self.url = ""
        self.status, self.headers, version = _head(connection, deadline)
        while 100 <= self.status < 200:
            self.status, self.headers, version = _head(connection, deadline)
        options = self.headers.get("connection", "").lower()
        self.reusable = "close" not in options and (version != b"HTTP/1.0" or "keep-alive" in options)
        self.chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        self.length = None if self.chunked else _length(self.headers.get("content-length"))
        if method == "HEAD" or self.status in (204, 304):
            self.chunked, self.length = False, 0
        elif not self.chunked and self.length is None:
            self.reusable = False
        self.finished = self.length == 0

    def chunks(self) -> Iterator[bytes]:
        """The body as it stands on the wire (not decompressed). Raises Cut when it ends early."""
        if self.finished:
            return
        yield from self._chunked() if self.chunked else self._plain()
        self.finished = True

    def _plain(self) -> Iterator[bytes]:
        got = 0
        while self.length is None or got < self.length:
            most = _CHUNK if self.length is None else min(_CHUNK, self.length - got)
            piece = self.connection.receive(self.deadline, most)
            if not piece:
                if self.length is None:
                    return
                raise Cut(f"the connection ended after {got} of {self.length} bytes")
            got += len(piece)
            yield piece

    def _chunked(self) -> Iterator[bytes]:
        while True:
            line = self.connection.until(b"\r\n", 1024, self.deadline).partition(b";")[0].strip()
            try:
                size = int(line, 16)
            except ValueError:
                raise Malformed("the server's chunked answer is broken") from None
            if size < 0 or size > 2**40:
                raise Malformed("the server's chunked answer is broken")
            left = size
            while left:
                piece = self.connection.receive(self.deadline, min(_CHUNK, left))
                if not piece:
                    raise Cut("the connection ended in the middle of a chunk")
                left -= len(piece)
                yield piece
            # After a chunk its line end; after the last one trailers and an empty line.
            while self.connection.until(b"\r\n", 8192, self.deadline) and size == 0:
                pass
            if size == 0:
                return

    def decoded(self) -> Iterator[bytes]:
        """The body without its Content-Encoding, in pieces of at most 1 MiB."""
        encoding = self.headers.get("content-encoding", "").lower().strip()
        if encoding in ("", "identity"):
            yield from self.chunks()
        elif encoding in ("gzip", "x-gzip", "deflate"):
            yield from _inflate(self.chunks(), gzip=encoding != "deflate")
        else:
            raise Malformed(f"the server compressed its answer with {encoding!r}, which was not asked for", final=True)

    def read(self, most: int) -> bytes:
        """The whole decoded body; raises TooLarge beyond ``most`` bytes, without reading on."""
        if self.length is not None and self.length > most:
            raise TooLarge(f"the answer has {self.length} bytes; the limit is {most}", final=True)
        pieces, total = [], 0
        for piece in self.decoded():
            total += len(piece)
            if total > most:
                raise TooLarge(f"the answer has more than {most} bytes", final=True)
            pieces.append(piece)
        return b"".join(pieces)


def _head(connection: Connection, deadline: Deadline) -> tuple[int, dict[str, str], bytes]:
    head = connection.until(b"\r\n\r\n", _HEAD_BYTES, deadline)
    first, *lines = head.split(b"\r\n")
    version, _, rest = first.partition(b" ")
    status = rest[:3]
    if not version.startswith(b"HTTP/1.") or len(status) != 3 or not status.isdigit():
        raise Malformed("the server does not speak HTTP/1.1", final=True)
    headers: dict[str, str] = {}
    for line in lines:
        key, colon, value = line.partition(b":")
        if not colon:
            continue
        name, text = key.strip().lower().decode("latin-1"), value.strip().decode("latin-1")
        if name in headers and not (name == "content-length" and headers[name] == text):
            text = f"{headers[name]}, {text}"
        headers[name] = text
    return int(status), headers, version


def _length(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise Malformed("the server sent a Content-Length that is no number")
    return int(text)


def _inflate(pieces: Iterator[bytes], *, gzip: bool) -> Iterator[bytes]:
    step = 2**20
    engine = zlib.decompressobj(16 + zlib.MAX_WBITS if gzip else zlib.MAX_WBITS)
    first = True
    try:
        for piece in pieces:
            if first and not gzip and piece[:1] and piece[0] & 0x0F != 8:
                engine = zlib.decompressobj(-zlib.MAX_WBITS)  # "deflate" without the zlib wrapper, as some servers send it
            first = False
            data = piece
            while data:
                if engine.eof:
                    if not gzip:
                        raise Malformed("bytes after the compressed answer")
                    engine = zlib.decompressobj(16 + zlib.MAX_WBITS)
                out = engine.decompress(data, step)
                if out:
                    yield out
                data = engine.unconsumed_tail or engine.unused_data
        if not first and (rest := engine.flush()):
            yield rest  # what the last step's limit held back
    except zlib.error as problem:
        raise Malformed(f"the compressed answer is broken ({problem})") from None
    if not first and not engine.eof:
        raise Cut("the compressed answer ends early")
