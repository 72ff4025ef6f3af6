"""Our words to a person: always on stderr, so that stdout is pip's output or the data asked for.

No markup library here: these run on the quick paths too. Colour only on a terminal and without NO_COLOR.
"""

from __future__ import annotations

import os
import sys

from rocmpip.model.errors import RocmpipError
from rocmpip.model.redact import redact

_COLOURS = {"error": "31;1", "warning": "33", "note": "36", "hint": "2", "step": "32;1"}


def _paint(kind: str, text: str) -> str:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stderr.isatty():
        return text
    return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m"


def printable(text: str) -> str:
    """``text`` without control characters (terminal escapes in file names, logs, server answers), tabs and newlines kept."""
    return "".join(char if char in "\n\t" or char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def _write(line: str) -> None:
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        # A closed stderr must not change what the command does.
        pass


def _tell(kind: str, word: str, text: str) -> None:
    _write(f"{_paint(kind, word)} {redact(printable(text))}")


def step(text: str) -> None:
    """One step of a job: what is being done now."""
    _tell("step", "rocmpip:", text)


def note(text: str) -> None:
    _tell("note", "rocmpip: note:", text)


def warning(text: str) -> None:
    _tell("warning", "rocmpip: warning:", text)


def error(problem: RocmpipError) -> None:
    """What happened, why, what to do next: in that order."""
    _tell("error", "rocmpip: error:", problem.message)
    _reasons(problem)


def pips(text: str) -> None:
    """Words that are pip's own, as they stand."""
    _write(redact(printable(text)).removesuffix("\n"))


def refusal(problem: RocmpipError) -> None:
    """What pip would refuse too, in its words."""
    _tell("error", "ERROR:", problem.message)
    _reasons(problem)


def _reasons(problem: RocmpipError) -> None:
    if problem.why:
        _write(f"  {_paint('hint', 'why:')} {redact(printable(problem.why))}")
    for line in problem.details:
        _write(f"  {redact(printable(line))}")
    if problem.hint:
        _write(f"  {_paint('note', 'next:')} {redact(printable(problem.hint))}")
