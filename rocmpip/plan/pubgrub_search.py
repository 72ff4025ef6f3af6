"""uv's search on PubGrub: which package is decided next, what its versions need, and what counts as a conflict too many.

Two locks of one set should not differ by the tool that made them, so where several answers are right this takes uv's: packages in the order
in which they are met, those with one possible version first, and those that keep standing in each other's way before the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rocmpip.plan.listing import Candidate, Listing
from rocmpip.plan.provider import PYTHON, Choice, Provider
from rocmpip.plan.pubgrub import ROOT, ROOT_VERSION, Incompatibility, NoSolution, Solver
from rocmpip.plan.pubgrub_project import Project
from rocmpip.plan.requirements import Need

__all__ = ["NoSolution", "NotHere", "search"]

_STUBBORN = 5
"""So many conflicts put a package before (or after) the others."""
_AHEAD = 48
"""So many versions' metadata is asked for at once at most."""
_USUAL, _LATE, _EARLY, _PINNED, _DIRECT = range(5)
_EXTRA = re.compile(r"""\s*(?:\band\s+)?\(?\s*extra\s*==\s*(?:"[^"]*"|'[^']*')\s*\)?\s*(?:and\b)?\s*""")


class NotHere(Exception):
    """A request that this search does not cover."""


class Node(NamedTuple):
    """A package as the search sees it: a project, one of its extras, or what a requirement with extras or a marker asks for
    (``proxy``), which stands for the project together with that."""

    name: str
    extra: str = ""
    marker: str = ""
    proxy: bool = False


class _Wanted(NamedTuple):
    node: Node
    allowed: int
    pinned: bool


def search(provider: Provider, roots: Sequence[Need], max_rounds: int) -> dict[str, Choice]:
    """A choice for every project. Raises NoSolution, NotHere, and what the provider's source raises."""
    return _Search(provider, roots).run(max_rounds)


class _Search:
    def __init__(self, provider: Provider, roots: Sequence[Need]) -> None:
        self._provider = provider
        self._roots = roots
        self._solver = Solver()
        self._nodes: list[Node] = [Node("")]
        self._numbers: dict[Node, int] = {}
        self._projects: dict[str, Project] = {}
        self._queue: dict[int, tuple[int, int, int]] = {}
        self._tiers: dict[str, tuple[int, int]] = {}
        self._met: dict[Node, int] = {}
        self._added: set[tuple[int, int]] = set()
        self._tried: dict[str, int] = {}
        self._culprits: dict[int, int] = {}
        self._affected: dict[int, int] = {}
        self._prioritise: list[int] = []
        self._deprioritise: list[int] = []

    def run(self, max_rounds: int) -> dict[str, Choice]:
        solver = self._solver
        current = ROOT
        for _ in range(max_rounds):
            for affected, number in solver.propagate(current):
                self._count(current, affected, number)
            self._reorder()
            chosen = self._next()
            if chosen is None:
                return self._choices()
            current = chosen
            self._decide(current)
        raise NotHere("too many rounds")

    # Order -----------------------------------------------------------------------------------------------------------

    def _next(self) -> int | None:
        """The undecided package that comes first. A package's rank is that of the moment when something was last learned of it."""
        solver, queue = self._solver, self._queue
        for package in solver.open_again:
            if package not in queue:
                solver.changed.add(package)
        for package in solver.changed:
            if solver.undecided(package):
                queue[package] = self._rank(package)
        solver.open_again.clear()
        solver.changed.clear()
        while queue:
            package = max(queue, key=queue.__getitem__)
            del queue[package]
            if solver.undecided(package):
                return package
        return None

    def _rank(self, package: int) -> tuple[int, int, int]:
        if package == ROOT:
            return _DIRECT + 1, 0, 0
        node = self._nodes[package]
        return *self._tiers[node.name], -self._met[node]

    def _meet(self, node: Node, *, pinned: bool) -> None:
        """A dependency on ``node`` was seen."""
        self._met.setdefault(node, len(self._met))
        known = self._tiers.get(node.name)
        tier = _DIRECT if self._projects[node.name].url else _PINNED if pinned else _USUAL
        if known is None:
            self._tiers[node.name] = tier, -len(self._tiers)
        elif tier > known[0]:
            self._tiers[node.name] = tier, known[1]

    def _count(self, current: int, affected: int, number: int) -> None:
        """Note who stood in whose way. Parts of one project do not count against each other."""
        real = False
        for package in self._solver.store[number].terms:
            if package == affected or self._nodes[package].name == self._nodes[affected].name:
                continue
            real = True
            count = self._culprits[package] = self._culprits.get(package, 0) + 1
            if count == _STUBBORN:
                self._deprioritise.append(package)
        if real:
            count = self._affected[current] = self._affected.get(current, 0) + 1
            if count == _STUBBORN:
                self._prioritise.append(current)

    def _reorder(self) -> None:
        """What was refused often comes early; what it was refused for comes after it, and is decided anew."""
        for package in self._prioritise:
            if package != ROOT:
                name = self._nodes[package].name
                self._tiers[name] = _EARLY, self._tiers[name][1]
        for package in self._deprioritise:
            if package != ROOT:
                name = self._nodes[package].name
                tier, place = self._tiers[name]
                if tier not in (_LATE, _EARLY):
                    self._tiers[name] = _LATE, place
                    self._solver.before(package)
        self._prioritise.clear()
        self._deprioritise.clear()

    # Choosing --------------------------------------------------------------------------------------------------------

    def _decide(self, package: int) -> None:
        solver = self._solver
        if package == ROOT:
            bit = around = ROOT_VERSION
            wanted = self._wanted(self._roots)
        else:
            node = self._nodes[package]
            project = self._projects[node.name]
            term = solver.term(package)
            place = project.best(term)
            if place is None:
                solver.add(Incompatibility({package: term}))
                return
            self._foresee(node.name, project, term)
            bit, around = project.bit(place), project.around(place)
            if (package, bit) in self._added:
                solver.decide(package, bit)
                return
            candidate = project.candidate(place)
            needs = None if self._provider.barred(node.name, candidate) else self._needs(node, candidate)
            if needs is None:
                solver.add(Incompatibility({package: around}))
                return
            wanted = [_Wanted(one, bit, True) for one in _parts(node)] if node.proxy else self._wanted(needs)
        self._added.add((package, bit))
        refused = solver.try_version(package, bit, self._depend(package, around, wanted))
        if refused is not None:
            self._count(package, package, refused)

    def _foresee(self, name: str, project: Project, term: int) -> None:
        """Of a project whose versions were refused again and again, the metadata of the next ones is asked for all at once."""
        tried = self._tried[name] = self._tried.get(name, 0) + 1
        if tried < _STUBBORN - 1 or tried & (tried - 1):
            return
        for place in project.following(term, min(2 * tried, _AHEAD)):
            self._provider.source.prefetch(name, f"=={project.text(place)}")

    def _depend(self, package: int, bit: int, wanted: Sequence[_Wanted]) -> list[int]:
        for node, _, pinned in wanted:
            self._meet(node, pinned=pinned)
            if node.proxy:
                self._meet(Node(node.name), pinned=pinned)
        for node, allowed, _ in wanted:
            if node.proxy:
                self._solver.depend(self._number(node), allowed, self._number(Node(node.name)), allowed)
        return [self._solver.depend(package, bit, self._number(node), allowed) for node, allowed, _ in wanted]

    def _number(self, node: Node) -> int:
        known = self._numbers.get(node)
        if known is None:
            known = self._numbers[node] = len(self._nodes)
            self._nodes.append(node)
            self._solver.everything[known] = self._projects[node.name].everything
        return known

    def _choices(self) -> dict[str, Choice]:
        candidates: dict[str, Candidate] = {}
        extras: dict[str, set[str]] = {}
        for package in self._solver.decisions:
            node = self._nodes[package]
            if not node.name:
                continue
            project = self._projects[node.name]
            place = project.best(self._solver.term(package))
            assert place is not None
            candidates[node.name] = project.candidate(place)
            if node.extra and not node.proxy:
                extras.setdefault(node.name, set()).add(node.extra)
        chosen: dict[str, Choice] = {}
        for name, candidate in candidates.items():
            asked = ("", *extras.get(name, ()))
            added = {one for extra in asked for one in self._flat(candidate, extra)[1]} - {""}
            chosen[name] = self._provider.choice(candidate, self._added_extras(name) | added)
        return chosen

    # What is needed --------------------------------------------------------------------------------------------------

    def _added_extras(self, name: str) -> frozenset[str]:
        return frozenset(self._provider.policy.extra_extras.get(name, ()))

    def _needs(self, node: Node, candidate: Candidate) -> Sequence[Need] | None:
        """What a candidate needs, or one extra of it alone; None for one that cannot be used."""
        if node.proxy:
            return ()
        base = self._flat(candidate, "")[0]
        if any(one.name == PYTHON for one in base):
            return None
        needs = self._flat(candidate, node.extra)[0] if node.extra else base
        if any(one.name == node.name and not one.spec.contains(candidate.version) for one in (*base, *needs)):
            return None
        return [one for one in needs if one.name != node.name]

    def _flat(self, candidate: Candidate, extra: str) -> tuple[list[Need], frozenset[str]]:
        """What an extra needs beside the project itself ("" for the project), with what the extras of the same project need that it
        names; and all these extras."""
        always = self._added_extras(candidate.name)
        needs: list[Need] = []
        taken: set[int] = set()
        if extra:
            taken.update(map(id, self._provider.get_dependencies(self._provider.choice(candidate, always))))
        queue = [extra]
        for one in queue:
            for wanted in self._provider.get_dependencies(self._provider.choice(candidate, always | ({one} - {""}))):
                if id(wanted) in taken:
                    continue
                taken.add(id(wanted))
                needs.append(wanted)
                if wanted.name == candidate.name:
                    queue.extend(sorted(wanted.extras.difference(queue)))
        return needs, frozenset(queue)

    def _wanted(self, needs: Iterable[Need]) -> list[_Wanted]:
        """Requirements as dependencies of the search, each followed by the constraints on its project."""
        found: list[_Wanted] = []
        for one in needs:
            allowed = self._allowed(one)
            marker = _plain_marker(one.marker)
            pinned = bool(one.spec.pin)
            if one.extras:
                found.extend(_Wanted(Node(one.name, extra, marker, True), allowed, pinned) for extra in sorted(one.extras))
            else:
                found.append(_Wanted(Node(one.name, "", marker, bool(marker)), allowed, pinned))
            for bound in self._provider.policy.constraints.get(one.name, ()):
                both = " and ".join(filter(None, (_plain_marker(bound.marker), marker)))
                found.append(_Wanted(Node(one.name, "", both, bool(both)), self._allowed(bound), bool(bound.spec.pin)))
        return found

    def _allowed(self, one: Need) -> int:
        project = self._project(one.name)
        if one.url and one.url != project.url:
            raise NotHere(f"{one.name} by URL")
        return project.allowed(one.spec)

    def _project(self, name: str) -> Project:
        known = self._projects.get(name)
        if known is None:
            known = self._projects[name] = self._make_project(name)
        return known

    def _make_project(self, name: str) -> Project:
        provider = self._provider
        if reason := provider.policy.forbidden(name):
            return Project(Listing(name, [provider.forbid(name, reason)]), (0,), known=False)
        direct = [one for one in (*self._roots, *provider.policy.constraints.get(name, ())) if one.name == name and one.url]
        if direct:
            return Project(Listing(name, [provider.direct_candidate(direct[0])]), (0,), direct[0].url)
        return Project(*provider.order(name))


def _parts(node: Node) -> list[Node]:
    """What a proxy stands for."""
    parts: list[Node] = []
    for marker in dict.fromkeys(("", node.marker)):
        parts.append(Node(node.name, "", marker))
        if node.extra:
            parts.append(Node(node.name, node.extra, marker))
    return parts


def _plain_marker(marker: str) -> str:
    """A marker without what it says of extras: those have packages of their own."""
    if "extra" in marker:
        marker = _EXTRA.sub(" ", marker).strip()
        if marker.startswith("(") and marker.endswith(")"):
            marker = marker[1:-1].strip()
    return marker.replace('"', "'")
