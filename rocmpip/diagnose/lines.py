"""Bytes of any size and encoding → numbered, clean lines. Large logs are read whole at their ends and through gates between."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

HEAD = 2 * 1024 * 1024
"""Bytes at the start that every rule sees."""
TAIL = 4 * 1024 * 1024
"""Bytes at the end that every rule sees."""
CHUNK = 4 * 1024 * 1024
LONGEST = 4096
"""Characters of a line that are looked at; the rest (base64, minified code) is cut."""
MIDDLE_LINES = 20_000
"""Lines of the middle that are looked at, at most."""
GATES = (b"rror:", b"FAILED", b"annot ", b"not found", b"undefined", b"No such file", b"Killed", b"fault by", b"Abort", b"No module")
"""What a line in the middle must hold to be looked at. Ten searches of 200 MB take about 1.3 s."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def clean(text: str) -> str:
    """One line without terminal escapes and control characters; of a progress line only what was left standing."""
    if "\r" in text:
        parts = [part for part in text.split("\r") if part.strip()]
        text = parts[-1] if parts else ""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    return _CONTROL.sub("", text).rstrip()


def encoding_of(start: bytes) -> str:
    """utf-16 by its mark or its zero bytes, else utf-8 (undecodable bytes are replaced)."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    sample = start[:400]
    if len(sample) >= 8 and sample[1::2].count(0) > len(sample) // 3:
        return "utf-16-le"
    if len(sample) >= 8 and sample[0::2].count(0) > len(sample) // 3:
        return "utf-16-be"
    return "utf-8"


def read_lines(stream: BinaryIO, size: int | None = None) -> Iterator[tuple[int, str]]:
    """(line number from 1, clean text) of every line worth looking at. Memory stays below a few chunks.

    ``size`` is the stream's length when it is known; without it a long stream's end is found while reading.
    """
    start = stream.read(HEAD)
    encoding = encoding_of(start)
    if encoding != "utf-8":
        yield from _wide(start, stream, encoding)
        return
    number = 1
    rest = b""
    for piece in _first(start):
        lines, rest = _split(rest + piece)
        for line in lines:
            yield number, _decode(line)
            number += 1
    held: list[bytes] = []
    seen = 0
    while chunk := stream.read(CHUNK):
        held.append(chunk)
        if len(held) < 2:
            continue
        # One chunk is always kept back: it may turn out to be the end, which every rule sees.
        block = rest + held.pop(0)
        lines_before = number
        cut = block.rfind(b"\n") + 1
        rest = block[cut:][-LONGEST:]
        for at, line in _gated(block[:cut], MIDDLE_LINES - seen):
            seen += 1
            yield lines_before + at, _decode(line)
        number += block.count(b"\n", 0, cut)
    tail = rest + b"".join(held)
    if not tail:
        return
    if len(tail) > TAIL:
        cut = tail.find(b"\n", len(tail) - TAIL) + 1
        for at, line in _gated(tail[:cut], MIDDLE_LINES - seen):
            yield number + at, _decode(line)
        number += tail.count(b"\n", 0, cut)
        tail = tail[cut:]
    for line in tail.split(b"\n"):
        yield number, _decode(line)
        number += 1


def _first(start: bytes) -> Iterator[bytes]:
    for at in range(0, len(start), 256 * 1024):
        yield start[at : at + 256 * 1024]


def _split(block: bytes) -> tuple[list[bytes], bytes]:
    """Whole lines and the unfinished rest; an endless line is cut so that it cannot grow."""
    lines = block.split(b"\n")
    rest = lines.pop()
    return lines, rest[:LONGEST] if len(rest) > 64 * LONGEST else rest


def _gated(block: bytes, room: int) -> Iterator[tuple[int, bytes]]:
    """(offset in lines, line) of the lines that hold a gate, in order, ``room`` at most."""
    starts: set[int] = set()
    for gate in GATES:
        at = block.find(gate)
        hits = 0
        while at >= 0 and hits < room:
            begin = block.rfind(b"\n", 0, at) + 1
            starts.add(begin)
            hits += 1
            end = block.find(b"\n", at)
            if end < 0:
                break
            at = block.find(gate, end)
    number, position = 0, 0
    for begin in sorted(starts)[: max(room, 0)]:
        number += block.count(b"\n", position, begin)
        position = begin
        end = block.find(b"\n", begin)
        yield number, block[begin : end if end >= 0 else len(block)]


def _decode(line: bytes) -> str:
    return clean(line[: LONGEST * 4].decode("utf-8", "replace")[:LONGEST])


def _wide(start: bytes, stream: BinaryIO, encoding: str) -> Iterator[tuple[int, str]]:
    """UTF-16 logs (PowerShell's redirection): small in practice, so the first 64 MB are read whole."""
    data = start + stream.read(64 * 1024 * 1024)
    for number, line in enumerate(data.decode(encoding, "replace").split("\n"), 1):
        yield number, clean(line[:LONGEST])
