"""An answer whose body is read once: as it came, decompressed, or whole up to a limit."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from rocmpip.index.limits import Deadline
from rocmpip.index.wire_errors import Cut, Malformed, TooLarge, WireError


class Clocked(Protocol):
    """What gives an exchange its time."""

    deadline: Deadline


class Response:
    """A status, headers (lower-case names) and a body."""

    def __init__(
        self,
        status: int,
        headers: dict[str, str],
        body: Iterator[bytes],
        *,
        method: str,
        clock: Clocked,
        close: Callable[[bool], None],
    ) -> None:
        self.status = status
        self.headers = headers
        self.url = ""
        """Where the answer came from."""
        self.length: int | None = None
        """Bytes of the body on the wire; None when only its end will tell."""
        if method == "HEAD" or status in (204, 304):
            self.length = 0
        elif "transfer-encoding" not in headers and (text := headers.get("content-length")) is not None:
            self.length = int(text)
        self.finished = False
        """The body was read to its end."""
        self._closed = False
        self._body: Iterator[bytes] | None = body
        self._clock = clock
        self._close = close

    def allow(self, seconds: float) -> None:
        """Give the body a time limit of its own, from now on."""
        self._clock.deadline = Deadline(seconds)

    def close(self) -> None:
        """Leave the answer. The connection stays only when the body was read to its end; an empty one needs no reading."""
        if self._closed:
            return
        self._closed = True
        if self.length == 0:
            with contextlib.suppress(WireError):
                for _ in self.chunks():
                    pass
        self._close(self.finished)

    def chunks(self) -> Iterator[bytes]:
        """The body as it stands on the wire (not decompressed). Raises Cut when it ends early."""
        body, self._body = self._body, None
        if body is not None:
            yield from body
            self.finished = True

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


def unpacked_body(body: bytes, encoding: str, most: int) -> bytes | None:
    """A whole ``body`` without its Content-Encoding. None for another than gzip, a broken one, and more than ``most`` bytes."""
    if encoding in ("", "identity"):
        return body if len(body) <= most else None
    if encoding not in ("gzip", "x-gzip"):
        return None
    gunzip: Any = zlib  # does the same at half the speed
    with contextlib.suppress(ImportError):
        from isal import isal_zlib as gunzip
    engine = gunzip.decompressobj(16 + zlib.MAX_WBITS)
    try:
        whole: bytes = engine.decompress(body, most)
    except gunzip.error:
        return None
    return whole if engine.eof and not engine.unused_data else None
