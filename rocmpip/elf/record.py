"""Read the provenance record that rocmpip writes into the wheels it builds."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from rocmpip.model.archives import broken_as
from rocmpip.model.provenance import FILENAME, Provenance, from_json
from rocmpip.model.regular import regular

_LIMIT = 1 << 20


def read_wheel(wheel: Path) -> Provenance | None:
    """The record inside a wheel, None when it has none. Raises ValueError for a broken record or wheel, OSError."""
    with (
        open(wheel, "rb", opener=regular) as stream,
        broken_as(lambda why: ValueError(f"{wheel.name} is not a readable wheel: {why}")),
        zipfile.ZipFile(stream) as archive,
    ):
        for member in archive.infolist():
            if member.filename.endswith(f".dist-info/{FILENAME}") and member.filename.count("/") == 1:
                if member.file_size > _LIMIT:
                    raise ValueError("the provenance record is too large")
                return from_json(json.loads(archive.read(member)))
    return None


def read_installed(dist_info: Path) -> Provenance | None:
    """The record of an installed package by its ``.dist-info`` folder; None when it has none or it cannot be read."""
    try:
        with open(dist_info / FILENAME, "rb", opener=regular) as stream:
            content = stream.read(_LIMIT + 1)
        return from_json(json.loads(content)) if len(content) <= _LIMIT else None
    except (OSError, ValueError, RecursionError):
        return None
