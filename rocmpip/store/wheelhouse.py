"""The wheelhouse: built wheels, each kept under the fingerprint of everything that changed its bytes.

Layout: ``ROOT/NAME/FINGERPRINT/`` holds one wheel and ``entry.json`` (the wheel's hash, size, provenance, build time). An
entry is written whole under ``ROOT/.new-…`` and renamed into place, so a reader sees all of it or nothing, whatever kills
the writer. ROOT is ``wheelhouse`` in rocmpip's state folder, not in a cache: a build may have cost hours.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rocmpip.model.errors import CheckFailed
from rocmpip.model.provenance import Provenance, stale_because
from rocmpip.model.record import Struct, msgspec
from rocmpip.store.wheelhouse_entry import ENTRY, NAME, SCHEMA, StoredWheel, changed, fingerprint, read_entry
from rocmpip.store.wheelhouse_files import copy_file, refuse_unsafe, refuse_unsafe_parents, sync_folder

__all__ = ["ENTRY", "Fault", "StoredWheel", "Wheelhouse", "fingerprint"]

_LEFTOVER_AGE = 6 * 3600.0


class Fault(Struct, frozen=True):
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
        stored, reason = read_entry(entry)
        if stored is not None and not reason:
            reason = changed(stored)
        if reason or stored is None:
            with self._locked():
                # Look again: another process may have been replacing it while we read.
                stored, reason = read_entry(entry)
                if stored is not None and not (reason or (reason := changed(stored))):
                    return stored
                if not entry.exists():
                    return None
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
        provenance = msgspec.structs.replace(provenance, code_objects=code_objects or provenance.code_objects)
        name = provenance.inputs.name
        if not NAME.fullmatch(name) or provenance.fingerprint != fingerprint(provenance.inputs):
            raise CheckFailed(f"{wheel.name} does not go into the wheelhouse", why="its record does not match its fingerprint")
        self._make_root()
        project = self.root / name
        project.mkdir(mode=0o700, exist_ok=True)
        refuse_unsafe(project)
        new = Path(tempfile.mkdtemp(prefix=".new-", dir=self.root))
        try:
            digest = copy_file(wheel, new / wheel.name)
            record = {
                "schema": SCHEMA,
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
            with self._locked():
                project.mkdir(mode=0o700, exist_ok=True)  # a prune may have removed it, empty as it was
                self._move_in(new, entry, replace)
                stored, reason = read_entry(entry)
        finally:
            shutil.rmtree(new, ignore_errors=True)
        if stored is None:
            raise CheckFailed(f"the wheelhouse could not keep {wheel.name}", why=reason)
        return stored

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """One process at a time moves entries. The lock goes with its process, so a killed one blocks nobody; readers need none,
        and a file system without locks (or a wheelhouse that we may not write) does without."""
        try:
            descriptor = os.open(self.root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            yield
            return
        try:
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _move_in(self, new: Path, entry: Path, replace: bool) -> None:
        """Rename the finished folder into place, unless a sound one is there and may stay. Called under the lock."""
        if entry.exists():
            there, reason = read_entry(entry)
            if not replace and there is not None and not (reason or changed(there)):
                return
            self._set_aside(entry)
        new.rename(entry)
        sync_folder(entry.parent)

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
        with self._locked():
            self._set_aside(stored.path.parent)

    # ---- keeping house

    def verify(self) -> tuple[tuple[StoredWheel, ...], tuple[Fault, ...]]:
        """(sound wheels, faults): every entry read and hashed again. Nothing is changed."""
        self._check_root()
        sound: list[StoredWheel] = []
        faults: list[Fault] = []
        for project in self._projects():
            for entry in _folders(project):
                stored, reason = read_entry(entry)
                if stored is not None and not reason:
                    reason = changed(stored)
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
            self._drop_damaged(Path(fault.path))
        now = time.time()
        doomed = [
            stored
            for stored in sound
            if (older_than is not None and now - stored.created > older_than) or (keep is not None and not keep(stored))
        ]
        for stored in doomed:
            freed += stored.size
            self.remove(stored)
        with self._locked():
            for project in self._projects():
                # Only an empty one goes: rmdir refuses the rest.
                with contextlib.suppress(OSError):
                    project.rmdir()
        return tuple(doomed), freed

    def _drop_damaged(self, entry: Path) -> None:
        """Delete an entry that is still damaged now that nobody else moves it."""
        with self._locked():
            stored, reason = read_entry(entry)
            if stored is None or reason or changed(stored):
                self._set_aside(entry)

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
            stored, reason = read_entry(entry)
            if stored is not None and not reason:
                yield stored

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
