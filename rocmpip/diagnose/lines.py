"""Bytes of any size and encoding → numbered, clean lines. Large logs are read whole at their ends and through gates between."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

from rocmpip.diagnose.text import LONGEST, clean, encoding_of, segments, transcoded

HEAD = 256 * 1024
"""Bytes at the start of a large log that every rule sees."""
TAIL = 1024 * 1024
"""Bytes at the end of a large log that every rule sees."""
CHUNK = 4 * 1024 * 1024
"""Bytes read at once. Of a log up to this size every line is looked at."""
WIDE_GATES = ("错误：".encode(), "错误:".encode(), b"Fehler: ")
"""The same in other languages, looked for where a chunk is not plain ASCII."""
PER_CHUNK = 400
"""Lines of a chunk in the middle that are looked at, at most: a flood of errors in one place hides nothing in another."""
GATES = (b"rror: ", b"cannot find", b"not found", b"undefined ")
"""What a line in the middle must hold to be looked at. Each gate costs about 0.2 s for 200 MB."""


def read_lines(stream: BinaryIO, size: int | None = None) -> Iterator[tuple[int, str]]:
    """(line number from 1, clean text) of every line worth looking at; memory stays below a few chunks.

    Of a file that is still being written ``size`` bytes are read (0 or None: all). A line with carriage returns (a progress
    bar) yields one text for each part, all under its number.
    """
    source = _chunks(stream, size or None)
    start = next(source, b"")
    encoding = encoding_of(start)
    source = chain((start,), source)
    if encoding != "utf-8":
        source = transcoded(source, encoding)
    for number, line in _numbered(source):
        for text in segments(line):
            yield number, clean(text)


def _chunks(stream: BinaryIO, size: int | None) -> Iterator[bytes]:
    left = size
    while left is None or left > 0:
        chunk = stream.read(CHUNK if left is None else min(CHUNK, left))
        if not chunk:
            return
        yield chunk
        left = None if left is None else left - len(chunk)


def _numbered(source: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """The raw lines of the head, the gated lines of the middle, the raw lines of the tail."""
    first = next(source, b"")
    second = next(source, b"")
    if not second:
        yield from _every(first, 1, ends=not first)
        return
    cut = first.rfind(b"\n", 0, HEAD) + 1 or HEAD
    yield from _every(first[:cut], 1, ends=True)
    number = 1 + first.count(b"\n", 0, cut)
    pending = first[cut:]
    while second:
        pending += second
        # The last bytes are kept back: they may turn out to be the tail.
        cut = pending.rfind(b"\n", 0, max(0, len(pending) - TAIL)) + 1
        if cut:
            block, pending = pending[:cut], pending[cut:]
            yield from _gated(block, number)
            number += block.count(b"\n")
        elif len(pending) > 2 * CHUNK + TAIL:
            # A line without end: its start and what may be the tail are enough.
            pending = pending[: 2 * LONGEST] + pending[-TAIL:]
        second = next(source, b"")
    yield from _every(pending, number)


def _every(block: bytes, number: int, *, ends: bool = False) -> Iterator[tuple[int, bytes]]:
    """All lines of a block. ``ends`` tells that its last line ends in it."""
    position = 0
    while True:
        end = block.find(b"\n", position)
        if end < 0:
            if position < len(block) or not ends:
                yield number, block[position:]
            return
        yield number, block[position:end]
        number += 1
        position = end + 1


def _gated(block: bytes, number: int) -> Iterator[tuple[int, bytes]]:
    """(line number, line) of the lines that hold a gate, in order. Of a very long line only the part around the gate."""
    found: dict[int, int] = {}
    for gate in GATES if block.isascii() else GATES + WIDE_GATES:
        at = block.find(gate)
        hits = 0
        while at >= 0 and hits < PER_CHUNK:
            found.setdefault(block.rfind(b"\n", 0, at) + 1, at)
            hits += 1
            end = block.find(b"\n", at)
            if end < 0:
                break
            at = block.find(gate, end)
    position = 0
    for begin, at in sorted(found.items())[:PER_CHUNK]:
        number += block.count(b"\n", position, begin)
        position = begin
        end = block.find(b"\n", begin)
        line = block[begin : end if end >= 0 else len(block)]
        if at - begin > LONGEST:
            line = block[at - LONGEST // 2 : min(end if end >= 0 else len(block), at + LONGEST)]
        yield number, line
