"""`rocmpip examine`: what a wheel (or one library) holds, in words."""

from __future__ import annotations

from pathlib import Path

from rocmpip.elf import ElfError, FileReport, WheelReport, examine_file, examine_wheel, read_wheel
from rocmpip.elf.objects import counted
from rocmpip.model.errors import InputError
from rocmpip.model.provenance import Provenance
from rocmpip.report.say import printable

_KINDS = {
    "plain": "HIP device code",
    "loose": "loose AMD code objects",
    "kpack": "AMD kernel packs",
    "kpack-ref": "libraries whose kernels stand in AMD kernel packs",
    "cuda": "CUDA device code",
}


def examine(path: Path) -> tuple[WheelReport | FileReport, Provenance | None]:
    """(report, record): a wheel as a whole, or one library or code object. Raises InputError for anything else."""
    if not path.exists():
        raise InputError(f"there is no file {path}")
    if path.is_dir():
        raise InputError(f"{path} is a folder", hint="give a wheel (.whl), a library (.so) or a code object (.co, .hsaco)")
    try:
        if path.suffix == ".whl" or path.suffix == ".zip":
            return examine_wheel(path), _record(path)
        return examine_file(path), None
    except ElfError as problem:
        raise InputError(f"{path.name} cannot be examined", why=str(problem)) from None
    except OSError as problem:
        raise InputError(f"{path} cannot be read", why=problem.strerror or str(problem)) from None


def _record(path: Path) -> Provenance | None:
    try:
        return read_wheel(path)
    except (ValueError, OSError):
        return None


def as_json(report: WheelReport | FileReport, record: Provenance | None) -> dict[str, object]:
    return {**report.as_json(), "record": record.as_json() if record is not None else None}


def words(report: WheelReport | FileReport, record: Provenance | None) -> str:
    """The report as text, most telling first."""
    files = report.files if isinstance(report, WheelReport) else (report,)
    rows = []
    if isinstance(report, WheelReport):
        rows.append(f"{report.name} {report.version}  ({report.filename}, {report.size:,} bytes)")
        rows.append(f"tags          {', '.join(report.tags) or 'none'}")
    else:
        rows.append(f"{report.path}  ({report.size:,} bytes, {report.arch or 'bundle'})")
    rows.append(f"device code   {', '.join(report.gfx) or 'none'}")
    kinds = [f"{_KINDS[kind]}" if kind in _KINDS else f"compressed HIP device code ({kind})" for kind in report.kinds]
    if kinds:
        rows.append(f"              {'; '.join(kinds)}")
    if isinstance(report, WheelReport):
        rows.append(f"links         {', '.join(report.links) or 'none'}")
    if report.cuda_links:
        rows.append(f"links CUDA    {', '.join(report.cuda_links)}")
    if record is not None:
        inputs = record.inputs
        rows.append(
            f"built by      rocmpip {record.rocmpip}, recipe {record.recipe}, for {', '.join(inputs.gfx)}, "
            f"ROCm {inputs.rocm}, torch {inputs.torch or 'none'}"
        )
    for file in files:
        rows += ["", *_file(file)] if file.code_objects or file.needed or file.problem else []
    return printable("\n".join(rows)) + "\n"


def _file(file: FileReport) -> list[str]:
    rows = [f"{file.path}  ({file.arch or 'bundle'}, {file.size:,} bytes)"]
    for target, count, size in counted(file.code_objects):
        rows.append(f"  {target:<28} {count:>5} code object{'s' if count != 1 else ''}, {size:,} bytes")
    if file.needed:
        rows.append(f"  needs {', '.join(file.needed)}")
    if file.runpath:
        rows.append(f"  looks in {', '.join(file.runpath)}")
    if file.problem:
        rows.append(f"  problem: {file.problem}")
    return rows
