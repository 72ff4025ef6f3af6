"""Take wheels out of the wheelhouse for one target, as a folder that plain pip reads with ``--find-links``; and back in.

File names do not tell a gfx90a wheel from a gfx1100 one, so a folder holds one target: one set of GPUs and one torch. The
manifest beside the wheels keeps what ``import`` needs: hashes, build times and each wheel's provenance.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rocmpip.elf import ElfError, covers, examine_wheel, read_wheel
from rocmpip.model.errors import CheckFailed, InputError, UsageError
from rocmpip.model.provenance import Provenance, from_json
from rocmpip.model.record import Struct, msgspec
from rocmpip.model.regular import regular
from rocmpip.store.wheelhouse import StoredWheel, Wheelhouse
from rocmpip.store.wheelhouse_files import copy_file, sha256_of

MANIFEST = "rocmpip-wheelhouse.json"
_SCHEMA = 1
_LIMIT = 64 << 20
_LONGEST = 366 * 86400.0
"""Seconds that a build may be said to have taken."""


class Exported(Struct, frozen=True):
    """What went out, and what fits too but has the same file name as a better one."""

    wheels: tuple[StoredWheel, ...]
    passed_over: tuple[StoredWheel, ...]
    folder: Path


class Imported(Struct, frozen=True):
    wheels: tuple[StoredWheel, ...]
    refused: tuple[tuple[str, str], ...]
    """(file name, why)."""


def fitting(
    wheels: Iterable[StoredWheel], gfx: Sequence[str], *, torch: str = "", rocm: str = "", python: str = ""
) -> list[StoredWheel]:
    """Wheels built for every one of ``gfx``; with ``torch`` (exact, or without its label), ``rocm`` (major.minor) and
    ``python`` (3.12) only those of it, and those that do not depend on it."""

    def fits(one: StoredWheel) -> bool:
        inputs = one.provenance.inputs
        if not set(gfx) <= set(inputs.gfx):
            return False
        if torch and inputs.torch and torch not in (inputs.torch, inputs.torch.partition("+")[0]):
            return False
        if rocm and inputs.rocm.split(".")[:2] != rocm.split(".")[:2]:
            return False
        return not python or inputs.python_abi.removeprefix("cp").rstrip("t") == python.replace(".", "")

    return [one for one in wheels if fits(one)]


def export(
    house: Wheelhouse, folder: Path, gfx: Sequence[str], *, torch: str = "", rocm: str = "", python: str = ""
) -> Exported:
    """Copy the wheels of one target into ``folder``, hashes verified. Raises UsageError when more than one torch would be
    mixed or the folder holds another target, CheckFailed when nothing fits or a wheel is damaged."""
    found = fitting(house.list(), gfx, torch=torch, rocm=rocm, python=python)
    if not found:
        raise CheckFailed(
            f"the wheelhouse has nothing for {', '.join(gfx)}" + (f" with torch {torch}" if torch else ""),
            hint="rocmpip wheelhouse list shows what it has",
        )
    torches = sorted({one.provenance.inputs.torch for one in found} - {""})
    if len(torches) > 1:
        raise UsageError(
            f"there are builds against {len(torches)} torch versions: {', '.join(torches)}",
            hint=f"one folder holds one of them: --torch {torches[-1]}",
        )
    target = {"gfx": sorted(set(gfx)), "torch": torches[0] if torches else ""}
    _check_folder(folder, target)
    # Exactly the asked GPUs before more of them, newer before older.
    found.sort(key=lambda one: (set(one.provenance.inputs.gfx) != set(gfx), -one.created))
    chosen: dict[str, StoredWheel] = {}
    passed_over = []
    for one in found:
        if one.filename in chosen:
            passed_over.append(one)
            continue
        sound = house.find(one.fingerprint, one.provenance.inputs.name)
        if sound is None:
            raise CheckFailed(f"{one.filename} is damaged and was not exported", hint="build it again with --rebuild")
        chosen[one.filename] = sound
    folder.mkdir(parents=True, exist_ok=True)
    for one in chosen.values():
        half = folder / f".{one.filename}.{os.getpid()}.part"
        try:
            if copy_file(one.path, half) != one.sha256:
                raise CheckFailed(f"{one.filename} changed while it was exported")
            half.replace(folder / one.filename)
        finally:
            half.unlink(missing_ok=True)
    rows = [{key: value for key, value in one.as_json().items() if key != "path"} for one in chosen.values()]
    manifest = {"schema": _SCHEMA, "target": target, "wheels": sorted(rows, key=lambda row: str(row["filename"]))}
    (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    return Exported(tuple(chosen.values()), tuple(passed_over), folder)


def _check_folder(folder: Path, target: dict[str, Any]) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder")
    there = _manifest(folder)
    if there is not None and there.get("target") != target:
        raise UsageError(f"{folder} holds the export of another target", hint="give another folder for each target")
    if there is None and any(folder.glob("*.whl")):
        raise UsageError(
            f"{folder} holds wheels that are not from here", hint="give a new folder: pip would mix them with the export"
        )


def _manifest(folder: Path) -> dict[str, Any] | None:
    path = folder / MANIFEST
    try:
        with open(path, "rb", opener=regular) as stream:
            content = stream.read(_LIMIT + 1)
        if len(content) > _LIMIT:
            raise InputError(f"{path} is too large to be a manifest")
        data = msgspec.json.decode(content)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, RecursionError) as problem:
        raise InputError(f"{path} cannot be read", why=str(problem)) from problem
    if not isinstance(data, dict) or data.get("schema") != _SCHEMA or not isinstance(data.get("wheels", []), list):
        raise InputError(f"{path} is no manifest of a schema that this rocmpip knows")
    return data


def import_folder(house: Wheelhouse, folder: Path) -> Imported:
    """Store every wheel of ``folder`` that carries a record: its hash must be the manifest's, its code objects the record's.

    Raises InputError for a folder that cannot be read.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    manifest = _manifest(folder) or {}
    wheels = manifest.get("wheels", [])
    rows = {row["filename"]: row for row in wheels if isinstance(row, dict) and isinstance(row.get("filename"), str)}
    stored: list[StoredWheel] = []
    refused: list[tuple[str, str]] = []
    for wheel in sorted(folder.glob("*.whl")):
        row = rows.pop(wheel.name, {})
        try:
            record = _record(wheel, row)
            seconds = row.get("seconds", 0.0)
            believed = isinstance(seconds, (int, float)) and 0 <= seconds < _LONGEST
            stored.append(house.put(wheel, record, seconds=float(seconds) if believed else 0.0))
        except (ValueError, OSError, CheckFailed) as problem:
            refused.append((wheel.name, str(problem)))
    refused += [(name, "the manifest names it and it is not there") for name in rows]
    return Imported(tuple(stored), tuple(refused))


def _record(wheel: Path, row: dict[str, Any]) -> Provenance:
    """The wheel's record, checked. Raises ValueError saying why it is not taken."""
    if row and sha256_of(wheel) != row.get("sha256"):
        raise ValueError("its bytes are not those of the manifest (sha256 differs)")
    inside = read_wheel(wheel)
    record = from_json(row["provenance"]) if row.get("provenance") else inside
    if record is None:
        raise ValueError("it carries no record of how it was built")
    if inside is not None and inside.fingerprint != record.fingerprint:
        raise ValueError("the manifest's record is not the one inside it")
    try:
        report = examine_wheel(wheel)
    except ElfError as problem:
        raise ValueError(str(problem)) from problem
    if record.code_objects and not all(any(covers(have, one) for have in report.gfx) for one in record.code_objects):
        raise ValueError(f"its record says {', '.join(record.code_objects)} and it holds {', '.join(report.gfx) or 'nothing'}")
    return record
