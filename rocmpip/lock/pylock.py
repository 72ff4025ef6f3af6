"""The PEP 751 form of a lock (``pylock.toml``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from rocmpip.lock.model import Entry, Lock, strongest
from rocmpip.lock.text import HASH, Written, install_command, is_pylock
from rocmpip.model import toml
from rocmpip.model.errors import InputError
from rocmpip.model.packages import File, normalise
from rocmpip.model.redact import bare_url

__all__ = ["is_pylock", "read", "write"]


def write(lock: Lock, *, path: str = "") -> str:
    """The file's text: the standard's keys, and the lock's coordinates in ``[tool.rocmpip]``."""
    import tomlkit

    document: dict[str, Any] = {"lock-version": "1.0", "created-by": "rocmpip"}
    if lock.coordinates.python:
        document["requires-python"] = f"=={lock.coordinates.python}.*"
    document["packages"] = [_package(entry, lock, path) for entry in lock.entries]
    ours: dict[str, Any] = dict(lock.coordinates.rows())
    if lock.command:
        ours["made by"] = bare_url(lock.command)
    ours["install"] = install_command(lock, path or "pylock.toml")
    document["tool"] = {"rocmpip": ours}
    return tomlkit.dumps(document)


def _package(entry: Entry, lock: Lock, path: str) -> dict[str, Any]:
    row: dict[str, Any] = {"name": normalise(entry.name)}
    if entry.commit:
        row["version"] = entry.version
        url = bare_url(entry.url).removeprefix("git+").rpartition("@")[0]
        row["vcs"] = {"type": "git", "url": url, "commit-id": entry.commit}
        row["tool"] = {"rocmpip": {"recipe": entry.recipe}}
        return row
    if entry.url:
        row["archive"] = {"url": bare_url(entry.url), "hashes": _hashes(entry.files[0], entry)}
        return row
    row["version"] = entry.version
    if _readable(entry.requires_python):
        row["requires-python"] = entry.requires_python
    names = {other.name for other in lock.entries}
    needs = [{"name": name} for name in entry.requires if name in names]
    if needs:
        row["dependencies"] = needs
    if entry.files and entry.files[0].index.startswith(("http://", "https://")):
        row["index"] = bare_url(entry.files[0].index)
    sdist = next((file for file in entry.files if not file.filename.endswith(".whl")), None)
    wheels = [file for file in entry.files if file.filename.endswith(".whl")]
    if sdist is not None:
        row["sdist"] = _file(sdist, entry, path)
    if wheels:
        row["wheels"] = [_file(file, entry, path) for file in sorted(wheels, key=lambda one: one.filename)]
    if entry.recipe:
        row["tool"] = {"rocmpip": {"recipe": entry.recipe}}
    return row


def _file(file: File, entry: Entry, path: str) -> dict[str, Any]:
    row: dict[str, Any] = {"name": file.filename}
    if file.url.startswith("file:"):
        row["path"] = _seen_from(path, unquote(urlsplit(file.url).path))
    else:
        row["url"] = bare_url(file.url)
    if file.size is not None:
        row["size"] = file.size
    row["hashes"] = _hashes(file, entry)
    return row


def _seen_from(lock: str, place: str) -> str:
    """A file below the lock's folder as a path from there, so that both can be moved; any other as it is."""
    folder = Path(lock).absolute().parent
    return Path(place).relative_to(folder).as_posix() if Path(place).is_relative_to(folder) else place


def _hashes(file: File, entry: Entry) -> dict[str, str]:
    names = strongest(file)
    if not names:
        raise InputError(f"{entry.name} {entry.version} has no hash", why=f"{file.filename} is published without one")
    for name in names:
        if not HASH.match(f"{name}:{file.hashes[name]}"):
            raise InputError(f"{entry.name} {entry.version} has a hash that is none: {file.hashes[name][:80]!r}")
    return {name: file.hashes[name] for name in names}


def _readable(requires_python: str) -> bool:
    """What an index says of Python may be no specifier (it counts as fitting then, as in pip), and a lock takes only one."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return bool(SpecifierSet(requires_python))
    except InvalidSpecifier:
        return False


def read(text: str, path: str = "pylock.toml") -> Written:
    """Pins, hashes and coordinates. Raises InputError for what is no PEP 751 file."""

    from packaging.pylock import Pylock, PylockValidationError

    try:
        data = toml.loads(text)
        lock = Pylock.from_dict(data)
    except (toml.TomlError, PylockValidationError, ValueError) as problem:
        raise InputError(f"Invalid pylock file {path!r}", why=str(problem)) from None
    ours = (lock.tool or {}).get("rocmpip", {})
    written = Written(
        ours=bool(ours),
        coordinates={key: str(value) for key, value in ours.items()},
        indexes=tuple(dict.fromkeys(package.index for package in lock.packages if package.index)),
        folders=tuple(
            dict.fromkeys(
                str(Path(wheel.path).parent) for package in lock.packages for wheel in package.wheels or () if wheel.path
            )
        ),
    )
    for package in lock.packages:
        name = str(package.name)
        if package.version is not None:
            written.pins[name] = str(package.version)
        for other in package.dependencies or ():
            child = str(other.get("name", ""))
            written.via[child] = (*written.via.get(child, ()), name)
        if package.archive is not None:
            written.urls[name] = package.archive.url or package.archive.path or ""
        if package.vcs is not None:
            written.urls[name] = f"git+{package.vcs.url or package.vcs.path}@{package.vcs.commit_id}"
        files = [
            *(package.wheels or ()),
            *([package.sdist] if package.sdist else ()),
            *([package.archive] if package.archive else ()),
        ]
        written.hashes[name] = tuple(f"{algorithm}:{digest}" for file in files for algorithm, digest in file.hashes.items())
        recipe = ((package.tool or {}).get("rocmpip") or {}).get("recipe")
        if recipe:
            written.builds[name] = str(recipe)
    return written
