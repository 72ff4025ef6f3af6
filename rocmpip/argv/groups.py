"""``--group [path:]name`` (PEP 735) and ``--requirements-from-script`` (PEP 723): requirements inside other files."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from rocmpip.argv.pep508 import parse_requirement
from rocmpip.model import toml
from rocmpip.model.errors import InputError
from rocmpip.model.packages import normalise

# PEP 723's reference expression for an inline block.
_BLOCK = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")


def split_group(value: str) -> tuple[str, str]:
    """``[path:]group`` → (path, group)."""
    path, colon, name = value.rpartition(":")
    return (path if colon else "pyproject.toml"), name


def group_requirements(path: str, group: str, load: Callable[[str], str]) -> list[str]:
    """The requirement texts of one dependency group, included groups resolved. Raises InputError in pip's words."""
    try:
        data = toml.loads(load(path))
    except toml.TomlError as problem:
        raise InputError(f"Error parsing {path}: {problem}") from None
    groups = data.get("dependency-groups")
    if groups is None:
        raise InputError(f"[dependency-groups] table was missing from '{path}'. Cannot resolve '--group' option.")
    if not isinstance(groups, dict):
        raise InputError(f"[dependency-groups] table was malformed in {path}. Cannot resolve '--group' option.")
    return _expand(groups, group, path, ())


def _expand(groups: dict[str, Any], group: str, path: str, above: tuple[str, ...]) -> list[str]:
    failed = f"[dependency-groups] resolution failed for '{group}' from '{path}'"
    name = normalise(group)
    same = [key for key in groups if normalise(key) == name]
    if len(same) > 1:
        raise InputError(f"{failed}: Duplicate dependency group names: {name} ({', '.join(same)})")
    if not same:
        raise InputError(f"{failed}: Dependency group '{group}' not found")
    if name in above:
        raise InputError(f"{failed}: Cyclic dependency group include while resolving {above[0]}: {' -> '.join((*above, name))}")
    members = groups[same[0]]
    if not isinstance(members, list):
        raise InputError(f"{failed}: Dependency group '{group}' is not a list")
    found: list[str] = []
    for member in members:
        if isinstance(member, str):
            try:
                parse_requirement(member)
            except ValueError as problem:
                raise InputError(f"{failed}: {problem}") from None
            found.append(member)
        elif isinstance(member, dict) and tuple(member) == ("include-group",) and isinstance(member["include-group"], str):
            found.extend(_expand(groups, member["include-group"], path, (*above, name)))
        else:
            raise InputError(f"{failed}: Invalid dependency group item: {member}")
    return found


def script_requirements(script: str, text: str) -> tuple[list[str], str]:
    """(requirement texts, requires-python) of a script's inline metadata. Raises InputError in pip's words."""
    blocks = [found for found in _BLOCK.finditer(text) if found["type"] == "script"]
    if len(blocks) > 1:
        raise InputError(f"Multiple 'script' blocks found in {script!r}")
    if not blocks:
        raise InputError(f"File does not contain 'script' metadata: {script!r}")
    content = "".join(
        line[2:] if line.startswith("# ") else line[1:] for line in blocks[0]["content"].splitlines(keepends=True)
    )
    try:
        data = toml.loads(content)
    except toml.TomlError as problem:
        raise InputError(f"Failed to parse TOML in {script!r}: {problem}") from None
    dependencies, requires = data.get("dependencies", []), data.get("requires-python", "")
    if (
        not isinstance(dependencies, list)
        or not all(isinstance(one, str) for one in dependencies)
        or not isinstance(requires, str)
    ):
        raise InputError(f"{script!r}: dependencies must be a list of strings and requires-python a string")
    return dependencies, requires
