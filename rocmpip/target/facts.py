"""What a target's interpreter says of its markers and wheel tags, kept between runs: asking costs a start of that interpreter.

The answer is kept for the very program that gave it (its place, size and times), this machine's C library, and our
``packaging``. What changes with a reboot is taken from the running system.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Protocol

from rocmpip.model.machine import TargetEnv, TargetFacts

_KIND = "target"


class Blobs(Protocol):
    """A cache that never raises (``store.cache.PageCache``)."""

    def get(self, kind: str, key: str) -> bytes | None: ...
    def put(self, kind: str, key: str, data: bytes) -> None: ...


_known: dict[tuple[str, bool], TargetFacts] = {}
"""Asked once in a run."""


def target_facts(target: TargetEnv, cache: Blobs | None = None) -> TargetFacts:
    """Facts of ``target``, from ``cache`` when it has them. Raises InputError when its interpreter does not answer."""
    known = _known.get((target.python, target.own))
    if known is None:
        known = _known[target.python, target.own] = _facts(target, cache)
    return known


def _facts(target: TargetEnv, cache: Blobs | None) -> TargetFacts:
    if target.own:
        from rocmpip.target.own_facts import own_facts

        own = own_facts()
        if own is not None:
            return own
    key = _key(target) if cache is not None else ""
    if cache is not None and key:
        kept = cache.get(_KIND, key)
        facts = _read(kept) if kept else None
        if facts is not None:
            return facts
    from rocmpip.target.tags import native

    facts = native(target)
    if cache is not None and key:
        cache.put(_KIND, key, json.dumps([facts.markers, facts.tags]).encode())
    return facts


def _key(target: TargetEnv) -> str:
    """What the facts hold for; "" for what cannot be told apart for sure (a script that starts some Python)."""
    import hashlib

    try:
        program = os.path.realpath(target.python)
        with open(program, "rb") as stream:
            if stream.read(4) != b"\x7fELF":
                return ""
        about = os.stat(program)  # noqa: PTH116 - pathlib is not needed for one look
        system, library = os.uname(), os.confstr("CS_GNU_LIBC_VERSION")
    except (OSError, ValueError, AttributeError):
        return ""
    parts = (
        target.python,
        program,
        (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns),
        (system.sysname, system.machine, library, sys.maxsize),
        _packaging_version(),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _packaging_version() -> str:
    import packaging

    return packaging.__version__


def _read(kept: bytes) -> TargetFacts | None:
    try:
        markers, tags = json.loads(kept)
        facts = TargetFacts({str(name): str(value) for name, value in markers.items()}, tuple(map(str, tags)))
    except (ValueError, TypeError, AttributeError):
        return None
    if not facts.tags or "python_full_version" not in facts.markers:
        return None
    system = os.uname()
    return TargetFacts({**facts.markers, "platform_release": system.release, "platform_version": system.version}, facts.tags)
