"""Versions and specifiers at resolver speed.

``packaging`` is the authority. A resolver asks tens of thousands of questions of the form "is 2.31.0 in >=2.0,<3",
though, and nearly all of them compare plain release numbers, which tuples of integers answer ten times faster with the
same result. Whatever is not plain (pre-, post-, development, local and epoch versions, ``===``) goes to ``packaging``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

_PLAIN = re.compile(r"\d{1,15}(?:\.\d{1,15})*\Z")
_CLAUSE = re.compile(r"\s*(===|==|~=|!=|<=|>=|<|>)\s*([^\s,;]+)\s*\Z")
_FINAL: tuple[Any, ...] = ((1,), -1, (1,), ())
# How many versions one specifier remembers its answer for; a bound, since projects with thousands of nightlies exist.
_REMEMBERED = 20_000


class Release:
    """One version: ``text`` as written, ``key`` that sorts as PEP 440 says, ``plain`` when it is only release numbers.

    Two releases are equal when PEP 440 says so (``1.0`` and ``1.0.0``), local labels included.
    """

    __slots__ = ("_full", "key", "numbers", "plain", "text")

    def __init__(self, text: str) -> None:
        """Raises ValueError when ``text`` is no PEP 440 version."""
        self.text = text
        self._full: Version | None = None
        self.plain = _PLAIN.match(text) is not None
        if self.plain:
            self.numbers = _trim(tuple(map(int, text.split("."))))
            self.key: tuple[Any, ...] = (0, self.numbers, *_FINAL)
        else:
            full = self.full
            self.numbers = _trim(full.release)
            self.key = _key(full)

    @property
    def full(self) -> Version:
        """The same as ``packaging.version.Version``."""
        if self._full is None:
            from packaging.version import InvalidVersion, Version

            try:
                self._full = Version(self.text)
            except InvalidVersion as problem:
                raise ValueError(str(problem)) from None
        return self._full

    @property
    def pre(self) -> bool:
        """True for pre-releases and development releases."""
        return not self.plain and is_pre(self.key)

    @property
    def local(self) -> str:
        """The local label, or ""."""
        return "" if self.plain else (self.full.local or "")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Release) and self.key == other.key

    def __lt__(self, other: Release) -> bool:
        return self.key < other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Release({self.text!r})"


def _trim(numbers: tuple[int, ...]) -> tuple[int, ...]:
    end = len(numbers)
    while end and numbers[end - 1] == 0:
        end -= 1
    return numbers[:end]


def _key(full: Version) -> tuple[Any, ...]:
    pre: tuple[Any, ...]
    if full.pre is not None:
        pre = (0, *full.pre)
    else:
        # A development release of a final version comes before all its pre-releases.
        pre = (-1,) if full.post is None and full.dev is not None else (1,)
    local = tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in (full.local or "").split(".") if part)
    return (
        full.epoch,
        _trim(full.release),
        pre,
        -1 if full.post is None else full.post,
        (1,) if full.dev is None else (0, full.dev),
        local,
    )


_releases: dict[str, Release] = {}
_keys: dict[str, tuple[Any, ...]] = {}


def plain_key(text: str) -> tuple[Any, ...] | None:
    """``release(text).key`` of a version that is only release numbers, remembered; None for any other text."""
    known = _keys.get(text)
    if known is None and _PLAIN.match(text):
        known = _keys[text] = (0, _trim(tuple(map(int, text.split(".")))), *_FINAL)
    return known


def release(text: str) -> Release:
    """``Release(text)``, remembered. Raises ValueError when it is no version."""
    known = _releases.get(text)
    if known is None:
        known = _releases[text] = Release(text)
    return known


class Spec:
    """A set of version clauses (``>=2,<3``). Pre-releases are neither favoured nor refused here: see ``listing``."""

    __slots__ = ("_answers", "_clauses", "_full", "pin", "pre", "text")

    def __init__(self, text: str) -> None:
        """Raises ValueError when ``text`` is no PEP 440 specifier set."""
        self.text = text.strip()
        self._answers: dict[str, bool] = {}
        self._full: SpecifierSet | None = None
        self._clauses: tuple[tuple[str, tuple[int, ...], int], ...] | None = ()
        self.pre = False
        """True when a clause other than != names a pre-release."""
        self.pin = ""
        """The version of an exact clause (``==2.1``, ``===2.1``), or ""."""
        if self.text:
            self._read()

    def _read(self) -> None:
        plain: list[tuple[str, tuple[int, ...], int]] = []
        for piece in self.text.split(","):
            if not piece.strip():
                continue
            match = _CLAUSE.match(piece)
            if match is None:
                self._full = _specifier_set(self.text)
                self._clauses = None
                return
            operator, version = match.groups()
            wild = version.endswith(".*") and operator in ("==", "!=")
            number = version[:-2] if wild else version
            if operator in ("==", "===") and not wild:
                self.pin = version
            if self._clauses is None or operator == "===" or not _PLAIN.match(number):
                self._clauses = None
                continue
            numbers = tuple(map(int, number.split(".")))
            if operator == "~=":
                if len(numbers) < 2:
                    self._clauses = None
                    continue
                plain.append(("==*", numbers[:-1], len(numbers) - 1))
                operator = ">="
            plain.append((operator + "*" if wild else operator, numbers if wild else _trim(numbers), len(numbers)))
        if self._clauses is None:
            self._full = _specifier_set(self.text)
            self.pre = any(clause.operator not in ("!=", "===") and _names_pre(clause.version) for clause in self._full) or any(
                clause.operator == "===" and _names_pre(clause.version) for clause in self._full
            )
        else:
            self._clauses = tuple(plain)

    @property
    def full(self) -> SpecifierSet:
        """The same as ``packaging.specifiers.SpecifierSet``."""
        if self._full is None:
            self._full = _specifier_set(self.text)
        return self._full

    def contains(self, version: Release) -> bool:
        """Whether ``version`` lies in the set, pre-releases included."""
        text = version.text
        answer = self._answers.get(text)
        if answer is None:
            if version.plain and self._clauses is not None:
                answer = _within(version.numbers, self._clauses)
            elif not self.text:
                answer = True
            else:
                answer = self.full.contains(version.full, prereleases=True)
            if len(self._answers) < _REMEMBERED:
                self._answers[text] = answer
        return answer

    def holds(self, key: tuple[Any, ...], text: str) -> bool:
        """``contains(release(text))`` for the version with this key: for plain ones without a Release being made."""
        if self._clauses is not None and key[0] == 0 and key[2:] == _FINAL:
            numbers: tuple[int, ...] = key[1]
            return _within(numbers, self._clauses)
        return self.contains(release(text))

    def __str__(self) -> str:
        return self.text


def is_pre(key: tuple[Any, ...]) -> bool:
    """Whether the version with this ``Release.key`` is a pre-release or a development release."""
    return bool(key[2] != (1,) or key[4] != (1,))


def _within(numbers: tuple[int, ...], clauses: tuple[tuple[str, tuple[int, ...], int], ...]) -> bool:
    for operator, bound, length in clauses:
        if operator == ">=":
            if numbers < bound:
                return False
        elif operator == "<":
            if numbers >= bound:
                return False
        elif operator == "==":
            if numbers != bound:
                return False
        elif operator == "!=":
            if numbers == bound:
                return False
        elif operator == "<=":
            if numbers > bound:
                return False
        elif operator == ">":
            if numbers <= bound:
                return False
        else:
            head = (numbers + (0,) * (length - len(numbers)))[:length]
            if (head == bound) is (operator == "!=*"):
                return False
    return True


def _specifier_set(text: str) -> SpecifierSet:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(text)
    except InvalidSpecifier as problem:
        raise ValueError(str(problem)) from None


def _names_pre(text: str) -> bool:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text.removesuffix(".*")).is_prerelease
    except InvalidVersion:
        return False


_specs: dict[str, Spec] = {}


def spec(text: str) -> Spec:
    """``Spec(text)``, remembered. Raises ValueError when it is no specifier set."""
    known = _specs.get(text)
    if known is None:
        known = _specs[text] = Spec(text)
    return known
