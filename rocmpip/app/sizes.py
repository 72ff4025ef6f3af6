"""How large the files of a plan are, where their pages do not tell: pytorch.org's and AMD's do not, and torch is the large one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from rocmpip.model.packages import File
from rocmpip.model.plan import Plan
from rocmpip.model.record import replace

_AT_ONCE = 8


def with_sizes(plan: Plan, size: Callable[[File], int | None]) -> Plan:
    """The plan with every size that can be known. ``size`` asks a server; what it does not tell stays None."""
    unknown = {item.name: item.file for item in plan.items if item.file is not None and item.file.size is None}
    if not unknown:
        return plan
    with ThreadPoolExecutor(min(_AT_ONCE, len(unknown))) as pool:
        told = dict(zip(unknown, pool.map(size, unknown.values()), strict=True))
    items = tuple(
        replace(item, file=replace(item.file, size=told[item.name])) if item.file is not None and told.get(item.name) else item
        for item in plan.items
    )
    return replace(plan, items=items)
