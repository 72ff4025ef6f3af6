"""Journal entries as TOML, to share in git. What is read is data: plain text to look for, and commands to show."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from rocmpip.model import toml
from rocmpip.model.errors import BadConfiguration
from rocmpip.store.journal_entry import ID, Entry
from rocmpip.store.journal_text import KEPT_VARIABLES, tidy

SCHEMA = 1
LARGEST = 4 * 1024 * 1024
MOST = 2000
"""Entries of a file."""
_TEXTS: Mapping[str, int] = {
    "id": 8, "at": 25, "command": 200, "package": 100, "version": 100, "error": 500, "diagnosis": 60, "family": 60, "cause": 400,
    "rocm": 40, "driver": 60, "torch": 60, "python": 40,
}  # fmt: skip
"""Key → characters, at most."""
_LISTS: Mapping[str, int] = {"gfx": 30, "fix": 200, "did": 500, "notes": 800}
_ITEMS = 32
_AT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def to_toml(entries: Iterable[Entry]) -> str:
    """Entries as a TOML document, empty values left out."""
    import tomlkit

    rows = []
    for entry in entries:
        row = {
            key: value
            for key, value in entry.as_json().items()
            if value not in ("", [], {}, False) and key not in ("seen", "origin")
        }
        rows.append(row)
    head = f"# Entries of rocmpip's journal. Import them with: rocmpip journal import FILE\nschema = {SCHEMA}\n\n"
    return head + tomlkit.dumps({"entry": rows})


def from_toml(text: str, name: str) -> list[Entry]:
    """Entries of a file called ``name``. Raises BadConfiguration with every fault; then nothing of the file is taken."""
    try:
        data = toml.loads(text)
    except toml.TomlError as problem:
        raise BadConfiguration(f"{name} is no journal export", why=f"not TOML: {problem}") from None
    faults: list[str] = []
    for key in sorted(set(data) - {"schema", "entry"}):
        faults.append(f"{_shown(key)}: unknown key (known: entry, schema)")
    if data.get("schema") != SCHEMA or isinstance(data.get("schema"), bool):
        faults.append(f"schema: must be {SCHEMA}")
    rows = data.get("entry", [])
    if not isinstance(rows, list):
        faults.append("entry: entries are written as [[entry]]")
        rows = []
    if len(rows) > MOST:
        faults.append(f"entry: {len(rows)} entries; a file holds {MOST} at most")
        rows = rows[:MOST]
    entries = [
        entry for number, row in enumerate(rows, 1) if (entry := _entry(row, f"[[entry]] #{number}", name, faults)) is not None
    ]
    if faults:
        raise BadConfiguration(f"{name} is no journal export", details=tuple(faults[:50]), hint="nothing of it was taken")
    return entries


def _entry(row: object, where: str, name: str, faults: list[str]) -> Entry | None:
    if not isinstance(row, dict):
        faults.append(f"{where}: must be a table")
        return None
    before = len(faults)
    known = {*_TEXTS, *_LISTS, "env", "worked"}
    for key in sorted(set(row) - known):
        faults.append(f"{where}: unknown key {_shown(key)} (known: {', '.join(sorted(known))})")
    for key, longest in _TEXTS.items():
        if key in row:
            _text(row[key], longest, f"{where}: {key}", faults)
    for key, longest in _LISTS.items():
        value = row.get(key, [])
        if not isinstance(value, list) or len(value) > _ITEMS:
            faults.append(f"{where}: {key} must be a list of up to {_ITEMS} texts")
            continue
        for text in value:
            _text(text, longest, f"{where}: {key}", faults)
    _variables(row.get("env", {}), where, faults)
    if not isinstance(row.get("worked", False), bool):
        faults.append(f"{where}: worked must be true or false")
    for key, form, words in (("id", ID, "eight hex digits"), ("at", _AT, "a time such as 2026-11-30T12:00:00Z"), ("diagnosis", _SLUG, "a slug"), ("family", _SLUG, "a slug")):  # fmt: skip
        if isinstance(row.get(key), str) and row[key] and not form.fullmatch(row[key]):
            faults.append(f"{where}: {key} must be {words}")
    if not isinstance(row.get("error"), str) or len(row.get("error", "").strip()) < 8:
        faults.append(f"{where}: error must be a text of 8 characters or more: what to look for")
    return _made(row, name) if len(faults) == before else None


def _text(value: object, longest: int, where: str, faults: list[str]) -> None:
    if not isinstance(value, str):
        faults.append(f"{where} must be a text")
    elif len(value) > longest:
        faults.append(f"{where} is longer than {longest} characters")
    elif not value.isprintable():
        faults.append(f"{where} holds control characters (a line end, a terminal escape)")


def _variables(value: object, where: str, faults: list[str]) -> None:
    if not isinstance(value, dict):
        faults.append(f"{where}: env must be a table")
        return
    for key, text in value.items():
        if key not in KEPT_VARIABLES:
            faults.append(f"{where}: env: {_shown(key)} is not a variable that the journal keeps")
        _text(text, 200, f"{where}: env.{_shown(key)}", faults)


def _shown(key: str) -> str:
    return repr(key[:60])


def _made(row: Mapping[str, Any], name: str) -> Entry:
    texts: dict[str, Any] = {key: tidy(row[key], longest=longest) for key, longest in _TEXTS.items() if key in row}
    lists: dict[str, Any] = {
        key: tuple(tidy(text, longest=longest) for text in row.get(key, [])) for key, longest in _LISTS.items()
    }
    return Entry(
        **{"id": secrets.token_hex(4), "at": "", **texts},
        **lists,
        env={key: tidy(value, longest=200) for key, value in row.get("env", {}).items()},
        worked=row.get("worked", False),
        origin=tidy(name, longest=100),
    )
