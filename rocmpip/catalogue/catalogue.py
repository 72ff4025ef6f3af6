"""The catalogue: which indexes there are, which GPUs their wheels have kernels for, what belongs to one torch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from rocmpip.catalogue import companions, rows, tables
from rocmpip.catalogue.gfx import SECTION as GFX
from rocmpip.catalogue.gfx import GfxTable, load_gfx
from rocmpip.catalogue.roots import roots
from rocmpip.catalogue.tables import Coverage, DriverWindow, Family, Member, Pairing, Pin
from rocmpip.model.packages import normalise
from rocmpip.model.record import Struct, replace
from rocmpip.model.rocm import RocmVersion, parse_rocm, rocm_of_label
from rocmpip.model.settings import Settings

_LABEL = re.compile(r"(?:\A|\.)rocm([0-9]+(?:\.[0-9]+)*)")


class Catalogue(Struct, frozen=True, dict=True):
    """Everything the choice of a torch build knows beforehand. Made by ``load``."""

    gfx: GfxTable
    families: tuple[Family, ...]
    coverages: tuple[Coverage, ...]
    pairings: Mapping[str, Pairing]
    members: tuple[Member, ...]
    windows: Mapping[str, DriverWindow]
    pins: tuple[Pin, ...]
    forbidden_names: Mapping[str, Mapping[str, str]]
    allowed_names: tuple[str, ...]

    @cached_property
    def _memo(self) -> dict[tuple[str, str], object]:
        return {}

    # -- names ---------------------------------------------------------------------------------------------------

    def member(self, name: str) -> Member | None:
        """The torch-family row of a name (any spelling), None for a name that is none of the family."""
        key = ("member", name)
        if key not in self._memo:
            wanted = normalise(name)
            exact = next((member for member in self.members if member.pattern == wanted), None)
            # Longest pattern first: rocm-sdk-device-* before rocm-sdk-*.
            patterned = sorted(self.members, key=lambda member: -len(member.pattern))
            self._memo[key] = exact or next((m for m in patterned if _matches(m.pattern, wanted)), None)
        found = self._memo[key]
        return found if isinstance(found, Member) else None

    @property
    def routed_names(self) -> tuple[str, ...]:
        """Names, and patterns of names (``*``), that the user's own indexes are not asked for: the torch family, CUDA's packages."""
        return (*(member.pattern for member in self.members), *self.forbidden_names)

    def is_family(self, name: str) -> bool:
        """True for names that must come from the chosen ROCm family and from nowhere else."""
        return self.member(name) is not None

    def placeholder(self, name: str) -> str:
        """What the public index has under a family name instead of the real thing, "" when that is not known."""
        member = self.member(name)
        return member.placeholder if member else ""

    def forbidden(self, name: str) -> str | None:
        """Why a package must never be installed on an AMD machine ("it is a part of NVIDIA's CUDA …"); None if it may."""
        row = self._forbidden_row(name)
        return row["reason"] if row else None

    def instead(self, name: str) -> str:
        """The ROCm package that stands for a forbidden one, or ""."""
        row = self._forbidden_row(name)
        return row.get("instead", "") if row else ""

    def _forbidden_row(self, name: str) -> Mapping[str, str] | None:
        key = ("forbidden", name)
        if key not in self._memo:
            wanted = normalise(name)
            allowed = any(_matches(pattern, wanted) for pattern in self.allowed_names)
            self._memo[key] = (
                None
                if allowed
                else next((row for pattern, row in self.forbidden_names.items() if _matches(pattern, wanted)), None)
            )
        found = self._memo[key]
        return found if isinstance(found, Mapping) else None

    # -- indexes -------------------------------------------------------------------------------------------------

    @cached_property
    def rocm_minors(self) -> tuple[tuple[int, int], ...]:
        """(major, minor) of every ROCm that the catalogue has an index for, ascending."""
        found = {family.rocm.minor for family in self.families if family.rocm is not None}
        found |= {family.rocm_from.minor for family in self.families if family.rocm_from is not None}
        return tuple(sorted(found))

    def families_for(self, channel: str, minor: tuple[int, int], exact: RocmVersion | None = None) -> tuple[Family, ...]:
        """Indexes of one channel that may hold wheels for ROCm major.minor, the likely ones first.

        Not in the table does not mean absent: with ``exact`` (the machine's ROCm) a ``rocmX.Y`` or ``rocmX.Y.Z`` of
        pytorch.org that the catalogue does not list is among them too.
        """
        found = [f for f in self.families if f.channel == channel and f.ask and f.url and f.holds(minor)]
        listed = {family.rocm for family in found if family.rocm is not None}
        wanted = [RocmVersion(minor)] if channel != "stable" or exact is not None else []
        if exact is not None and exact.release[2:] not in ((), (0,)):
            wanted.insert(0, RocmVersion(exact.release))
        extra = [self.unlisted(channel, rocm) for rocm in wanted if rocm not in listed]
        # A patch index that is listed answers for its minor: no request for a bare 5.4 beside 5.4.2 and 6.2.4.
        extra = [family for family in extra if family and not (listed and len(_release(family)) == 2)]
        found += [family for family in extra if family is not None]
        return tuple(sorted(found, key=lambda family: (family.frozen, family.rocm is None, _descending(family.rocm))))

    def unlisted(self, channel: str, rocm: RocmVersion) -> Family | None:
        """The pytorch.org index that a ROCm without a row would have, shaped like its nearest older neighbour."""
        like = [f for f in self.families if f.publisher == "pytorch.org" and f.rocm is not None and f.rocm <= rocm]
        stable = [f for f in like if f.channel == "stable"]
        if not like or not stable:
            return None
        nearest = max(stable, key=lambda f: f.rocm or rocm)
        head, _, _ = nearest.url.rpartition("whl/rocm")
        folder = "" if channel == "stable" else f"{channel}/"
        number = ".".join(map(str, rocm.release))
        if channel == "nightly" and rocm.minor < (7, 2):
            return None  # nightlies of an old ROCm are gone
        return replace(
            nearest,
            name=f"pytorch.org {'' if channel == 'stable' else channel + ' '}rocm{number}",
            channel=channel,
            url=f"{head}whl/{folder}rocm{number}/",
            rocm=rocm,
            torch=(),
            note="",
            source="not in the catalogue: asked for because indexes follow ROCm releases",
            listed=False,
            frozen=False,
        )

    def index_url(self, family: Family, targets: Sequence[str]) -> tuple[str, ...]:
        """The URLs of a family for the target GPUs: one, or for per-family indexes each name that all targets share."""
        if "{family}" not in family.url:
            return (family.url,)
        shared = [name for name in self.gfx.families(targets[0]) if all(name in self.gfx.families(t) for t in targets)]
        return tuple(family.url.replace("{family}", name) for name in shared)

    # -- kernels -------------------------------------------------------------------------------------------------

    def coverage(self, publisher: str, rocm: RocmVersion, torch: str) -> Coverage | None:
        """The row that speaks of this torch (public version) for this ROCm; None when no row does."""
        from packaging.specifiers import SpecifierSet
        from packaging.version import Version

        base = Version(torch).base_version
        for row in self.coverages:
            if row.publisher != publisher or rocm.minor < row.rocm_from.minor:
                continue
            if row.rocm_below is not None and rocm.minor >= row.rocm_below.minor:
                continue
            if not row.torch or SpecifierSet(row.torch).contains(base, prereleases=True):
                return row
        return None

    def beyond_end(self, gfx: str, rocm: RocmVersion) -> str:
        """The newest ROCm whose wheels work on ``gfx`` when ``rocm`` is newer than that, else ""."""
        end = self.gfx.max_rocm(gfx)
        return end if end and rocm.minor > parse_rocm(end).minor else ""

    def lacks_kernels(self, version: str, gfx: str) -> bool:
        """True when a torch of this labelled version surely has no kernels for ``gfx`` (False when that cannot be said)."""
        rocm = rocm_of_label(version)
        if rocm is None:
            return False
        if self.beyond_end(gfx, rocm):
            return True
        if (7, 9) <= rocm.minor < (7, 14) and len(rocm.release) > 2:
            return False  # AMD's per-family wheels: the label does not say which family
        match = _LABEL.search(version.partition("+")[2])
        bare = match is not None and match.group(1).count(".") == 1
        # pytorch.org labels 7.14 wheels rocm7.14, AMD rocm7.14.0.
        publishers = ("pytorch.org",) if bare or rocm.minor < (7, 9) else ("pytorch.org", "AMD")
        public = version.partition("+")[0]
        found = [row for p in publishers if (row := self.coverage(p, rocm, public)) is not None]
        return not any(gfx in row.gfx for row in found)

    # -- torch ---------------------------------------------------------------------------------------------------

    def pairing(self, torch: str) -> Pairing | None:
        """What belongs to a torch (any label); None when the catalogue does not list it."""
        return self.pairings.get(torch.partition("+")[0])

    def window(self, driver: str) -> DriverWindow | None:
        """The ROCm releases that a kernel driver (``6.3.2``) carries; None when no row speaks of it."""
        parts = driver.strip().split(".")
        return self.windows.get(".".join(parts[:2])) if len(parts) > 1 else None

    def replaced(self, name: str, version: str) -> Pin | None:
        """The row that says which version to take instead of this one, or None."""
        wanted = normalise(name)
        return next((pin for pin in self.pins if pin.name == wanted and pin.version == version), None)


def _release(family: Family) -> tuple[int, ...]:
    return family.rocm.release if family.rocm is not None else ()


def _descending(rocm: RocmVersion | None) -> tuple[int, ...]:
    return tuple(-number for number in (*rocm.release, 0, 0)[:3]) if rocm is not None else (0, 0, 0)


_patterns: dict[str, re.Pattern[str]] = {}


def _matches(pattern: str, name: str) -> bool:
    if "*" not in pattern:
        return pattern == name
    compiled = _patterns.get(pattern)
    if compiled is None:
        compiled = _patterns[pattern] = re.compile(".*".join(map(re.escape, pattern.split("*"))) + r"\Z")
    return compiled.match(name) is not None


def load(settings: Settings | None = None) -> Catalogue:
    """The shipped catalogue with the files of ``settings.catalogue_path`` over it and the mirrors of ``settings`` in it.

    Raises BadConfiguration (45) that tells every fault of those files at once.
    """
    chosen = settings or Settings()
    overrides = rows.read_overrides(chosen.catalogue_path)
    problems: list[str] = []
    rows.unknown_sections(overrides, [section.name for section in tables.SECTIONS], problems)
    gfx = load_gfx() if not overrides else GfxTable(rows.merge(GFX, [rows.shipped("gfx.toml"), *overrides], problems))
    merged: dict[str, dict[str, dict[str, object]]] = {}
    for filename, sections in tables.FILES.items():
        layer = rows.shipped(filename)
        for section in sections:
            merged[section.name] = rows.merge(section, [layer, *overrides], problems)
    if any(companions.SECTION.name in layer.tables for layer in overrides):
        companions.merged(overrides, problems)
    rows.told(problems)
    places = roots(chosen.pytorch_url, chosen.amd_7_url, chosen.amd_10_url)
    return Catalogue(
        gfx=gfx,
        families=tuple(tables.family(name, row, _filled(str(row["url"]), places)) for name, row in merged["family"].items()),
        coverages=tuple(tables.coverage(name, row) for name, row in merged["coverage"].items()),
        pairings={torch: tables.pairing(torch, row) for torch, row in merged["pairing"].items()},
        members=tuple(
            Member(name, str(row["role"]), bool(row["label"]), str(row.get("placeholder", "")), str(row["source"]))
            for name, row in merged["member"].items()
        ),
        windows={driver: tables.window(driver, row) for driver, row in merged["driver"].items()},
        pins=tuple(
            Pin(normalise(str(row["name"])), str(row["version"]), str(row["use"]), str(row["reason"]), str(row["source"]))
            for row in merged["pin"].values()
        ),
        forbidden_names={name: {k: str(v) for k, v in row.items()} for name, row in merged["forbidden"].items()},
        allowed_names=tuple(merged["allowed"]),
    )


def _filled(url: str, places: Mapping[str, str]) -> str:
    """``{pytorch}whl/rocm6.4/`` → a URL, "" when its root is not known."""
    head, brace, rest = url.partition("}")
    if not url.startswith("{") or not brace:
        return url if url.endswith("/") else url + "/"
    root = places.get(head[1:], "")
    if not root:
        return ""
    filled = root + rest
    return filled if filled.endswith("/") else filled + "/"
