"""What is installed, by folder names alone: metadata is opened only where a name does not tell."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from rocmpip.model.machine import InstalledDist
from rocmpip.model.names import normalise
from rocmpip.model.regular import regular

# os.scandir over a thousand entries is most of what `rocmpip detect` does.
# ruff: noqa: PTH118


def installed(site_packages: Sequence[str], names: Iterable[str] | None = None) -> tuple[InstalledDist, ...]:
    """Installed distributions, those of earlier folders first; a name counts once, as in Python's own search.

    ``names`` (any spelling) restricts the answer. Folders that cannot be read count as empty.
    """
    wanted = None if names is None else frozenset(normalise(name) for name in names)
    found: dict[str, InstalledDist] = {}
    for folder in dict.fromkeys(site_packages):
        for entry, path in _metadata_folders(folder):
            dist = _read(entry, path, wanted)
            if dist is not None and (wanted is None or dist.name in wanted):
                found.setdefault(dist.name, dist)
    return tuple(found[name] for name in sorted(found))


def _metadata_folders(folder: str) -> Iterator[tuple[str, str]]:
    try:
        with os.scandir(folder) as entries:
            # Names that begin with "~" are what pip leaves of an uninstall that was cut short.
            rows = [(one.name, one.path) for one in entries if one.name.endswith((".dist-info", ".egg-info", ".egg-link"))]
    except OSError:
        return
    yield from (row for row in sorted(rows) if not row[0].startswith("~"))


def _read(entry: str, path: str, wanted: frozenset[str] | None) -> InstalledDist | None:
    stem, _, kind = entry.rpartition(".")
    if kind == "egg-link":
        return _egg_link(stem, path)
    name, dash, version = stem.partition("-")
    if kind == "egg-info":
        # NAME-VERSION-pyX.Y[-PLATFORM].egg-info, or NAME.egg-info of a project folder: its PKG-INFO tells.
        version = version.partition("-py")[0]
    if wanted is not None and dash and "-" not in version and normalise(name) not in wanted:
        return None
    if not dash or not version or "-" in version or "_" in version:
        return _from_metadata(path)
    return InstalledDist(normalise(name), version, path)


def _from_metadata(path: str) -> InstalledDist | None:
    for filename in ("METADATA", "PKG-INFO", ""):
        headers = _headers(os.path.join(path, filename) if filename else path)
        if headers.get("name") and headers.get("version"):
            return InstalledDist(normalise(headers["name"]), headers["version"], path)
    return None


def _headers(path: str) -> dict[str, str]:
    """The headers Name and Version of a metadata file (without opening an e-mail parser); {} when it cannot be read."""
    found: dict[str, str] = {}
    try:
        with open(path, encoding="utf-8", errors="replace", opener=regular) as stream:
            for line in stream:
                if not line.strip() or len(found) == 2:
                    break
                key, colon, value = line.partition(":")
                if colon and key.lower() in ("name", "version"):
                    found.setdefault(key.lower(), value.strip())
    except OSError:
        return {}
    return found


def _egg_link(name: str, path: str) -> InstalledDist | None:
    """A project that `setup.py develop` linked: the folder named in the link holds its metadata."""
    try:
        with open(path, encoding="utf-8", errors="replace", opener=regular) as stream:
            source = stream.readline().strip()
    except OSError:
        return None
    for entry, folder in _metadata_folders(source):
        if entry.endswith(".egg-info"):
            dist = _from_metadata(folder)
            if dist is not None and dist.name == normalise(name):
                return dist
    return None
