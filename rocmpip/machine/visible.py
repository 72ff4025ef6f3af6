"""Which GPUs *_VISIBLE_DEVICES let through. Pure.

The HSA runtime applies ROCR_VISIBLE_DEVICES to its list; HIP then counts what is left by HIP_VISIBLE_DEVICES, or by
CUDA_VISIBLE_DEVICES when the former is not set. Both accept numbers and ``GPU-<uuid>``, and stop at the first entry
that names no GPU. An empty value hides all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rocmpip.machine.variables import VISIBLE
from rocmpip.model.machine import Gpu


def let_through(gpus: Sequence[Gpu], env: Mapping[str, str]) -> tuple[frozenset[int], tuple[str, ...]]:
    """Indexes into ``gpus`` of the visible ones, and a note for each variable that changes something."""
    rocr, hip, cuda = VISIBLE
    left = list(range(len(gpus)))
    notes: list[str] = []
    for variable in (rocr, hip if hip in env else cuda):
        value = env.get(variable)
        if value is None or not gpus:
            continue
        chosen, stopped = _select(value, [gpus[index] for index in left])
        if stopped:
            notes.append(f"{variable}={value}: {stopped!r} names no GPU here, and the runtime stops reading there")
        before, left = left, [left[index] for index in chosen]
        if not left and before:
            notes.append(f"{variable}={value}: no GPU is visible")
        elif len(left) < len(before):
            which = ", ".join(_told(gpus[index]) for index in left)
            notes.append(f"{variable}={value}: {len(left)} of {len(before)} GPUs count ({which})")
    return frozenset(left), tuple(notes)


def _told(gpu: Gpu) -> str:
    return gpu.gfx if gpu.node is None else f"{gpu.gfx} node {gpu.node}"


def _select(value: str, gpus: Sequence[Gpu]) -> tuple[list[int], str]:
    """Chosen indexes in the order asked for, and the entry at which reading stopped ("" when all were read)."""
    chosen: list[int] = []
    if not value.strip():
        return chosen, ""
    for entry in value.split(","):
        index = _index(entry.strip(), gpus)
        if index is None:
            # -1 is the usual way to say "none".
            return chosen, "" if entry.strip() == "-1" else entry.strip()[:60]
        if index not in chosen:
            chosen.append(index)
    return chosen, ""


def _index(entry: str, gpus: Sequence[Gpu]) -> int | None:
    if entry.isascii() and entry.isdigit() and len(entry) < 10:
        return int(entry) if int(entry) < len(gpus) else None
    if entry.upper().startswith("GPU-"):
        return next((index for index, gpu in enumerate(gpus) if gpu.uuid and gpu.uuid.lower() == entry.lower()), None)
    return None
