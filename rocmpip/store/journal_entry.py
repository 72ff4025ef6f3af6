"""One page of the journal, and the records that it is read from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rocmpip.model.record import Struct, field, replace

SCHEMA = 1
ID = re.compile(r"[0-9a-f]{8}")
_TEXTS = (
    "id",
    "at",
    "command",
    "package",
    "version",
    "error",
    "diagnosis",
    "family",
    "cause",
    "rocm",
    "driver",
    "torch",
    "python",
    "origin",
)
_LISTS = ("gfx", "fix")


class Entry(Struct, frozen=True):
    """A failure, and what became of it. Texts hold no credentials and no home folders."""

    id: str
    """Eight hex digits."""
    at: str
    """UTC, ISO 8601, to the second."""
    command: str = ""
    """install, build, diagnose."""
    package: str = ""
    version: str = ""
    error: str = ""
    """The line that tells the cause; of an imported entry the plain text to look for."""
    diagnosis: str = ""
    """Slug of the diagnosis, or "" when it was unknown."""
    family: str = ""
    cause: str = ""
    gfx: tuple[str, ...] = ()
    rocm: str = ""
    driver: str = ""
    torch: str = ""
    python: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    fix: tuple[str, ...] = ()
    """Commands that were proposed. They are shown, never run."""
    origin: str = ""
    """"" for an own entry, else the name of the file it was imported from."""
    did: tuple[str, ...] = ()
    """What was done until it worked."""
    worked: bool = False
    seen: int = 1
    """How often it was met here."""
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        row: dict[str, object] = {key: getattr(self, key) for key in _TEXTS}
        row |= {key: list(getattr(self, key)) for key in (*_LISTS, "did", "notes")}
        return {**row, "env": dict(self.env), "worked": self.worked, "seen": self.seen}


def encode(record: Mapping[str, Any]) -> bytes:
    """A record as one line with line ends on both sides: a torn line before it cannot swallow it."""
    return b"\n" + json.dumps(record, ensure_ascii=True, separators=(",", ":"), sort_keys=True).encode("ascii") + b"\n"


def decode(line: bytes) -> dict[str, Any] | None:
    """The record of a line; None when it is torn, foreign or of another schema."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or record.get("v") != SCHEMA or not isinstance(record.get("type"), str):
        return None
    return record


def _texts(value: object) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def entry_of(record: Mapping[str, Any]) -> Entry | None:
    """The entry that a record of type ``entry`` begins; None when it is not whole."""
    if not isinstance(record.get("id"), str) or not ID.fullmatch(record["id"]):
        return None
    texts: dict[str, Any] = {key: record[key] for key in _TEXTS if isinstance(record.get(key), str)}
    lists: dict[str, Any] = {key: _texts(record.get(key)) for key in (*_LISTS, "did", "notes")}
    env = record.get("env")
    kept = {key: value for key, value in env.items() if isinstance(value, str)} if isinstance(env, dict) else {}
    return Entry(**{"at": "", **texts}, **lists, env=kept, worked=record.get("worked") is True)


def entries_of(records: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """Records in the order written → entries, oldest first, each with its notes, repetitions and end."""
    entries: dict[str, Entry] = {}
    for record in records:
        kind, of = record["type"], record.get("of")
        if kind == "entry":
            entry = entry_of(record)
            if entry is not None and entry.id not in entries:
                entries[entry.id] = entry
            continue
        known = entries.get(of) if isinstance(of, str) else None
        if known is None:
            continue
        text = record.get("text") if isinstance(record.get("text"), str) else ""
        if kind == "note" and text:
            known = replace(known, notes=(*known.notes, text))
        elif kind == "again":
            known = replace(known, seen=known.seen + 1, worked=False)
        elif kind == "mended":
            known = replace(known, worked=True, did=(*known.did, text) if text else known.did)
        entries[known.id] = known
    return list(entries.values())


def record_of(entry: Entry) -> dict[str, Any]:
    """An entry as the record that begins it; empty values are left out."""
    row = {key: value for key, value in entry.as_json().items() if value not in ("", [], {}, False) and key != "seen"}
    return {"v": SCHEMA, "type": "entry", **row}
