"""The rows of the catalogue as frozen values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rocmpip.catalogue import rows
from rocmpip.catalogue.companions import SECTION as COMPANIONS
from rocmpip.catalogue.gfx import SECTION as GFX
from rocmpip.model.record import Struct
from rocmpip.model.rocm import RocmVersion, parse_rocm

_ROCM = re.compile(r"\d{1,4}(?:\.\d{1,4}){1,2}\Z")


class Family(Struct, frozen=True):
    """One index of ROCm wheels."""

    name: str
    """What people see: "pytorch.org rocm6.4"."""
    publisher: str
    channel: str
    """stable, test, nightly."""
    style: str
    """fat, thin, device, family, listing: see data/families.toml."""
    url: str
    """With a slash at its end; ``{family}`` where the GPU's own index name goes."""
    rocm: RocmVersion | None = None
    """The one ROCm of the index; None when labels decide, within [rocm_from, rocm_below)."""
    rocm_from: RocmVersion | None = None
    rocm_below: RocmVersion | None = None
    torch: tuple[str, ...] = ()
    """Versions known to be there. For people: the page decides."""
    triton: str = ""
    frozen: bool = False
    ask: bool = True
    note: str = ""
    source: str = ""
    listed: bool = True
    """False for an index that the catalogue has no row for, asked for because the machine has that ROCm."""

    def holds(self, minor: tuple[int, int]) -> bool:
        """True when wheels for ROCm major.minor can be here."""
        if self.rocm is not None:
            return self.rocm.minor == minor
        low = self.rocm_from is None or self.rocm_from.minor <= minor
        return low and (self.rocm_below is None or minor < self.rocm_below.minor)


class Coverage(Struct, frozen=True):
    """Targets that wheels have working kernels for."""

    name: str
    publisher: str
    rocm_from: RocmVersion
    rocm_below: RocmVersion | None
    torch: str
    gfx: frozenset[str]
    status: str = ""
    source: str = ""


class Pairing(Struct, frozen=True):
    """What belongs to one torch version, best first."""

    torch: str
    torchvision: tuple[str, ...]
    torchaudio: tuple[str, ...]
    triton: tuple[str, ...]
    rocm: tuple[str, ...] = ()
    python: str = ""
    platform: str = ""
    status: str = ""
    source: str = ""


class Member(Struct, frozen=True):
    """A torch-family package name (perhaps a pattern)."""

    pattern: str
    role: str
    """torch, pair, triton, sdk, device."""
    label: bool
    """Its wheels must carry the family's ROCm label."""
    placeholder: str = ""
    source: str = ""


class DriverWindow(Struct, frozen=True):
    """ROCm releases that a kernel driver carries, as (major, minor), both ends included."""

    driver: str
    user_from: tuple[int, int]
    user_to: tuple[int, int]
    binding: bool
    source: str = ""


class Pin(Struct, frozen=True):
    """A version that must not be taken, and the one to take instead."""

    name: str
    version: str
    use: str
    reason: str
    source: str = ""


def _rocm(value: object) -> str:
    good = isinstance(value, str) and _ROCM.match(value)
    return "" if good else "must be a ROCm version such as 6.4 or 6.2.4"


def _specifier(value: object) -> str:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    if not isinstance(value, str):
        return "must be a string"
    try:
        SpecifierSet(value)
    except InvalidSpecifier:
        return "must be a version specifier such as >=2.6,<2.7"
    return ""


def _versions(value: object) -> str:
    from packaging.version import InvalidVersion, Version

    if not isinstance(value, str):
        return "must be a string of versions with spaces between"
    for word in value.split():
        try:
            Version(word)
        except InvalidVersion:
            return f"must hold versions with spaces between ({word!r} is none)"
    return ""


def _url(value: object) -> str:
    if not isinstance(value, str) or not re.match(r"(\{\w+\}|https?://|file://)", value):
        return "must be a URL, or start with one of the roots in braces"
    names = set(re.findall(r"\{(\w*)\}", value)) - {*ROOTS, "family", "rocm"}
    return f"has unknown places {', '.join(sorted(names))}" if names else ""


def _gfx_list(value: object) -> str:
    from rocmpip.model.gfx import is_gfx_name

    good = isinstance(value, str) and all(is_gfx_name(word) for word in value.split())
    return "" if good else "must be gfx names with spaces between"


ROOTS = (
    "pytorch",
    "amd_7",
    "amd_7_families",
    "amd_7_nightly",
    "amd_7_nightly_families",
    "amd_10",
    "amd_10_nightly",
    "amd_10_rc",
)
"""Places that a family's url may start with; ``catalogue.roots`` fills them."""

FAMILY = rows.Section(
    "family",
    {
        "publisher": rows.text,
        "channel": rows.one_of("stable", "test", "nightly"),
        "rocm": _rocm,
        "rocm_from": _rocm,
        "rocm_below": _rocm,
        "style": rows.one_of("fat", "thin", "device", "family", "listing"),
        "url": _url,
        "torch": _versions,
        "triton": rows.text,
        "frozen": rows.flag,
        "ask": rows.flag,
        "note": rows.text,
        "source": rows.text,
    },
    required=("publisher", "channel", "style", "url"),
)
COVERAGE = rows.Section(
    "coverage",
    {
        "publisher": rows.text,
        "rocm_from": _rocm,
        "rocm_below": _rocm,
        "torch": _specifier,
        "gfx": _gfx_list,
        "status": rows.text,
        "source": rows.text,
    },
    required=("publisher", "rocm_from", "gfx"),
)
PAIRING = rows.Section(
    "pairing",
    {
        "torchvision": _versions,
        "torchaudio": _versions,
        "triton": _versions,
        "rocm": rows.text,
        "python": rows.text,
        "platform": rows.text,
        "status": rows.text,
        "source": rows.text,
    },
    key=_versions,
)
MEMBER = rows.Section(
    "member",
    {
        "role": rows.one_of("torch", "pair", "triton", "sdk", "device"),
        "label": rows.flag,
        "placeholder": rows.text,
        "source": rows.text,
    },
    required=("role", "label"),
)
DRIVER = rows.Section(
    "driver",
    {"user_from": _rocm, "user_to": _rocm, "binding": rows.flag, "source": rows.text},
    required=("user_from", "user_to", "binding"),
)
FORBIDDEN = rows.Section("forbidden", {"reason": rows.text, "instead": rows.text, "source": rows.text}, required=("reason",))
ALLOWED = rows.Section("allowed", {"reason": rows.text, "source": rows.text}, required=("reason",))
PIN = rows.Section(
    "pin",
    {"name": rows.text, "version": _versions, "use": _versions, "reason": rows.text, "source": rows.text},
    required=("name", "version", "use", "reason"),
)

FILES: Mapping[str, tuple[rows.Section, ...]] = {
    "families.toml": (FAMILY,),
    "coverage.toml": (COVERAGE,),
    "pairings.toml": (PAIRING,),
    "driver.toml": (DRIVER,),
    "names.toml": (MEMBER, FORBIDDEN, ALLOWED, PIN),
}
"""Shipped file → the sections it holds. gfx.toml is read by ``catalogue.gfx``."""

SECTIONS: tuple[rows.Section, ...] = (GFX, *(section for sections in FILES.values() for section in sections), COMPANIONS)
"""Every section that a user's file may hold; the reference page is generated from it."""


def family(name: str, row: Mapping[str, Any], url: str) -> Family:
    return Family(
        name=name,
        publisher=row["publisher"],
        channel=row["channel"],
        style=row["style"],
        url=url,
        rocm=_parsed(row, "rocm"),
        rocm_from=_parsed(row, "rocm_from"),
        rocm_below=_parsed(row, "rocm_below"),
        torch=tuple(row.get("torch", "").split()),
        triton=row.get("triton", ""),
        frozen=row.get("frozen", False),
        ask=row.get("ask", True),
        note=row.get("note", ""),
        source=row["source"],
    )


def coverage(name: str, row: Mapping[str, Any]) -> Coverage:
    return Coverage(
        name=name,
        publisher=row["publisher"],
        rocm_from=parse_rocm(row["rocm_from"]),
        rocm_below=_parsed(row, "rocm_below"),
        torch=row.get("torch", ""),
        gfx=frozenset(row["gfx"].split()),
        status=row.get("status", ""),
        source=row["source"],
    )


def pairing(torch: str, row: Mapping[str, Any]) -> Pairing:
    return Pairing(
        torch=torch,
        torchvision=tuple(row.get("torchvision", "").split()),
        torchaudio=tuple(row.get("torchaudio", "").split()),
        triton=tuple(row.get("triton", "").split()),
        rocm=tuple(row.get("rocm", "").split()),
        python=row.get("python", ""),
        platform=row.get("platform", ""),
        status=row.get("status", ""),
        source=row["source"],
    )


def window(driver: str, row: Mapping[str, Any]) -> DriverWindow:
    return DriverWindow(
        driver,
        parse_rocm(row["user_from"]).minor,
        parse_rocm(row["user_to"]).minor,
        row["binding"],
        row["source"],
    )


def _parsed(row: Mapping[str, Any], key: str) -> RocmVersion | None:
    return parse_rocm(row[key]) if key in row else None
