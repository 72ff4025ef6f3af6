"""Resolve a request with our own resolver: what is installed comes first, as pip has it, then what the routes offer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rocmpip.app.context import Context
from rocmpip.app.installed import installed_with_requirements
from rocmpip.app.policy import Policy
from rocmpip.app.resolve import IndexSource, SourceMetadata
from rocmpip.index.client import Client
from rocmpip.model.errors import InputError
from rocmpip.model.packages import Absent, File, RequirementLine
from rocmpip.model.record import Struct, replace
from rocmpip.plan.asked import Asked
from rocmpip.plan.assemble import Installed, Resolved
from rocmpip.plan.listing import Candidate, Listing, Metadata, Rules
from rocmpip.plan.markers import Markers
from rocmpip.plan.resolve import Options, Pin, Resolution, resolve
from rocmpip.plan.versions import Release, release


class InstalledFirst(Listing):
    """A project that is installed: its own version stands in the listing, and the indexes are only asked when it does not fit."""

    def __init__(self, candidate: Candidate, fetch: Callable[[], Listing]) -> None:
        self._installed = candidate
        self._fetch = fetch
        self._offered: Listing | None = None
        super().__init__(candidate.name)

    @property
    def offered(self) -> Listing:
        """What the indexes have. Asks them when it is first wanted."""
        if self._offered is None:
            self._offered = self._fetch()
            self.places, self.because, self.wild = self._offered.places, self._offered.because, self._offered.wild
        return self._offered

    @property
    def dropped(self) -> Mapping[str, Sequence[str]]:
        return self.offered.dropped

    def exact(self, version: Release) -> Candidate | None:
        return self._installed if version.key == self._installed.version.key else self.offered.exact(version)

    def __iter__(self) -> Iterator[Candidate]:
        mine, placed = self._installed, False
        for one in self.offered:
            if not placed and one.version.key <= mine.version.key:
                placed = True
                yield mine
            if one.version.key != mine.version.key:
                yield one
        if not placed:
            yield mine

    def __len__(self) -> int:
        return sum(1 for _ in self)


class TargetSource(IndexSource):
    """The indexes behind the policy's routes, plus what the target already holds."""

    def __init__(self, client: Client, installed: Mapping[str, Installed], quiet: frozenset[str], **more: Any) -> None:
        super().__init__(client, **more)
        self._quiet = quiet
        self._held: dict[str, Listing] = {}
        for name, dist in installed.items():
            try:
                version = release(dist.version)
            except ValueError:
                continue
            candidate = Candidate(
                name, version, origin="installed", metadata=Metadata(dist.requires_dist, provides_extra=dist.provides_extra)
            )
            self._held[name] = InstalledFirst(candidate, partial(super().candidates, name))

    def candidates(self, name: str) -> Listing:
        # Not `or`: the truth of a listing is its length, and that asks the indexes.
        held = self._held.get(name)
        return super().candidates(name) if held is None else held

    def prefetch(self, name: str, text: str = "", extras: frozenset[str] = frozenset()) -> None:
        # What is installed and preferred is most likely kept: asking its index ahead would only cost.
        if name not in self._quiet:
            super().prefetch(name, text, extras)


class ChosenExtras(Mapping[str, tuple[str, ...]]):
    """The extras of the choice of torch's build (device-gfx942), from the moment it is made: also for a torch that only comes along."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    @property
    def _now(self) -> Mapping[str, tuple[str, ...]]:
        made = self._policy.family.made
        return made.extras if made is not None else {}

    def __getitem__(self, name: str) -> tuple[str, ...]:
        return self._now[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now)

    def __len__(self) -> int:
        return len(self._now)


class ChosenVersions(Mapping[str, str]):
    """Versions to keep while they fit: ``stay``, and those of the choice of torch's build from the moment it is made."""

    def __init__(self, stay: Mapping[str, str], policy: Policy) -> None:
        self._stay = stay
        self._policy = policy

    @property
    def _now(self) -> Mapping[str, str]:
        made = self._policy.family.made
        return self._stay if made is None else {**made.pins, **self._stay}

    def __getitem__(self, name: str) -> str:
        return self._now[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now)

    def __len__(self) -> int:
        return len(self._now)


def family_constraints(asked: Asked, is_family: Callable[[str], bool], pins: Mapping[str, str]) -> list[RequirementLine]:
    """The user's constraints on the torch family, as a ROCm build can meet them (a +cu label drops out); held names have theirs."""
    from packaging.specifiers import SpecifierSet

    from rocmpip.plan.family_ask import eased

    return [
        replace(line, specifier=str(eased(line.name, SpecifierSet(line.specifier))[0]), hashes=())
        for line in asked.constraints
        if line.name not in pins and is_family(line.name)
    ]


class Solution(Struct, frozen=True):
    """The resolver's answer in the plan's terms. ``parents``: every name of the answer → who needs it."""

    resolved: tuple[Resolved, ...]
    kept: tuple[str, ...]
    notes: tuple[str, ...]
    parents: Mapping[str, tuple[str, ...]]


def installed_candidates(context: Context, asked: Asked) -> dict[str, Installed]:
    """What may stay as it is: nothing under --force-reinstall and --ignore-installed, no wrong build of the torch family."""
    request = context.request
    if request.force_reinstall or request.ignore_installed or request.target or request.command != "install":
        return {}
    return installed_with_requirements(context)


def preferred(context: Context, asked: Asked, installed: Mapping[str, Installed]) -> dict[str, str]:
    """Versions that stay while they fit, as pip's upgrade strategy has it."""
    request = context.request
    if not request.upgrade:
        return {name: dist.version for name, dist in installed.items()}
    if request.upgrade_strategy == "eager":
        return {}
    return {name: dist.version for name, dist in installed.items() if name not in asked.names}


def target_rules(context: Context) -> Rules:
    request = context.request
    return Rules.for_target(
        context.tags,
        context.python,
        no_binary=frozenset(request.no_binary),
        only_binary=frozenset(request.only_binary),
        prefer_binary=request.prefer_binary,
        ignore_requires_python=request.ignore_requires_python,
    )


def requirement_lines(
    asked: Asked, policy: Policy, replaced: Sequence[RequirementLine], *, require_hashes: bool
) -> tuple[list[RequirementLine], list[str]]:
    """What the resolver starts from, the user's lines and our own additions; and what was changed in them. Raises InputError."""
    lines: list[RequirementLine] = []
    notes: list[str] = []
    for line in asked.plain:
        if line.hashes and line.name in asked.family:
            line = _with_family_hashes(line, policy, notes, required=require_hashes)
        lines.append(line)
    lines.extend(direct.line for direct in asked.direct)
    lines.extend(replaced)
    return lines, notes


def _hashes_demanded(context: Context) -> bool:
    """True when the user said --require-hashes; hashes that stand in a file switch the same mode on without that word."""
    said = context.env.get("PIP_REQUIRE_HASHES", "").lower() in ("1", "true", "yes", "on", "y", "t")
    return said or any(word.startswith("--require-h") for word in context.request.argv)


def _with_family_hashes(line: RequirementLine, policy: Policy, notes: list[str], *, required: bool) -> RequirementLine:
    """A line whose hashes are all of other builds (PyPI's CUDA files) gets those of the chosen family's own page instead."""
    choice = policy.family.made
    if choice is None:
        return line
    page = policy.client.page(choice.index_url, line.name)
    files = () if isinstance(page, Absent) else page.files
    offered = {f"{algorithm}:{value}".lower() for file in files for algorithm, value in file.hashes.items()}
    if not offered or any(one.strip().lower() in offered for one in line.hashes):
        return line
    told = f"{line.text.partition(' ')[0]} ({line.origin})"
    if required:
        problem = InputError(
            f"none of the hashes of {told} is that of a ROCm build",
            why=f"{choice.family} has other files than the index that the hashes were taken from",
            hint="lock again for this machine (rocmpip lock), or leave --require-hashes and torch's hashes out",
        )
        problem.names = {line.name}  # type: ignore[attr-defined]
        raise problem
    notes.append(f"{told}: its hashes are of no ROCm build and do not count; its file is checked against {choice.family}'s own")
    return replace(line, hashes=tuple(sorted(offered)))


def solve(
    context: Context,
    asked: Asked,
    policy: Policy,
    client: Client,
    *,
    pins: Mapping[str, str],
    prefer: Mapping[str, str] | None = None,
    replaced: Sequence[RequirementLine] = (),
    wrong: frozenset[str] = frozenset(),
    source_metadata: SourceMetadata | None = None,
) -> Solution:
    """Versions for the whole set.

    ``pins``: exact torch-family versions that are held. ``prefer``: the choice's versions, taken while they fit. ``wrong``:
    installed names that may not stay. Raises NoPlan, NetworkError, InputError.
    """
    installed = {name: dist for name, dist in installed_candidates(context, asked).items() if name not in wrong}
    if context.platform.state == "gpu":
        # A wrong build that was not replaced yet stands for any: what it requires (CUDA) must not come in by it.
        installed = {
            name: replace(dist, requires_dist=()) if context.catalogue.is_family(name) and name not in pins else dist
            for name, dist in installed.items()
        }
    stay = {**preferred(context, asked, installed), **(prefer or {}), **pins}
    family = [
        RequirementLine(f"{name}=={version}", "the installed torch", name=name, specifier=f"=={version}", constraint=True)
        for name, version in pins.items()
    ]
    is_family = context.catalogue.is_family
    constraints = [line for line in asked.constraints if not (line.name in pins or is_family(line.name))]
    bounds = [*constraints, *family_constraints(asked, is_family, pins), *family]
    lines, notes = requirement_lines(asked, policy, replaced, require_hashes=_hashes_demanded(context))
    active = context.platform.state != "none"
    with TargetSource(
        client,
        installed,
        frozenset(name for name in stay if name in installed),
        rules=target_rules(context),
        markers=Markers(context.markers),
        find_links=context.request.index.find_links,
        route=policy.route,
        bounds=[*lines, *bounds],
        source_metadata=source_metadata,
        pre=context.request.pre,
    ) as source:
        resolution = resolve(
            lines,
            bounds,
            source=source,
            environment=context.markers,
            rules=source.rules,
            options=Options(
                pre=context.request.pre,
                pip_rules=True,
                preferred=ChosenVersions(stay, policy),
                no_deps=context.request.no_deps,
                require_hashes=context.request.require_hashes,
                extras=ChosenExtras(policy),
            ),
            forbidden=context.catalogue.forbidden if active else None,
        )
    solution = _solution(resolution, policy)
    return replace(solution, notes=(*notes, *solution.notes))


def _solution(resolution: Resolution, policy: Policy) -> Solution:
    pins = resolution.pins
    return Solution(
        resolved=tuple(_resolved(pin, policy) for pin in pins.values() if pin.candidate.origin != "installed"),
        kept=tuple(name for name, pin in pins.items() if pin.candidate.origin == "installed"),
        notes=resolution.notes,
        parents={name: tuple(parent.name for parent in pin.parents if parent.name) for name, pin in pins.items()},
    )


def _resolved(pin: Pin, policy: Policy) -> Resolved:
    file: File | None = policy.sources.get(pin.name, {}).get(pin.version) or pin.file
    if file is not None and file.url.startswith("synthetic:"):
        file = policy.real_file(pin.name, pin.version)
    return Resolved(
        name=pin.name,
        version=pin.version,
        file=file,
        requires_dist=pin.requires_dist,
        requested=pin.direct,
        direct_url=pin.candidate.origin == "url",
        extras=pin.extras,
        from_source=pin.candidate.from_source,
    )
