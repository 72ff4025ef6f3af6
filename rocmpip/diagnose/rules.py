"""Rules as TOML data: what a log line says, in which company, and what it means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from rocmpip.diagnose.index import Index
from rocmpip.diagnose.pattern import Pattern, fault_of
from rocmpip.model import toml
from rocmpip.model.errors import BadConfiguration
from rocmpip.model.record import Struct, field

CONFIDENCE = ("low", "medium", "high")
LARGEST = 1024 * 1024
"""Bytes of a rule file, at most."""
_TEXTS = ("kind", "family", "cause", "source")
_LISTS = ("line", "also", "unless", "differs", "fix")
_SWITCHES = ("success", "probes", "guess")
_WHEN: Mapping[str, type] = {"gfx": list, "wsl": bool, "container": bool}
_KEYS = frozenset((*_TEXTS, *_LISTS, *_SWITCHES, "when", "weight", "confidence"))
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class Rule(Struct, frozen=True):
    """``line``: any of these makes the evidence. ``also``: each must stand somewhere. ``unless``: none may stand anywhere."""

    kind: str
    family: str
    line: tuple[int, ...]
    """Numbers of patterns in the rule book."""
    also: tuple[int, ...]
    unless: tuple[int, ...]
    differs: tuple[int, int] | None
    """Two patterns whose first groups must both be found and have nothing in common."""
    when: Mapping[str, Any]
    weight: int
    confidence: str
    cause: str
    fix: tuple[str, ...]
    source: str
    success: bool
    """True: holds in a log that ends well, too."""
    probes: bool
    """True: looks at the lines of a configure script's probes, too."""
    guess: bool
    """True: holds only in a log that ends badly and of which no other rule knows more than a guess."""


class RuleBook(Struct, frozen=True, dict=True):
    rules: tuple[Rule, ...]
    patterns: tuple[Pattern, ...] = field(default=())

    @cached_property
    def index(self) -> Index:
        """Finds the patterns that a line may match."""
        return Index(self.patterns)

    @cached_property
    def grouped(self) -> frozenset[int]:
        """Patterns whose groups some rule compares."""
        return frozenset(number for rule in self.rules for number in rule.differs or ())

    @cached_property
    def probing(self) -> frozenset[int]:
        """Patterns that also look at probes."""
        return frozenset(number for rule in self.rules if rule.probes for number in (*rule.line, *rule.also))


class _Book:
    """Collects patterns (each once) and faults while files are decoded."""

    def __init__(self, *, check: bool) -> None:
        self.check = check
        self.numbers: dict[str, int] = {}
        self.patterns: list[Pattern] = []
        self.faults: list[str] = []

    def number(self, text: object, where: str) -> int:
        if not isinstance(text, str):
            self.faults.append(f"{where}: a pattern is a text")
            return -1
        if text not in self.numbers:
            # Compiling is what costs: a shipped pattern is compiled when its literal is seen, and the tests check them all.
            fault = fault_of(text) if self.check else ""
            if fault:
                self.faults.append(f"{where}: {text[:80]!r} {fault}")
                return -1
            self.numbers[text] = len(self.patterns)
            self.patterns.append(Pattern(text))
        return self.numbers[text]


def decode_rules(documents: Iterable[tuple[str, str]], shipped: Iterable[tuple[str, str]] = ()) -> RuleBook:
    """(file name, TOML text) pairs → rules; ``shipped`` ones come first and are taken as checked.

    ``replace = ["kind", …]`` at the top of a file takes away all earlier rules of these kinds. Raises BadConfiguration with
    every fault of every file.
    """
    book = _Book(check=False)
    rules: list[Rule] = []
    for name, text in shipped:
        rules += [_rule(row, name, book) for row in toml.loads(text)["rule"]]
    book.check = True
    for name, text in documents:
        try:
            data = toml.loads(text)
        except toml.TomlError as problem:
            book.faults.append(f"{name}: not TOML: {problem}")
            continue
        for key in sorted(set(data) - {"rule", "replace"}):
            book.faults.append(f"{name}: unknown key {key!r} (known: replace, rule)")
        gone = data.get("replace", [])
        if not _is_texts(gone):
            book.faults.append(f"{name}: replace must be a list of kinds")
            gone = []
        rules = [rule for rule in rules if rule.kind not in gone]
        rows = data.get("rule", [])
        if not isinstance(rows, list):
            book.faults.append(f"{name}: rules are written as [[rule]]")
            rows = []
        for number, row in enumerate(rows, 1):
            where = f"{name}: [[rule]] #{number}"
            before = len(book.faults)
            _check(row, where, book)
            if len(book.faults) == before:
                rules.append(_rule(row, where, book))
    if book.faults:
        raise BadConfiguration(
            "a rule file is wrong", details=tuple(book.faults), hint="docs/reference/rule-format.md tells the keys"
        )
    return RuleBook(tuple(rules), tuple(book.patterns))


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _check(row: object, where: str, book: _Book) -> None:
    """Tell every fault of one row."""
    tell = book.faults.append
    if not isinstance(row, dict):
        tell(f"{where}: must be a table")
        return
    for key in sorted(set(row) - _KEYS):
        tell(f"{where}: unknown key {key!r} (known: {', '.join(sorted(_KEYS))})")
    for key in _TEXTS:
        if not isinstance(row.get(key), str) or not row[key].strip() or len(row[key]) > 1000:
            tell(f"{where}: {key} must be a text of 1 to 1000 characters")
    for key in ("kind", "family"):
        if isinstance(row.get(key), str) and not _SLUG.fullmatch(row[key]):
            tell(f"{where}: {key} must be small letters, digits and single hyphens, not {row[key][:40]!r}")
    for key in _LISTS:
        value = row.get(key, [])
        if not isinstance(value, str) and not _is_texts(value):
            tell(f"{where}: {key} must be a text or a list of texts")
        elif key != "fix":
            for text in [value] if isinstance(value, str) else value:
                book.number(text, f"{where}: {key}")
    if not row.get("line"):
        tell(f"{where}: line must name one pattern at least")
    if "differs" in row and (not _is_texts(row["differs"]) or len(row["differs"]) != 2):
        tell(f"{where}: differs takes two patterns")
    for key in _SWITCHES:
        if not isinstance(row.get(key, False), bool):
            tell(f"{where}: {key} must be true or false")
    weight = row.get("weight", 50)
    if isinstance(weight, bool) or not isinstance(weight, int) or not 0 <= weight <= 100:
        tell(f"{where}: weight must be a whole number from 0 to 100")
    if row.get("confidence", "high") not in CONFIDENCE:
        tell(f"{where}: confidence must be one of {', '.join(CONFIDENCE)}")
    _check_when(row.get("when", {}), where, book)


def _check_when(when: object, where: str, book: _Book) -> None:
    if not isinstance(when, dict):
        book.faults.append(f"{where}: when must be a table")
        return
    for key, value in when.items():
        if key not in _WHEN:
            book.faults.append(f"{where}: when: unknown key {key!r} (known: {', '.join(sorted(_WHEN))})")
        elif not isinstance(value, _WHEN[key]) or (key == "gfx" and not _is_texts(value)):
            book.faults.append(f"{where}: when.{key} must be {'a list of gfx names' if key == 'gfx' else 'true or false'}")


def _list(row: Mapping[str, Any], key: str) -> list[str]:
    value = row.get(key, [])
    return [value] if isinstance(value, str) else value


def _rule(row: Mapping[str, Any], where: str, book: _Book) -> Rule:
    """A checked row as a rule."""
    line, also, unless, differs = (
        tuple(book.number(one, where) for one in _list(row, key)) for key in ("line", "also", "unless", "differs")
    )
    return Rule(
        kind=row["kind"],
        family=row["family"],
        line=line,
        also=also,
        unless=unless,
        differs=(differs[0], differs[1]) if differs else None,
        when=row.get("when", {}),
        weight=row.get("weight", 50),
        confidence=row.get("confidence", "high"),
        cause=row["cause"],
        fix=tuple(_list(row, "fix")),
        source=row["source"],
        success=row.get("success", False),
        probes=row.get("probes", False),
        guess=row.get("guess", False),
    )


def shipped_rules() -> tuple[tuple[str, str], ...]:
    """(file name, text) of the rule files that come with rocmpip."""
    folder = Path(__file__).parent / "data"
    return tuple((path.name, path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.toml")))


@lru_cache(maxsize=4)
def load_rules(overrides: Sequence[str] = ()) -> RuleBook:
    """The shipped rules and the user's files after them. Raises BadConfiguration."""
    return decode_rules([_read(Path(one)) for one in overrides], shipped_rules())


def _read(path: Path) -> tuple[str, str]:
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise BadConfiguration(f"the rule file {path} is too large", why=f"more than {LARGEST} bytes")
        return path.name, content.decode("utf-8")
    except OSError as problem:
        raise BadConfiguration(f"the rule file {path} cannot be read", why=problem.strerror or str(problem)) from None
    except UnicodeDecodeError:
        raise BadConfiguration(f"the rule file {path} is not UTF-8 text") from None
