"""One entry of the wheelhouse: a folder with a wheel and what is known of it."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from rocmpip.model.packages import File
from rocmpip.model.provenance import FingerprintInputs, Provenance, from_json
from rocmpip.model.record import Struct, asdict, msgspec
from rocmpip.store.wheelhouse_files import refuse_unsafe, sha256_of

ENTRY = "entry.json"
SCHEMA = 1
NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
"""What a project's folder may be called: a normalised name."""
_LAST_MOMENT = 253_402_300_800.0
"""The year 10000, in seconds since 1970: what lies behind is no time that could be shown."""


def fingerprint(inputs: FingerprintInputs) -> str:
    """sha256 (64 hex digits) over every input. The order of gfx targets does not count; everything else does."""
    values = asdict(inputs)
    values["gfx"] = sorted(set(inputs.gfx))
    canonical = json.dumps({"schema": SCHEMA, **values}, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


class StoredWheel(Struct, frozen=True):
    """One wheel of the wheelhouse. ``path`` is absolute; ``created`` is seconds since the epoch, ``seconds`` the build's."""

    fingerprint: str
    path: Path
    sha256: str
    size: int
    created: float
    seconds: float
    provenance: Provenance

    @property
    def filename(self) -> str:
        return self.path.name

    def as_json(self) -> dict[str, object]:
        return {
            "fingerprint": self.fingerprint,
            "filename": self.filename,
            "path": str(self.path),
            "sha256": self.sha256,
            "size": self.size,
            "created": self.created,
            "seconds": self.seconds,
            "provenance": self.provenance.as_json(),
        }

    def as_file(self) -> File:
        """As a file of a project page, for the router: a ``file://`` link with its hash."""
        return File(
            filename=self.filename,
            url=self.path.as_uri(),
            hashes={"sha256": self.sha256},
            size=self.size,
            index=self.path.parent.as_uri(),
        )


def read_entry(entry: Path) -> tuple[StoredWheel | None, str]:
    """An entry as it says it is: (wheel, "") or (None, why not). The hash is not computed here."""
    try:
        record: Any = msgspec.json.decode((entry / ENTRY).read_bytes())
        filename = record["filename"]
        provenance = from_json(record["provenance"])
        path = entry / filename
        if record["schema"] != SCHEMA or path.parent != entry or not filename.endswith(".whl"):
            return None, "its entry names no wheel of its own folder"
        if provenance.fingerprint != entry.name or fingerprint(provenance.inputs) != entry.name:
            return None, "its entry belongs to another fingerprint"
        if path.is_symlink() or not path.is_file():
            return None, "its wheel is missing"
        refuse_unsafe(path)
        if not 0 <= float(record["created"]) < _LAST_MOMENT:
            return None, "its entry names no time"
        stored = StoredWheel(
            entry.name, path, str(record["sha256"]), int(record["size"]),
            float(record["created"]), float(record["seconds"]), provenance,
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, msgspec.MsgspecError) as problem:
        return None, f"its entry cannot be read ({type(problem).__name__})"
    return stored, ""


def changed(stored: StoredWheel) -> str:
    """Why the wheel's bytes are not those that were stored, or ""."""
    try:
        if stored.path.stat().st_size != stored.size:
            return "its size changed"
        return "" if sha256_of(stored.path) == stored.sha256 else "its bytes changed (sha256 differs)"
    except OSError as problem:
        return f"it cannot be read ({problem.strerror})"
