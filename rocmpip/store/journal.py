"""The notebook of failed and mended builds and installs: ``journal.jsonl`` in the state folder.

Append-only JSON lines, mode 0600. A record is at most 4 KiB and goes out in one ``write`` on an ``O_APPEND`` file, so that any
number of processes write at once without a lock and a kill in the middle costs at most the record being written. At ``LIMIT``
bytes the file becomes ``journal.1.jsonl`` (the one before it goes): the notebook never holds more than twice that.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rocmpip.model.errors import InputError, Refused
from rocmpip.model.record import replace
from rocmpip.store.journal_entry import SCHEMA, Entry, decode, encode, entries_of, record_of
from rocmpip.store.journal_file import FILE, OLDER
from rocmpip.store.journal_text import alike, kept_variables, tidy, words_of

LIMIT = 4 * 1024 * 1024
LARGEST = 4096
"""Bytes of a record: what Linux writes to a local file in one piece."""
_HINT = "set ROCMPIP_STATE_DIR to a folder of your own"


class Journal:
    """The journal of one state folder. Reading changes nothing; the folder is made when something is written."""

    def __init__(self, state_dir: Path | str, *, home: str = "", limit: int = LIMIT) -> None:
        self.folder = Path(state_dir).expanduser()
        self.path = self.folder / FILE
        self._home = home
        self._limit = limit

    # Writing

    def record(
        self,
        *,
        command: str,
        error: str,
        package: str = "",
        version: str = "",
        diagnosis: str = "",
        family: str = "",
        cause: str = "",
        fix: tuple[str, ...] = (),
        gfx: tuple[str, ...] = (),
        rocm: str = "",
        driver: str = "",
        torch: str = "",
        python: str = "",
        env: Mapping[str, str] | None = None,
    ) -> tuple[str, Entry | None]:
        """Write down a failure; (its id, the earlier entry that looks like it). Raises Refused when nothing can be written.

        A failure that is in the book already (same package, same words) is counted there instead of written again.
        """
        earlier = self.similar(error, package=package)
        if earlier is not None and not earlier.origin and earlier.package == package and earlier.version == version:
            self._append({"type": "again", "of": earlier.id, "at": _now()})
            return earlier.id, earlier
        entry = Entry(
            id=secrets.token_hex(4),
            at=_now(),
            command=tidy(command, self._home, 200),
            package=tidy(package, self._home, 100),
            version=tidy(version, self._home, 100),
            error=tidy(error, self._home),
            diagnosis=diagnosis,
            family=family,
            cause=tidy(cause, self._home, 400),
            fix=tuple(tidy(one, self._home, 200) for one in fix[:6]),
            gfx=gfx[:16],
            rocm=rocm,
            driver=tidy(driver, longest=60),
            torch=torch,
            python=python,
            env=kept_variables(env or {}, self._home),
        )
        self.add(entry)
        return entry.id, earlier

    def add(self, entry: Entry) -> None:
        """Write an entry as it is (an imported one); a long one loses its variables first, then the ends of its texts."""
        for smaller in (entry, replace(entry, env={}), _cut(entry, 160), _cut(entry, 60)):
            line = {**record_of(smaller)}
            if len(encode(line)) <= LARGEST:
                self._append(line)
                return
        raise Refused(f"the journal entry {entry.id} is too large")

    def mended(self, entry_id: str, did: str) -> None:
        """Write down that what failed works now, and what was done. Raises InputError for an unknown id."""
        self._append({"type": "mended", "of": self.find(entry_id).id, "text": tidy(did, self._home), "at": _now()})

    def note(self, entry_id: str, text: str) -> Entry:
        """Add a person's words to an entry, which is returned as it was. Raises InputError for an unknown id or no words."""
        entry = self.find(entry_id)
        text = tidy(text, self._home, 800)
        if not text:
            raise InputError("the note is empty")
        self._append({"type": "note", "of": entry.id, "text": text, "at": _now()})
        return entry

    def _append(self, record: Mapping[str, Any]) -> None:
        line = encode({"v": SCHEMA, **record})
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._turn_page()
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            handle = os.open(self.path, flags, 0o600)
            try:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise Refused(f"{self.path} is not a regular file", hint=_HINT)
                if os.write(handle, line) != len(line):
                    raise Refused(f"{self.path} took only a part of the entry", hint="is the disk full?")
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as problem:
            raise Refused(f"{self.path} cannot be written: {problem.strerror}", hint=_HINT) from None

    def _turn_page(self) -> None:
        """Begin a new file when this one is full. One process does it; the others write on where they are."""
        try:
            if self.path.lstat().st_size < self._limit:
                return
        except FileNotFoundError:
            return
        handle = os.open(self.folder / "journal.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Looked at again: another process may have turned the page between.
            if self.path.lstat().st_size >= self._limit:
                self.path.replace(self.folder / OLDER)
        except (BlockingIOError, FileNotFoundError):
            pass
        finally:
            os.close(handle)

    # Reading

    def entries(self) -> list[Entry]:
        """All entries, oldest first. Torn and foreign lines are passed over; a missing journal is an empty one."""
        return entries_of(self._records())

    def _records(self) -> Iterator[dict[str, Any]]:
        for name in (OLDER, FILE):
            for line in _lines(self.folder / name, 4 * self._limit):
                record = decode(line)
                if record is not None:
                    yield record

    def find(self, entry_id: str) -> Entry:
        """The entry whose id begins with ``entry_id``. Raises InputError when there is none or more than one."""
        wanted = entry_id.strip().lower()
        found = [one for one in self.entries() if one.id.startswith(wanted)] if len(wanted) >= 3 else []
        if len(found) == 1:
            return found[0]
        if not found:
            raise InputError(
                f"the journal has no entry {tidy(entry_id, longest=40)!r}", hint="rocmpip journal list shows the ids"
            )
        raise InputError(
            f"{len(found)} entries begin with {wanted!r}", hint="give more of the id: " + ", ".join(one.id for one in found[:6])
        )

    def search(self, text: str) -> list[Entry]:
        """Entries that hold every word of ``text`` anywhere, oldest first. Words are plain text."""
        words = text.lower().split()
        return [one for one in self.entries() if all(word in _all_text(one) for word in words)]

    def similar(self, error: str, *, package: str = "") -> Entry | None:
        """The entry that looks like ``error``: one of the same package first, then one that was mended, then the newest."""
        line = tidy(error, self._home)
        words = words_of(line)
        found = [
            (one.package == package, one.worked or bool(one.notes), number, one)
            for number, one in enumerate(self.entries())
            if (one.origin and len(one.error) >= 8 and one.error in line) or alike(words, words_of(one.error))
        ]
        return max(found, key=lambda row: row[:3])[3] if found else None

    def open_failures(self, package: str) -> list[Entry]:
        """Own entries of ``package`` that no success followed, oldest first."""
        return [one for one in self.entries() if one.package == package and not one.worked and not one.origin]


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _all_text(entry: Entry) -> str:
    parts = [str(value) for key, value in entry.as_json().items() if key not in ("worked", "seen")]
    return " ".join(parts).lower()


def _cut(entry: Entry, longest: int) -> Entry:
    texts: dict[str, Any] = {key: getattr(entry, key)[:longest] for key in ("command", "package", "version", "error", "cause")}
    lists: dict[str, Any] = {key: tuple(one[:longest] for one in getattr(entry, key)[:4]) for key in ("fix", "notes", "did")}
    return replace(entry, env={}, gfx=entry.gfx[:4], **texts, **lists)


def _lines(path: Path, most: int) -> Iterator[bytes]:
    """The lines of a file, ``most`` bytes at the most; a file that cannot be read has none."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as stream:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return
            left = most
            while left > 0 and (line := stream.readline(64 * 1024)):
                left -= len(line)
                if len(line) > 2:
                    yield line
