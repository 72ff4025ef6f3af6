"""One line of a log: its encoding, its escapes, and what stands in front of the message."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator

LONGEST = 2048
"""Characters of a line that are looked at: of a longer one its start and its end."""
_SEGMENTS = 64
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]{0,40}[ -/]{0,8}[@-~]|[\]PX^_][^\x07\x1b]{0,400}(?:\x07|\x1b\\)?|[ -/]{0,3}[0-~])")
# C0 but the tab, DEL, C1, and what turns the direction of text or hides in it.
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_WIDE_SAMPLE = 400

_PREFIX = re.compile(
    r"\s*(?:"
    r"#\d{1,4} (?:\[[^\]]{1,60}\] )?\d{1,6}\.\d{1,4} "  # docker build: "#18 41.2 "
    r"|#\d{1,4} (?=\S)"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?:?\s"  # 2026-11-30T12:00:00.123Z
    r"|\[\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]\s|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\s"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,60} \S{1,60}?(?:\[\d{1,8}\])?: "  # syslog, journald
    r"|[>|│┃×] ?|[├╰╭└]\S{0,3} ?"
    r"|\(\w{1,20} pid=\d{1,8}(?:, ip=[\d.]{1,40})?\) "  # ray and vLLM workers
    r"|\[(?:rank)?\d{1,4}\]: ?"  # torchrun
    r"|(?:stderr|stdout) ?[|:] ?"
    r")"
)


def encoding_of(start: bytes) -> str:
    """utf-16 by its mark or its zero bytes, else utf-8."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    sample = start[:_WIDE_SAMPLE]
    if len(sample) >= 8:
        even, odd = sample[0::2].count(0), sample[1::2].count(0)
        # Text has its zeros on one side only; binary data has them on both.
        if odd > len(sample) // 3 and even < odd // 8 + 1:
            return "utf-16-le"
        if even > len(sample) // 3 and odd < even // 8 + 1:
            return "utf-16-be"
    return "utf-8"


def transcoded(source: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Chunks in ``encoding`` as chunks of UTF-8, without holding more than one."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in source:
        yield decoder.decode(chunk).encode("utf-8", "replace")
    if rest := decoder.decode(b"", True):
        yield rest.encode("utf-8", "replace")


def segments(line: bytes) -> Iterator[str]:
    """The texts of one raw line: a progress bar overwrites itself with carriage returns, and errors are printed between."""
    if b"\r" not in line:
        yield _decode(line)
        return
    parts = [part for part in line.rstrip(b"\r").split(b"\r")[-_SEGMENTS:] if part.strip()]
    yield from map(_decode, parts or [b""])


def _decode(line: bytes) -> str:
    if len(line) > 4 * LONGEST:
        line = line[: 2 * LONGEST] + b" " + line[-LONGEST:]
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        text = _not_utf8(line)
    if len(text) > LONGEST:
        text = text[: LONGEST - 700] + " " + text[-600:]
    return text


def _not_utf8(line: bytes) -> str:
    """Chinese Windows and old Linux systems write GBK; whatever else it is, its ASCII stays readable."""
    if sum(line.count(byte) for byte in (b"\x00", b"\x01", b"\x02")) == 0:
        try:
            text = line.decode("gb18030")
        except UnicodeDecodeError:
            pass
        else:
            if any("\u4e00" <= char <= "\u9fff" for char in text):
                return text
    return line.decode("utf-8", "replace")


def clean(text: str) -> str:
    """``text`` without terminal escapes and control characters, ready to be shown."""
    if text.isascii() and text.isprintable():
        return text.rstrip()
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    return _CONTROL.sub("", text).encode("utf-8", "replace").decode("utf-8").rstrip()


def bare(text: str) -> str:
    """``text`` without what a log collector, docker, pip or a quoting person put in front of the message."""
    for _ in range(4):
        # The first character tells cheaply that there is no prefix: most lines begin with a letter or a path.
        first = text[:1]
        if not first or first not in "#[0123456789>|│┃×├╰╭└( \tADFJMNOSs":
            return text
        match = _PREFIX.match(text)
        if match is None or match.end() == 0:
            return text
        text = text[match.end() :]
    return text
