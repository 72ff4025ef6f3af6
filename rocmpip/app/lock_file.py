"""A lock as a file: in either form, read, compared, and written in one step."""

from __future__ import annotations

import os
from pathlib import Path

from rocmpip.lock import text
from rocmpip.lock.model import Lock
from rocmpip.lock.text import Written, is_pylock
from rocmpip.model.errors import CheckFailed, InputError


def existing(path: str) -> str:
    """The text of a lock that may be there; "" for none. Raises InputError when it cannot be read."""
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path} cannot be read", why=getattr(problem, "strerror", "") or str(problem)) from None


def read_lock(content: str, path: str) -> Written:
    """A lock in either form. Raises InputError for a pylock file that is none."""
    if not is_pylock(path):
        return text.read(content)
    from rocmpip.lock import pylock

    return pylock.read(content, path)


def render(lock: Lock, output: str) -> str:
    """The lock's text in the form that the file's name asks for."""
    if not is_pylock(output):
        return text.write(lock, path=output)
    from rocmpip.lock import pylock

    return pylock.write(lock, path=output)


def check_lock(old: Written, new: Written, output: str) -> None:
    """Raises CheckFailed with the differences."""
    from rocmpip.lock.compare import differences

    found = differences(old, new)
    if found:
        raise CheckFailed(
            f"{output} no longer fits",
            why=f"{len(found)} differences",
            hint="lock again: the same command without --check",
            details=found,
        )


def write_lock(path: Path, content: str, old: str) -> None:
    """In one step, and not at all when nothing changed."""
    if content == old:
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(content, encoding="utf-8", newline="\n")
        if path.exists():
            temporary.chmod(path.stat().st_mode & 0o777)
        temporary.replace(path)
    except OSError as problem:
        temporary.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written", why=problem.strerror or str(problem)) from None


def as_json(lock: Lock, output: str) -> dict[str, object]:
    """One row of ``result.locks[]``."""
    return {
        "file": output,
        "coordinates": dict(lock.coordinates.rows()),
        "install": text.install_command(lock, output),
        "packages": [
            {
                "name": entry.name,
                "version": entry.version,
                "hashes": list(entry.hashes),
                "via": list(entry.via),
                "recipe": entry.recipe,
                "url": entry.url,
            }
            for entry in lock.entries
        ],
    }
