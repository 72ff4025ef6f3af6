"""Reading of recipe files: bounded in size and depth, regular files only, UTF-8 only."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rocmpip.model import toml
from rocmpip.model.record import Struct, field
from rocmpip.recipe.faults import Faults

LARGEST = 256 * 1024
"""Bytes of one recipe file."""
DEEPEST = 12
"""Levels of tables and lists; the schema itself needs six."""
MOST_FILES = 2000
"""Recipe files of one folder."""


class Text(Struct, frozen=True):
    """One file's bytes as they were read once: what is checked is what is used."""

    path: Path
    content: bytes

    @property
    def digest(self) -> str:
        """sha256, hex."""
        return hashlib.sha256(self.content).hexdigest()


class Folder(Struct, frozen=True):
    """The recipe files of one layer's folder (or one file), read once."""

    path: Path
    texts: tuple[Text, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    """File name → sha256: what trust is bound to."""


def read_text(path: Path, faults: Faults) -> Text | None:
    """The bytes of ``path``, or None and a fault."""
    faults.file = str(path)
    try:
        # O_NONBLOCK: a fifo in the folder must not hang us before we see that it is one.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0))
    except (OSError, ValueError) as problem:
        faults.add("", f"cannot be read: {getattr(problem, 'strerror', None) or 'not a usable path'}")
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            faults.add("", "is not a regular file")
            return None
        with os.fdopen(os.dup(handle), "rb") as stream:
            content = stream.read(LARGEST + 1)
    except OSError as problem:
        faults.add("", f"cannot be read: {problem.strerror}")
        return None
    finally:
        os.close(handle)
    if len(content) > LARGEST:
        faults.add("", f"is larger than {LARGEST // 1024} KiB")
        return None
    return Text(path, content)


def read_folder(path: Path, faults: Faults) -> Folder:
    """All ``*.toml`` of a folder, by name; a file is a folder of one. A folder that is not there is empty."""
    if not path.is_dir():
        if path.exists() or path.is_symlink():
            text = read_text(path, faults)
            return Folder(path, (text,), {path.name: text.digest}) if text else Folder(path)
        return Folder(path)
    faults.file = str(path)
    try:
        names = sorted(entry.name for entry in os.scandir(path) if entry.name.endswith(".toml") and entry.name[0] != ".")
    except OSError as problem:
        faults.add("", f"cannot be read: {problem.strerror}")
        return Folder(path)
    if len(names) > MOST_FILES:
        faults.add("", f"holds {len(names)} recipes", f"at most {MOST_FILES}")
        names = names[:MOST_FILES]
    texts = tuple(text for name in names if (text := read_text(path / name, faults)))
    return Folder(path, texts, {text.path.name: text.digest for text in texts})


def _depth(value: object) -> int:
    """Levels of nesting, without recursion: the input may be built to break that."""
    deepest, stack = 0, [(value, 1)]
    while stack:
        item, level = stack.pop()
        deepest = max(deepest, level)
        if level > DEEPEST:
            return level
        if isinstance(item, dict):
            stack += [(inner, level + 1) for inner in item.values()]
        elif isinstance(item, list):
            stack += [(inner, level + 1) for inner in item]
    return deepest


def parse(text: Text, faults: Faults) -> dict[str, Any] | None:
    """The TOML data, or None and a fault."""
    faults.file = str(text.path)
    if b"\0" in text.content:
        faults.add("", "holds a NUL byte")
        return None
    try:
        data = toml.loads(text.content.decode("utf-8"))
    except UnicodeDecodeError as problem:
        faults.add("", f"is not UTF-8 text (byte {problem.start})")
        return None
    except RecursionError:
        faults.add("", f"is nested deeper than {DEEPEST} levels")
        return None
    except ValueError as problem:
        said = " ".join(ascii(str(problem))[1:-1].split())
        faults.add("", f"is not TOML: {said[:200]}")
        return None
    if _depth(data) > DEEPEST:
        faults.add("", f"is nested deeper than {DEEPEST} levels")
        return None
    return data
