"""PEP 508 requirements at resolver speed, each distinct text parsed once.

The regular expression reads the shapes that nearly all metadata has; everything else is read by ``packaging``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rocmpip.model.packages import RequirementLine, normalise
from rocmpip.plan.versions import Spec, spec

_SIMPLE = re.compile(
    r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)"  # name
    r"\s*(?:\[([A-Za-z0-9._,\s-]*)\])?"  # extras
    r"\s*(\(?)((?:\s*(?:===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+\s*,?)*)(\)?)"  # clauses, old style in brackets
    r"\s*(?:;\s*(.+))?\Z",
    re.DOTALL,
)
_NO_EXTRAS: frozenset[str] = frozenset()


class Need:
    """One requirement on one project.

    ``name`` and ``extras`` are normalised. ``marker`` has been taken into account by whoever made the need.
    ``line`` is what a person wrote, for direct requirements and constraints.
    """

    __slots__ = ("extras", "line", "marker", "name", "reason", "spec", "text", "url")

    def __init__(
        self,
        name: str,
        spec: Spec,
        extras: frozenset[str] = _NO_EXTRAS,
        *,
        marker: str = "",
        url: str = "",
        text: str = "",
        line: RequirementLine | None = None,
        reason: str = "",
    ) -> None:
        self.name = name
        self.spec = spec
        self.extras = extras
        self.marker = marker
        self.url = url
        self.text = text
        self.line = line
        self.reason = reason
        """Set on a need that nothing can meet: why ("needs Python >=3.13")."""

    def __str__(self) -> str:
        extras = f"[{','.join(sorted(self.extras))}]" if self.extras else ""
        if self.url:
            return f"{self.name}{extras} @ {self.url}"
        return f"{self.name}{extras}{self.spec.text}"

    def __repr__(self) -> str:
        return f"Need({str(self)!r})"


_needs: dict[str, Need] = {}


def need(text: str) -> Need:
    """Parse one requirement, remembered. Raises ValueError when it is none."""
    known = _needs.get(text)
    if known is None:
        known = _needs[text] = _parse(text)
    return known


def _parse(text: str) -> Need:
    match = _SIMPLE.match(text)
    if match is not None and bool(match.group(3)) is bool(match.group(5)):
        name, extras, _, clauses, _, marker = match.groups()
        clauses = ",".join(piece for piece in (part.strip() for part in clauses.split(",")) if piece)
        return Need(
            normalise(name),
            spec(clauses.replace(" ", "")),
            frozenset(normalise(extra.strip()) for extra in extras.split(",") if extra.strip()) if extras else _NO_EXTRAS,
            marker=(marker or "").strip(),
            text=text,
        )
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        parsed = Requirement(text)
    except InvalidRequirement as problem:
        raise ValueError(f"{text!r} is not a requirement: {problem}") from None
    return Need(
        normalise(parsed.name),
        spec(str(parsed.specifier)),
        frozenset(normalise(extra) for extra in parsed.extras),
        marker=str(parsed.marker or ""),
        url=parsed.url or "",
        text=text,
    )


def need_of_line(line: RequirementLine) -> Need:
    """The need a person's line states. Raises ValueError when its specifier is none."""
    extras = frozenset(normalise(extra) for extra in line.extras)
    return Need(
        line.name,
        spec(line.specifier),
        extras,
        marker=line.marker,
        url=line.url or line.path,
        text=line.text,
        line=line,
    )


def lines_of(texts: Sequence[str], origin: str = "command line") -> tuple[RequirementLine, ...]:
    """Requirement lines of plain PEP 508 texts (``requests[socks]>=2; python_version < '3.13'``).

    Raises ValueError when one is no requirement.
    """
    lines = []
    for text in texts:
        parsed = need(text)
        lines.append(
            RequirementLine(
                text=text,
                origin=origin,
                name=parsed.name,
                extras=tuple(sorted(parsed.extras)),
                specifier=parsed.spec.text,
                marker=parsed.marker,
                url=parsed.url,
            )
        )
    return tuple(lines)
