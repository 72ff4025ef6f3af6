"""What a recipe may name: environment variables, programs, ulimits (``data/allowed.toml``), and who provides a need (``data/needs.toml``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any

from rocmpip.model import toml
from rocmpip.model.record import Struct

_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,99}", re.ASCII)


class Allowed(Struct, frozen=True):
    """The allow-lists of ``data/allowed.toml``."""

    common: frozenset[str]
    patterns: tuple[str, ...]
    never: tuple[str, ...]
    programs: tuple[str, ...]
    ulimits: tuple[str, ...]

    def variable(self, name: str, package: str) -> str:
        """ "" when a recipe of ``package`` may set ``name``, else why not."""
        if not _NAME.fullmatch(name):
            return "is not a variable name that a recipe may set"
        if any(fnmatchcase(name, pattern) for pattern in self.never):
            return "may never be set by a recipe: it changes what code is loaded, run or fetched"
        prefix = re.sub(r"[^A-Z0-9]+", "_", package.upper()).strip("_") + "_"
        if name in self.common or any(fnmatchcase(name, pattern) for pattern in self.patterns):
            return ""
        if len(prefix) > 2 and name.startswith(prefix):
            return ""
        return f"is not among the variables that a recipe may set (see rocmpip/recipe/data/allowed.toml; {prefix}* is free for this package)"


def _data(name: str) -> dict[str, Any]:
    return toml.loads((resources.files("rocmpip.recipe") / "data" / name).read_text(encoding="utf-8"))


@cache
def allowed() -> Allowed:
    """The shipped allow-lists, read once."""
    data = _data("allowed.toml")
    environment = data["environment"]
    return Allowed(
        common=frozenset(environment["common"]),
        patterns=tuple(environment["patterns"]),
        never=tuple(environment["never"]),
        programs=tuple(data["prepare"]["programs"]),
        ulimits=tuple(data["ulimits"]["names"]),
    )


@cache
def providers() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """kind → name → {"apt", "dnf", "therock"}; kinds are tool, header, cmake, library."""
    data = _data("needs.toml")
    return {kind: data[kind] for kind in ("tool", "header", "cmake", "library")}


@cache
def groups() -> Mapping[str, tuple[str, ...]]:
    """Named lists of CMake packages: ``@torch`` in a recipe."""
    return {name: tuple(members) for name, members in _data("needs.toml")["group"].items()}
