"""Resolving: requirements + constraints + a source of candidates → exact pins, or an explained NoPlan.

Pure given its ``Source``. The search is resolvelib's; what a candidate must be like is in ``listing``, what resolvelib
asks is answered in ``provider``, and a failure is put into words in ``resolve_explain``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from resolvelib import BaseReporter, ResolutionImpossible, ResolutionTooDeep

from rocmpip.model.errors import InputError, NoPlan
from rocmpip.model.packages import File, RequirementLine, normalise
from rocmpip.model.record import Struct, field, replace
from rocmpip.plan.listing import Candidate, Listing, Metadata, Rules, with_hashes
from rocmpip.plan.markers import Markers
from rocmpip.plan.provider import Choice, Detour, Policy, Provider, Search, Source
from rocmpip.plan.requirements import Need, need, need_of_line
from rocmpip.plan.versions import spec

MAX_ROUNDS = 50_000
_ROUNDS_TO_EXPLAIN = 5_000
"""How long resolvelib searches for words once it is sure that nothing satisfies the requirements."""


class Options(Struct, frozen=True):
    """How to choose among candidates. Names are normalised.

    The defaults are uv's reading of the rules: pre-releases after all final releases, yanked versions where a direct
    requirement or constraint pins them, its order of search. ``pip_rules`` is pip's reading (see ``provider.Policy``).
    """

    pre: bool = False
    pip_rules: bool = False
    preferred: Mapping[str, str] = field(default_factory=dict)
    """Name → version to keep while it fits: installed versions, or a lock's pins that --upgrade does not name."""
    no_deps: bool = False
    require_hashes: bool = False
    """Every package needs an exact pin and hashes from the user (pip's hash mode)."""
    extras: Mapping[str, Iterable[str]] = field(default_factory=dict)
    """Normalised extras that a project gets whoever asks for it (torch → device-gfx942). Read after the project's candidates were
    fetched, so that the choice which that brings about may fill it."""
    max_rounds: int = MAX_ROUNDS


class FamilyOption(Struct, frozen=True):
    """One ROCm family that the torch family may come from. Options are tried in order until one can satisfy the set."""

    label: str
    """pytorch.org rocm6.4"""
    listings: Mapping[str, Listing]
    """Torch-family name → its candidates in this family (an empty listing: the family has none)."""
    constraints: tuple[RequirementLine, ...] = ()
    """Pins and bounds that come with the family (the exact torch, recipes' conflicts), each with its origin."""
    extras: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Extras added to candidates: {"torch": ("device-gfx942",)}."""
    because: str = ""


class Parent(Struct, frozen=True):
    """Who asked for a package: the ``name`` of a pin ("" for the user's own line) and the requirement as written."""

    name: str
    requirement: str
    origin: str = ""
    """"command line", "requirements.txt:3": where a direct requirement stood."""


class Pin(Struct, frozen=True):
    """One package of the answer."""

    name: str
    version: str
    candidate: Candidate
    extras: tuple[str, ...]
    parents: tuple[Parent, ...]
    requires: tuple[str, ...]
    """Names (of pins) that it needs here, sorted."""
    requires_dist: tuple[str, ...]
    direct: bool
    notes: tuple[str, ...] = ()

    @property
    def file(self) -> File | None:
        return self.candidate.file


class Resolution(Struct, frozen=True):
    """``pins`` by normalised name, sorted. ``family`` is the label of the option that was used, or ""."""

    pins: dict[str, Pin]
    family: str = ""
    option: int = -1
    """Position of that option, -1 without families."""
    fell_out: tuple[tuple[str, str], ...] = ()
    """Options tried before: (label, why it could not satisfy the set)."""
    notes: tuple[str, ...] = ()
    rounds: int = 0


def resolve(
    requirements: Sequence[RequirementLine],
    constraints: Sequence[RequirementLine] = (),
    *,
    source: Source,
    environment: Mapping[str, str] | Markers,
    rules: Rules,
    options: Options | None = None,
    overrides: Sequence[RequirementLine] = (),
    families: Sequence[FamilyOption] = (),
    forbidden: Callable[[str], str | None] | None = None,
) -> Resolution:
    """Pins for the whole set.

    ``environment`` is the target's marker environment (``markers.target_environment`` for a foreign one), ``rules`` say
    which files fit it. ``forbidden`` tells why a name must never be installed (CUDA runtime packages), or None:
    asking for one is an error that names who asked, whatever older version might avoid it. Raises NoPlan with the whole
    explanation, InputError for a requirement that is none, and whatever ``source`` raises (NetworkError).
    """
    options = options or Options()
    markers = environment if isinstance(environment, Markers) else Markers(environment)
    roots = _roots(requirements, markers, source)
    bounds = [one for line in constraints if (one := _applies(line, markers)) is not None]
    replaced = [one for line in overrides if (one := _applies(line, markers)) is not None]
    rules = _hash_mode(roots, bounds, rules, options)
    problems: list[tuple[FamilyOption, NoPlan]] = []
    tries: Sequence[FamilyOption | None] = families or (None,)
    for position, option in enumerate(tries):
        more = [one for line in (option.constraints if option else ()) if (one := _applies(line, markers)) is not None]
        policy = _policy(roots, [*bounds, *more], replaced, rules, markers, options, forbidden, option)
        place: Source = _WithFamily(source, option.listings) if option else source
        try:
            found = _search(roots, policy, place, options)
        except NoPlan as problem:
            if option is None or not _involves(problem, option):
                raise
            problems.append((option, problem))
            continue
        fell_out = tuple((one.label, problem.why or problem.message) for one, problem in problems)
        return replace(found, family=option.label if option else "", option=position if option else -1, fell_out=fell_out)
    raise _no_family(problems)


class _WithFamily:
    """A source whose torch-family names come from one family and from nowhere else."""

    def __init__(self, source: Source, listings: Mapping[str, Listing]) -> None:
        self._source = source
        self._listings = listings

    def candidates(self, name: str) -> Listing:
        known = self._listings.get(name)
        return self._source.candidates(name) if known is None else known

    def metadata(self, candidate: Candidate) -> Metadata:
        return self._source.metadata(candidate)

    def direct(self, wanted: Need) -> Candidate:
        return self._source.direct(wanted)

    def prefetch(self, name: str, text: str = "", extras: frozenset[str] = frozenset()) -> None:
        if name not in self._listings:
            self._source.prefetch(name, text, extras)


def _applies(line: RequirementLine, markers: Markers) -> Need | None:
    """The line's need when its marker holds here."""
    try:
        if line.name:
            wanted = need_of_line(line)
        elif line.url or line.path:
            return Need("", spec(""), url=line.url or line.path, text=line.text, line=line, marker=line.marker)
        else:
            parsed = need(line.text)
            wanted = Need(
                parsed.name, parsed.spec, parsed.extras, marker=parsed.marker, url=parsed.url, text=line.text, line=line
            )
        return wanted if markers.holds(wanted.marker) else None
    except ValueError as problem:
        raise InputError(f"{line.text!r} ({line.origin}) is not a requirement", why=str(problem)) from None


def _roots(requirements: Iterable[RequirementLine], markers: Markers, source: Source) -> list[Need]:
    roots: list[Need] = []
    for line in requirements:
        wanted = _applies(line, markers)
        if wanted is None:
            continue
        if not wanted.name:
            # A bare URL or path: only its metadata tells whose it is.
            candidate = source.direct(wanted)
            wanted = Need(
                candidate.name,
                spec(""),
                frozenset(map(normalise, line.extras)),
                url=wanted.url,
                text=line.text,
                line=line,
            )
        roots.append(wanted)
    # The same line again and again (files that repeat each other) costs the search its square.
    roots = list({_identity(one): one for one in reversed(roots)}.values())[::-1]
    for wanted in roots:
        if not wanted.url:
            source.prefetch(wanted.name, wanted.spec.text, wanted.extras)
    return roots


def _identity(one: Need) -> tuple[object, ...]:
    """Equal for two needs that say the same."""
    return one.name, one.spec.text, one.extras, one.url, one.line.hashes if one.line else ()


def _hash_mode(roots: Sequence[Need], bounds: Sequence[Need], rules: Rules, options: Options) -> Rules:
    """Only files with a hash that a person gave, for the names that were given any; for all names in hash mode."""
    lines = [wanted.line for wanted in (*roots, *bounds) if wanted.line is not None]
    narrowed = with_hashes(rules, lines)
    hashes = narrowed.hashes
    if options.require_hashes or hashes:
        for wanted in roots:
            if wanted.name not in hashes and not wanted.url:
                origin = wanted.line.origin if wanted.line else ""
                raise InputError(
                    f"{wanted.text or wanted} ({origin}) has no --hash",
                    why="in hash mode every requirement needs one, and one hash switches the mode on",
                    hint="add the hashes (a lock has them all), or leave all of them out",
                )
    return narrowed


def _policy(
    roots: Sequence[Need],
    bounds: Sequence[Need],
    replaced: Sequence[Need],
    rules: Rules,
    markers: Markers,
    options: Options,
    forbidden: Callable[[str], str | None] | None,
    option: FamilyOption | None,
) -> Policy:
    said = (*roots, *bounds, *replaced)
    yanked: dict[str, tuple[str, ...]] = {}
    for one in said:
        if one.spec.pin:
            yanked[one.name] = (*yanked.get(one.name, ()), one.spec.pin)
    extras: Mapping[str, Iterable[str]] = options.extras
    if option:
        extras = {name: frozenset(map(normalise, given)) for name, given in option.extras.items()}
    return Policy(
        rules=rules,
        markers=markers,
        pre=options.pre,
        pip_rules=options.pip_rules,
        yanked_names=yanked,
        constraints=_by_name(bounds),
        overrides=_by_name(replaced),
        preferred=options.preferred,
        forbidden=forbidden or (lambda name: None),
        extra_extras=extras,
        no_deps=options.no_deps,
    )


def _by_name(needs: Iterable[Need]) -> dict[str, tuple[Need, ...]]:
    grouped: dict[str, tuple[Need, ...]] = {}
    for one in needs:
        grouped[one.name] = (*grouped.get(one.name, ()), one)
    return grouped


class _Reporter(BaseReporter[Need, Choice, str]):
    """Counts rounds and tells the provider which names conflict."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.rounds = 0

    def starting_round(self, index: int) -> None:
        self.rounds = index + 1

    def resolving_conflicts(self, causes: Collection[Any]) -> None:
        self._provider.conflict({cause.requirement.name for cause in causes})


def _search(roots: Sequence[Need], policy: Policy, source: Source, options: Options) -> Resolution:
    from rocmpip.plan import resolve_explain

    provider = Provider(source, policy)
    reporter = _Reporter(provider)
    first = [wanted for root in roots for wanted in policy.overrides.get(root.name, (root,))]
    mapping: Mapping[str, Choice] | None = None
    rounds, proven = options.max_rounds, False
    try:
        if not policy.pip_rules:
            mapping, proven = _as_uv(first, provider, reporter, options)
        if mapping is None:
            rounds = min(rounds, _ROUNDS_TO_EXPLAIN) if proven else rounds
            mapping = Search(provider, reporter).resolve(first, max_rounds=rounds).mapping
    except ResolutionImpossible as problem:
        raise resolve_explain.impossible(problem.causes, provider, source) from None
    except ResolutionTooDeep:
        raise resolve_explain.too_deep(rounds, provider, proven=proven) from None
    pins, notes = _pins(first, mapping, provider)
    resolve_explain.refuse_forbidden(pins)
    if options.require_hashes or policy.rules.hashes:
        _all_hashed(pins, policy.rules)
    return Resolution(pins, notes=notes, rounds=reporter.rounds)


def _as_uv(
    roots: Sequence[Need], provider: Provider, reporter: _Reporter, options: Options
) -> tuple[Mapping[str, Choice] | None, bool]:
    """The choices that uv makes; None for a set that only resolvelib's search can take or explain, and whether there are none at all.

    Without a conflict every search in this order ends with the same choices. resolvelib's is the cheaper one, so PubGrub is asked
    (and loaded) when the first conflict comes.
    """
    try:
        return Search(provider, reporter, straight=True).resolve(roots, max_rounds=options.max_rounds).mapping, False
    except Detour:
        from rocmpip.plan.pubgrub_search import NoSolution, NotHere, search
    try:
        return search(provider, roots, options.max_rounds), False
    except NotHere:
        return None, False
    except NoSolution:
        return None, True


def _pins(roots: Sequence[Need], mapping: Mapping[str, Choice], provider: Provider) -> tuple[dict[str, Pin], tuple[str, ...]]:
    """What can be reached from the user's own requirements, by name; notes about extras that do not exist."""
    parents: dict[str, list[Parent]] = {}
    direct: set[str] = set()
    queue: list[str] = []
    for root in roots:
        origin = root.line.origin if root.line else ""
        parents.setdefault(root.name, []).append(Parent("", root.text or str(root), origin))
        if root.name not in direct:
            direct.add(root.name)
            queue.append(root.name)
    reached = dict.fromkeys(queue)
    while queue:
        name = queue.pop()
        for wanted in provider.get_dependencies(mapping[name]):
            if wanted.name != name:
                parents.setdefault(wanted.name, []).append(Parent(name, wanted.text or str(wanted)))
            if wanted.name not in reached:
                reached[wanted.name] = None
                queue.append(wanted.name)
    pins: dict[str, Pin] = {}
    notes: list[str] = []
    for name in sorted(reached):
        choice = mapping[name]
        candidate = choice.candidate
        metadata = candidate.metadata or Metadata()
        unknown = sorted(choice.extras - metadata.provides_extra) if metadata.provides_extra or choice.extras else []
        if unknown and not provider.policy.no_deps and candidate.origin != "forbidden":
            notes.append(f"{name} {candidate.version} has no extra named {', '.join(unknown)}")
        if candidate.stretched:
            wants = metadata.requires_python
            notes.append(f"{name} {candidate.version} was made for Python {wants}: pip wants --ignore-requires-python for it")
        if candidate.yanked is not None:
            reason = f": {candidate.yanked}" if candidate.yanked else ""
            notes.append(f"{name} {candidate.version} was yanked by its authors{reason}")
        needs = provider.get_dependencies(choice)
        pins[name] = Pin(
            name=name,
            version=candidate.version.text,
            candidate=candidate,
            extras=tuple(sorted(choice.extras)),
            parents=tuple(sorted(dict.fromkeys(parents[name]), key=lambda one: (one.name, one.requirement))),
            requires=tuple(sorted({wanted.name for wanted in needs} - {name})),
            requires_dist=metadata.requires_dist,
            direct=name in direct,
        )
    return pins, tuple(notes)


def _all_hashed(pins: Mapping[str, Pin], rules: Rules) -> None:
    for pin in pins.values():
        if pin.name not in rules.hashes and pin.candidate.origin in ("index", "recipe"):
            asked = ", ".join(dict.fromkeys(parent.name or parent.origin for parent in pin.parents))
            raise InputError(
                f"{pin.name}=={pin.version} (needed by {asked}) has no --hash",
                why="in hash mode what is pulled in needs its own pinned line with a hash too",
                hint=f"add a line {pin.name}=={pin.version} --hash=…",
            )


def _involves(problem: NoPlan, option: FamilyOption) -> bool:
    """Whether another family could change anything: not where a project outside the family has nothing to offer."""
    alone: str = getattr(problem, "alone", "")
    return not alone or alone in option.listings


def _no_family(problems: Sequence[tuple[FamilyOption, NoPlan]]) -> NoPlan:
    """The first family's conflict in full, one line for each of the others."""
    label, first = problems[0][0].label, problems[0][1]
    if len(problems) == 1:
        return first
    others = tuple(f"{option.label}: {problem.why or problem.message}" for option, problem in problems[1:])
    return NoPlan(
        first.message,
        why=f"{first.why} (in {label}; {len(others)} more tried)" if first.why else f"in {label}; {len(others)} more tried",
        hint=first.hint,
        details=(*first.details, "other ROCm families:", *(f"  {line}" for line in others)),
    )
