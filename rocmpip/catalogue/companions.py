"""Which projects well-known projects need, so that their pages can be asked for in one go.

A name is only ever fetched ahead because of this table, never chosen: what a package needs is read from its own metadata.
A row that is out of date costs a request that nobody wanted, a missing one costs a round trip.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rocmpip.catalogue import rows

FILE = "companions.toml"
SECTION = rows.Section("companions", {"needs": rows.text, "source": rows.text}, required=("needs",))

Wanted = tuple[str, Iterable[str]]
"""A normalised name and extras."""


class Companions:
    """``rows``: a project, or ``project--extra``, → names with spaces between, each as ``name`` or ``name[extra]``."""

    def __init__(self, rows: Mapping[str, str]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def names(self) -> set[str]:
        """Every project that has a row or is named in one."""
        needed = {one.partition("[")[0] for text in self._rows.values() for one in text.split()}
        return needed | {key.partition("--")[0] for key in self._rows}

    def of(self, wanted: Iterable[Wanted]) -> Iterator[str]:
        """Names that ``wanted`` usually bring along, the nearest first, each once and none that is wanted itself."""
        layer = [(name, tuple(extras)) for name, extras in wanted]
        told = {name for name, _ in layer}
        read: set[str] = set()
        while layer:
            following: list[tuple[str, tuple[str, ...]]] = []
            for name, extras in layer:
                for key in (name, *(f"{name}--{extra}" for extra in extras)):
                    if key in read:
                        continue
                    read.add(key)
                    for text in self._rows.get(key, "").split():
                        needed, _, extra = text.rstrip("]").partition("[")
                        following.append((needed, (extra,) if extra else ()))
                        if needed not in told:
                            told.add(needed)
                            yield needed
            layer = following


def load_companions(paths: Sequence[str] = ()) -> Companions:
    """The shipped table with the user's catalogue files over it. Faults in those are told by ``load`` of the catalogue."""
    return Companions(merged(rows.read_overrides(paths), []) if paths else _shipped())


def merged(overrides: Sequence[rows.Layer], problems: list[str]) -> dict[str, str]:
    """The shipped rows with the user's over them. Faults are added to ``problems``."""
    base = {name: {"needs": needs, "source": FILE} for name, needs in _shipped().items()}
    found = rows.merge(SECTION, [rows.Layer(FILE, {SECTION.name: base}), *overrides], problems)
    return {name: str(row.get("needs", "")) for name, row in found.items()}


def _shipped() -> Mapping[str, str]:
    """Its rows are plain strings with one source for all: as tables of their own they would take three times as long to read."""
    table: Mapping[str, str] = rows.shipped(FILE).tables[SECTION.name]
    return table
