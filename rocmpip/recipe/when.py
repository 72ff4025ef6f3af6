"""Matching of ``when`` conditions.

Specifiers of versions, Pythons and torch are PEP 440 text (pre-releases count, a local label in a version is ignored).
ROCm versions are numbers, compared at the precision that the condition writes: ``<=7.2`` holds for 7.2.1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from fnmatch import fnmatchcase
from functools import lru_cache

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from rocmpip.model.recipe import RecipeContext
from rocmpip.model.record import replace
from rocmpip.model.rocm import RocmVersion
from rocmpip.recipe.schema import When

_ROCM_TERM = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*(\d+(?:\.\d+){0,2})(?:\.\*)?\s*", re.ASCII)
_GFX_PATTERN = re.compile(r"gfx[0-9a-f*?\[\]-]{1,20}(?:generic)?", re.ASCII)


class Match(Enum):
    NO = "no"
    YES = "yes"
    TORCH_UNKNOWN = "torch unknown"
    """Everything else holds, and which torch it will be is not known yet."""


@lru_cache(maxsize=512)
def _specifiers(text: str) -> SpecifierSet:
    return SpecifierSet(text, prereleases=True)


@lru_cache(maxsize=512)
def _rocm_terms(text: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    terms = []
    for part in text.split(","):
        match = _ROCM_TERM.fullmatch(part)
        if match is None:
            raise ValueError(f"{part.strip()!r} is not a bound on a ROCm version, such as >=6.4")
        terms.append((match.group(1), tuple(int(number) for number in match.group(2).split("."))))
    return tuple(terms)


def specifier_fault(text: str) -> str:
    """What is wrong with a PEP 440 specifier, or ""."""
    try:
        _specifiers(text)
    except (InvalidSpecifier, ValueError):
        return "is not a version specifier such as >=2.6,<2.9"
    return ""


def version_fault(text: str) -> str:
    """What is wrong with one PEP 440 version, or ""."""
    try:
        Version(text)
    except InvalidVersion:
        return "is not a version such as 2.8.3.post2"
    return ""


def rocm_fault(text: str) -> str:
    """What is wrong with a bound on ROCm versions, or ""."""
    try:
        _rocm_terms(text)
    except ValueError:
        return "is not a bound on ROCm versions such as >=6.4,<7"
    return ""


def gfx_fault(text: str) -> str:
    """What is wrong with a gfx name or glob, or ""."""
    return "" if _GFX_PATTERN.fullmatch(text) else "is not a gfx name or glob such as gfx942 or gfx11*"


def version_matches(specifier: str, version: str) -> bool:
    """True when ``version`` (local label ignored) is in ``specifier``; an unreadable version is in none."""
    try:
        parsed = Version(version.partition("+")[0])
    except InvalidVersion:
        return False
    return _specifiers(specifier).contains(parsed, prereleases=True)


def rocm_matches(bounds: str, version: RocmVersion) -> bool:
    """Compare at the written precision: 7.2.1 is ``==7.2``, ``<=7.2`` and not ``>7.2``."""
    whole = (*version.release, 0, 0, 0)[:3]
    for operator, bound in _rocm_terms(bounds):
        seen = whole[: len(bound)]
        holds = {
            ">=": seen >= bound,
            "<=": seen <= bound,
            ">": seen > bound,
            "<": seen < bound,
            "==": seen == bound,
            "!=": seen != bound,
        }[operator]
        if not holds:
            return False
    return True


def _name(target: str) -> str:
    return target.partition(":")[0]


def _in(target: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(_name(target), pattern) for pattern in patterns)


def _gfx_holds(when: When, targets: Sequence[str]) -> bool:
    if when.gfx and not (targets and all(_in(target, when.gfx) for target in targets)):
        return False
    if when.gfx_any and not any(_in(target, when.gfx_any) for target in targets):
        return False
    return not when.gfx_outside or any(not _in(target, when.gfx_outside) for target in targets)


def match(when: When, version: str | None, context: RecipeContext, backend: str) -> Match:
    """Does ``when`` hold? ``version`` None: not known yet, its condition is taken to hold (for steering torch)."""
    if when.version and version is not None and not version_matches(when.version, version):
        return Match.NO
    if when.rocm and (context.rocm is None or not rocm_matches(when.rocm, context.rocm)):
        return Match.NO
    if when.python and not (context.python and version_matches(when.python, context.python)):
        return Match.NO
    if when.backend and backend not in when.backend:
        return Match.NO
    if not _gfx_holds(when, context.gfx):
        return Match.NO
    if when.torch:
        if not context.torch:
            return Match.TORCH_UNKNOWN
        if not version_matches(when.torch, context.torch):
            return Match.NO
    return Match.YES


def without_torch(when: When) -> When:
    """The same conditions, torch's left out."""
    return replace(when, torch="")
