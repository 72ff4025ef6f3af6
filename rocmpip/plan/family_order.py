"""In which order ROCm versions come into question.

Same major.minor as the machine's, then lower ones from the highest down, then higher ones from the lowest up. Without a ROCm on
the machine: from the newest down.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from rocmpip.catalogue.catalogue import Catalogue
from rocmpip.catalogue.tables import Family
from rocmpip.model.rocm import RocmVersion

Minor = tuple[int, int]


class Peek(Protocol):
    def __call__(self, family: Family) -> set[Minor]:
        """The ROCm versions that the labels on a family's torch page name (fetches it)."""
        ...


def tiers(channel: str, *, explicit_pre: bool) -> tuple[tuple[str, bool], ...]:
    """(channel, frozen) groups of indexes in the order they are gone through.

    Frozen indexes come last in their channel. A bound that names a pre-release reaches test and nightly indexes too.
    """
    order: list[tuple[str, bool]] = [("stable", False), ("stable", True)]
    if channel in ("test", "nightly"):
        order = [(channel, False), *order, (channel, True)]
    if explicit_pre:
        order += [(other, frozen) for frozen in (False, True) for other in ("test", "nightly")]
    return tuple(dict.fromkeys(order))


def slots(
    catalogue: Catalogue, machine: RocmVersion | None, channel: str, frozen: bool, peek: Peek
) -> Iterator[tuple[Minor, tuple[Family, ...]]]:
    """(ROCm major.minor, indexes that may hold it) in order, for one tier. Pages are peeked at only when the order needs them."""
    pool = [f for f in catalogue.families if f.channel == channel and f.frozen == frozen and f.ask and f.url]
    pending = [family for family in pool if family.rocm is None]
    minors: set[Minor] = {family.rocm.minor for family in pool if family.rocm is not None}
    for family in pending:
        minors |= _span(family)
    if channel != "stable" and not frozen:
        # Test and nightly indexes of pytorch.org follow its stable ones without a row each.
        minors |= {f.rocm.minor for f in catalogue.families if f.rocm is not None and f.publisher == "pytorch.org"}
    if machine is not None and not frozen:
        minors.add(machine.minor)
    done: set[Minor] = set()
    while True:
        left = [minor for minor in minors if minor not in done]
        if not left:
            return
        here = min(left, key=lambda minor: place(minor, machine))
        early = next((family for family in pending if _may_come_first(family, here, machine)), None)
        if early is not None:
            pending.remove(early)
            minors |= {minor for minor in peek(early) if early.holds(minor)}
            continue
        done.add(here)
        exact = machine if machine is not None and machine.minor == here else None
        found = tuple(
            family for family in catalogue.families_for(channel, here, None if frozen else exact) if family.frozen == frozen
        )
        if found:
            yield here, found
        for family in [family for family in pending if family.holds(here)]:
            pending.remove(family)
            minors |= {minor for minor in peek(family) if family.holds(minor)}


def place(minor: Minor, machine: RocmVersion | None) -> tuple[int, int, int]:
    """Sort key of a ROCm version: the smaller, the sooner."""
    if machine is None or minor < machine.minor:
        return 1, -minor[0], -minor[1]
    if minor == machine.minor:
        return 0, 0, 0
    return 2, *minor


def _may_come_first(family: Family, here: Minor, machine: RocmVersion | None) -> bool:
    """True when a page without a look at it may hold a ROCm that comes before ``here`` on the way down."""
    if machine is not None and here >= machine.minor:
        return False
    starts_below = machine is None or family.rocm_from is None or family.rocm_from.minor < machine.minor
    return starts_below and (family.rocm_below is None or family.rocm_below.minor > here)


def _span(family: Family) -> set[Minor]:
    """ROCm versions known beforehand for an index that is sorted by label."""
    low = family.rocm_from.minor if family.rocm_from is not None else (0, 0)
    high = family.rocm_below.minor if family.rocm_below is not None else None
    if high is not None and high[0] == low[0]:
        return {(low[0], minor) for minor in range(low[1], high[1])}
    return {low}
