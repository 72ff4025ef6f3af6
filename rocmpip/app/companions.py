"""Writes the catalogue's companions anew: ``python -m rocmpip.app.companions [NAME…] > rocmpip/catalogue/data/companions.toml``.

What the newest release of each project says that it needs on Linux and Python 3.12, for the names given, for those in the
table, and for all that these need in turn.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone

from rocmpip.app.context import gather, user_indexes
from rocmpip.app.lock_client import lock_client
from rocmpip.app.lock_target import OPTIONS, for_target, target_rules
from rocmpip.app.resolve import IndexSource
from rocmpip.catalogue.companions import Companions, load_companions
from rocmpip.model.packages import normalise
from rocmpip.plan.listing import Metadata
from rocmpip.plan.markers import Markers
from rocmpip.plan.requirements import need

_HEAD = """\
# Which projects well-known projects need, so that a lock asks for their pages in one go. Only that: what a package really
# needs is read from its own metadata. A key is a project, or project--extra.
#
# source: what the newest release of each said for Linux and Python 3.12, read from PyPI on {day}

[companions]
"""


class Survey(IndexSource):
    """An IndexSource that follows every project's newest release to the end, and keeps what they say."""

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self.found: dict[str, Metadata] = {}

    def _metadata_came(self, key: str, metadata: Metadata | Exception) -> None:
        if isinstance(metadata, Metadata):
            self.found.setdefault(key.partition("/")[0], metadata)

    def run(self, names: Sequence[str]) -> None:
        for name in names:
            self.prefetch(name)
        self._follow_hints()
        while self._crew.run_one(wait=True):
            self._follow_hints()


def rows_of(found: Mapping[str, Metadata], markers: Markers) -> Iterator[tuple[str, str]]:
    """Key and needs of each project that needs something, and of each extra that another one asks for."""
    asked: set[tuple[str, str]] = set()
    rows: dict[str, str] = {}

    def add(key: str, metadata: Metadata, extra: str) -> None:
        needed: set[str] = set()
        for line in metadata.requires_dist:
            try:
                wanted = need(line)
                plain = not wanted.marker or markers.holds(wanted.marker)
                if wanted.url or (plain if extra else not plain):
                    continue
                if extra and not markers.holds(wanted.marker, frozenset((extra,))):
                    continue
            except ValueError:
                continue
            asked.update((wanted.name, normalise(one)) for one in wanted.extras)
            needed.update((f"{wanted.name}[{normalise(one)}]" for one in wanted.extras) if wanted.extras else (wanted.name,))
        if needed:
            rows[key] = " ".join(sorted(needed))

    for name, metadata in found.items():
        add(name, metadata, "")
    done: set[tuple[str, str]] = set()
    while asked - done:
        for name, extra in sorted(asked - done):
            done.add((name, extra))
            if name in found:
                add(f"{name}--{extra}", found[name], extra)
    yield from sorted(rows.items())


def main(names: Sequence[str]) -> int:
    """Print the table. Raises what indexes raise."""
    context = gather("lock", ["--python-version", "3.12", "--platform", "manylinux_2_28_x86_64", "pip"], extra=OPTIONS)
    context = for_target(context, "3.12", ("manylinux_2_28_x86_64",))
    known: Companions = load_companions()
    markers = Markers(context.markers)
    with (
        lock_client(context.request.index, "", (), context.env) as client,
        Survey(client, rules=target_rules(context), markers=markers, indexes=user_indexes(context)) as survey,
    ):
        survey.run(sorted({*map(normalise, names), *known.names()}))
        found = survey.found
    rows = list(rows_of(found, markers))
    forbidden = context.catalogue.forbidden
    sys.stdout.write(_HEAD.format(day=datetime.now(timezone.utc).date()))
    for key, needs in rows:
        kept = " ".join(one for one in needs.split() if not forbidden(one.partition("[")[0]))
        if kept and not forbidden(key.partition("--")[0]):
            sys.stdout.write(f'{key} = "{kept}"\n')
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
