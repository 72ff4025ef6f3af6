"""The catalogue as Markdown tables. docs/reference/catalogue.md holds them between markers, and a test keeps them true."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from rocmpip.catalogue.catalogue import Catalogue
from rocmpip.catalogue.rows import Section
from rocmpip.catalogue.tables import SECTIONS

_BLOCK = re.compile(r"(?P<open><!-- table: (?P<name>[a-z]+) -->\n)(?P<body>.*?)(?P<close><!-- end -->)", re.DOTALL)


def refreshed(page: str, catalogue: Catalogue) -> str:
    """``page`` with every ``<!-- table: NAME -->`` … ``<!-- end -->`` block written anew. Raises KeyError for an unknown name."""
    return _BLOCK.sub(lambda match: f"{match['open']}{TABLES[match['name']](catalogue)}\n{match['close']}", page)


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines)


def _families(catalogue: Catalogue) -> str:
    return _table(
        ("index", "channel", "ROCm", "style", "address", "torch known there", "source"),
        (
            (
                family.name,
                family.channel + (", frozen" if family.frozen else "") + ("" if family.ask else ", not asked"),
                str(family.rocm)
                if family.rocm
                else f"{family.rocm_from or ''} – {family.rocm_below or ''}".strip(" –") + " (label)",
                family.style,
                f"`{family.url}`",
                " ".join(family.torch),
                family.source,
            )
            for family in catalogue.families
        ),
    )


def _gpus(catalogue: Catalogue) -> str:
    gfx = catalogue.gfx

    def row(name: str) -> Sequence[str]:
        override = f"{gfx.override(name)} (as {gfx.override_gfx(name)})" if gfx.override(name) else ""
        end = f"ROCm {gfx.max_rocm(name)}" if gfx.max_rocm(name) else ""
        return name, gfx.name(name), gfx.family(name), gfx.extra(name), end, override, gfx.note(name)  # noqa: S610 (no Django)

    return _table(
        ("gfx", "products", "per-family index", "extra", "newest ROCm", "HSA override in use", "note"),
        (row(name) for name in sorted(gfx.known, key=lambda text: (len(text), text))),
    )


def _coverage(catalogue: Catalogue) -> str:
    return _table(
        ("publisher", "ROCm", "torch", "GPUs with kernels", "status", "source"),
        (
            (
                row.publisher,
                f"{row.rocm_from} to before {row.rocm_below}" if row.rocm_below else f"{row.rocm_from} and newer",
                row.torch or "all",
                " ".join(sorted(row.gfx, key=lambda text: (len(text), text))),
                row.status,
                row.source,
            )
            for row in catalogue.coverages
        ),
    )


def _pairings(catalogue: Catalogue) -> str:
    return _table(
        ("torch", "torchvision", "torchaudio", "triton", "pytorch.org ROCm", "Python", "status"),
        (
            (p.torch, *(" ".join(x) for x in (p.torchvision, p.torchaudio, p.triton, p.rocm)), p.python, p.status)
            for p in catalogue.pairings.values()
        ),
    )


def _drivers(catalogue: Catalogue) -> str:
    return _table(
        ("driver", "ROCm it carries", "outside it", "source"),
        (
            (
                window.driver,
                f"{'.'.join(map(str, window.user_from))} to {'.'.join(map(str, window.user_to))}",
                "forbidden" if window.binding else "noted",
                window.source,
            )
            for window in catalogue.windows.values()
        ),
    )


def _members(catalogue: Catalogue) -> str:
    return _table(
        ("name", "role", "ROCm label needed", "on the public index", "source"),
        ((m.pattern, m.role, "yes" if m.label else "no", m.placeholder, m.source) for m in catalogue.members),
    )


def _forbidden(catalogue: Catalogue) -> str:
    rows = catalogue.forbidden_names.items()
    return _table(("name", "reason", "instead"), ((name, row["reason"], row.get("instead", "")) for name, row in rows))


def _sections(_: Catalogue) -> str:
    def row(section: Section) -> Sequence[str]:
        needed = [name for name in section.fields if name in section.required]
        free = [name for name in section.fields if name not in section.required]
        return f"`[{section.name}.KEY]`", ", ".join(needed), ", ".join(free)

    return _table(("section", "a new row needs", "and may have"), (row(section) for section in SECTIONS))


TABLES: dict[str, Callable[[Catalogue], str]] = {
    "families": _families,
    "gpus": _gpus,
    "coverage": _coverage,
    "pairings": _pairings,
    "drivers": _drivers,
    "members": _members,
    "forbidden": _forbidden,
    "sections": _sections,
}
"""Marker name → the table."""
