"""The text of a requirement file: bytes → text → logical lines, as pip reads them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping

from rocmpip.model.errors import InputError

LIMIT = 32 * 1024 * 1024
"""Largest requirement file that is read, in bytes: the largest real locks are below 2 MB."""

# UTF-16's marks begin UTF-32's, so the longer ones come first where they would hide each other.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CODING = re.compile(rb"coding[:=]\s*([-\w.]+)")
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")


def decode(data: bytes, place: str, fallback: str = "latin-1") -> str:
    """The text of a requirement file: by byte-order mark, a ``coding:`` comment in the first two lines, UTF-8, ``fallback``.

    Raises InputError when the file says an encoding that it does not have.
    """
    check_size(len(data), place)
    try:
        for mark, encoding in _MARKS:
            if data.startswith(mark):
                return data[len(mark) :].decode(encoding)
        for line in data.split(b"\n", 2)[:2]:
            found = _CODING.search(line) if line.startswith(b"#") else None
            if found is not None:
                return data.decode(found[1].decode("ascii"))
    except (UnicodeDecodeError, LookupError) as problem:
        raise InputError(f"Could not read requirements file {place}: {problem}", hint="save it as UTF-8") from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode(fallback, errors="replace")


def check_size(size: int, place: str) -> None:
    """Raise InputError when a file of ``size`` bytes is too large to be a requirement file."""
    if size > LIMIT:
        raise InputError(
            f"requirements file {place} is too large: {size / 2**20:.0f} MiB",
            why=f"a requirements file may have at most {LIMIT // 2**20} MiB",
            hint="check that the path names a requirements file and not an archive or a log",
        )


def logical_lines(text: str, env: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """(number of its first line, logical line): continuations joined, comments and empty lines dropped, ``${VAR}`` replaced."""
    for number, line in _joined(text):
        content = _without_comment(line).strip()
        if content:
            yield number, _VARIABLE.sub(lambda found: env.get(found[1]) or found[0], content)


def _without_comment(line: str) -> str:
    """Cut at the first ``#`` that begins the line or follows white space. (A pattern would take quadratic time on blanks.)"""
    at = line.find("#")
    while at > 0 and not line[at - 1].isspace():
        at = line.find("#", at + 1)
    return line if at < 0 else line[:at]


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their backslash continuations. A comment line ends a continuation and is never continued itself."""
    first = 0
    parts: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        comment = line.lstrip().startswith("#")
        if line.endswith("\\") and not comment:
            if not parts:
                first = number
            parts.append(line.strip("\\"))
            continue
        if comment:
            # The space keeps the mark of the comment apart from what a continuation puts before it.
            line = " " + line
        if parts:
            yield first, "".join((*parts, line))
            parts = []
        else:
            yield number, line
    if parts:
        yield first, "".join(parts)
