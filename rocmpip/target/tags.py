"""Markers and wheel tags of a target: computed by our ``packaging`` inside the target's interpreter, once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import packaging

from rocmpip.model.errors import UsageError
from rocmpip.model.machine import TargetEnv, TargetFacts
from rocmpip.plan.tags import cpython_texts

_MARK = "rocmpip-tags:"
_PROGRAM = f"""
import json, sys
from importlib.machinery import PathFinder
class Ours:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [{{root!r}}]) if name == "packaging" else None
sys.meta_path.insert(0, Ours)
from packaging.markers import default_environment
from packaging.tags import sys_tags
print("\\n{_MARK}" + json.dumps({{{{"markers": default_environment(), "tags": [str(tag) for tag in sys_tags()]}}}}))
"""


def native(target: TargetEnv) -> TargetFacts:
    """Markers and tags of the target. Raises InputError when its interpreter does not answer."""
    if target.own:
        from packaging import tags
        from packaging.markers import default_environment

        found, names = dict(default_environment().items()), [str(tag) for tag in tags.sys_tags()]
    else:
        from rocmpip.target.interpreter import run_program

        root = str(Path(packaging.__file__).parent.parent)
        data = run_program(target.python, _PROGRAM.format(root=root), _MARK, os.environ)
        found, names = data.get("markers"), data.get("tags")  # type: ignore[assignment]
        assert isinstance(found, dict) and isinstance(names, list)
    known = {str(key): str(value) for key, value in found.items() if key != "extra"}
    return TargetFacts(known, tuple(map(str, names)))


def supported(
    target: TargetEnv,
    native: Sequence[str],
    *,
    platforms: tuple[str, ...] = (),
    python_version: str = "",
    abis: tuple[str, ...] = (),
    implementation: str = "",
) -> list[str]:
    """Tags of the foreign target that pip's four options describe, on top of the target's ``native`` ones. Raises UsageError."""
    version = _version(python_version) or tuple(int(part) for part in target.version.split(".")[:2])
    interpreter = (implementation or "cp") + "".join(map(str, version[:2]))
    wanted = _expand(platforms) or list(dict.fromkeys(name.rpartition("-")[2] for name in native if not name.endswith("-any")))
    if implementation in ("", "cp") and not abis and len(version) == 2 and version >= (3, 2) and not _free_threaded(native):
        return cpython_texts((version[0], version[1]), wanted)
    from packaging import tags

    if interpreter.startswith("cp"):
        specific = tags.cpython_tags(python_version=version, abis=list(abis) or None, platforms=wanted)
    else:
        specific = tags.generic_tags(interpreter=interpreter, abis=list(abis) or None, platforms=wanted)
    common = tags.compatible_tags(python_version=version, interpreter=interpreter, platforms=wanted)
    return list(dict.fromkeys(str(tag) for tag in (*specific, *common)))


def _version(text: str) -> tuple[int, ...]:
    """pip's reading of --python-version: "3", "310", "3.10", "3.10.2" → at most (major, minor)."""
    if not text:
        return ()
    parts = text.split(".")
    if len(parts) > 3:
        raise _bad_version(text, "at most three version parts are allowed")
    if len(parts) == 1 and len(text) > 1:
        parts = [text[0], text[1:]]
    if not all(part.isdigit() for part in parts):
        raise _bad_version(text, "each version part must be an integer")
    return tuple(int(part) for part in parts[:2])


def _bad_version(text: str, reason: str) -> UsageError:
    return UsageError(f"--python-version error: invalid --python-version value: {text!r}: {reason}")


def _free_threaded(native: Sequence[str]) -> bool:
    """packaging then gives the foreign Python that ABI too."""
    return any("t-" in name for name in native[:1])


_OLDER = {"manylinux2014": ("manylinux2010", "manylinux1"), "manylinux2010": ("manylinux1",)}


def _expand(platforms: tuple[str, ...]) -> list[str]:
    """The platforms that pip takes for --platform: manylinux2014 and 2010 with their elders, macOS with its older releases."""
    found: list[str] = []
    for name in platforms:
        prefix, _, arch = name.partition("_")
        found.append(name)
        if prefix in _OLDER and arch in ("x86_64", "i686"):
            found.extend(f"{older}_{arch}" for older in _OLDER[prefix])
        if prefix == "macosx":
            major, minor, machine = (*name.split("_", 3)[1:], "", "")[:3]
            if major.isdigit() and minor.isdigit():
                from packaging import tags

                found.extend(tags.mac_platforms((int(major), int(minor)), machine))
    return list(dict.fromkeys(found))
