"""PEP 508 texts as ``packaging`` reads them; it is loaded (15 ms) only for what is more than a name, extras and release numbers."""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:\[([A-Za-z0-9]+(?:,[A-Za-z0-9]+)*)\])?((?:[=!<>~].*)?)\Z")
_CLAUSE = re.compile(r"(?:(>=|<=|==|!=|>|<)[0-9]+(?:\.[0-9]+)*|(~=)[0-9]+(?:\.[0-9]+)+|(==|!=)[0-9]+(?:\.[0-9]+)*\.\*)\Z")


class Parsed(NamedTuple):
    """One requirement. ``specifier`` and ``marker`` are spelled as packaging spells them."""

    name: str
    extras: frozenset[str]
    specifier: str
    marker: str
    url: str


def parse_requirement(text: str) -> Parsed:
    """Raises ValueError with packaging's words for what is no requirement."""
    plain = _NAME.match(text)
    if plain is not None:
        name, extras, rest = plain.groups()
        clauses = [clause.strip() for clause in rest.split(",")] if rest else []
        read = [_CLAUSE.match(clause) for clause in clauses]
        # Two clauses of one operator may be one to packaging (==1 and ==1.0).
        operators = [one.group(one.lastindex or 0) for one in read if one is not None]
        if len(set(operators)) == len(clauses):
            return Parsed(name, frozenset(extras.split(",") if extras else ()), ",".join(sorted(clauses)), "", "")
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        found = Requirement(text)
    except InvalidRequirement as problem:
        raise ValueError(str(problem)) from None
    marker = str(found.marker) if found.marker else ""
    return Parsed(found.name, frozenset(found.extras), str(found.specifier), marker, found.url or "")


def check_marker(text: str) -> None:
    """Raises ValueError with packaging's words for what is no marker."""
    from packaging.markers import InvalidMarker, Marker

    try:
        Marker(text)
    except InvalidMarker as problem:
        raise ValueError(str(problem)) from None
