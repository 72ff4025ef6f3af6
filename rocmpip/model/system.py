"""What the operating system refuses, in words: a full disk or a read-only folder is no fault of rocmpip."""

from __future__ import annotations

import errno

from rocmpip.model.errors import RocmpipError

_PLACES = "ROCMPIP_STATE_DIR, ROCMPIP_CACHE_DIR and TMPDIR say where rocmpip writes"
_HINTS = {
    errno.ENOSPC: f"free some room there; {_PLACES}",
    errno.EDQUOT: f"free some of your quota; {_PLACES}",
    errno.EFBIG: "raise the limit on file sizes: ulimit -f",
    errno.EROFS: f"make it writable, or use another folder: {_PLACES}",
    errno.EACCES: f"make it yours, or use another folder: {_PLACES}",
    errno.EPERM: f"make it yours, or use another folder: {_PLACES}",
    errno.ENOTDIR: f"name a folder: {_PLACES}",
    errno.ENOENT: f"name a folder that can be made: {_PLACES}",
    errno.EEXIST: f"name a folder: {_PLACES}",
    errno.ELOOP: f"name a folder without a circle of links: {_PLACES}",
    errno.ENAMETOOLONG: f"use a shorter path: {_PLACES}",
    errno.EIO: "look at the disk or the network file system: the kernel reports a fault",
    errno.ESTALE: "the network file system went away: try again",
    errno.EMFILE: "raise the limit on open files: ulimit -n 1024",
    errno.ENFILE: "the whole system has too many open files: end other programs",
    errno.ENOMEM: "there is not enough memory: end other programs, or raise the limit",
    errno.EAGAIN: "there are too many processes or threads: end other programs, or raise ulimit -u",
}


def system_error(problem: BaseException) -> RocmpipError | None:
    """The error to tell (exit code 1), or None when it is not of this kind."""
    number, said, place = 0, "", ""
    if isinstance(problem, OSError):
        number, said = problem.errno or 0, problem.strerror or str(problem)
        place = problem.filename if isinstance(problem.filename, str) else ""
    elif isinstance(problem, MemoryError):
        number, said = errno.ENOMEM, "out of memory"
    elif isinstance(problem, RuntimeError) and "can't start new thread" in str(problem):
        number, said = errno.EAGAIN, "no new thread can be started"
    hint = _HINTS.get(number)
    if hint is None:
        return None
    said = said[:1].lower() + said[1:]
    told = RocmpipError(f"{place}: {said}" if place else said, hint=hint)
    told.slug = "system"
    return told
