"""File names of distributions: which project a file belongs to, and whether a name is safe to use at all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocmpip.model.packages import normalise

if TYPE_CHECKING:
    from packaging.version import Version

SDIST_ENDINGS = (
    ".tar.gz",
    ".zip",
    ".tgz",
    ".tar.bz2",
    ".tbz",
    ".tar.xz",
    ".txz",
    ".tlz",
    ".tar.lz",
    ".tar.lzma",
    ".tar",
)
"""What pip unpacks, the usual one first."""

ENDINGS = (".whl", *SDIST_ENDINGS)
"""Those of all archives that can be installed."""
# A file name that is a plain word: no separators, no control characters, no leading dot.
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+!~-]{0,254}\Z")


def is_archive(filename: str) -> bool:
    """True for a wheel or an sdist whose name is also safe to create on disk."""
    return _SAFE.match(filename) is not None and filename.lower().endswith(ENDINGS)


def is_wheel(filename: str) -> bool:
    return filename.lower().endswith(".whl")


def stem(filename: str) -> str:
    """The name without its archive ending: ``torch-2.9.1.tar.gz`` → ``torch-2.9.1``; "" when it has none."""
    lower = filename.lower()
    for ending in ENDINGS:
        if lower.endswith(ending):
            return filename[: -len(ending)]
    return ""


def version_in(filename: str, name: str) -> str:
    """The version text that ``filename`` gives for the project ``name`` (normalised); "" when it is another project's.

    Wheels have five or six parts. Old sdists may have dashes in both halves, so every dash is tried, as pip does.
    """
    body = stem(filename)
    if is_wheel(filename):
        parts = body.split("-")
        if len(parts) not in (5, 6) or not _same(parts[0], name):
            return ""
        return parts[1]
    for place, char in enumerate(body):
        if char == "-" and _same(body[:place], name):
            return body[place + 1 :]
    return ""


def _same(text: str, name: str) -> bool:
    return text == name or normalise(text) == name


def belongs(filename: str, name: str) -> bool:
    """True when ``filename`` is an archive of the project ``name`` (normalised)."""
    return is_archive(filename) and version_in(filename, name) != ""


def version_of(filename: str) -> Version | None:
    """The version in a wheel's or sdist's file name, None when it cannot be read."""
    from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename

    try:
        if filename.endswith(".whl"):
            return parse_wheel_filename(filename)[1]
        return parse_sdist_filename(filename)[1]
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None
