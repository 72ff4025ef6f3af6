"""What goes with one torch: torchvision, torchaudio, triton and ROCm's own packages, as they really are on the index."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.version import InvalidVersion, Version

from rocmpip.catalogue.catalogue import Catalogue
from rocmpip.catalogue.tables import Family, Pairing
from rocmpip.model.filenames import version_in
from rocmpip.model.packages import Absent, Page
from rocmpip.model.record import Struct, field
from rocmpip.plan.family_ask import TRITON_NAMES, Ask, clauses, pinned
from rocmpip.plan.family_pages import Pages
from rocmpip.plan.family_shelf import Build, Shelf, shelve
from rocmpip.plan.tags import Tags

PAIRED = ("torchvision", "torchaudio")
# Through 0.29.0 torchvision pins torch exactly; from 0.29.1 it takes any torch from 2.14.0 on.
_LOOSE_VISION = Version("0.29.1")


class Company(Struct):
    """The pins that go with a torch, or why a requested member cannot be had beside it."""

    pins: dict[str, str] = field(default_factory=dict)
    missing: str = ""
    notes: list[str] = field(default_factory=list)


def company(
    catalogue: Catalogue,
    family: Family,
    url: str,
    torch: Build,
    ask: Ask,
    pages: Pages,
    tags: Tags,
    *,
    pre: bool,
) -> Company:
    """Everything that belongs to ``torch`` on this index. ``pre``: the index's channel holds pre-releases."""
    pages.expect((url, name) for name in (*PAIRED, family.triton) if "rocm" in name or name in PAIRED)
    result = Company()
    pairing = catalogue.pairing(str(torch.public))
    for name in PAIRED:
        _pair(name, family, url, torch, pairing, ask, pages, tags, pre, result)
        if result.missing:
            return result
    _triton(family, url, torch, pairing, ask, pages, tags, result)
    if family.style == "thin" and not result.missing:
        _rocm(catalogue, url, torch, ask, pages, pre, result)
    if not result.missing:
        _sdk(catalogue, family, url, torch, ask, pages, result)
    return result


def _sdk(catalogue: Catalogue, family: Family, url: str, torch: Build, ask: Ask, pages: Pages, result: Company) -> None:
    """Requested packages of ROCm itself (``rocm``, ``rocm-sdk-devel``) must be on the index too, for this ROCm."""
    for name in sorted(ask.wanted):
        member = catalogue.member(name)
        if member is None or member.role not in ("sdk", "device") or torch.rocm is None:
            continue
        versions = [version for version in all_versions(pages.page(url, name), name) if ask.admits(name, version)]
        if member.label:
            versions = [version for version in versions if version == torch.version]
        if not any(member.label or version.release[:2] == torch.rocm.minor for version in versions):
            bounds = clauses(ask.spec(name))
            result.missing = f"torch {torch.version} fell out: {family.name} has no {name}{bounds} for ROCm {torch.rocm}"
            return


def _pair(
    name: str,
    family: Family,
    url: str,
    torch: Build,
    pairing: Pairing | None,
    ask: Ask,
    pages: Pages,
    tags: Tags,
    pre: bool,
    result: Company,
) -> None:
    page = pages.page(url, name)
    shelf = shelve(page, name, tags, right=lambda rocm: rocm == torch.rocm)
    may_pre = pre or torch.pre or ask.pre_allowed(name)
    mates = _mates(name, torch, pairing, shelf)
    exact = pinned(ask.spec(name))
    fitting = [
        build
        for build in mates
        if ask.admits(name, build.version) and (may_pre or not build.pre) and (exact or not build.yanked)
    ]
    if fitting:
        result.pins[name] = str(fitting[0].version)
        return
    if name not in ask.wanted:
        return
    if isinstance(page, Absent):
        why = f"{family.name} has no {name}"
    elif mates:
        have = ", ".join(str(build.version) for build in mates)
        why = f"the {name} for it is {have}, but {name}{clauses(ask.spec(name))} is asked for"
    elif shelf.misfits:
        why = f"no {name} for Python {tags.python} beside it"
    else:
        why = f"{family.name} has no {name} made for it"
    result.missing = f"torch {torch.version} fell out: {why}"


def _mates(name: str, torch: Build, pairing: Pairing | None, shelf: Shelf) -> list[Build]:
    """The builds on the shelf made for this torch, best first."""
    public = torch.public
    if public.is_devrelease:
        # Nightlies of one day belong together: torchvision pins the torch of its own build exactly.
        return [build for build in shelf.builds if build.version.dev == public.dev]
    if pairing is not None:
        listed = pairing.torchvision if name == "torchvision" else pairing.torchaudio
        if not listed:
            return []
        # AMD numbers its rebuilds 2.11.0.2: three numbers say which release it is.
        order = [Version(text).release[:3] for text in listed]
        exact = [build for numbers in order for build in shelf.builds if build.version.release[:3] == numbers]
        if name == "torchaudio" and order[0][:2] == (2, 11):
            # Frozen at 2.11, which takes any newer torch.
            exact += [b for b in shelf.builds if b.version.release[:2] == (2, 11) and b not in exact]
        return exact
    if name == "torchaudio":
        audio = (2, 11) if public >= Version("2.11") else public.release[:2]
        return [build for build in shelf.builds if build.version.release[:2] == audio]
    vision = (0, (public.minor + 15) if public.major == 2 else -1)
    same = [build for build in shelf.builds if build.version.release[:2] == vision]
    exact = [build for build in same if build.version.micro == public.micro and build.pre == public.is_prerelease]
    return exact or [build for build in same if build.public >= _LOOSE_VISION]


def _triton(
    family: Family,
    url: str,
    torch: Build,
    pairing: Pairing | None,
    ask: Ask,
    pages: Pages,
    tags: Tags,
    result: Company,
) -> None:
    asked = [name for name in TRITON_NAMES if name in ask.wanted]
    others = [name for name in asked if name not in ("triton", family.triton)]
    if others and family.triton:
        result.missing = f"torch {torch.version} fell out: its triton is called {family.triton} there, not {others[0]}"
        return
    if "rocm" not in family.triton or pairing is None:
        return  # AMD has several builds of one number: only torch's own metadata knows which
    page = pages.page(url, family.triton)
    shelf = shelve(page, family.triton, tags, right=lambda rocm: rocm == torch.rocm, label=False)
    wanted = [Version(text) for text in pairing.triton]
    found = [build for version in wanted for build in shelf.builds if build.public == version and not build.yanked]
    if not found:
        return
    if not ask.admits_triton(found[0].version):
        result.missing = (
            f"torch {torch.version} fell out: it needs {family.triton} {found[0].version}, "
            f"which the bounds on triton do not allow"
        )
        return
    result.pins[family.triton] = str(found[0].version)


def _rocm(catalogue: Catalogue, url: str, torch: Build, ask: Ask, pages: Pages, pre: bool, result: Company) -> None:
    """A thin torch of pytorch.org asks for ``rocm==7.14.*``: the newest of them, never one that pip fails on."""
    if torch.rocm is None:
        return
    page = pages.page(url, "rocm")
    versions = all_versions(page, "rocm")
    early = pre or torch.pre
    good = [v for v in versions if v.release[:2] == torch.rocm.minor and (early or not v.is_prerelease)]
    good = [version for version in good if ask.admits("rocm", version)]
    bad = {Version(pin.version): pin for pin in catalogue.pins if pin.name == "rocm"}
    best = next((version for version in good if version not in bad), None)
    if best is None and good:
        best = good[0]
        result.notes.append(f"rocm {best}: {bad[best].reason}; {bad[best].use} is not on this index")
    if best is not None:
        result.pins["rocm"] = str(best)


def all_versions(page: Page | Absent, name: str) -> list[Version]:
    """All versions that a page has of a project, highest first, yanked ones left out."""
    found: set[Version] = set()
    for file in page.files if isinstance(page, Page) else ():
        try:
            version = Version(version_in(file.filename, name))
        except InvalidVersion:
            continue
        if file.yanked is None:
            found.add(version)
    return sorted(found, reverse=True)


def device_extras(catalogue: Catalogue, targets: Sequence[str]) -> tuple[str, ...]:
    """``("device-gfx942",)``."""
    return tuple(extra for gfx in targets if (extra := catalogue.gfx.extra(gfx)))  # noqa: S610 (no Django)
