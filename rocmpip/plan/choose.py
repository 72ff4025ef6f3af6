"""The choice of torch's build: one ROCm family for the whole run, with exact pins and the reasons.

Pure, given ``Candidates``: the same pages give the same choice. The rules are in docs/explanation/which-torch.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from rocmpip.catalogue.catalogue import Catalogue
from rocmpip.catalogue.tables import Family
from rocmpip.model.errors import NoPlan
from rocmpip.model.machine import Platform
from rocmpip.model.plan import FamilyChoice, Tried
from rocmpip.model.record import Struct, replace
from rocmpip.model.redact import bare_url
from rocmpip.model.rocm import RocmVersion
from rocmpip.plan import family_told as told
from rocmpip.plan.family_ask import Ask, ConflictLike, read_ask
from rocmpip.plan.family_held import choose_held
from rocmpip.plan.family_kernels import never
from rocmpip.plan.family_offer import Fallen, Offer, Task, consider, looked_into
from rocmpip.plan.family_order import Peek, slots, tiers
from rocmpip.plan.family_pages import Candidates, Pages
from rocmpip.plan.family_shelf import shelve
from rocmpip.plan.tags import Tags, tags_for

__all__ = ["Candidates", "choose_family"]


class Found(Struct, frozen=True):
    """The end of a search: the offer, if there is one, and everything that was looked at."""

    offer: Offer | None
    tried: tuple[Tried, ...]
    fallen: tuple[Fallen, ...]
    own: tuple[Fallen, ...]
    """What the indexes of the machine's own ROCm lacked."""


def choose_family(
    *,
    platform: Platform,
    python_tags: Tags | Sequence[str],
    requirements: Mapping[str, SpecifierSet],
    conflicts: Sequence[ConflictLike] = (),
    catalogue: Catalogue,
    candidates: Candidates,
    channel: str = "stable",
    held: Mapping[str, str] | None = None,
    allow_override: bool = False,
    pre: bool = False,
    wanted: Collection[str] | None = None,
) -> FamilyChoice:
    """Choose the index, the torch and everything that belongs to it.

    ``requirements``: torch-family name → merged bounds; every name must be had, unless ``wanted`` says which (a name that only a
    constraint mentions need not be there). ``conflicts``: torch versions that requested recipes cannot work with. ``held``:
    installed members that stay as they are. ``allow_override``: take kernels that run only under HSA_OVERRIDE_GFX_VERSION when
    nothing native fits. Raises NoPlan (40) with ``details`` (what was tried), ``hint`` (the nearest thing that works) and
    ``tried``; NetworkError (42) from the client.
    """
    if not platform.gfx_targets:
        raise no_target(platform)
    tags = python_tags if isinstance(python_tags, Tags) else Tags(python_tags)
    task = Task(
        platform=platform,
        targets=platform.gfx_targets,
        tags=tags,
        ask=read_ask(requirements, conflicts, pre=pre, wanted=wanted),
        catalogue=catalogue,
        pages=Pages(candidates),
        channel=channel,
    )
    if held and held.get("torch"):
        return choose_held(task, held)
    found = search(task)
    if found.offer is not None:
        return _choice(task, found.offer, found)
    if allow_override:
        override = _override(task)
        if override is not None:
            borrowed, value = override
            second = search(borrowed)
            if second.offer is not None:
                return _choice(borrowed, second.offer, replace(second, tried=found.tried + second.tried), value, task)
    raise _no_plan(task, found)


def no_target(platform: Platform) -> NoPlan:
    """The error for a machine whose GPU is not known."""
    if platform.rocm is None:
        return NoPlan("no AMD GPU and no ROCm were found", hint="say which GPU it is for: --gfx gfx942 (or ROCMPIP_GFX)")
    return NoPlan(
        f"ROCm {platform.rocm} is installed, but no GPU is known to install torch for",
        why="no GPU is visible here and no gfx target was given",
        hint="say which GPU it is for: --gfx gfx942 (or ROCMPIP_GFX)",
    )


def search(task: Task) -> Found:
    """Go through the indexes in order until one ROCm version has an offer."""
    tried: list[Tried] = []
    fallen: list[Fallen] = []
    own: list[Fallen] = []
    machine = task.platform.rocm
    seen: set[tuple[str, tuple[int, int]]] = set()
    empty: set[str] = set()
    for channel, frozen in tiers(task.channel, explicit_pre=bool(task.ask.spec("torch").prereleases)):
        for minor, families in slots(task.catalogue, machine, channel, frozen, _peeker(task)):
            fresh = [family for family in families if (family.url, minor) not in seen]
            seen.update((family.url, minor) for family in fresh)
            task.pages.expect(
                (url, "torch")
                for family in fresh
                if not never(task.catalogue, family, minor, task.targets)
                for url in task.catalogue.index_url(family, task.targets)
            )
            answers = [consider(task, family, minor) for family in fresh]
            answers = [answer for answer in answers if _worth_telling(answer, machine, empty)]
            lost = [answer for answer in answers if isinstance(answer, Fallen)]
            if machine is not None and minor == machine.minor and channel == "stable":
                own += lost
            offers = [answer for answer in answers if isinstance(answer, Offer)]
            fallen += lost
            if offers:
                best = max(offers, key=lambda offer: _preference(offer, _lacked_kernels(own)))
                tried += [told.tried(task, answer, best) for answer in answers]
                return Found(best, tuple(tried), tuple(fallen), tuple(own))
            tried += [told.tried(task, answer, None) for answer in answers]
    return Found(None, tuple(tried), tuple(fallen), tuple(own))


def _worth_telling(answer: Offer | Fallen, machine: RocmVersion | None, empty: set[str]) -> bool:
    """False for an index of many ROCm versions that only lacks this one, or was told to be absent already."""
    if isinstance(answer, Offer) or answer.family.rocm is not None:
        return True
    if answer.stage == "label":
        return machine is not None and answer.minor == machine.minor
    same = f"{answer.family.name} {answer.reason}"
    if same in empty:
        return False
    if not answer.torch:
        empty.add(same)
    return True


def _peeker(task: Task) -> Peek:
    def peek(family: Family) -> set[tuple[int, int]]:
        found: set[tuple[int, int]] = set()
        for url in task.catalogue.index_url(family, task.targets):
            found |= shelve(task.pages.page(url, "torch"), "torch", task.tags, right=lambda _: True).rocms
        return found

    return peek


def _lacked_kernels(own: Sequence[Fallen]) -> bool:
    """True when wheels of the machine's own ROCm fell for want of kernels: then AMD's native wheels come first."""
    return any(one.stage in ("kernels", "never") for one in own)


def _preference(offer: Offer, native_first: bool) -> tuple[bool, Version, bool, tuple[int, ...]]:
    """The highest torch; of the same torch the per-device packages, then the newest ROCm patch."""
    device = offer.family.style == "device"
    return native_first and device, Version(offer.torch.version.public), device, (*offer.rocm.release, 0)[:3]


def _choice(task: Task, offer: Offer, found: Found, override: str = "", asked: Task | None = None) -> FamilyChoice:
    family = offer.family
    notes = [*task.ask.notes, *offer.notes, *told.warnings(task, offer)]
    because = told.because(task, offer, found.fallen, found.own)
    if override and asked is not None:
        for gfx in asked.targets:
            against = task.catalogue.gfx.override_note(gfx)
            notes.append(
                f"{gfx} has no kernels of its own here: set HSA_OVERRIDE_GFX_VERSION={override} when you run it"
                + (f" ({against})" if against else "")
            )
        because = (f"kernels of {', '.join(task.targets)} by HSA override, which you allowed", *because)
    return FamilyChoice(
        family=family.name,
        index_url=bare_url(offer.url),
        rocm=offer.rocm,
        pins=offer.pins,
        extras=offer.extras,
        because=because,
        tried=found.tried,
        notes=tuple(dict.fromkeys(notes)),
    )


def _override(task: Task) -> tuple[Task, str] | None:
    """The same task for the GPUs whose kernels the targets run under one HSA override; None where there is no such."""
    gfx = task.catalogue.gfx
    values = {gfx.override(target) for target in task.targets}
    borrowed = tuple(dict.fromkeys(gfx.override_gfx(target) for target in task.targets))
    if len(values) != 1 or "" in values or "" in borrowed:
        return None
    return replace(task, targets=borrowed), values.pop()


def _no_plan(task: Task, found: Found) -> NoPlan:
    fallen = [looked_into(task, one) for one in found.fallen]
    error = NoPlan(
        told.headline(task, fallen),
        why=told.why(task, fallen),
        hint=_nearest(task, found),
        details=told.table(found.tried),
    )
    error.tried = list(found.tried)  # type: ignore[attr-defined]
    return error


def _nearest(task: Task, found: Found) -> str:
    """The nearest thing that works, by asking again with one wish less."""
    unknown = [gfx for gfx in task.targets if gfx not in task.catalogue.gfx.known]
    if unknown:
        return told.unknown_gfx(task, unknown)
    for words, other in (*_relaxations(task), *_other_pythons(task, found.fallen)):
        offer = search(other).offer
        if offer is not None:
            return words.format(offer=f"torch {offer.pins['torch']} from {offer.family.name}")
    override = _override(task)
    if override is not None:
        offer = search(override[0]).offer
        if offer is not None:
            against = task.catalogue.gfx.override_note(task.targets[0])
            return (
                f"torch {offer.pins['torch']} runs under HSA_OVERRIDE_GFX_VERSION={override[1]}"
                f"{f' ({against})' if against else ''}: allow it with hsa-override = true in the settings"
            )
    return told.last_word(task, found.fallen)


def _other_pythons(task: Task, fallen: Sequence[Fallen]) -> Iterator[tuple[str, Task]]:
    """The same wish for the Pythons that the torch asked for has wheels for, the newest first."""
    platforms = task.tags.platforms
    pythons = dict.fromkeys(python for one in fallen for python in reversed(one.pythons))
    for python in pythons:
        words = f"another Python would do: {{offer}} has wheels for Python {python} (--python)"
        yield words, replace(task, tags=tags_for(python, platforms=platforms))


def _relaxations(task: Task) -> list[tuple[str, Task]]:
    ask = task.ask
    free = replace(ask, specs={name: spec for name, spec in ask.specs.items() if name != "torch"})
    alone = replace(ask, wanted=frozenset({"torch"}), specs={k: v for k, v in ask.specs.items() if k == "torch"})
    anything = Ask({}, frozenset({"torch"}), (), ask.pre)
    found: list[tuple[str, Task]] = []
    if ask.spec("torch"):
        found.append((f"nearest: {{offer}}; ask without {ask.torch_text}", replace(task, ask=free)))
    others = sorted(ask.wanted - {"torch"})
    if others:
        found.append((f"nearest: {{offer}}; ask without {', '.join(others)}", replace(task, ask=alone)))
    if ask.conflicts:
        found.append(
            ("nearest: {offer}, without the package that conflicts with it", replace(task, ask=replace(ask, conflicts=())))
        )
    found.append(("nearest: {offer}; loosen the bounds on the torch family", replace(task, ask=anything)))
    if task.channel == "stable":
        found.append(
            ("nearest: {offer}; ask with channel = nightly in the settings", replace(task, channel="nightly", ask=ask))
        )
    if len(task.targets) > 1:
        for gfx in task.targets:
            found.append((f"nearest: {{offer}} for {gfx} alone (--gfx {gfx})", replace(task, targets=(gfx,))))
    return found
