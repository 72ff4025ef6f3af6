"""What one index offers for one ROCm: the best torch that everything else agrees with, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.version import Version

from rocmpip.catalogue.catalogue import Catalogue
from rocmpip.catalogue.tables import Family
from rocmpip.model.errors import NetworkError
from rocmpip.model.machine import Platform
from rocmpip.model.packages import Absent, Page
from rocmpip.model.record import Struct, replace
from rocmpip.model.rocm import RocmVersion
from rocmpip.plan.family_ask import Ask, pinned
from rocmpip.plan.family_kernels import driver_word, has_device_package, lacking, never
from rocmpip.plan.family_members import company, device_extras
from rocmpip.plan.family_pages import Pages
from rocmpip.plan.family_shelf import Build, Shelf, shelve
from rocmpip.plan.tags import Tags, python_of

STAGES = (
    "driver", "absent", "label", "specifier", "never", "pre", "platform", "python", "yanked", "conflict", "kernels", "members",
)  # fmt: skip
"""How far an index got before it fell out; the later, the nearer it was. "never": no wheel of it can serve the GPUs, so it
was not looked into."""


class Offer(Struct, frozen=True):
    """A torch of one index, with all that goes with it."""

    family: Family
    url: str
    rocm: RocmVersion
    torch: Build
    pins: dict[str, str]
    extras: dict[str, tuple[str, ...]]
    minor: tuple[int, int] = (0, 0)
    """The ROCm (major, minor) in question."""
    passed_over: tuple[str, ...] = ()
    """Higher versions that fell, each with its reason."""
    notes: tuple[str, ...] = ()


class Fallen(Struct, frozen=True):
    """Why an index has nothing."""

    family: Family
    url: str
    reason: str
    stage: str
    torch: str = ""
    """The highest torch there that fits the request's bounds."""
    minor: tuple[int, int] = (0, 0)
    have: tuple[Version, ...] = ()
    """Every torch (public version) that it has for this ROCm, where it was looked into."""
    pythons: tuple[str, ...] = ()
    """The Pythons ("3.12", "3.14t") for which that torch has wheels on the target's platform."""


class Task(Struct, frozen=True):
    """Everything one choice is made from."""

    platform: Platform
    targets: tuple[str, ...]
    tags: Tags
    ask: Ask
    catalogue: Catalogue
    pages: Pages
    channel: str
    held: bool = False
    """The torch is installed already: its driver and recipes are no reason to leave it."""


def consider(task: Task, family: Family, minor: tuple[int, int]) -> Offer | Fallen:
    """The best offer of one index for ROCm ``minor``. Raises NetworkError from the client."""
    return replace(_consider(task, family, minor), minor=minor)


def _consider(task: Task, family: Family, minor: tuple[int, int]) -> Offer | Fallen:
    impossible = never(task.catalogue, family, minor, task.targets)
    if impossible:
        return Fallen(family, family.url, impossible, "never")
    forbidden, note = driver_word(task.catalogue, task.platform, minor)
    if forbidden and not task.held:
        return Fallen(family, family.url, forbidden, "driver")
    fallen: list[Fallen] = []
    for url in task.catalogue.index_url(family, task.targets):
        answer = _consider_url(task, family, url, minor, (note,) if note else ())
        if isinstance(answer, Offer):
            return answer
        fallen.append(answer)
    return furthest(fallen)


def furthest(fallen: Sequence[Fallen]) -> Fallen:
    """The one that got nearest to working (the first among equals)."""
    return max(fallen, key=lambda one: STAGES.index(one.stage))


def _consider_url(task: Task, family: Family, url: str, minor: tuple[int, int], notes: tuple[str, ...]) -> Offer | Fallen:
    page = task.pages.page(url, "torch")
    if isinstance(page, Absent):
        answer = f" ({page.reason})" if page.reason else ""
        return Fallen(family, url, f"the index has no torch{answer}", "absent")
    shelf = _shelf(task, family, page, minor)
    if not shelf.versions:
        return Fallen(family, url, _nothing(shelf, minor, bool(page.files)), "label")
    may_pre = family.channel in ("test", "nightly") or task.ask.pre_allowed("torch")
    fallen: list[Fallen] = []
    for build in shelf.builds:
        unfit = _unfit(task, family, url, build, may_pre)
        if unfit is None:
            made = _offer(task, family, url, build, notes)
            if isinstance(made, Offer):
                over = tuple(one.reason for one in fallen if one.stage in ("conflict", "kernels", "members"))
                return replace(made, passed_over=tuple(dict.fromkeys(over)))
            unfit = made, "members"
        why, stage = unfit
        fallen.append(Fallen(family, url, why, stage, _fitting(task, build)))
    fallen += _misfits(task, family, url, shelf, may_pre)
    best = furthest(fallen)
    return _lacks(task, family, url, shelf) if best.stage == "specifier" else replace(best, have=tuple(shelf.versions))


def _shelf(task: Task, family: Family, page: Page | Absent, minor: tuple[int, int]) -> Shelf:
    return shelve(page, "torch", task.tags, right=lambda rocm: _right(family, rocm, minor))


def _lacks(task: Task, family: Family, url: str, shelf: Shelf) -> Fallen:
    """No torch on the shelf is within the bounds."""
    have = ", ".join(map(str, shelf.versions[:6])) + (" …" if len(shelf.versions) > 6 else "")
    return Fallen(family, url, f"no {task.ask.torch_text} there (it has {have})", "specifier", have=tuple(shelf.versions))


def looked_into(task: Task, fallen: Fallen) -> Fallen:
    """``fallen``, and for an index that cannot serve the GPUs: whether it has a torch within the bounds at all.

    Only a failure asks for it. An index that gives no answer stays as it was told.
    """
    if fallen.stage != "never" or not task.ask.spec("torch"):
        return fallen
    for url in task.catalogue.index_url(fallen.family, task.targets):
        try:
            shelf = _shelf(task, fallen.family, task.pages.page(url, "torch"), fallen.minor)
        except NetworkError:
            return fallen
        fits = [version for version in shelf.versions if task.ask.admits("torch", version)]
        if fits:
            return replace(fallen, torch=str(fits[0]), have=tuple(shelf.versions))
        if shelf.versions:
            return replace(_lacks(task, fallen.family, url, shelf), minor=fallen.minor)
    return replace(fallen, stage="label")


def _right(family: Family, rocm: RocmVersion, minor: tuple[int, int]) -> bool:
    """The label's ROCm is the index's own (6.2.4, not 6.2), or for an index sorted by label the one in question."""
    if family.rocm is None:
        return rocm.minor == minor and family.holds(minor)
    return rocm == family.rocm or (len(family.rocm.release) == 2 and rocm.minor == family.rocm.minor)


def _nothing(shelf: Shelf, minor: tuple[int, int], files: bool) -> str:
    wanted = ".".join(map(str, minor))
    if shelf.rocms:
        have = ", ".join(".".join(map(str, one)) for one in sorted(shelf.rocms))
        return f"no torch for ROCm {wanted} there (it has ROCm {have})"
    if shelf.foreign:
        labels = ", ".join(sorted(f"+{label}" if label else "no label" for label in shelf.foreign))
        return f"no torch with a ROCm label there ({labels})"
    return "no torch that can be read there" if files else "the index has no torch"


def _unfit(task: Task, family: Family, url: str, build: Build, may_pre: bool) -> tuple[str, str] | None:
    """(reason, stage) why a build cannot be taken, before its members are looked at."""
    ask = task.ask
    if not ask.admits("torch", build.version):
        return "", "specifier"
    if build.pre and not may_pre:
        return f"torch {build.version} is a pre-release, and the {task.channel} channel is asked for", "pre"
    if build.yanked and not pinned(ask.spec("torch")):
        why = f": {build.file.yanked}" if build.file.yanked else ""
        return f"torch {build.version} was yanked{why}", "yanked"
    avoided = ask.avoided(build.version)
    if avoided:
        return f"torch {build.version} was passed over: {avoided}", "conflict"
    missing = lacking(
        task.catalogue, family, url, build.rocm or RocmVersion((0, 0)), build.version, task.targets, task.pages, task.tags
    )
    if missing:
        return f"torch {build.version} has no kernels for {', '.join(missing)}", "kernels"
    return None


def _offer(task: Task, family: Family, url: str, build: Build, notes: tuple[str, ...]) -> Offer | str:
    pre = family.channel in ("test", "nightly")
    with_it = company(task.catalogue, family, url, build, task.ask, task.pages, task.tags, pre=pre)
    if with_it.missing:
        return with_it.missing
    assert build.rocm is not None  # a shelf of torch holds labelled builds alone
    pins = {"torch": str(build.version), **with_it.pins}
    return Offer(
        family,
        url,
        build.rocm,
        build,
        pins,
        _extras(task, family, url, pins),
        notes=(*notes, *with_it.notes),
    )


def _extras(task: Task, family: Family, url: str, pins: dict[str, str]) -> dict[str, tuple[str, ...]]:
    if family.style != "device":
        return {}
    extras = {"torch": device_extras(task.catalogue, task.targets)}
    if "torchvision" in pins:
        vision = Version(pins["torchvision"])
        task.pages.expect((url, f"amd-torchvision-device-{gfx}") for gfx in task.targets)
        if all(
            has_device_package(url, "torchvision", vision, gfx, task.pages, task.tags, trusted=False) for gfx in task.targets
        ):
            extras["torchvision"] = extras["torch"]
    return extras


def _fitting(task: Task, build: Build) -> str:
    return str(build.version) if task.ask.admits("torch", build.version) else ""


def _misfits(task: Task, family: Family, url: str, shelf: Shelf, may_pre: bool) -> list[Fallen]:
    """Versions without a wheel for the target's Python or platform: told when they are what was asked for."""
    for version, tags in sorted(shelf.misfits.items(), reverse=True):
        if not task.ask.admits("torch", version) or (version.is_prerelease and not may_pre):
            continue
        here = [tag for tag in tags if not set(tag.rpartition("-")[2].split(".")).isdisjoint(task.tags.platforms)]
        if not here:
            have = ", ".join(sorted({tag.rpartition("-")[2] for tag in tags}))
            reason = f"torch {version} has no wheel for {task.tags.platform} (it has {have})"
            return [Fallen(family, url, reason, "platform", str(version))]
        have = ", ".join(sorted({tag.split("-")[0] for tag in here}, key=_python_order))
        reason = f"torch {version} has no wheel for Python {task.tags.python} on {task.tags.platform} (it has {have})"
        pythons = tuple(python for tag in sorted(here, key=_python_order) if (python := python_of(tag)))
        return [Fallen(family, url, reason, "python", str(version), pythons=tuple(dict.fromkeys(pythons)))]
    return [Fallen(family, url, "", "specifier")]


def _python_order(tag: str) -> tuple[int, str]:
    digits = "".join(char for char in tag.split("-")[0] if char.isdigit())
    return int(digits[1:] or 0), tag
