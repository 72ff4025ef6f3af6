"""The versions of a project, and the gaps between them, as the bits of PubGrub's terms."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

from rocmpip.plan.listing import Candidate, Listing
from rocmpip.plan.pubgrub import OUT
from rocmpip.plan.versions import Spec, release

_CLAUSE = re.compile(r"(===|==|~=|!=|<=|>=|<|>)\s*([^\s,]+)")


class Project:
    """The candidates of a project and what lies between them, each with a bit of a term.

    Above ``OUT`` come the gaps, from below the oldest version to above the newest: requirements may allow versions that do not
    exist, and whether two of them leave nothing at all or only no version makes a difference to the search. Then come the
    candidates, the most wanted first.
    """

    def __init__(self, listing: Listing, places: Sequence[int], url: str = "", *, known: bool = True) -> None:
        self._listing = listing
        self._places = places
        self.url = url
        self._known = known
        keys = listing.keys
        self._wanted = [keys[place] for place in places]
        self._keys = sorted(self._wanted)
        self._gaps = len(places) + 1
        self._first = 1 + self._gaps
        self.everything = (1 << (self._first + len(places))) - 1
        self._allowed: dict[str, int] = {}

    def candidate(self, place: int) -> Candidate:
        """Made when it is looked at, which few ever are."""
        return self._listing[self._places[place]]

    def best(self, term: int) -> int | None:
        """The place of the most wanted candidate in ``term``."""
        real = term >> self._first
        return (real & -real).bit_length() - 1 if real else None

    def following(self, term: int, count: int) -> list[int]:
        """The places of up to ``count`` candidates that come after the best one in ``term``."""
        real = term >> self._first
        found: list[int] = []
        while (real := real & (real - 1)) and len(found) < count:
            found.append((real & -real).bit_length() - 1)
        return found

    def text(self, place: int) -> str:
        return self._listing.text(self._places[place])

    def bit(self, place: int) -> int:
        return 1 << (self._first + place)

    def around(self, place: int) -> int:
        """A candidate together with the gaps beside it: what is said of it may as well be said of what does not exist."""
        gap = bisect_left(self._keys, self._wanted[place])
        return self.bit(place) | 0b110 << gap

    def allowed(self, spec: Spec) -> int:
        """What ``spec`` holds."""
        known = self._allowed.get(spec.text)
        if known is None:
            known = self.everything & ~OUT
            if spec.text and self._known:
                known = self._between(spec.text)
                bit = 1 << self._first
                for place, key in zip(self._places, self._wanted, strict=True):
                    if spec.holds(key, self._listing.text(place)):
                        known |= bit
                    bit <<= 1
            self._allowed[spec.text] = known
        return known

    def _between(self, text: str) -> int:
        """The gaps that versions of a specifier may lie in."""
        held = (1 << self._gaps) - 1
        for match in _CLAUSE.finditer(text):
            operator, version = match.groups()
            low, high = _bounds(operator, version)
            # A gap is held where a part of it is: from the one that has or follows the lower bound to that before the upper one.
            first = 0 if low is None else bisect_right(self._keys, low)
            last = self._gaps - 1 if high is None else bisect_left(self._keys, high)
            clause = (1 << (last + 1)) - (1 << first) if first <= last else 0
            held &= clause
        return held << 1


def _bounds(operator: str, text: str) -> tuple[tuple[Any, ...] | None, tuple[Any, ...] | None]:
    """The keys between which the versions of a clause lie, None for no bound. What leaves only a version out has none."""
    wild = text.endswith(".*")
    try:
        version = release(text.removesuffix(".*"))
    except ValueError:
        return None, None
    key = version.key
    if operator in (">=", ">"):
        return key, None
    if operator in ("<=", "<"):
        return None, key
    if operator == "!=":
        return None, None
    if operator == "~=" or wild:
        numbers = version.full.release
        head = numbers if wild else numbers[:-1]
        above = release(".".join(map(str, (*head[:-1], head[-1] + 1)))) if head else None
        return key, above.key if above else None
    return key, key
