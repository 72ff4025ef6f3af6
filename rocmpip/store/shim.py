"""Shims: executables named ``pip`` that start rocmpip, for scripts that call pip by name. They know themselves by a marker."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rocmpip.model.record import Struct

MARK = "# rocmpip shim: `rocmpip shim remove` takes it away"
KEPT = ".before-rocmpip"
"""What is added to the name of another's pip that stood in the way, while the shim is in its place."""

_VERSIONED = re.compile(r"^pip(\d+\.\d+)$")
_TEXT = """\
#!/bin/sh
{mark}
# Seen twice in one process, this is a circle: what it starts has come back to it.
if [ "${{_ROCMPIP_SHIM:-}}" = "$$" ]; then
  echo "rocmpip: error: the shim $0 starts itself instead of rocmpip" >&2
  echo "  next: put it right with: rocmpip shim install" {folder} >&2
  exit 2
fi
if [ ! -x {program} ]; then
  echo "rocmpip: error: the shim $0 belongs to" {program}", which is gone" >&2
  echo "  next: install rocmpip again, or remove the shim:" rm {folder}"/pip*" >&2
  exit 127
fi
export _ROCMPIP_SHIM=$$
{python}exec {command} "$@"
"""
_PYTHON = """\
# As with pip itself, the name says which Python is meant.
export ROCMPIP_PYTHON="${{ROCMPIP_PYTHON:-python{version}}}"
"""


class Found(Struct, frozen=True):
    """An executable named pip, pip3 or pipX.Y."""

    path: str
    ours: bool
    program: str = ""
    """What the shim starts; "" for another's pip."""

    @property
    def works(self) -> bool:
        """False for a shim whose rocmpip is gone."""
        return not self.ours or os.access(self.program, os.X_OK)


def names_for(python_version: str) -> tuple[str, ...]:
    """``pip``, ``pip3``, ``pip3.12``."""
    return ("pip", "pip3", "pip" + ".".join(python_version.split(".")[:2]))


def text_of(name: str, command: Sequence[str], folder: Path) -> str:
    """The shim's content. ``command`` starts rocmpip: its first word is an absolute path."""
    versioned = _VERSIONED.match(name)
    return _TEXT.format(
        mark=MARK,
        folder=shlex.quote(str(folder)),
        program=shlex.quote(command[0]),
        command=shlex.join(command),
        python=_PYTHON.format(version=versioned[1]) if versioned else "",
    )


def look(path: Path) -> Found | None:
    """What stands at ``path`` (links followed); None when nothing does. A link into nowhere is another's."""
    if not os.path.lexists(path):
        return None
    try:
        with path.open("rb") as stream:
            head = stream.read(4096).decode("utf-8", "replace")
    except OSError:
        head = ""
    if MARK not in head.splitlines()[1:2]:
        return Found(str(path), ours=False)
    started = re.search(r"^exec (.+) \"\$@\"$", head, re.MULTILINE)
    try:
        words = shlex.split(started[1]) if started else []
    except ValueError:
        words = []
    return Found(str(path), ours=True, program=words[0] if words else "")


def put(path: Path, text: str) -> None:
    """Write the shim whole or not at all; another's pip in its place is kept beside it. Raises OSError."""
    found = look(path)
    if found is not None and not found.ours:
        path.rename(path.with_name(path.name + KEPT))
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(temporary).chmod(0o755)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def take_away(path: Path) -> bool:
    """Remove a shim of ours and put back what it stood for; True when something was put back. Raises OSError."""
    kept = path.with_name(path.name + KEPT)
    if os.path.lexists(kept):
        kept.replace(path)
        return True
    path.unlink()
    return False


def pips_in(folder: Path) -> list[Found]:
    """Every pip, pip3 and pipX.Y in a folder, by name."""
    try:
        names = sorted(path.name for path in folder.iterdir() if re.fullmatch(r"pip(3(\.\d+)?)?", path.name))
    except OSError:
        return []
    return [found for name in names if (found := look(folder / name)) is not None]
