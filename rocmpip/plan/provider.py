"""What resolvelib asks: which candidates meet these needs, and what does a candidate need itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from resolvelib import AbstractProvider, BaseReporter
from resolvelib.resolvers.exceptions import RequirementsConflicted
from resolvelib.resolvers.resolution import Resolution as _Resolution

from rocmpip.model.record import Struct, field
from rocmpip.plan.listing import Candidate, Listing, Metadata, Rules, Unusable
from rocmpip.plan.markers import Markers
from rocmpip.plan.requirements import Need, need
from rocmpip.plan.versions import is_pre, release, spec

# After this many conflicts a name is decided before all others: it is what the search keeps stumbling over.
_STUBBORN = 5
PYTHON = "python "
"""Identifier of needs that nothing meets; the space keeps it apart from any project name."""


class Source(Protocol):
    """Where listings and metadata come from. Pure given these: the resolver asks nothing else of the world."""

    def candidates(self, name: str) -> Listing:
        """All candidates of a project; an empty listing when there is no such project. May wait."""
        ...

    def metadata(self, candidate: Candidate) -> Metadata:
        """May wait. Raises ``Unusable`` when this candidate must be passed over."""
        ...

    def direct(self, wanted: Need) -> Candidate:
        """The candidate of a need with a URL or a path. Raises a RocmpipError when it cannot be had."""
        ...

    def prefetch(self, name: str, text: str = "", extras: frozenset[str] = frozenset()) -> None:
        """A hint that ``name`` will be asked for soon, with the specifier ``text``. Never waits, never raises."""
        ...


class Choice:
    """A candidate together with the extras asked of it: what resolvelib pins."""

    __slots__ = ("candidate", "extras", "name")

    def __init__(self, candidate: Candidate, extras: frozenset[str]) -> None:
        self.candidate = candidate
        self.extras = extras
        self.name = candidate.name

    def __repr__(self) -> str:
        extras = f"[{','.join(sorted(self.extras))}]" if self.extras else ""
        return f"{self.name}{extras} {self.candidate.version}"


class Policy(Struct):
    """What the provider holds against candidates, beside the needs."""

    rules: Rules
    markers: Markers
    pre: bool = False
    """Pre-releases of everything (--pre)."""
    pip_rules: bool = False
    """pip's reading: a requirement that names a pre-release asks for pre-releases, others get one only where no final release
    meets the requirements; an exact pin by any requirement takes a yanked version; and the search is resolvelib's alone.
    Without it uv's: pre-releases come after all final releases, and from the first conflict on the search is PubGrub's."""
    yanked_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Project → versions that a direct requirement or constraint pinned exactly: these may be yanked."""
    constraints: Mapping[str, tuple[Need, ...]] = field(default_factory=dict)
    overrides: Mapping[str, tuple[Need, ...]] = field(default_factory=dict)
    preferred: Mapping[str, str] = field(default_factory=dict)
    """Project → the version to take as long as it fits (installed, or pinned by the lock)."""
    forbidden: Callable[[str], str | None] = lambda name: None
    """Why a name must never be installed, or None."""
    extra_extras: Mapping[str, Iterable[str]] = field(default_factory=dict)
    """Extras that every candidate of a project gets (torch → device-gfx942), normalised."""
    no_deps: bool = False


class Provider(AbstractProvider[Need, Choice, str]):
    """resolvelib's questions answered from a Source. One provider serves one resolution."""

    def __init__(self, source: Source, policy: Policy) -> None:
        self.source = source
        self.policy = policy
        self._choices: dict[tuple[int, frozenset[str]], Choice] = {}
        self._dependencies: dict[int, tuple[Choice, list[Need]]] = {}
        self._order: dict[str, tuple[int, int]] = {}
        self._conflicts: dict[str, int] = {}
        self._direct: dict[str, Candidate] = {}
        self._forbidden: dict[str, Candidate] = {}
        self.unusable: dict[str, list[str]] = {}
        """Project → why candidates were passed over."""

    # resolvelib's protocol -------------------------------------------------------------------------------------------

    def identify(self, requirement_or_candidate: Need | Choice) -> str:
        return requirement_or_candidate.name

    def get_preference(self, identifier: str, *_: Any, **__: Any) -> Any:
        return self._rank(identifier)

    def narrow_requirement_selection(
        self,
        identifiers: Iterable[str],
        resolutions: Mapping[str, Choice],
        candidates: Mapping[str, Iterator[Choice]],
        information: Mapping[str, Iterator[Any]],
        backtrack_causes: Sequence[Any],
    ) -> Iterable[str]:
        """The one name to decide next: a linear scan over small tuples instead of a preference for every name."""
        return (min(identifiers, key=self._rank),)

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Need]],
        incompatibilities: Mapping[str, Iterator[Choice]],
    ) -> Callable[[], Iterator[Choice]]:
        needs = list(requirements[identifier])
        refused = set(incompatibilities[identifier])
        if identifier == PYTHON:
            return lambda: iter(())
        self._note(identifier, needs)
        return lambda: self._matches(identifier, needs, refused)

    def is_satisfied_by(self, requirement: Need, candidate: Choice) -> bool:
        if not requirement.extras <= candidate.extras:
            return False
        if requirement.url and requirement.url != candidate.candidate.url:
            return candidate.name in self._forbidden
        return candidate.name in self._forbidden or requirement.spec.contains(candidate.candidate.version)

    def get_dependencies(self, candidate: Choice) -> list[Need]:
        known = self._dependencies.get(id(candidate))
        if known is None:
            known = self._dependencies[id(candidate)] = (candidate, self._needs_of(candidate))
        return known[1]

    # ordering --------------------------------------------------------------------------------------------------------

    def _rank(self, name: str) -> tuple[int, int]:
        return self._order[name]

    def _note(self, name: str, needs: Sequence[Need]) -> None:
        """Remember when ``name`` was first met and how tightly it is held: URLs first, then pins, then first come."""
        known = self._order.get(name)
        number = known[1] if known else len(self._order)
        if any(one.url for one in needs):
            tier = 0
        elif any(one.spec.pin for one in needs):
            tier = 1
        elif self._conflicts.get(name, 0) >= _STUBBORN:
            tier = 2
        else:
            tier = 3
        self._order[name] = tier, number

    def conflict(self, names: Iterable[str]) -> None:
        """Told of every dead end: the names whose needs did not go together."""
        for name in names:
            count = self._conflicts[name] = self._conflicts.get(name, 0) + 1
            if count == _STUBBORN and name in self._order:
                tier, number = self._order[name]
                self._order[name] = min(tier, 2), number

    # candidates ------------------------------------------------------------------------------------------------------

    def _matches(self, name: str, needs: Sequence[Need], refused: set[Choice]) -> Iterator[Choice]:
        policy = self.policy
        if reason := policy.forbidden(name):
            choice = self.choice(self.forbid(name, reason), self._extras(name, needs))
            if choice not in refused:
                yield choice
            return
        constraints = policy.constraints.get(name, ())
        url = next((one for one in (*needs, *constraints) if one.url), None)
        if url is not None:
            candidate = self.direct_candidate(url)
            if all(self._meets(one, candidate) for one in (*needs, *constraints)):
                choice = self.choice(candidate, self._extras(name, needs))
                if choice not in refused:
                    yield choice
            return
        for candidate in self.fitting(name, [one.spec for one in (*needs, *constraints) if one.spec.text], needs):
            choice = self.choice(candidate, self._extras(name, needs))
            if choice not in refused:
                yield choice

    def _extras(self, name: str, needs: Sequence[Need]) -> frozenset[str]:
        """What is asked of a project beside itself. Called after its candidates were fetched: that may decide the added extras."""
        added = self.policy.extra_extras.get(name, ())
        return frozenset(added).union(*(one.extras for one in needs))

    def fitting(self, name: str, specs: Sequence[Any], needs: Sequence[Need]) -> Iterator[Candidate]:
        """Candidates that all specifiers hold, in the order they should be tried."""
        policy = self.policy
        listing = self.source.candidates(name)
        kept = policy.preferred.get(name)
        first: Candidate | None = None
        if kept:
            first = listing.exact(release(kept))
            if first is not None and all(one.contains(first.version) for one in specs):
                yield first
            else:
                first = None
        fallback: list[Candidate] = []
        pre_allowed = policy.pre or not listing.wild
        if policy.pip_rules and not pre_allowed:
            pre_allowed = any(one.pre for one in specs)
        found = False
        for candidate in listing:
            if candidate is first:
                continue
            version = candidate.version
            for one in specs:
                if not one.contains(version):
                    break
            else:
                if candidate.yanked is not None and not self._yank_allowed(name, candidate, specs, listing):
                    continue
                if not pre_allowed and version.pre:
                    fallback.append(candidate)
                    continue
                found = True
                yield candidate
        if not found or not policy.pip_rules:
            yield from fallback

    def order(self, name: str) -> tuple[Listing, list[int]]:
        """A project's listing, and its places in the order in which ``fitting`` tries them by uv's rules, yanked ones among them.

        No candidate is made for that. Which of them are yanked and may not be taken ``barred`` tells.
        """
        listing = self.source.candidates(name)
        keys = listing.keys
        places = list(range(len(keys)))
        if listing.wild and not self.policy.pre:
            places.sort(key=lambda place: is_pre(keys[place]))
        kept = self.policy.preferred.get(name)
        if kept and (key := release(kept).key) in keys:
            first = list(keys).index(key)
            places.remove(first)
            places.insert(0, first)
        return listing, places

    def barred(self, name: str, candidate: Candidate) -> bool:
        """Whether a candidate is yanked, and no pin lets it be taken all the same."""
        if candidate.yanked is None or self._yank_allowed(name, candidate, (), self.source.candidates(name)):
            return False
        kept = self.policy.preferred.get(name)
        return not kept or release(kept).key != candidate.version.key

    def _yank_allowed(self, name: str, candidate: Candidate, specs: Sequence[Any], listing: Listing) -> bool:
        policy = self.policy
        if not listing.wild:
            return False
        for pinned in policy.yanked_names.get(name, ()):
            if spec("==" + pinned).contains(candidate.version):
                return True
        return policy.pip_rules and any(one.pin for one in specs)

    def _meets(self, wanted: Need, candidate: Candidate) -> bool:
        if wanted.url:
            return wanted.url == candidate.url
        return wanted.spec.contains(candidate.version)

    def choice(self, candidate: Candidate, extras: frozenset[str]) -> Choice:
        key = id(candidate), extras
        known = self._choices.get(key)
        if known is None:
            known = self._choices[key] = Choice(candidate, extras)
        return known

    def direct_candidate(self, wanted: Need) -> Candidate:
        known = self._direct.get(wanted.url)
        if known is None:
            known = self._direct[wanted.url] = self.source.direct(wanted)
        return known

    def forbid(self, name: str, reason: str) -> Candidate:
        known = self._forbidden.get(name)
        if known is None:
            known = self._forbidden[name] = Candidate(
                name, release("0"), origin="forbidden", metadata=Metadata(), recipe=reason
            )
        return known

    # dependencies ----------------------------------------------------------------------------------------------------

    def _needs_of(self, choice: Choice) -> list[Need]:
        candidate, policy = choice.candidate, self.policy
        if policy.no_deps or candidate.origin == "forbidden":
            return []
        try:
            metadata = candidate.metadata or self.source.metadata(candidate)
            candidate.metadata = metadata
            if not policy.rules.takes_python(metadata.requires_python):
                raise Unusable(f"it needs Python {metadata.requires_python}")
            candidate.stretched = candidate.stretched or not policy.rules.python_fits(metadata.requires_python)
            needs = self._read(choice, metadata)
        except Unusable as problem:
            self.unusable.setdefault(choice.name, []).append(f"{candidate.version}: {problem}")
            return [Need(PYTHON, spec(""), reason=str(problem))]
        for wanted in needs:
            if not wanted.url and not policy.forbidden(wanted.name):
                self.source.prefetch(wanted.name, wanted.spec.text, wanted.extras)
        return needs

    def _read(self, choice: Choice, metadata: Metadata) -> list[Need]:
        policy = self.policy
        needs: list[Need] = []
        overridden: set[str] = set()
        for text in metadata.requires_dist:
            try:
                wanted = need(text)
                if wanted.marker and not policy.markers.holds(wanted.marker, choice.extras):
                    continue
            except ValueError as problem:
                raise Unusable(f"its metadata is wrong: {problem}") from None
            if wanted.name == choice.name:
                needs.extend(self._self_reference(choice, wanted))
            elif wanted.name in policy.overrides:
                if wanted.name not in overridden:
                    overridden.add(wanted.name)
                    needs.extend(policy.overrides[wanted.name])
            else:
                needs.append(wanted)
        return needs

    def _self_reference(self, choice: Choice, wanted: Need) -> list[Need]:
        """``pkg[all]`` that needs ``pkg[a,b]``: more extras of the same pin; already held ones say nothing new."""
        if wanted.extras <= choice.extras and wanted.spec.contains(choice.candidate.version):
            return []
        return [wanted]


class Detour(Exception):
    """A first conflict: from here on the order of the search decides what the answer is."""


class Search(_Resolution[Need, Choice, str]):
    """resolvelib's search with a cost taken out and a fault mended.

    The check whether a pin still meets all its needs ran over every need of every name in every round (89 000 calls for
    196 rounds in one real set). A criterion never changes once made, so its answer for a pin is kept on it.

    When a pin no longer meets its needs, resolvelib forgets what it needed itself, but not the pin: where the pin came to fit again,
    nobody looked at its needs any more, and an answer could hold packages that do not go together. So the pin is forgotten too.

    ``straight``: give up with Detour at the first conflict.
    """

    def __init__(self, provider: Provider, reporter: BaseReporter[Need, Choice, str], *, straight: bool = False) -> None:
        super().__init__(provider, reporter)
        self._straight = straight

    def _is_current_pin_satisfying(self, name: str, criterion: Any) -> bool:
        pin = self.state.mapping.get(name)
        if pin is None:
            return False
        if getattr(criterion, "met_by", None) is pin:
            return True
        satisfying = self._p.is_satisfied_by
        for information in criterion.information:
            if not satisfying(requirement=information.requirement, candidate=pin):
                return False
        criterion.met_by = pin
        return True

    def _remove_information_from_criteria(self, criteria: Any, parents: Collection[str]) -> None:
        super()._remove_information_from_criteria(criteria, parents)
        for name in parents:
            self.state.mapping.pop(name, None)

    def _get_updated_criteria(self, candidate: Choice) -> Any:
        if not self._straight:
            return super()._get_updated_criteria(candidate)
        try:
            criteria = super()._get_updated_criteria(candidate)
        except RequirementsConflicted:
            raise Detour from None
        for wanted in self._p.get_dependencies(candidate=candidate):
            pin = self.state.mapping.get(wanted.name)
            if pin is None or self._p.is_satisfied_by(requirement=wanted, candidate=pin):
                continue
            if not (wanted.extras - pin.extras and not wanted.url and wanted.spec.contains(pin.candidate.version)):
                raise Detour  # the same version with more extras would be no other choice
        return criteria
