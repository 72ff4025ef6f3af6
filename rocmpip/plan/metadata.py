"""Core metadata, read as far as resolution needs it: a scan of the header lines, not a message parser."""

from __future__ import annotations

from rocmpip.model.packages import normalise
from rocmpip.plan.listing import Metadata


def parse_metadata(data: bytes) -> Metadata:
    """What a METADATA or PKG-INFO file says, as far as resolving needs it."""
    requires: list[str] = []
    extras: list[str] = []
    python = name = version = ""
    for line in _headers(data):
        if line.startswith("Requires-Dist:"):
            requires.append(line[14:].strip())
        elif line.startswith("Provides-Extra:"):
            extras.append(normalise(line[15:].strip()))
        elif line.startswith("Requires-Python:"):
            python = line[16:].strip()
        elif line.startswith("Version:"):
            version = line[8:].strip()
        elif line.startswith("Name:"):
            name = normalise(line[5:].strip())
    return Metadata(tuple(dict.fromkeys(requires)), python, frozenset(extras), name, version)


def static_source(data: bytes) -> bool:
    """Whether a PKG-INFO's requirements hold for every build: Metadata-Version ≥ 2.2 and none of them Dynamic."""
    version = (0, 0)
    dynamic: set[str] = set()
    for line in _headers(data):
        key, _, value = line.partition(":")
        if key == "Metadata-Version":
            numbers = [int(part) if part.isdigit() else 0 for part in value.strip().split(".")]
            version = (*numbers, 0, 0)[0], (*numbers, 0, 0)[1]
        elif key == "Dynamic":
            dynamic.add(value.strip().lower())
    return version >= (2, 2) and not dynamic & {"requires-dist", "requires-python", "provides-extra"}


def name_and_version(data: bytes) -> tuple[str, str]:
    """The Name (normalised) and Version that the file states; "" for what it does not say."""
    name = version = ""
    for line in _headers(data):
        if line.startswith("Name:"):
            name = normalise(line[5:].strip())
        elif line.startswith("Version:"):
            version = line[8:].strip()
    return name, version


def _headers(data: bytes) -> list[str]:
    """The header's lines, folded ones joined."""
    ends = [place for mark in (b"\n\n", b"\n\r\n") if (place := data.find(mark)) >= 0]
    text = data[: min(ends, default=len(data))].decode("utf-8", "replace")
    lines: list[str] = []
    for line in text.splitlines():
        if line[:1] in (" ", "\t") and lines:
            lines[-1] += " " + line.strip()
        else:
            lines.append(line)
    return lines
