"""What HSA_OVERRIDE_GFX_VERSION says, and whether it makes sense. Pure.

sysfs tells the true chip; the override only changes what the runtime claims. The pairs are what people use
(gfx_products table): 103x as 10.3.0, 110x and 115x as 11.0.0, 101x as 10.3.0 (unsafe: another instruction set).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rocmpip.machine.variables import OVERRIDE
from rocmpip.model.gfx import decode_kfd


def claimed_gfx(value: str) -> str:
    """``10.3.0`` → gfx1030, ``9.0.10`` → gfx90a. Raises ValueError for anything else."""
    parts = value.strip().split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts):
        raise ValueError(f"{value!r} is not of the form 11.0.0")
    major, minor, step = (int(part) for part in parts)
    if minor > 15 or step > 15:
        raise ValueError(f"{value!r} is no gfx version")
    return decode_kfd(major * 10000 + minor * 100 + step)


def override_notes(env: Mapping[str, str], seen: Iterable[str]) -> tuple[str, ...]:
    """One note for each override that is set. ``seen`` are the gfx names of the visible GPUs."""
    actual = list(dict.fromkeys(seen))
    notes: list[str] = []
    for name in sorted(env):
        if not name.startswith(OVERRIDE) or not env[name].strip():
            continue
        try:
            claimed = claimed_gfx(env[name])
        except ValueError as problem:
            notes.append(f"{name}: {problem}; the runtime will refuse it")
            continue
        told = f"{name}={env[name]} makes the runtime say {claimed}"
        if not actual:
            notes.append(f"{told}; it is no target by itself (--gfx {claimed} would make it one)")
        else:
            verdicts = "; ".join(f"{gfx} {_verdict(gfx, claimed)}" for gfx in actual)
            notes.append(f"{told}. The targets stay what the hardware is: {verdicts}")
    return tuple(notes)


def _verdict(gfx: str, claimed: str) -> str:
    if gfx == claimed:
        return "is that already, so it changes nothing"
    family, other = gfx[:-1], claimed[:-1]
    if gfx == "gfx1103" and claimed == "gfx1100":
        return "is known to hang and fault under it"
    if family == other == "gfx103" or (family in ("gfx110", "gfx115") and other in ("gfx110", "gfx115")):
        return "runs kernels of that family as a workaround; wheels with its own kernels need no override"
    if family == "gfx101" and other == "gfx103":
        return "has another instruction set: this is unsafe"
    if family == other:
        return "is of the same family, which may work"
    return "is of another family: programs will fail or give wrong results"
