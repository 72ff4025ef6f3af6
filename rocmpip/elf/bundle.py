"""Offload bundles: the containers that hold device code, plain and compressed.

Plain (clang-offload-bundler's documentation): ``__CLANG_OFFLOAD_BUNDLE__``, u64 count, then for each entry u64 offset,
u64 size, u64 length of the id, the id; all little-endian. Compressed: ``CCOB``, u16 version, u16 method (0 zlib, 1 zstd), then
version 1: u32 uncompressed size; version 2: u32 total size, u32 uncompressed size; version 3: the same as u64; then a u64 hash
and the compressed plain bundle. A ``.hip_fatbin`` section holds one bundle for each translation unit, one after the other.

Only the table at the head of each bundle is read and decompressed: a 500 MB library costs kilobytes, and a
decompression bomb has nothing to expand into.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Iterator

import zstandard

from rocmpip.elf.source import BytesSource, ElfError, Source, find
from rocmpip.elf.targets import CodeObject, from_id
from rocmpip.model.record import Struct

PLAIN_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED_MAGIC = b"CCOB"
_MAGIC = re.compile(re.escape(PLAIN_MAGIC) + b"|" + COMPRESSED_MAGIC)

_MAX_BUNDLES = 65_536
_MAX_ENTRIES = 4_096
_MAX_ID = 1_024
_MAX_TABLE = 1 << 20
_MAX_WINDOW = 1 << 27
_FIRST_READ = 16 << 10


class Bundle(Struct, frozen=True):
    """One bundle: ``kind`` ("plain", "ccob-v2-zstd" …), where it stands, its length (0 when only the next magic can tell)."""

    kind: str
    offset: int
    length: int
    objects: tuple[CodeObject, ...]


def is_bundle(head: bytes) -> bool:
    """True when a file's first bytes are a bundle's."""
    return head.startswith((PLAIN_MAGIC, COMPRESSED_MAGIC))


def bundles(source: Source) -> Iterator[Bundle]:
    """Every bundle in ``source``, in order; gaps (alignment) are skipped and broken look-alikes passed over. ElfError past 65,536 of them."""
    offset = 0
    for _ in range(_MAX_BUNDLES):
        offset = find(source, _MAGIC, offset, len(PLAIN_MAGIC))
        if offset < 0:
            return
        try:
            bundle = _read(source, offset)
        except ElfError:
            # Four letters occur by chance in machine code and in compressed data: what does not parse is no bundle.
            offset += 1
            continue
        yield bundle
        offset += max(bundle.length, 1)
    raise ElfError(f"more than {_MAX_BUNDLES} offload bundles in one file")


def _read(source: Source, offset: int) -> Bundle:
    if source.read(offset, 4) == COMPRESSED_MAGIC:
        return _compressed(source, offset)
    length, objects = _table(_Window(source, offset), source.size - offset)
    return Bundle("plain", offset, length, objects)


def _compressed(source: Source, offset: int) -> Bundle:
    head = source.read(offset, 32)
    if len(head) < 20:
        raise ElfError("compressed bundle is cut short")
    version, method = struct.unpack_from("<HH", head, 4)
    if version == 1:
        header, total, expanded = 20, 0, struct.unpack_from("<I", head, 8)[0]
    elif version == 2 and len(head) >= 24:
        header, (total, expanded) = 24, struct.unpack_from("<II", head, 8)
    elif version == 3 and len(head) == 32:
        header, (total, expanded) = 32, struct.unpack_from("<QQ", head, 8)
    else:
        raise ElfError(f"compressed bundle of unknown version {version}")
    if method not in (0, 1) or (total and not header < total <= source.size - offset):
        raise ElfError("compressed bundle with an impossible header")
    body = (total or source.size - offset) - header
    window = _Inflated(source, offset + header, body, method)
    _, objects = _table(window, expanded)
    name = "zstd" if method == 1 else "zlib"
    return Bundle(f"ccob-v{version}-{name}", offset, total or header, objects)


def _table(window: _Window | _Inflated, limit: int) -> tuple[int, tuple[CodeObject, ...]]:
    """The table at a plain bundle's head: (end of the last entry, code objects). ``limit`` is the bundle's greatest length."""
    need = len(PLAIN_MAGIC) + 8
    head = window.upto(need)
    if len(head) < need or not head.startswith(PLAIN_MAGIC):
        raise ElfError("not an offload bundle")
    count = struct.unpack_from("<Q", head, len(PLAIN_MAGIC))[0]
    if count > _MAX_ENTRIES:
        raise ElfError(f"offload bundle that claims {count} entries")
    end, objects, position = need, [], need
    for _ in range(count):
        head = window.upto(position + 24)
        if len(head) < position + 24:
            raise ElfError("offload bundle's table is cut short")
        start, size, length = struct.unpack_from("<QQQ", head, position)
        position += 24
        head = window.upto(position + length) if length <= _MAX_ID else b""
        if len(head) < position + length or start + size > limit:
            raise ElfError("offload bundle's table points outside the bundle")
        text = head[position : position + length].decode("ascii", "replace")
        position += length
        end = max(end, start + size, position)
        found = from_id(text, size) if size else None
        if found is not None:
            objects.append(found)
    return end, tuple(objects)


class _Window:
    """A growing prefix of a source from ``offset`` on, read in steps."""

    def __init__(self, source: Source, offset: int) -> None:
        self._source = source
        self._offset = offset
        self._data = b""

    def upto(self, length: int) -> bytes:
        if length > _MAX_TABLE:
            raise ElfError("offload bundle's table is larger than a megabyte")
        if len(self._data) < length:
            self._data = self._source.read(self._offset, max(length, _FIRST_READ))
        return self._data


class _Inflated:
    """A growing prefix of what a compressed part expands to; never more than a megabyte."""

    def __init__(self, source: Source, offset: int, length: int, method: int) -> None:
        self._raw = io.BufferedReader(_Raw(source, offset, length), 64 << 10)
        self._data = b""
        self._zlib = zlib.decompressobj() if method == 0 else None
        # LLVM compresses with long-distance matching, whose window is up to 128 MiB: the library's limit must allow that.
        # The memory behind it is touched only as far as output is asked for.
        self._zstd = (
            zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).stream_reader(self._raw, read_size=16 << 10)
            if method == 1
            else None
        )

    def upto(self, length: int) -> bytes:
        if length > _MAX_TABLE:
            raise ElfError("offload bundle's table is larger than a megabyte")
        while len(self._data) < length:
            try:
                more = self._more(max(length - len(self._data), _FIRST_READ))
            except (zlib.error, zstandard.ZstdError, MemoryError) as problem:
                raise ElfError(f"compressed bundle does not decompress: {problem}") from problem
            if not more:
                break
            self._data += more
        return self._data

    def _more(self, length: int) -> bytes:
        if self._zstd is not None:
            return bytes(self._zstd.read(length))
        assert self._zlib is not None
        while not self._zlib.eof:
            raw = self._zlib.unconsumed_tail or self._raw.read(16 << 10)
            more = self._zlib.decompress(raw, length)
            if more or not raw:
                return more
        return b""


class _Raw(io.RawIOBase):
    """A source's part as a binary stream, for libraries that want one."""

    def __init__(self, source: Source, offset: int, length: int) -> None:
        self._source = source
        self._offset = offset
        self._left = max(0, length)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._source.read(self._offset, min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._offset += len(data)
        self._left -= len(data)
        return len(data)


def code_objects_of_bundles(data: bytes) -> tuple[CodeObject, ...]:
    """All code objects of the bundles in ``data``."""
    return tuple(found for bundle in bundles(BytesSource(data)) for found in bundle.objects)
