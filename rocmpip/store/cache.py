"""A cache of small blobs on disk, shared by any number of processes: parsed listings and metadata.

It never raises and never blocks: what cannot be read is a miss, what cannot be written is told once. Every file carries a
checksum, and gets its name only when it is complete, so a process killed at any moment leaves nothing that is believed.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import stat
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

_MAGIC = b"rpc1"
_DAY = 86400.0
_TEMPORARY = ".new-"


class PageCache:
    """``folder`` is ours alone (0700, files 0600). Keys are hex digests; kinds are plain words.

    ``limit`` is in bytes: the oldest files go when there is more. ``warn`` is called at most once.
    """

    def __init__(
        self, folder: Path, *, limit: int = 1 << 30, warn: Callable[[str], None] | None = None, readonly: bool = False
    ) -> None:
        self._folder = folder
        self._limit = limit
        self._warn = warn
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._made: set[Path] = set()
        self._written = 0
        self._trimmed = False
        self._readable = True
        self._writable = not readonly
        self._told = False
        self._check_owner()

    def get(self, kind: str, key: str) -> bytes | None:
        """What ``put`` stored, whole and unharmed; else None."""
        if not self._readable:
            return None
        path = self._path(kind, key)
        try:
            # Not blocking: a pipe in this place must not hold us up.
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                return None
            data = _read(handle, about.st_size)
        except OSError:
            return None
        finally:
            os.close(handle)
        body = data[8:]
        if data[:4] != _MAGIC or len(data) < 8 or zlib.crc32(body) != int.from_bytes(data[4:8], "big"):
            self._remove(path)
            return None
        if self._writable and time.time() - about.st_mtime > _DAY:
            # The time of the last use decides what goes first.
            with contextlib.suppress(OSError):
                os.utime(path)
        return body

    def put(self, kind: str, key: str, data: bytes) -> None:
        """Store ``data``; without effect when the disk is full or read-only."""
        if not self._writable or len(data) > self._limit // 4:
            return
        path = self._path(kind, key)
        temporary = path.with_name(f"{_TEMPORARY}{os.getpid()}-{next(self._numbers)}")
        try:
            self._make(path.parent)
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(_MAGIC + zlib.crc32(data).to_bytes(4, "big") + data)
                temporary.replace(path)
            except BaseException:
                self._remove(temporary)
                raise
        except FileNotFoundError:
            # Someone cleared the cache while we wrote: nothing is lost but this one entry.
            self._made.clear()
            return
        except OSError as problem:
            self._writable = False
            self._tell(f"the cache {self._folder} is not used for writing: {problem.strerror or problem}")
            return
        self._grown(len(data))

    def clear(self) -> None:
        """Remove every entry."""
        for path, _ in list(self._entries()):
            self._remove(path)

    def size(self) -> int:
        """Bytes in use."""
        return sum(about.st_size for _, about in self._entries())

    def _path(self, kind: str, key: str) -> Path:
        return self._folder / kind / key[:2] / key[2:]

    def _check_owner(self) -> None:
        """A folder that others can write to could tell us anything: such a cache is not used at all."""
        try:
            about = self._folder.stat()
        except FileNotFoundError:
            return
        except OSError as problem:
            self._off(f"the cache {self._folder} cannot be used: {problem.strerror or problem}")
            return
        if not stat.S_ISDIR(about.st_mode):
            self._off(f"the cache {self._folder} is no folder and is not used")
        elif about.st_uid not in (os.geteuid(), 0):
            self._off(f"the cache {self._folder} belongs to another user and is not used")
        elif about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            self._off(f"the cache {self._folder} can be written by others and is not used (chmod 700 mends it)")

    def _off(self, reason: str) -> None:
        self._readable = self._writable = False
        self._tell(reason)

    def _tell(self, text: str) -> None:
        with self._lock:
            told, self._told = self._told, True
        if not told and self._warn is not None:
            self._warn(text)

    def _make(self, folder: Path) -> None:
        if folder in self._made:
            return
        for level in (self._folder, folder.parent, folder):
            level.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._made.add(folder)

    def _grown(self, count: int) -> None:
        with self._lock:
            self._written += count
            due = self._written > self._limit // 8 or not self._trimmed
            if due:
                self._written, self._trimmed = 0, True
        if due:
            self._trim()

    def _trim(self) -> None:
        """Remove the oldest until three quarters of the limit are in use; one process at a time, at most every minute."""
        try:
            lock = os.open(self._folder / ".trim", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            now = time.time()
            if os.fstat(lock).st_size and now - os.fstat(lock).st_mtime < 60 and self._limit > 1 << 20:
                return
            os.pwrite(lock, b"x", 0)
            entries = sorted(self._entries(), key=lambda entry: entry[1].st_mtime)
            total = sum(about.st_size for _, about in entries)
            over = total > self._limit
            for path, about in entries:
                stale = path.name.startswith(_TEMPORARY) and now - about.st_mtime > 3600
                if stale or (over and total > self._limit * 3 // 4):
                    self._remove(path)
                    total -= about.st_size
        except OSError:
            return
        finally:
            os.close(lock)

    def _entries(self) -> Iterator[tuple[Path, os.stat_result]]:
        for kind in _folders(self._folder):
            for part in _folders(kind):
                try:
                    with os.scandir(part) as rows:
                        for row in rows:
                            yield Path(row.path), row.stat(follow_symlinks=False)
                except OSError:
                    continue

    @staticmethod
    def _remove(path: Path) -> None:
        with contextlib.suppress(OSError):
            path.unlink()


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as rows:
            return [Path(row.path) for row in rows if row.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _read(handle: int, size: int) -> bytes:
    pieces = []
    while size > 0 and (piece := os.read(handle, size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
