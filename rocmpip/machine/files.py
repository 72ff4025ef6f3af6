"""Files of the machine, read under a root folder, never without bounds.

With a root every path is resolved here as ``chroot`` would do it: absolute links and ``..`` stay inside. Paths in notes
and sources are the machine's own, without the root.
"""

# Plain os calls: pathlib alone costs a good part of the time that detection may take.
# ruff: noqa: PTH114, PTH115, PTH116, PTH118, PTH208
from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

LIMIT = 64 * 1024
"""Bytes read of any one file: sysfs and version files are far smaller."""

_MAX_LINKS = 40
# FIFOs and devices in place of files must not block the open.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class Tree:
    """Bounded, non-blocking reads under ``root`` ("" for the machine itself)."""

    def __init__(self, root: str | None = None) -> None:
        self.root = os.path.realpath(root) if root else ""
        self.notes: list[str] = []
        """Oddities met on the way: broken files, loops. In reading order, without repeats."""
        self._folders: dict[str, str] = {"/": self.root + "/" if self.root else "/"}

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def host(self, path: str) -> str:
        """Where ``path`` really is on this host. Raises OSError (ELOOP, ENOENT, EACCES)."""
        _no_nul(path)
        if not self.root:
            return path
        folder, name = os.path.split(path.rstrip("/") or "/")
        known = self._folders.get(folder)
        if known is None:
            known = self._walk(folder)
            self._folders[folder] = known
        if name in ("", ".", ".."):
            return self._walk(path)
        candidate = os.path.join(known, name)
        try:
            os.readlink(candidate)
        except OSError:
            return candidate
        return self._walk(path)

    def _walk(self, path: str) -> str:
        """Resolve all links of an absolute machine path inside the root."""
        waiting = [part for part in path.split("/") if part not in ("", ".")][::-1]
        done: list[str] = []
        links = 0
        while waiting:
            part = waiting.pop()
            if part == "..":
                if not done:
                    self.note(f"{path}: a link climbs above the root folder; it is kept inside")
                else:
                    done.pop()
                continue
            here = "/".join((self.root, *done, part))
            try:
                target = os.readlink(here)
            except OSError as problem:
                if problem.errno not in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):
                    raise
                done.append(part)
                continue
            links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if target.startswith("/"):
                done.clear()
            waiting.extend([step for step in target.split("/") if step not in ("", ".")][::-1])
        return "/".join((self.root, *done)) or "/"

    def real(self, path: str) -> str:
        """The machine path with all links resolved ("" when it cannot be): two names of one folder give the same."""
        try:
            _no_nul(path)
            resolved = self._walk(path) if self.root else os.path.realpath(path, strict=True)
            if self.root:
                os.stat(resolved)
        except OSError:
            return ""
        return (resolved[len(self.root) :] or "/") if self.root else resolved

    def bytes_of(self, path: str, limit: int = LIMIT) -> bytes:
        """The first ``limit`` bytes of a regular file; more is noted. Raises OSError, also for what is no file."""
        handle = os.open(self.host(path), _FLAGS)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError(errno.EINVAL, "not a regular file", path)
            data = os.read(handle, limit)
            # Pseudo files may answer in pieces.
            while data and len(data) <= limit:
                more = os.read(handle, limit + 1 - len(data))
                if not more:
                    break
                data += more
        finally:
            os.close(handle)
        if len(data) > limit:
            self.note(f"{path} is larger than {limit // 1024} KiB: only its beginning was read")
        return data[:limit]

    def text(self, path: str, limit: int = LIMIT) -> str | None:
        """The file as text (undecodable bytes replaced), or None: with a note, unless it is only missing."""
        try:
            return self.bytes_of(path, limit).decode("utf-8", "replace")
        except OSError as problem:
            self.complain(path, problem)
            return None

    def complain(self, path: str, problem: OSError) -> None:
        """Note a failure to read, unless it only says that nothing is there."""
        if problem.errno not in (errno.ENOENT, errno.ENOTDIR):
            self.note(f"{path} cannot be read: {reason(problem)}")

    def names(self, path: str) -> list[str]:
        """Sorted names in a folder; empty (with a note unless it is missing) when it cannot be listed."""
        try:
            return sorted(os.listdir(self.host(path)))
        except OSError as problem:
            self.complain(path, problem)
            return []

    def _is(self, path: str, test: Callable[[str], bool]) -> bool:
        try:
            return test(self.host(path))
        except OSError as problem:
            self.complain(path, problem)
            return False

    def exists(self, path: str) -> bool:
        return self._is(path, os.path.exists)

    def leads_nowhere(self, path: str) -> bool:
        """True for a link whose end is missing (or never reached)."""
        folder, name = os.path.split(path)
        return self._is(folder, lambda where: os.path.islink(os.path.join(where, name))) and not self.exists(path)

    def is_folder(self, path: str) -> bool:
        return self._is(path, os.path.isdir)

    def allows(self, path: str, mode: int) -> bool:
        return self._is(path, lambda where: os.access(where, mode))


def _no_nul(path: str) -> None:
    """A path out of a broken file may hold a zero byte: no file has such a name."""
    if "\0" in path:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def reason(problem: OSError) -> str:
    """The system's words for an error, without the path (which may be outside the root)."""
    return problem.strerror or type(problem).__name__
