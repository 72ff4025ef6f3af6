"""METADATA of a wheel: by range reads of a remote one, or from a file on disk."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import BinaryIO

from rocmpip.model.packages import normalise

_TAIL = 128 * 1024
_STEP = 32 * 1024


class NoRanges(Exception):
    """The server does not do ranges, or lies about them."""


class BadWheel(Exception):
    """The file is no wheel, or a broken one."""


class Ranged(io.RawIOBase):
    """A remote file that reads as if it were here. ``fetch(start, end)`` gives the bytes of [start, end).

    The tail is fetched first: it holds the central directory's end, and for most wheels METADATA too.
    """

    def __init__(self, size: int, tail: bytes, fetch: Callable[[int, int], bytes]) -> None:
        self._size = size
        self._fetch = fetch
        self._place = 0
        self._pieces: list[tuple[int, bytes]] = [(size - len(tail), tail)]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        self._place = max(0, origin + offset)
        return self._place

    def read(self, size: int | None = -1) -> bytes:
        end = self._size if size is None or size < 0 else min(self._size, self._place + size)
        data = self._slice(self._place, end) if end > self._place else b""
        self._place += len(data)
        return data

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _slice(self, start: int, end: int) -> bytes:
        for origin, data in self._pieces:
            if origin <= start and end <= origin + len(data):
                return data[start - origin : end - origin]
        until = min(self._size, max(end, start + _STEP))
        data = self._fetch(start, until)
        if len(data) != until - start:
            raise NoRanges("the server's range has another length than asked for")
        self._pieces.append((start, data))
        return data[: end - start]


def remote_metadata(
    filename: str, fetch_tail: Callable[[int], tuple[int, bytes]], fetch: Callable[[int, int], bytes], most: int
) -> bytes:
    """METADATA of a remote wheel. ``fetch_tail(n)`` gives the file's size and its last ``n`` bytes."""
    size, tail = fetch_tail(_TAIL)
    return metadata_of(Ranged(size, tail, fetch), filename, most)


def metadata_of(stream: BinaryIO | io.RawIOBase, filename: str, most: int) -> bytes:
    """METADATA of an open wheel; raises BadWheel when it has none, or more than one that could be meant."""
    import zipfile

    try:
        with zipfile.ZipFile(stream) as archive:
            wanted = normalise(filename.partition("-")[0])
            found = [
                info
                for info in archive.infolist()
                if info.filename.count("/") == 1 and info.filename.endswith(".dist-info/METADATA")
            ]
            ours = [info for info in found if normalise(info.filename.rpartition("-")[0] or "").startswith(wanted)]
            chosen = [info for info in ours if normalise(info.filename.split("-", 1)[0]) == wanted] or ours
            if len(chosen) != 1:
                raise BadWheel("it has no METADATA" if not chosen else "it has more than one METADATA")
            if chosen[0].file_size > most:
                raise BadWheel(f"its METADATA has {chosen[0].file_size} bytes")
            return archive.read(chosen[0])
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError) as problem:
        raise BadWheel(f"it is no wheel ({problem})") from None


def looks_like_metadata(data: bytes) -> bool:
    """True when the bytes start as core metadata does (a server may answer any path with a web page)."""
    head = data[:4096].lower()
    return head.startswith((b"metadata-version:", b"name:")) or b"\nmetadata-version:" in head
