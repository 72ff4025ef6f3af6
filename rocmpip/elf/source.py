"""Random access to a file's bytes without holding them: what every reader of this room works on."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rocmpip.model.regular import regular

_CHUNK = 1 << 20


class ElfError(ValueError):
    """The bytes are not what they claim to be (truncated, out of range, absurd counts). The text says what is wrong."""


class Source(Protocol):
    """``size`` bytes; ``read`` gives up to ``length`` of them, fewer at the end, never more."""

    @property
    def size(self) -> int: ...

    def read(self, offset: int, length: int) -> bytes: ...


class BytesSource:
    """Bytes (or a memoryview, or an mmap) that are in memory anyway."""

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self._view = memoryview(data).cast("B")

    @property
    def size(self) -> int:
        return len(self._view)

    def read(self, offset: int, length: int) -> bytes:
        if offset < 0 or length <= 0:
            return b""
        return bytes(self._view[offset : offset + length])


class FileSource:
    """A part of an open file, read with ``pread`` so that 500 MB cost no memory. The descriptor stays the caller's."""

    def __init__(self, descriptor: int, start: int = 0, size: int | None = None) -> None:
        self._descriptor = descriptor
        self._start = start
        self._size = os.fstat(descriptor).st_size - start if size is None else size

    @property
    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int) -> bytes:
        length = min(length, self._size - offset)
        if offset < 0 or length <= 0:
            return b""
        return os.pread(self._descriptor, length, self._start + offset)


class PartSource:
    """A window of another source: one section of an ELF file."""

    def __init__(self, whole: Source, start: int, size: int) -> None:
        self._whole = whole
        self._start = start
        self._size = max(0, min(size, whole.size - start))

    @property
    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int) -> bytes:
        length = min(length, self._size - offset)
        if offset < 0 or length <= 0:
            return b""
        return self._whole.read(self._start + offset, length)


@contextmanager
def opened(data: bytes | bytearray | memoryview | str | os.PathLike[str]) -> Iterator[Source]:
    """A source over bytes, or over the file at a path (closed afterwards). Raises OSError as ``open`` does."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        yield BytesSource(data)
        return
    with open(data, "rb", opener=regular) as stream:
        yield FileSource(stream.fileno())


def exactly(source: Source, offset: int, length: int, what: str) -> bytes:
    """``length`` bytes at ``offset``, or ElfError naming ``what`` was cut short."""
    data = source.read(offset, length)
    if len(data) != length:
        raise ElfError(f"{what} is cut short: {length} bytes at offset {offset} of {source.size}")
    return data


def find(source: Source, pattern: re.Pattern[bytes], start: int, longest: int) -> int:
    """Offset of the first match of ``pattern`` (at most ``longest`` bytes long) from ``start`` on, or -1."""
    offset = start
    while offset < source.size:
        chunk = source.read(offset, _CHUNK + longest)
        if not chunk:
            return -1
        match = pattern.search(chunk)
        if match is not None:
            return offset + match.start()
        offset += _CHUNK
    return -1
