"""PubGrub: conflict-driven search for one version of each package (Natalie Weizenbaum's algorithm, as Dart's pub documents it).

Packages are small integers. What is known of a package is a *term*: an int whose lowest bit says "it may be left out" and whose other
bits are its versions, so that and, or and complement of terms are those of integers. An *incompatibility* is a set of terms that must not
hold all together. Every conflict is traced back to the choices behind it and remembered as a new incompatibility, and the search goes back
as far as that one says. What is chosen next, and which version, is the caller's.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from enum import Enum

from rocmpip.model.record import Struct

OUT = 1
"""The bit of a term that says: may be left out."""
ROOT = 0
"""The package that stands for the user's own requirements; its one version has the bit after ``OUT``."""
ROOT_VERSION = 2


class NoSolution(Exception):
    """Nothing satisfies all requirements."""


class Relation(Enum):
    """How what is known relates to an incompatibility."""

    SATISFIED = 1
    ALMOST = 2
    """All terms but one hold: that one must not."""
    CONTRADICTED = 3
    OPEN = 4


class Incompatibility(Struct, frozen=True):
    """``terms`` by package. ``dependency`` is (dependent, dependency) where that is what it says."""

    terms: Mapping[int, int]
    dependency: tuple[int, int] | None = None


class _Derivation(Struct):
    moment: int
    level: int
    cause: int
    known: int
    """Everything known of the package up to here, as a term."""


class _Package:
    """What is known of one package: derivations in order, then perhaps a decision."""

    __slots__ = ("decided", "derivations", "last", "moment", "term")

    def __init__(self) -> None:
        self.derivations: list[_Derivation] = []
        self.term = 0
        self.decided = False
        self.moment = 0
        """When it was decided."""
        self.last = 0
        """The decision level of the newest thing known."""


class Solver:
    """The state of one search. ``everything`` is each package's term that says nothing (all bits), filled in by the caller."""

    def __init__(self) -> None:
        self.everything: dict[int, int] = {ROOT: OUT | ROOT_VERSION}
        self.store: list[Incompatibility] = []
        self.decisions: list[int] = []
        """Decided packages in order; the decision level is their number."""
        self.changed: set[int] = set()
        """Undecided packages about which something was learned, for the caller to take note of."""
        self.open_again: set[int] = set()
        """Undecided packages about which nothing changed when the search went back."""
        self.backtracked = False
        self._packages: dict[int, _Package] = {}
        self._of: dict[int, list[int]] = {ROOT: []}
        self._merged: dict[tuple[int, int, int], int] = {}
        self._contradicted: dict[int, int] = {}
        self._moment = 0
        self.add(Incompatibility({ROOT: OUT}))

    # What is known ---------------------------------------------------------------------------------------------------

    def term(self, package: int) -> int:
        known = self._packages.get(package)
        return self.everything[package] if known is None else known.term

    def undecided(self, package: int) -> bool:
        """Whether a version of it has to be chosen and is not."""
        known = self._packages.get(package)
        return known is not None and not known.decided and not known.term & OUT

    def add(self, one: Incompatibility) -> int:
        """Remember an incompatibility. Dependencies of several versions that say the same become one."""
        number = len(self.store)
        self.store.append(one)
        if one.dependency is not None:
            dependent, needed = one.dependency
            key = dependent, needed, one.terms.get(needed, 0)
            before = self._merged.get(key)
            if before is not None:
                terms = {**one.terms, dependent: one.terms[dependent] | self.store[before].terms[dependent]}
                number = len(self.store)
                self.store.append(Incompatibility(terms, one.dependency))
                for package in terms:
                    self._of[package].remove(before)
            self._merged[key] = number
        self._enlist(number)
        return number

    def _enlist(self, number: int) -> None:
        for package in self.store[number].terms:
            self._of.setdefault(package, []).append(number)

    def depend(self, dependent: int, versions: int, needed: int, allowed: int) -> int:
        """``versions`` (bits) of ``dependent`` need one of the versions ``allowed`` of ``needed``. The number of the incompatibility
        as it was before it was merged with others."""
        number = len(self.store)
        self.add(Incompatibility({dependent: versions, needed: self.everything[needed] & ~allowed}, (dependent, needed)))
        return number

    def relation(self, number: int, assume: tuple[int, int] | None = None) -> tuple[Relation, int]:
        """How things stand with an incompatibility, and the package that its answer is about (ALMOST). ``assume``: a term for one package."""
        almost = -1
        for package, term in self.store[number].terms.items():
            known = assume[1] if assume is not None and assume[0] == package else self.term(package)
            if not known & term:
                return Relation.CONTRADICTED, package
            if known & ~term:
                if almost >= 0:
                    almost = -2
                elif almost == -1:
                    almost = package
        if almost == -1:
            return Relation.SATISFIED, -1
        return (Relation.ALMOST, almost) if almost >= 0 else (Relation.OPEN, -1)

    # Moves -----------------------------------------------------------------------------------------------------------

    def decide(self, package: int, version: int) -> None:
        """Choose the version with the bit ``version``."""
        known = self._packages[package]
        self.decisions.append(package)
        known.decided = True
        known.term = version
        known.last = len(self.decisions)
        known.moment = self._next_moment()

    def try_version(self, package: int, version: int, dependencies: Sequence[int]) -> int | None:
        """Choose a version whose ``dependencies`` are new, unless one of them stands against it: the number of that one.

        Before anything went wrong nothing is checked: propagation finds the first conflict.
        """
        if self.backtracked:
            for number in dependencies:
                if self.relation(number, (package, version))[0] is Relation.SATISFIED:
                    return number
        self.decide(package, version)
        return None

    def _next_moment(self) -> int:
        self._moment += 1
        return self._moment

    def _derive(self, package: int, cause: int) -> None:
        """What ``cause`` leaves of a package."""
        level = len(self.decisions)
        known = self._packages.get(package)
        if known is None:
            known = self._packages[package] = _Package()
            known.term = self.everything[package]
        known.term &= ~self.store[cause].terms[package]
        known.last = level
        known.derivations.append(_Derivation(self._next_moment(), level, cause, known.term))
        if not known.term & OUT:
            self.changed.add(package)

    def propagate(self, package: int) -> list[tuple[int, int]]:
        """Draw all conclusions after something changed for ``package``.

        Returns the conflicts met: (package, number of the incompatibility that tells why). Raises NoSolution.
        """
        causes: list[tuple[int, int]] = []
        stack = [package]
        while stack:
            current = stack.pop()
            conflict = -1
            for number in reversed(self._of.get(current, ())):
                if number in self._contradicted:
                    continue
                relation, about = self.relation(number)
                if relation is Relation.SATISFIED:
                    conflict = number
                    break
                if relation is Relation.ALMOST:
                    if about not in stack:
                        stack.append(about)
                    self._derive(about, number)
                if relation is not Relation.OPEN:
                    self._contradicted[number] = len(self.decisions)
            if conflict >= 0:
                about, number = self._learn(conflict, causes)
                stack = [about]
                self._derive(about, number)
                self._contradicted[number] = len(self.decisions)
        return causes

    def _learn(self, conflict: int, causes: list[tuple[int, int]]) -> tuple[int, int]:
        """Trace a conflict to its root, go back as far as that tells: (package, incompatibility to go on with)."""
        number, learned = conflict, False
        while True:
            terms = self.store[number].terms
            if not terms or (len(terms) == 1 and ROOT in terms):
                raise NoSolution
            package, cause, level, previous = self._satisfier(terms)
            if previous < level:
                self.backtrack(previous)
                if learned:
                    self._enlist(number)
                causes.append((package, number))
                return package, number
            number = self._combine(number, cause, package)
            causes.append((package, number))
            learned = True

    def _combine(self, number: int, cause: int, package: int) -> int:
        """Resolution of two incompatibilities on the package that both name."""
        mine, other = self.store[number].terms, self.store[cause].terms
        terms = {name: term for name, term in mine.items() if name != package}
        for name, term in other.items():
            if name != package:
                terms[name] = terms[name] & term if name in terms else term
        either = mine[package] | other[package]
        if either != self.everything[package]:
            terms[package] = either
        self.store.append(Incompatibility(terms))
        return len(self.store) - 1

    def _satisfier(self, terms: Mapping[int, int]) -> tuple[int, int, int, int]:
        """What made all ``terms`` hold in the end: (package, cause, its level, the level at which all the rest held).

        The cause is -1 for a decision."""
        met = {package: self._first(package, term) for package, term in terms.items()}
        package = max(met, key=lambda one: met[one][1])
        cause, _, level = met[package]
        known = self._packages[package]
        left = self.everything[package] & ~self.store[cause].terms[package] if cause >= 0 else known.term
        met[package] = self._first_disjoint(package, left & ~terms[package])
        previous = max(met.values(), key=lambda one: one[1])[2]
        return package, cause, level, max(previous, 1)

    def _first(self, package: int, term: int) -> tuple[int, int, int]:
        return self._first_disjoint(package, self.everything[package] & ~term)

    def _first_disjoint(self, package: int, rest: int) -> tuple[int, int, int]:
        """The first thing known of a package that leaves nothing of ``rest``: (cause or -1, moment, level)."""
        known = self._packages[package]
        place = bisect_left(known.derivations, True, key=lambda one: not one.known & rest)
        if place < len(known.derivations):
            one = known.derivations[place]
            return one.cause, one.moment, one.level
        return -1, known.moment, known.last

    def backtrack(self, level: int) -> None:
        """Forget everything after the decision of that number."""
        self.backtracked = True
        for package in self.decisions[level:]:
            self._packages[package].decided = False
        del self.decisions[level:]
        for package, known in list(self._packages.items()):
            if known.last <= level:
                if not known.decided and not known.term & OUT:
                    self.open_again.add(package)
                continue
            while known.derivations and known.derivations[-1].level > level:
                known.derivations.pop()
            if not known.derivations:
                del self._packages[package]
                continue
            newest = known.derivations[-1]
            known.term, known.last = newest.known, newest.level
            if not known.term & OUT:
                self.changed.add(package)
        for number, since in list(self._contradicted.items()):
            if since > level:
                del self._contradicted[number]

    def before(self, package: int) -> bool:
        """Go back to before ``package`` was decided; False where it is not."""
        if package not in self.decisions:
            return False
        self.backtrack(self.decisions.index(package))
        return True
