"""The requirements form of a lock: written so that no value can add a line, and read back for its pins and coordinates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

from rocmpip.lock.model import FORMAT, Entry, Lock
from rocmpip.model.errors import InputError
from rocmpip.model.packages import normalise
from rocmpip.model.record import Struct, field
from rocmpip.model.redact import bare_url

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\Z")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!_-]*\Z")
HASH = re.compile(r"(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})\Z")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([A-Za-z0-9][A-Za-z0-9.+!_-]*)(?:\s|;|\\|\Z)")
_ROW = re.compile(r"# {3}([a-z][a-z0-9 ._-]*): (.*)\Z")
_PYLOCK = re.compile(r"pylock\.(?:[^.]+\.)?toml\Z")
TITLE = "# Locked by rocmpip"


def is_pylock(path: str) -> bool:
    """True for the file names that PEP 751 gives its locks: pylock.toml and pylock.NAME.toml."""
    return _PYLOCK.match(path.replace("\\", "/").rpartition("/")[2]) is not None


def write(lock: Lock, *, path: str = "") -> str:
    """The file's text. Raises InputError for a value that is not what it should be (it would change the file's meaning)."""
    return "\n".join(_lines(lock, path)) + "\n"


def _lines(lock: Lock, path: str) -> Iterator[str]:
    yield f"{TITLE}, format {FORMAT}."
    for key, value in lock.coordinates.rows():
        yield f"#   {key}: {_comment(value)}"
    if lock.command:
        yield f"#   made by: {_comment(lock.command)}"
    yield f"#   install: {_comment(install_command(lock, path))}"
    for note in lock.notes:
        yield f"#   note: {_comment(note)}"
    yield ""
    if lock.no_index:
        yield "--no-index"
    elif lock.index_url:
        yield f"--index-url {_url(lock.index_url)}"
        for url in lock.extra_index_urls:
            yield f"--extra-index-url {_url(url)}"
    for place in lock.find_links:
        yield f"--find-links {_url(place)}"
    for entry in lock.entries:
        yield ""
        yield from _entry(entry)


def install_command(lock: Lock, path: str = "") -> str:
    """The command that installs this lock."""
    name = path or "FILE"
    if lock.needs_builds:
        return f"rocmpip sync {name}"
    words = ["pip install"]
    words += [] if is_pylock(path) else ["--require-hashes"]
    words += ["--no-deps"] if lock.no_deps else []
    words += ["--ignore-requires-python"] if lock.any_python else []
    return " ".join((*words, "-r", name))


def _entry(entry: Entry) -> Iterator[str]:
    name, version = normalise(entry.name), entry.version
    if not _NAME.match(name) or not _VERSION.match(version):
        raise InputError(f"{entry.name!r} {version!r} cannot stand in a lock", why="it is no project name and version")
    for extra in entry.extras:
        if not _NAME.match(normalise(extra)):
            raise InputError(f"{extra!r} cannot stand in a lock", why="it is no name of an extra")
    extras = f"[{','.join(entry.extras)}]" if entry.extras else ""
    first = f"{name}{extras} @ {_url(entry.url)}" if entry.url else f"{name}{extras}=={version}"
    hashes = entry.hashes
    if entry.commit:
        if not _COMMIT.match(entry.commit):
            raise InputError(f"{name} {version} has a commit that is none: {entry.commit[:80]!r}")
    elif not hashes:
        raise InputError(f"{name} {version} has no hash", why="its index gives none and it was not downloaded")
    for text in hashes:
        if not HASH.match(text):
            raise InputError(f"{name} {version} has a hash that is none: {text[:80]!r}")
    yield " \\\n    ".join((first, *(f"--hash={text}" for text in hashes)))
    if entry.recipe:
        version = f", version {version}" if entry.commit else ""
        yield f"    # built from source by the recipe {_comment(entry.recipe)}{version}"
    if len(entry.via) == 1:
        yield f"    # via {_comment(entry.via[0])}"
    elif entry.via:
        yield "    # via"
        for parent in entry.via:
            yield f"    #   {_comment(parent)}"


def _comment(text: str) -> str:
    """``text`` on one line: whatever could end the comment, or drive a terminal, becomes a space."""
    return "".join(char if char.isprintable() else " " for char in bare_url(text)).strip()


def _url(url: str) -> str:
    """A URL or path that pip reads back as one word: no credentials, no blanks, no ``${VARIABLE}``, no ``#`` comment."""
    bare = bare_url(url)
    if "://" not in bare:
        if any(not char.isprintable() for char in bare) or " " in bare or "${" in bare:
            raise InputError(f"the path {bare!r} cannot stand in a lock", why="it holds blanks or control characters")
        return bare
    return quote(bare, safe="/:?=&%~+,;@!()[]#*'")


class Written(Struct, frozen=True):
    """What a lock file says, as far as it is read back."""

    pins: dict[str, str] = field(default_factory=dict)
    coordinates: dict[str, str] = field(default_factory=dict)
    hashes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    urls: dict[str, str] = field(default_factory=dict)
    """Name → direct reference."""
    builds: dict[str, str] = field(default_factory=dict)
    """Name → recipe, of entries that are built from source."""
    via: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Name → who asks for it."""
    indexes: tuple[str, ...] = ()
    """Indexes of the entries (PEP 751 names one for each)."""
    folders: tuple[str, ...] = ()
    """Folders of wheels beside the indexes, relative ones as seen from the lock."""
    ours: bool = False
    """True when rocmpip wrote it."""


def read(text: str) -> Written:
    """Pins, hashes and coordinates of a lock in requirements form (ours, or another tool's: then no coordinates)."""
    lines = text.split("\n")
    places = (line.partition(" ")[2] for line in lines if line.startswith("--find-links "))
    written = Written(ours=text.startswith(TITLE), folders=tuple(place for place in places if "://" not in place))
    name = ""
    for line in lines:
        row = _ROW.match(line)
        if row is not None and not written.pins:
            written.coordinates[row.group(1)] = row.group(2)
            continue
        stripped = line.strip()
        pin = _PIN.match(stripped)
        if pin is not None:
            name = normalise(pin.group(1))
            written.pins[name] = pin.group(2)
        elif " @ " in stripped and not stripped.startswith("#"):
            name = normalise(stripped.partition(" @ ")[0].partition("[")[0])
            written.urls[name] = stripped.partition(" @ ")[2].split()[0]
        if name:
            found = re.findall(r"--hash[= ](sha\d+:[0-9a-f]+)", line)
            if found and not stripped.startswith("#"):
                written.hashes[name] = (*written.hashes.get(name, ()), *found)
            if stripped.startswith("#"):
                _about(written, name, stripped)
    return written


def _about(written: Written, name: str, comment: str) -> None:
    """A comment below an entry: its recipe, or who asks for it."""
    built = re.match(r"# built from source by the recipe ([^\s,]+)(?:, version (\S+))?", comment)
    if built:
        written.builds[name] = built.group(1)
        if built.group(2):
            written.pins[name] = built.group(2)
    elif comment.startswith("# via "):
        written.via[name] = (*written.via.get(name, ()), comment[6:].strip())
    elif comment.startswith("#   "):
        written.via[name] = (*written.via.get(name, ()), comment[4:].strip())
