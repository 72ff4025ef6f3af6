"""The wheelhouse: built wheels, each kept under the fingerprint of everything that changed its bytes.

Layout: ``ROOT/NAME/FINGERPRINT/`` holds one wheel and ``entry.json`` (the wheel's hash, size, provenance, build time). An
entry is written whole under ``ROOT/.new-…`` and renamed into place, so a reader sees all of it or nothing, whatever kills
the writer. ROOT is ``wheelhouse`` in rocmpip's state folder, not in a cache: a build may have cost hours.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from rocmpip.model.errors import CheckFailed
from rocmpip.model.packages import File
from rocmpip.model.provenance import FingerprintInputs, Provenance, from_json, stale_because
from rocmpip.store.wheelhouse_files import (
    copy_file,
    refuse_unsafe,
    refuse_unsafe_parents,
    sha256_of,
    sync_folder,
)

ENTRY = "entry.json"
_SCHEMA = 1
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_LEFTOVER_AGE = 6 * 3600.0


def fingerprint(inputs: FingerprintInputs) -> str:
    """sha256 (64 hex digits) over every input. The order of gfx targets does not count; everything else does."""
    values = asdict(inputs)
    values["gfx"] = sorted(set(inputs.gfx))
    canonical = json.dumps({"schema": _SCHEMA, **values}, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


@dataclass(frozen=True)
class StoredWheel:
    """One wheel of the wheelhouse. ``path`` is absolute; ``created`` is seconds since the epoch, ``seconds`` the build's."""

    fingerprint: str
    path: Path
    sha256: str
    size: int
    created: float
    seconds: float
    provenance: Provenance

    @property
    def filename(self) -> str:
        return self.path.name

    def as_json(self) -> dict[str, object]:
        return {
            "fingerprint": self.fingerprint,
            "filename": self.filename,
            "path": str(self.path),
            "sha256": self.sha256,
            "size": self.size,
            "created": self.created,
            "seconds": self.seconds,
            "provenance": self.provenance.as_json(),
        }

    def as_file(self) -> File:
        """As a file of a project page, for the router: a ``file://`` link with its hash."""
        return File(
            filename=self.filename,
            url=self.path.as_uri(),
            hashes={"sha256": self.sha256},
            size=self.size,
            index=self.path.parent.as_uri(),
        )


@dataclass(frozen=True)
class Fault:
    """One thing that ``verify`` found."""

    path: str
    reason: str


class Wheelhouse:
    """The store at ``root``; nothing is created before the first ``put``.

    ``warn`` hears what a person should know (an entry set aside because its hash is wrong). Every method raises Refused
    when others may write to the folders.
    """

    def __init__(self, root: Path, *, warn: Callable[[str], None] | None = None) -> None:
        self.root = root
        self._warn = warn or (lambda text: None)
        self._checked = False

    # ---- looking up

    def find(self, fingerprint: str, name: str = "") -> StoredWheel | None:
        """The wheel of a fingerprint, its hash verified now; None when there is none or it is no longer what was stored.

        ``name`` (normalised) makes it one look-up; without it each project's folder is asked. A wheel whose bytes changed
        is set aside and told through ``warn``.
        """
        self._check_root()
        folders = (self.root / name,) if name else self._projects()
        for project in folders:
            entry = project / fingerprint
            if (entry / ENTRY).is_file():
                return self._verified(entry)
        return None

    def _verified(self, entry: Path) -> StoredWheel | None:
        refuse_unsafe(entry.parent)
        refuse_unsafe(entry)
        stored, reason = self._read(entry)
        if stored is not None and not reason:
            reason = _changed(stored)
        if reason or stored is None:
            self._set_aside(entry)
            self._warn(f"a wheel in the wheelhouse is damaged and was set aside: {entry.name[:12]}: {reason}")
            return None
        return stored

    def candidates(self, name: str) -> tuple[StoredWheel, ...]:
        """Every wheel of a project (normalised name), newest first, without verifying hashes: ``find`` does, and so
        does pip by the hash in the link."""
        self._check_root()
        return tuple(sorted(self._entries(self.root / name), key=lambda stored: -stored.created))

    def list(self) -> tuple[StoredWheel, ...]:
        """Everything, by name, then newest first."""
        self._check_root()
        found = [stored for project in self._projects() for stored in self._entries(project)]
        return tuple(sorted(found, key=lambda stored: (stored.provenance.inputs.name, -stored.created)))

    def show(self, text: str) -> StoredWheel:
        """The one wheel whose fingerprint starts with ``text``, or whose file name it is. Raises CheckFailed otherwise."""
        found = [one for one in self.list() if one.fingerprint.startswith(text) or one.filename == text]
        if len(found) == 1:
            return found[0]
        if not found:
            raise CheckFailed(f"the wheelhouse has nothing called {text}", hint="rocmpip wheelhouse list")
        raise CheckFailed(
            f"{len(found)} wheels match {text}",
            hint="give more of the fingerprint",
            details=tuple(f"{one.fingerprint[:16]}  {one.filename}" for one in found[:20]),
        )

    def expected_seconds(self, name: str, gfx_count: int) -> float | None:
        """How long a build will take, from the newest earlier ones of the project, scaled by the number of targets."""
        timed = [one for one in self.candidates(name) if one.seconds > 0]
        if not timed:
            return None
        newest = timed[0]
        return newest.seconds * max(1, gfx_count) / max(1, len(newest.provenance.inputs.gfx))

    # ---- storing

    def put(
        self,
        wheel: Path,
        provenance: Provenance,
        *,
        seconds: float = 0.0,
        replace: bool = False,
        code_objects: tuple[str, ...] = (),
    ) -> StoredWheel:
        """Store a copy of ``wheel`` under ``provenance.fingerprint``. Atomic; safe with other writers.

        A sound wheel that stands there already stays (another process may be installing it by its hash) unless ``replace``.
        """
        provenance = dataclasses.replace(provenance, code_objects=code_objects or provenance.code_objects)
        name = provenance.inputs.name
        if not _NAME.fullmatch(name) or provenance.fingerprint != fingerprint(provenance.inputs):
            raise CheckFailed(f"{wheel.name} does not go into the wheelhouse", why="its record does not match its fingerprint")
        self._make_root()
        project = self.root / name
        project.mkdir(mode=0o700, exist_ok=True)
        refuse_unsafe(project)
        new = Path(tempfile.mkdtemp(prefix=".new-", dir=self.root))
        try:
            digest = copy_file(wheel, new / wheel.name)
            record = {
                "schema": _SCHEMA,
                "filename": wheel.name,
                "sha256": digest,
                "size": (new / wheel.name).stat().st_size,
                "created": time.time(),
                "seconds": round(seconds, 3),
                "provenance": provenance.as_json(),
            }
            with (new / ENTRY).open("xb") as stream:
                stream.write(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
                stream.flush()
                os.fsync(stream.fileno())
            sync_folder(new)
            entry = project / provenance.fingerprint
            self._move_in(new, entry, replace)
        finally:
            shutil.rmtree(new, ignore_errors=True)
        stored, reason = self._read(entry)
        if stored is None:
            raise CheckFailed(f"the wheelhouse could not keep {wheel.name}", why=reason)
        return stored

    def _move_in(self, new: Path, entry: Path, replace: bool) -> None:
        """Rename the finished folder into place, unless a sound one is there and may stay."""
        for _ in range(100):
            try:
                new.rename(entry)
            except OSError:
                # ENOTEMPTY or EEXIST: an entry stands there. Move it out of the way, whoever put it there.
                if not entry.exists():
                    raise
                there, reason = self._read(entry)
                if not replace and there is not None and not (reason or _changed(there)):
                    return
                self._set_aside(entry)
                continue
            sync_folder(entry.parent)
            return
        raise CheckFailed(f"other processes keep replacing {entry}", hint="run the command again")

    def _set_aside(self, entry: Path) -> None:
        """Take an entry out of sight at once (rename), then delete it. One that is gone already is no error."""
        try:
            grave = Path(tempfile.mkdtemp(prefix=".old-", dir=self.root))
            entry.rename(grave / "entry")
        except OSError:
            pass
        else:
            shutil.rmtree(grave, ignore_errors=True)
            return
        shutil.rmtree(grave, ignore_errors=True)

    def remove(self, stored: StoredWheel) -> None:
        """Delete one wheel."""
        self._set_aside(stored.path.parent)

    # ---- keeping house

    def verify(self) -> tuple[tuple[StoredWheel, ...], tuple[Fault, ...]]:
        """(sound wheels, faults): every entry read and hashed again. Nothing is changed."""
        self._check_root()
        sound: list[StoredWheel] = []
        faults: list[Fault] = []
        for project in self._projects():
            for entry in _folders(project):
                stored, reason = self._read(entry)
                if stored is not None and not reason:
                    reason = _changed(stored)
                if stored is None or reason:
                    faults.append(Fault(str(entry), reason))
                else:
                    sound.append(stored)
        return tuple(sound), tuple(faults)

    def prune(
        self, *, older_than: float | None = None, keep: Callable[[StoredWheel], bool] | None = None
    ) -> tuple[tuple[StoredWheel, ...], int]:
        """Delete damaged entries, what killed writers left, wheels older than ``older_than`` seconds, and those ``keep``
        refuses. Returns (wheels deleted, bytes freed, leftovers included)."""
        if not self.root.is_dir():
            return (), 0
        self._check_root()
        freed = self._clear_leftovers(_LEFTOVER_AGE)
        sound, faults = self.verify()
        for fault in faults:
            freed += _weight(Path(fault.path))
            self._set_aside(Path(fault.path))
        now = time.time()
        doomed = [
            stored
            for stored in sound
            if (older_than is not None and now - stored.created > older_than) or (keep is not None and not keep(stored))
        ]
        for stored in doomed:
            freed += stored.size
            self.remove(stored)
        for project in self._projects():
            # Only an empty one goes: rmdir refuses the rest.
            try:
                project.rmdir()
            except OSError:
                continue
        return tuple(doomed), freed

    def _clear_leftovers(self, age: float) -> int:
        """Remove what a killed writer left behind; a young one may still be at work."""
        freed = 0
        for folder in self.root.iterdir():
            if folder.name.startswith((".new-", ".old-")) and time.time() - folder.stat().st_mtime > age:
                freed += _weight(folder)
                shutil.rmtree(folder, ignore_errors=True)
        return freed

    def stale(
        self, installed: Mapping[str, Provenance], *, torch: str, gfx: tuple[str, ...], rocm: str = ""
    ) -> dict[str, tuple[str, ...]]:
        """Which installed builds (name → its record) no longer fit the torch, GPUs and ROCm of now, and why."""
        reasons = {name: stale_because(record, torch=torch, gfx=gfx, rocm=rocm) for name, record in installed.items()}
        return {name: because for name, because in reasons.items() if because}

    # ---- reading

    def _projects(self) -> tuple[Path, ...]:
        return _folders(self.root) if self.root.is_dir() else ()

    def _entries(self, project: Path) -> Iterator[StoredWheel]:
        for entry in _folders(project) if project.is_dir() else ():
            stored, reason = self._read(entry)
            if stored is not None and not reason:
                yield stored

    def _read(self, entry: Path) -> tuple[StoredWheel | None, str]:
        """An entry as it says it is: (wheel, "") or (None, why not). The hash is not computed here."""
        try:
            record: Any = msgspec.json.decode((entry / ENTRY).read_bytes())
            filename = record["filename"]
            provenance = from_json(record["provenance"])
            path = entry / filename
            if record["schema"] != _SCHEMA or path.parent != entry or not filename.endswith(".whl"):
                return None, "its entry names no wheel of its own folder"
            if provenance.fingerprint != entry.name or fingerprint(provenance.inputs) != entry.name:
                return None, "its entry belongs to another fingerprint"
            if path.is_symlink() or not path.is_file():
                return None, "its wheel is missing"
            refuse_unsafe(path)
            stored = StoredWheel(
                entry.name, path, str(record["sha256"]), int(record["size"]),
                float(record["created"]), float(record["seconds"]), provenance,
            )  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError, AttributeError, msgspec.MsgspecError) as problem:
            return None, f"its entry cannot be read ({type(problem).__name__})"
        return stored, ""

    # ---- safety

    def _check_root(self) -> None:
        if self._checked or not self.root.exists():
            return
        refuse_unsafe(self.root)
        refuse_unsafe_parents(self.root)
        self._checked = True

    def _make_root(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._check_root()


def _folders(place: Path) -> tuple[Path, ...]:
    """Visible sub-folders, sorted."""
    with os.scandir(place) as rows:
        names = [row.name for row in rows if not row.name.startswith(".") and row.is_dir(follow_symlinks=False)]
    return tuple(place / name for name in sorted(names))


def _changed(stored: StoredWheel) -> str:
    """Why the wheel's bytes are not those that were stored, or ""."""
    try:
        if stored.path.stat().st_size != stored.size:
            return "its size changed"
        return "" if sha256_of(stored.path) == stored.sha256 else "its bytes changed (sha256 differs)"
    except OSError as problem:
        return f"it cannot be read ({problem.strerror})"


def _weight(folder: Path) -> int:
    """Bytes in a folder's files."""
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(base) / name).lstat().st_size
            except OSError:
                continue
    return total
