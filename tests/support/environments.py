"""Virtual environments in milliseconds: a folder, links to an interpreter, and what a test wants in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pip

from rocmpip.demo.wheels import Artifact


@cache
def version_of(python: str) -> tuple[str, str]:
    """(full version, base interpreter's folder) of an interpreter."""
    code = "import sys; print('%d.%d.%d' % sys.version_info[:3], sys.base_prefix, sep='|')"
    told = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True).stdout
    version, _, base = told.strip().partition("|")
    return version, str(Path(base) / "bin")


def make_venv(folder: Path, python: str = "", *, with_pip: bool = False) -> Path:
    """A virtual environment at ``folder`` for ``python`` (default: the one that runs the tests); its bin/python."""
    version, home = version_of(python or sys.executable)
    minor = version.rpartition(".")[0]
    packages = folder / f"lib/python{minor}/site-packages"
    packages.mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\nversion = {version}\n")
    executable = folder / "bin" / f"python{minor}"
    executable.symlink_to(Path(home) / f"python{minor}")
    for name in ("python", "python3"):
        (folder / "bin" / name).symlink_to(executable.name)
    if with_pip:
        source = Path(pip.__file__).parent
        shutil.copytree(source, packages / "pip", ignore=shutil.ignore_patterns("__pycache__"))
        info = next(source.parent.glob("pip-*.dist-info"))
        shutil.copytree(info, packages / info.name)
    return folder / "bin/python"


def site_packages(python: Path) -> Path:
    """The site-packages folder of an environment made by ``make_venv``."""
    return next((python.parent.parent / "lib").glob("python3*")) / "site-packages"


def put(python: Path, *wheels: Artifact) -> None:
    """Unpack wheels into an environment as pip would leave them (INSTALLER, RECORD)."""
    import io
    import zipfile

    target = site_packages(python)
    for wheel in wheels:
        with zipfile.ZipFile(io.BytesIO(wheel.content)) as archive:
            archive.extractall(target)
            info = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA")).rpartition("/")[0]
        (target / info / "INSTALLER").write_text("pip\n")


def installed(python: Path) -> dict[str, str]:
    """Normalised name → version of everything in the environment, read from its dist-info folders."""
    from rocmpip.model.packages import normalise

    found = {}
    for info in site_packages(python).glob("*.dist-info"):
        name, version = info.name.removesuffix(".dist-info").split("-")[:2]
        found[normalise(name)] = version
    return found
