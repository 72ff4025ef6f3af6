"""A page of an index, read with ROCm eyes: the builds for one ROCm that the target can take, and why others are left."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import unquote

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from rocmpip.model.filenames import is_wheel, version_in
from rocmpip.model.packages import Absent, File, Page
from rocmpip.model.record import Struct, field
from rocmpip.model.rocm import RocmVersion, rocm_of_label
from rocmpip.plan.tags import Tags, fits

# A label of a pre-release of ROCm itself: rocm10.1.0a20260828, rocm7.0.0rc1.
_EARLY_LABEL = re.compile(r"rocm[\d.]*\d(?:a|b|rc|\.?dev)\d", re.IGNORECASE)


class Build(Struct, frozen=True):
    """One version of one member, with the file that fits best."""

    version: Version
    rocm: RocmVersion | None
    file: File
    rank: int

    @property
    def public(self) -> Version:
        return Version(self.version.public)

    @property
    def pre(self) -> bool:
        """A pre-release, or a final version for a pre-release of ROCm."""
        return self.version.is_prerelease or _EARLY_LABEL.search(self.version.local or "") is not None

    @property
    def yanked(self) -> bool:
        return self.file.yanked is not None


class Shelf(Struct):
    """What one page has for one ROCm."""

    builds: list[Build] = field(default_factory=list)
    """Highest first; for one version the newest ROCm patch first. Only files that fit the target."""
    misfits: dict[Version, set[str]] = field(default_factory=dict)
    """Version with the right label but without a file for the target → the tags of its wheels (cp312-cp312-linux_x86_64)."""
    foreign: set[str] = field(default_factory=set)
    """Labels of files that are not for this ROCm ("cpu", "" for none)."""
    rocms: set[tuple[int, int]] = field(default_factory=set)
    """Every ROCm (major, minor) that a label on the page names, this one or not."""

    @property
    def versions(self) -> list[Version]:
        """Public versions with the right label, highest first, fitting or not."""
        return sorted({*(build.public for build in self.builds), *(Version(v.public) for v in self.misfits)}, reverse=True)


def shelve(
    page: Page | Absent,
    name: str,
    tags: Tags,
    *,
    right: Callable[[RocmVersion], bool],
    label: bool = True,
    wheels: bool = True,
) -> Shelf:
    """Read a page. ``right`` says whether a label's ROCm is the wanted one; without ``label`` files may do without one.

    With ``wheels`` false sdists count (AMD's ``rocm`` is one).
    """
    shelf = Shelf()
    if isinstance(page, Absent):
        return shelf
    best: dict[Version, Build] = {}
    parsed: dict[str, Version | None] = {}
    for file in page.files:
        filename = unquote(file.filename) if "%" in file.filename else file.filename
        text = version_in(filename, name)
        version = parsed[text] if text in parsed else parsed.setdefault(text, _version(text))
        if version is None:
            continue
        rocm = rocm_of_label(str(version))
        if rocm is not None:
            shelf.rocms.add(rocm.minor)
        if (rocm is None and label) or (rocm is not None and not right(rocm)):
            shelf.foreign.add(version.local or "")
            continue
        rank = fits(filename, tags) if is_wheel(filename) else (None if wheels else 0)
        if rank is None or not _python_fits(file.requires_python, tags.python):
            if is_wheel(filename):
                shelf.misfits.setdefault(version, set()).add("-".join(filename[:-4].rsplit("-", 3)[1:]))
            continue
        known = best.get(version)
        if known is None or (known.yanked, known.rank) > (file.yanked is not None, rank):
            best[version] = Build(version, rocm, file, rank)
    shelf.builds = sorted(best.values(), key=_order, reverse=True)
    for version in best:
        shelf.misfits.pop(version, None)
    return shelf


def _order(build: Build) -> tuple[Version, RocmVersion, Version]:
    """Public version first; ROCm labels as numbers (never as PEP 440 text, where rocm10.0 sorts before rocm6.4)."""
    return build.public, build.rocm or RocmVersion((0, 0)), build.version


def _version(text: str) -> Version | None:
    try:
        return Version(text) if text else None
    except InvalidVersion:
        return None


def _python_fits(requires: str, python: str) -> bool:
    if not requires or not python:
        return True
    try:
        return SpecifierSet(requires).contains(python.rstrip("t") + ".99", prereleases=True)
    except InvalidSpecifier:
        return True
