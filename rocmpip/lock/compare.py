"""What differs between a lock on disk and what would be locked now: for --check, sync and people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rocmpip.lock.text import Written

_MACHINE = {"driver": "the driver", "kernel": "the kernel", "rocm": "ROCm", "gfx": "the GPU", "hipcc": "hipcc"}


def differences(old: Written, new: Written) -> tuple[str, ...]:
    """One line for each difference, coordinates first; empty when the lock still holds."""
    return (*_coordinates(old.coordinates, new.coordinates), *_pins(old, new))


def _coordinates(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for key in dict.fromkeys((*old, *new)):
        if key in ("made by", "install", "note"):
            continue
        before, after = old.get(key, ""), new.get(key, "")
        if before != after:
            word = _MACHINE.get(key, key)
            yield f"{word}: the lock is for {before or 'none'}, here is {after or 'none'}"


def _pins(old: Written, new: Written) -> Iterator[str]:
    before, after = {**old.pins, **old.urls}, {**new.pins, **new.urls}
    for name in sorted({*before, *after}):
        if name not in after:
            yield f"{name}: {before[name]} is locked and nothing asks for it any more"
        elif name not in before:
            yield f"{name}: {after[name]} is missing from the lock"
        elif before[name] != after[name]:
            yield f"{name}: {before[name]} is locked, and {after[name]} is needed"
        elif set(old.hashes.get(name, ())) != set(new.hashes.get(name, ())):
            yield f"{name} {before[name]}: its files have changed on the index (other hashes)"
        elif old.builds.get(name) != new.builds.get(name):
            yield f"{name} {before[name]}: it is {_origin(new, name)} now, not {_origin(old, name)}"


def _origin(written: Written, name: str) -> str:
    return f"built by the recipe {written.builds[name]}" if name in written.builds else "a ready file"
