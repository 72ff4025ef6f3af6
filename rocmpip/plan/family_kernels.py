"""Whether the wheels of an index have kernels for every target GPU: by the catalogue, and by the device packages really there."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.version import Version

from rocmpip.catalogue.catalogue import Catalogue
from rocmpip.catalogue.tables import Family
from rocmpip.model.machine import Platform
from rocmpip.model.packages import Page
from rocmpip.model.rocm import RocmVersion
from rocmpip.plan.family_pages import Pages
from rocmpip.plan.family_shelf import shelve
from rocmpip.plan.tags import Tags


def never(catalogue: Catalogue, family: Family, minor: tuple[int, int], targets: Sequence[str]) -> str:
    """Why no wheel of this index can serve the targets, whatever its version; "" when one might. Asks no server."""
    rocm = RocmVersion(minor)
    for gfx in targets:
        end = catalogue.beyond_end(gfx, rocm)
        if end:
            return f"wheels for ROCm newer than {end} do not work on {gfx}, whatever their list says"
    if family.style == "device":
        return ""  # its device packages decide
    if family.style == "family":
        if not catalogue.index_url(family, targets):
            return f"AMD has no index for {_together(targets)}"
        return ""
    rows = [
        row
        for row in catalogue.coverages
        if row.publisher == family.publisher
        and row.rocm_from.minor <= minor
        and (row.rocm_below is None or minor < row.rocm_below.minor)
    ]
    missing = [gfx for gfx in targets if not any(gfx in row.gfx for row in rows)]
    if missing:
        return f"its wheels have no kernels for {', '.join(missing)}"
    if not any(all(gfx in row.gfx for gfx in targets) for row in rows):
        return f"no wheel of it has kernels for all of {', '.join(targets)}"
    return ""


def lacking(
    catalogue: Catalogue,
    family: Family,
    url: str,
    rocm: RocmVersion,
    torch: Version,
    targets: Sequence[str],
    pages: Pages,
    tags: Tags,
) -> list[str]:
    """The targets that this very torch has no kernels for."""
    if family.style == "family":
        return []
    row = catalogue.coverage(family.publisher, rocm, torch.public)
    listed = row.gfx if row is not None else frozenset[str]()
    if family.style != "device":
        return [gfx for gfx in targets if gfx not in listed]
    pages.expect((url, f"amd-torch-device-{gfx}") for gfx in targets)
    return [gfx for gfx in targets if not has_device_package(url, "torch", torch, gfx, pages, tags, trusted=gfx in listed)]


def has_device_package(url: str, member: str, version: Version, gfx: str, pages: Pages, tags: Tags, *, trusted: bool) -> bool:
    """Whether ``member[device-gfx…]`` can be had at this version.

    Kernels of torch are in ``amd-torch-device-gfx1100``, for some versions in ``…-gfx110x`` for the whole family. Where an index
    has neither, ROCm's own ``rocm-sdk-device-gfx1100`` says that the GPU is served, if the catalogue lists it (``trusted``).
    """
    seen = False
    for name in (f"amd-{member}-device-{gfx}", f"amd-{member}-device-{gfx[:-1]}x"):
        page = pages.page(url, name)
        if not isinstance(page, Page) or not page.files:
            continue
        seen = True
        shelf = shelve(page, name, tags, right=lambda _: True)
        if any(build.version == version for build in shelf.builds):
            return True
    if seen or not trusted or member != "torch":
        return False
    page = pages.page(url, f"rocm-sdk-device-{gfx}")
    return isinstance(page, Page) and bool(page.files)


def driver_word(catalogue: Catalogue, platform: Platform, minor: tuple[int, int]) -> tuple[str, str]:
    """(why the driver forbids this ROCm or "", what to note or "").

    A window binds only where the machine does not contradict it: an installed ROCm outside the window shows that the driver's
    number means something else (module versions and release numbers overlap).
    """
    driver = platform.driver
    if not driver:
        return "", ""
    window = catalogue.window(driver)
    rocm = ".".join(map(str, minor))
    if window is None:
        if platform.rocm is not None and platform.rocm.minor == minor:
            return "", ""
        return "", f"whether driver {driver} carries ROCm {rocm} is not known"
    if window.user_from <= minor <= window.user_to:
        return "", ""
    span = f"{'.'.join(map(str, window.user_from))} to {'.'.join(map(str, window.user_to))}"
    told = f"driver {driver} carries ROCm {span}, not {rocm}"
    installed = platform.rocm.minor if platform.rocm is not None else None
    contradicted = installed is not None and not window.user_from <= installed <= window.user_to
    if not window.binding or contradicted:
        return "", f"{told} by AMD's table, which may not speak of this driver"
    return told, ""


def _together(targets: Sequence[str]) -> str:
    return targets[0] if len(targets) == 1 else "all of " + ", ".join(targets) + " together"
