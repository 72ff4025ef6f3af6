"""A right torch that is installed stays: the family is the one it came from, and a wish it cannot meet is told as such."""

from __future__ import annotations

from collections.abc import Mapping

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from rocmpip.catalogue.tables import Family
from rocmpip.model.errors import NoPlan
from rocmpip.model.plan import FamilyChoice, Tried
from rocmpip.model.record import replace
from rocmpip.model.redact import bare_url
from rocmpip.model.rocm import RocmVersion, rocm_of_label
from rocmpip.plan.family_ask import clauses
from rocmpip.plan.family_offer import Fallen, Offer, Task, consider


def choose_held(task: Task, held: Mapping[str, str]) -> FamilyChoice:
    """The choice that keeps the installed members. Raises NoPlan when the request cannot live with them."""
    text = held["torch"]
    try:
        version = Version(text)
    except InvalidVersion:
        raise NoPlan(f"the installed torch has version {text!r}, which cannot be read", hint="install torch anew") from None
    _check(task, version)
    rocm = rocm_of_label(str(version))
    likely = rocm or task.platform.rocm
    families = _families(task, likely) if likely is not None else ()
    exact = replace(task.ask, specs={**task.ask.specs, "torch": SpecifierSet(f"=={version}")}, conflicts=())
    again = replace(task, ask=exact, held=True)
    lost: list[Fallen] = []
    if rocm is not None:
        for family in families:
            answer = consider(again, family, rocm.minor)
            if isinstance(answer, Offer):
                return _kept(task, held, answer)
            lost.append(answer)
    members = next((one for one in lost if one.stage == "members"), None)
    missing = [name for name in sorted(task.ask.wanted - {"torch"}) if name not in held]
    if members is not None and missing:
        raise NoPlan(
            f"torch {version} is installed and stays, and {', '.join(missing)} cannot be had beside it",
            why=members.reason,
            hint=f"let torch be replaced too: ask for torch and {', '.join(missing)} with --upgrade",
            details=tuple(f"{one.family.name}: {one.reason}" for one in lost),
        )
    return _unlisted(task, held, version, rocm, families)


def _check(task: Task, version: Version) -> None:
    """Bounds and recipes that the held torch breaks."""
    if not task.ask.admits("torch", version):
        asked = f"torch{clauses(task.ask.spec('torch'))}"
        raise NoPlan(
            f"torch {version} is installed and stays, but {asked} is needed",
            why="a later install must not swap the ROCm torch that other packages were installed for",
            hint=f"let it be replaced: rocmpip install '{asked}' together with what needs it",
        )
    avoided = task.ask.avoided(version)
    if avoided:
        raise NoPlan(
            f"torch {version} is installed and stays, but it conflicts with what was asked for",
            why=avoided,
            hint="let torch be replaced: name torch in the same command with --upgrade",
        )


def _families(task: Task, rocm: RocmVersion) -> tuple[Family, ...]:
    """Indexes that a label can come from: the likely ones first (``rocm7.14`` is pytorch.org's, ``rocm7.14.0`` AMD's)."""
    found = [
        family
        for channel in dict.fromkeys((task.channel, "stable", "test", "nightly"))
        for family in task.catalogue.families_for(channel, rocm.minor, rocm if channel == "stable" else None)
    ]
    own = [family for family in found if family.rocm is not None and family.rocm.release == rocm.release]
    return tuple(dict.fromkeys([*own, *(family for family in found if family.rocm is None), *found]))


def _kept(task: Task, held: Mapping[str, str], offer: Offer) -> FamilyChoice:
    pins = {**offer.pins, **_agreeing(task, held, offer.rocm)}
    reason = f"torch {pins['torch']} is installed and right for {', '.join(task.targets)}: it stays"
    return FamilyChoice(
        family=offer.family.name,
        index_url=bare_url(offer.url),
        rocm=offer.rocm,
        pins=pins,
        extras=offer.extras,
        because=(reason,),
        tried=(Tried(offer.family.name, bare_url(offer.url), "chosen", reason, pins["torch"]),),
        notes=task.ask.notes,
    )


def _agreeing(task: Task, held: Mapping[str, str], rocm: RocmVersion | None) -> dict[str, str]:
    """Installed members that go on as they are: of the same ROCm (or named after it), within the bounds."""
    kept: dict[str, str] = {}
    for name, text in held.items():
        member = task.catalogue.member(name)
        try:
            version = Version(text)
        except InvalidVersion:
            continue
        if member is None or member.role not in ("torch", "pair", "triton"):
            continue
        own = rocm_of_label(str(version))
        right = own == rocm if own is not None else not member.label
        if name == "torch" or (right and task.ask.admits(name, version)):
            kept[name] = text
    return kept


def _unlisted(
    task: Task, held: Mapping[str, str], version: Version, rocm: RocmVersion | None, families: tuple[Family, ...]
) -> FamilyChoice:
    """The installed torch is on no index any more (an old nightly, a local build): it stays all the same."""
    pins = {"torch": held["torch"], **_agreeing(task, held, rocm)}
    missing = [name for name in sorted(task.ask.wanted & {"torchvision", "torchaudio"}) if name not in pins]
    if missing:
        raise NoPlan(
            f"torch {version} is installed and stays, but no index holds what belongs to it",
            why=f"{', '.join(missing)} for this torch cannot be found",
            hint=f"let torch be replaced: rocmpip install --upgrade torch {' '.join(missing)}",
        )
    machine = task.platform.rocm or RocmVersion((0, 0))
    family = families[0] if families else None
    url = next(iter(task.catalogue.index_url(family, task.targets)), "") if family else ""
    reason = f"torch {version} is installed and stays, although no index lists it (any more)"
    return FamilyChoice(
        family=family.name if family else "installed",
        index_url=bare_url(url),
        rocm=rocm or machine,
        pins=pins,
        because=(reason,),
        tried=(),
        notes=(*task.ask.notes, reason),
    )
