"""Folder safety and hashing for the wheelhouse."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from rocmpip.model.errors import Refused
from rocmpip.model.regular import regular

_BLOCK = 1 << 20


def sha256_of(path: Path) -> str:
    """Hex digest of a file, read in 1 MiB blocks."""
    digest = hashlib.sha256()
    with open(path, "rb", opener=regular) as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def refuse_unsafe(path: Path) -> None:
    """Raise Refused when others could put files where ``path`` stands: a folder (or a file) they own or may write.

    A wheel is code that will run as this user, so its place must be this user's alone (or root's).
    """
    try:
        info = path.stat()
    except FileNotFoundError:
        return
    reason = _unsafe(info)
    if reason:
        raise Refused(
            f"the wheelhouse {path} is not used: {reason}",
            why="whoever can write there could put code into your environment",
            hint=f"chmod go-w {path} when it is yours, or set ROCMPIP_STATE_DIR to a folder of your own",
        )


def refuse_unsafe_parents(path: Path) -> None:
    """The same for the folders above: one that others may write (without the sticky bit) lets them replace ours."""
    for parent in path.resolve().parents:
        info = parent.stat()
        if info.st_mode & stat.S_IWOTH and not info.st_mode & stat.S_ISVTX:
            raise Refused(
                f"the wheelhouse {path} is not used: anyone may rename what stands in {parent}",
                why="whoever can write there could put code into your environment",
                hint="set ROCMPIP_STATE_DIR to a folder of your own",
            )


def _unsafe(info: os.stat_result) -> str:
    if info.st_uid not in (os.getuid(), 0):
        return f"it belongs to user {info.st_uid}"
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write to it (mode {stat.S_IMODE(info.st_mode):04o})"
    return ""


def sync_folder(path: Path) -> None:
    """Make names created in a folder survive a power cut; a file system that cannot is left as it is."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def copy_file(source: Path, target: Path) -> str:
    """Copy to a new file (mode 0644), flushed to disk; the digest of what was written."""
    digest = hashlib.sha256()
    with open(source, "rb", opener=regular) as reader, target.open("xb") as writer:
        while block := reader.read(_BLOCK):
            digest.update(block)
            writer.write(block)
        writer.flush()
        os.fsync(writer.fileno())
    target.chmod(0o644)
    return digest.hexdigest()
