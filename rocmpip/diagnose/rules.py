"""Rules as TOML data: what a log line says, in which company, and what it means."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from rocmpip.model.errors import BadConfiguration

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONFIDENCE = ("low", "medium", "high")
_KEYS = frozenset(
    ("kind", "family", "line", "also", "unless", "differs", "when", "weight", "confidence", "cause", "fix", "source", "success", "last")
)


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern and a piece of text that every match must contain (a cheap first look), or ""."""

    regex: re.Pattern[str]
    literal: str


@dataclass(frozen=True)
class Rule:
    """``line``: any of these makes the evidence. ``also``: each must stand somewhere. ``unless``: none may stand anywhere."""

    kind: str
    family: str
    line: tuple[int, ...]
    """Numbers of patterns in the rule book."""
    also: tuple[int, ...]
    unless: tuple[int, ...]
    differs: tuple[int, int] | None
    """Two patterns whose first groups must both be found and differ."""
    when: Mapping[str, Any]
    weight: int
    confidence: str
    cause: str
    fix: tuple[str, ...]
    source: str
    success: bool
    """True: holds in a log that ends well, too."""
    last: bool
    """The evidence is the last matching line instead of the first."""


@dataclass(frozen=True)
class RuleBook:
    rules: tuple[Rule, ...]
    patterns: tuple[Pattern, ...] = field(default=())


_META = set(".^$*+?{}[]\\|()")


def literal_of(pattern: str) -> str:
    """The longest text that every match of ``pattern`` contains, found without running it; "" when there is none."""
    best, current, depth, at = "", "", 0, 0
    while at < len(pattern):
        char = pattern[at]
        follower = ""
        if char == "\\" and at + 1 < len(pattern):
            follower = pattern[at + 1]
            at += 2
        else:
            at += 1
        if char == "(" and not follower:
            depth += 1
        elif char == ")" and not follower:
            depth -= 1
        elif char == "|" and not follower and depth == 0:
            return ""
        elif char == "[" and not follower:
            end = at + (2 if pattern[at : at + 1] in ("]", "^") else 0)
            while end < len(pattern) and pattern[end] != "]":
                end += 2 if pattern[end] == "\\" else 1
            at = end + 1
        elif depth == 0:
            plain = follower if follower and not follower.isalnum() else ("" if follower else char)
            if plain and (follower or plain not in _META):
                if pattern[at : at + 1] in ("?", "*", "{"):
                    plain = ""
                else:
                    current += plain
                    best = max(best, current, key=len)
                    continue
        current = ""
    return best


class _Book:
    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.patterns: list[Pattern] = []
        self.faults: list[str] = []

    def number(self, text: object, where: str) -> int:
        if not isinstance(text, str) or not text or len(text) > 500:
            self.faults.append(f"{where}: a pattern is a text of 1 to 500 characters")
            return -1
        if text not in self.numbers:
            try:
                regex = re.compile(text)
            except re.error as problem:
                self.faults.append(f"{where}: {text!r} is no regular expression: {problem}")
                return -1
            self.numbers[text] = len(self.patterns)
            self.patterns.append(Pattern(regex, literal_of(text)))
        return self.numbers[text]


def decode_rules(documents: Iterable[tuple[str, str]]) -> RuleBook:
    """(file name, TOML text) pairs → rules. Raises BadConfiguration with every fault of every file."""
    book = _Book()
    rules: list[Rule] = []
    for name, text in documents:
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as problem:
            book.faults.append(f"{name}: not TOML: {problem}")
            continue
        rows = data.get("rule", [])
        for number, row in enumerate(rows if isinstance(rows, list) else [], 1):
            rules.append(_rule(row, f"{name}: [[rule]] #{number}", book))
    if book.faults:
        raise BadConfiguration("a rule file is wrong", details=tuple(book.faults))
    return RuleBook(tuple(rules), tuple(book.patterns))


def _texts(row: Mapping[str, Any], key: str, where: str, book: _Book) -> tuple[int, ...]:
    value = row.get(key, [])
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list):
        book.faults.append(f"{where}: {key} must be a text or a list of texts")
        return ()
    return tuple(book.number(one, f"{where}: {key}") for one in value)


def _rule(row: Mapping[str, Any], where: str, book: _Book) -> Rule:
    for key in sorted(set(row) - _KEYS):
        book.faults.append(f"{where}: unknown key {key!r} (known: {', '.join(sorted(_KEYS))})")
    for key in ("kind", "family", "cause", "source"):
        if not isinstance(row.get(key), str) or not row[key]:
            book.faults.append(f"{where}: {key} must be a text")
    if row.get("confidence", "high") not in CONFIDENCE:
        book.faults.append(f"{where}: confidence must be one of {', '.join(CONFIDENCE)}")
    differs = _texts(row, "differs", where, book)
    if len(differs) not in (0, 2):
        book.faults.append(f"{where}: differs takes two patterns")
    fix = row.get("fix", [])
    return Rule(
        kind=str(row.get("kind", "")),
        family=str(row.get("family", "")),
        line=_texts(row, "line", where, book),
        also=_texts(row, "also", where, book),
        unless=_texts(row, "unless", where, book),
        differs=(differs[0], differs[1]) if len(differs) == 2 else None,
        when=dict(row.get("when", {})),
        weight=int(row.get("weight", 50)),
        confidence=str(row.get("confidence", "high")),
        cause=str(row.get("cause", "")),
        fix=tuple([fix] if isinstance(fix, str) else [str(one) for one in fix]),
        source=str(row.get("source", "")),
        success=bool(row.get("success", False)),
        last=bool(row.get("last", False)),
    )


@lru_cache(maxsize=4)
def load_rules(overrides: Sequence[str] = ()) -> RuleBook:
    """The shipped rules and the user's files after them. Raises BadConfiguration."""
    folder = Path(__file__).parent / "data"
    paths = [*sorted(folder.glob("*.toml")), *(Path(one) for one in overrides)]
    try:
        return decode_rules((path.name, path.read_text(encoding="utf-8")) for path in paths)
    except OSError as problem:
        raise BadConfiguration("a rule file cannot be read", why=str(problem)) from None
