"""`rocmpip settings`: show every value with its source; set and unset in the user's file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from rocmpip.model.errors import UsageError
from rocmpip.model.redact import redact
from rocmpip.store.settings import SITE_FILE, load_settings, project_file, rows, user_file
from rocmpip.store.settings_file import set_value, unset_value
from rocmpip.store.settings_table import BY_KEY, Row, expected, read_value


def show(env: Mapping[str, str], cwd: str) -> dict[str, object]:
    """Every setting (``key``, ``value``, ``source``, ``variable``), the files that were looked for, and notes."""
    settings = load_settings({}, env, cwd)
    files = [("site", SITE_FILE), ("user", user_file(env)), ("project", project_file(cwd))]
    return {
        "settings": [
            {"key": key, "value": _public(value), "source": source, "variable": BY_KEY[key].variable}
            for key, value, source in rows(settings)
        ],
        "files": [{"kind": kind, "path": str(path), "exists": path.exists()} for kind, path in files if path is not None],
        "notes": list(settings.notes),
    }


def change(env: Mapping[str, str], key: str, value: str) -> dict[str, object]:
    """Check ``value`` and write it into the user's file. Raises UsageError, BadConfiguration."""
    row, path = _row(key), _user_file(env)
    try:
        read = read_value(row, value, Path.cwd(), env.get("HOME", ""))
    except ValueError as problem:
        raise UsageError(f"{row.key}: {problem}", hint=f"{row.key} takes {expected(row)}") from None
    set_value(path, row.key, read)
    return {"key": row.key, "value": _public(read), "file": str(path)}


def forget(env: Mapping[str, str], key: str) -> dict[str, object]:
    """Take ``key`` out of the user's file; ``removed`` is False when it was not there. Raises UsageError, BadConfiguration."""
    row, path = _row(key), _user_file(env)
    return {"key": row.key, "file": str(path), "removed": unset_value(path, row.key)}


def _row(key: str) -> Row:
    row = BY_KEY.get(key.replace("-", "_"))
    if row is None:
        raise UsageError(f"there is no setting {key!r}", hint="known settings: " + ", ".join(BY_KEY))
    return row


def _user_file(env: Mapping[str, str]) -> Path:
    path = user_file(env)
    if path is None:
        raise UsageError("there is no home folder to keep settings in", hint="set HOME or ROCMPIP_CONFIG")
    if path == Path(os.devnull):
        raise UsageError(f"ROCMPIP_CONFIG is {os.devnull}: there is no file to write", hint="unset it or name a file")
    return path


def _public(value: object) -> object:
    """A value for people: credentials in URLs masked, tuples as lists."""
    if isinstance(value, tuple):
        return [_public(item) for item in value]
    return redact(value) if isinstance(value, str) else value
