"""`rocmpip wheelhouse`: list, show, verify, prune, export and import what was built here."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from rocmpip.app.build_package import wheelhouse_of
from rocmpip.model.errors import CheckFailed, UsageError
from rocmpip.model.gfx import parse_gfx
from rocmpip.report import say
from rocmpip.report.say import printable
from rocmpip.store.settings import load_settings
from rocmpip.store.wheelhouse import StoredWheel, Wheelhouse
from rocmpip.store.wheelhouse_export import Exported, Imported, export, import_folder

_DAY = 86_400.0


def open_wheelhouse(env: Mapping[str, str]) -> Wheelhouse:
    """The wheelhouse of this user's settings."""
    return wheelhouse_of(load_settings({}, env, str(Path.cwd())), say.warning)


def row(one: StoredWheel) -> str:
    """One line: what it is, what it was built for."""
    inputs = one.provenance.inputs
    made = time.strftime("%Y-%m-%d", time.localtime(one.created))
    return printable(
        f"{one.fingerprint[:12]}  {one.filename}  {','.join(inputs.gfx)}  ROCm {inputs.rocm}"
        f"{f'  torch {inputs.torch}' if inputs.torch else ''}  {one.size / 1e6:.1f} MB  {made}"
    )


def words(one: StoredWheel) -> str:
    """Everything about one wheel."""
    record, inputs = one.provenance, one.provenance.inputs
    rows = [
        ("wheel", str(one.path)),
        ("fingerprint", one.fingerprint),
        ("sha256", one.sha256),
        ("size", f"{one.size:,} bytes"),
        ("built", time.strftime("%Y-%m-%d %H:%M", time.localtime(one.created)) + f" in {one.seconds:.0f} s"),
        ("package", f"{inputs.name} {inputs.version}"),
        ("source", inputs.source),
        ("recipe", f"{record.recipe}  {inputs.recipe}"),
        ("back end", inputs.backend),
        ("GPUs", ", ".join(inputs.gfx)),
        ("code objects", ", ".join(record.code_objects) or "none"),
        ("ROCm", inputs.rocm),
        ("torch", inputs.torch),
        ("Python", inputs.python_abi),
        ("platform", inputs.platform),
        ("compiler", inputs.compiler),
        ("-C", ", ".join(inputs.config_settings)),
        ("your variables", ", ".join(inputs.env)),
        ("run time", ", ".join(f"{key}={value}" for key, value in record.runtime.items())),
        ("rocmpip", record.rocmpip),
    ]
    return printable("".join(f"{name:<15}{value}\n" for name, value in rows if value))


def verify(house: Wheelhouse) -> tuple[StoredWheel, ...]:
    """All sound wheels. Raises CheckFailed naming each damaged one."""
    sound, faults = house.verify()
    if faults:
        problem = CheckFailed(
            f"{len(faults)} of {len(sound) + len(faults)} wheels in the wheelhouse are damaged",
            hint="rocmpip wheelhouse prune removes them; the next install builds them again",
            details=tuple(f"{fault.path}: {fault.reason}" for fault in faults),
        )
        problem.result = {  # type: ignore[attr-defined]
            "sound": len(sound),
            "faults": [{"path": fault.path, "reason": fault.reason} for fault in faults],
        }
        raise problem
    return sound


def prune(
    house: Wheelhouse, *, older_than_days: float | None, keep: int | None, everything: bool
) -> tuple[tuple[StoredWheel, ...], int]:
    """Remove damaged wheels and leftovers, and what the options name; (wheels removed, bytes freed)."""
    spared: set[str] = set()
    if keep is not None:
        count: dict[str, int] = {}
        for one in house.list():  # newest first within a project
            name = one.provenance.inputs.name
            count[name] = count.get(name, 0) + 1
            if count[name] <= keep:
                spared.add(one.fingerprint)
    age = older_than_days * _DAY if older_than_days is not None else None

    def stays(one: StoredWheel) -> bool:
        return not everything and (keep is None or one.fingerprint in spared)

    return house.prune(older_than=age, keep=stays)


def targets(text: str) -> tuple[str, ...]:
    """``gfx90a,gfx942`` as names. Raises UsageError."""
    try:
        found = tuple(dict.fromkeys(parse_gfx(part).name for part in text.replace(";", ",").split(",") if part.strip()))
    except ValueError as problem:
        raise UsageError(str(problem), hint="TARGET is one gfx or several joined with commas: gfx90a,gfx942") from None
    if not found:
        raise UsageError("TARGET names no GPU", hint="one gfx or several joined with commas: gfx90a,gfx942")
    return found


def export_target(
    house: Wheelhouse, target: str, folder: Path, *, torch: str = "", rocm: str = "", python: str = ""
) -> Exported:
    return export(house, folder, targets(target), torch=torch, rocm=rocm, python=python)


def import_wheels(house: Wheelhouse, folder: Path) -> Imported:
    """Import; raises CheckFailed when a wheel was refused (the sound ones are stored)."""
    done = import_folder(house, folder)
    if done.refused:
        problem = CheckFailed(
            f"{len(done.refused)} wheels of {folder} were not taken; {len(done.wheels)} were",
            details=tuple(f"{name}: {why}" for name, why in done.refused),
        )
        problem.result = {  # type: ignore[attr-defined]
            "imported": [one.as_json() for one in done.wheels],
            "refused": [{"filename": name, "reason": why} for name, why in done.refused],
        }
        raise problem
    return done
