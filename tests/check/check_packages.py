"""Environments with real ELF files: libraries by gcc, device code as bundles in .hip_fatbin, as ROCm's compilers leave it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from rocmpip.app import verify as conductor
from rocmpip.check.finding import Finding
from rocmpip.check.verify import Outcome
from rocmpip.model.provenance import FILENAME, FingerprintInputs, Provenance
from tests.support.elf_files import bundle


def library(
    path: Path,
    source: str = "",
    *,
    needs: Sequence[Path] = (),
    runpath: str = "",
    rpath: str = "",
    soname: str = "",
    gfx: Sequence[str] = (),
    cplusplus: bool = False,
    script: str = "",
) -> Path:
    """A shared library. ``needs`` are linked whether used or not; ``gfx``: targets of the device code in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    code = path.parent / f"{path.name}.{'cc' if cplusplus else 'c'}"
    code.write_text(source or f"int made_{''.join(c if c.isalnum() else '_' for c in path.name)}(void) {{ return 1; }}\n")
    flags = ["-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined", f"-Wl,-soname,{soname or path.name}"]
    flags += [f"-Wl,--enable-new-dtags,-rpath,{runpath}"] if runpath else []
    flags += [f"-Wl,--disable-new-dtags,-rpath,{rpath}"] if rpath else []
    if script:
        versions = path.parent / f"{path.name}.map"
        versions.write_text(script)
        flags.append(f"-Wl,--version-script,{versions}")
    compiler = "g++" if cplusplus else "gcc"
    command = [compiler, "-shared", "-fPIC", "-O0", str(code), "-o", str(path), *flags, *map(str, needs)]
    subprocess.run(command, check=True, capture_output=True)
    code.unlink()
    if script:
        versions.unlink()
    if gfx:
        fat = path.parent / f"{path.name}.fat"
        fat.write_bytes(bundle(dict.fromkeys(gfx, b"\x7fELF" + b"x" * 60)))
        subprocess.run(["objcopy", "--add-section", f".hip_fatbin={fat}", str(path)], check=True, capture_output=True)
        fat.unlink()
    return path


def stand_in(folder: Path, name: str, source: str = "", **options: object) -> Path:
    """A library to link against that is not there at run time."""
    return library(folder / "stand-ins" / name, source, **options)  # type: ignore[arg-type]


def site(python: Path) -> Path:
    return next((python.parent.parent / "lib").glob("python3*")) / "site-packages"


def register(
    python: Path, name: str, version: str, *, requires: Sequence[str] = (), build: FingerprintInputs | None = None
) -> None:
    """A distribution whose files are what lies in the folder of its name and does not belong to anyone yet."""
    place = site(python)
    info = place / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {one}" for one in requires)]
    (info / "METADATA").write_text("\n".join(lines) + "\n\n")
    if build is not None:
        (info / FILENAME).write_text(json.dumps(Provenance("f" * 64, build, "0", f"{name} (shipped)").as_json()))
    folder = place / name.replace("-", "_")
    files = [str(file.relative_to(place)) for file in sorted(folder.rglob("*")) if file.is_file()] if folder.is_dir() else []
    files += [str(file.relative_to(place)) for file in sorted(info.rglob("*"))]
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def torch(python: Path, version: str = "2.9.1+rocm6.4", *, hip: str = "6.4.43484", symbol: str = "_ZN3c106answerEv") -> Path:
    """The shape of a fat ROCm torch: its own HIP runtime, libc10 and libtorch beside it, _C that loads them."""
    folder = site(python) / "torch"
    lib = folder / "lib"
    gfx = ("gfx90a", "gfx942", "gfx1100")
    hipruntime = library(lib / "libamdhip64.so.6", "int hipMalloc(void) { return 0; }\n")
    c10 = library(lib / "libc10.so", f"int {symbol}(void) {{ return 42; }}\n", needs=[hipruntime], runpath="$ORIGIN", gfx=gfx)
    whole = library(lib / "libtorch_python.so", needs=[c10], runpath="$ORIGIN")
    library(folder / "_C.cpython-x86_64-linux-gnu.so", needs=[whole], runpath="$ORIGIN/lib")
    constants = (
        f"__version__ = '{version}'\ndebug = False\ncuda = None\nhip = {hip!r}\n"
        if hip
        else f"cuda = '12.8'\nhip = None\n__version__ = '{version}'\n"
    )
    (folder / "version.py").write_text(constants)
    (folder / "__init__.py").write_text("from . import version\n__version__ = version.__version__\n")
    register(python, "torch", version)
    return folder


def outcome(
    python: Path, *names: str, env: Mapping[str, str], gfx: Sequence[str] = ("gfx942",), run: bool = False, limit: float = 60
) -> Outcome:
    look = conductor.look_at(names, env=env, gfx=gfx, python=str(python), cwd="/")
    return conductor.verify(look, run=run, time_limit=limit)


def findings(
    python: Path, *names: str, env: Mapping[str, str], gfx: Sequence[str] = ("gfx942",), **options: object
) -> list[Finding]:
    return list(outcome(python, *names, env=env, gfx=gfx, **options).findings)  # type: ignore[arg-type]


def kinds(python: Path, *names: str, env: Mapping[str, str], gfx: Sequence[str] = ("gfx942",)) -> set[tuple[str, str]]:
    """(kind, level) of every finding."""
    return {(one.kind, one.level) for one in findings(python, *names, env=env, gfx=gfx)}
