"""A torch that says HIP, made from the CPU wheel: the same Python, torch's own headers translated by torch's own hipify.

``torch.version.hip`` is set, torch's extension builder takes its HIP path, and ``pip wheel`` of a small extension yields real
device code that installs and imports. No kernel runs: the two HIP libraries are empty.

The CPU wheel comes from wherever this machine's pip finds ``torch==2.13.0`` (for Python 3.11), once per cache folder.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

BASE = "2.13.0"
LABEL = "rocm7.2"
HIP = "7.2.53211"
_TRANSLATED = ("c10/cuda", "ATen/cuda", "ATen/native/cuda", "torch/csrc/cuda")

# Runs in the interpreter that the wheel is for: torch's hipify as a package of its own, without importing torch.
_HIPIFY = """
import importlib.util, sys
hipify, include, *folders = sys.argv[1:]
spec = importlib.util.spec_from_file_location("hipify", hipify + "/__init__.py", submodule_search_locations=[hipify])
package = importlib.util.module_from_spec(spec)
sys.modules["hipify"] = package
spec.loader.exec_module(package)
from hipify import hipify_python
hipify_python.hipify(
    project_directory=include, output_directory=include, includes=[f"{include}/{one}/*" for one in folders],
    header_include_dirs=[include], show_progress=False, is_pytorch_extension=False,
)
"""

# torch.cuda._is_compiled() looks for this name; torch.cuda is imported after this line of torch/__init__.py.
_LINE = "from torch import _C as _C\n"
_COUNT = "_C._cuda_getDeviceCount = lambda: 0\n"


class NoCpuTorch(RuntimeError):
    """This machine's pip finds no CPU build of torch for this Python."""


def cache_folder() -> Path:
    """ROCMPIP_TEST_CACHE, else a folder in the system's temporary place."""
    return Path(os.environ.get("ROCMPIP_TEST_CACHE") or Path(tempfile.gettempdir()) / "rocmpip-test-cache")


def _tag(python: str) -> str:
    """cp311 of an interpreter."""
    if python == sys.executable:
        return f"cp{sys.version_info[0]}{sys.version_info[1]}"
    code = "import sys; print('cp%d%d' % sys.version_info[:2])"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def cpu_wheel(cache: Path, python: str = sys.executable, *, download: bool = True) -> Path:
    """The CPU wheel, downloaded once. Raises NoCpuTorch when pip offers something else (a CUDA build) or nothing, or when it
    is not in the cache and may not be downloaded (tests do not reach out)."""
    cache.mkdir(parents=True, exist_ok=True)
    found = sorted(cache.glob(f"torch-{BASE}+cpu-{_tag(python)}-*.whl"))
    if found:
        return found[0]
    if not download:
        raise NoCpuTorch(
            f"no CPU build of torch {BASE} for {_tag(python)} in {cache}: "
            f"python -m pip download --no-deps --only-binary :all: -d {cache} torch=={BASE}+cpu"
        )
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        argv = [python, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "-d", folder, f"torch=={BASE}+cpu"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        wheels = sorted(Path(folder).glob("torch-*+cpu-*.whl"))
        if done.returncode or not wheels:
            raise NoCpuTorch(f"pip finds no CPU build of torch {BASE} here: {done.stderr.strip()[-300:]}")
        final = cache / wheels[0].name
        wheels[0].replace(final)
    return final


def make_hip_torch(
    dest: Path, *, label: str = LABEL, hip: str = HIP, python: str = sys.executable, download: bool = True
) -> Path:
    """Write ``torch-2.13.0+LABEL-….whl`` into ``dest`` and return it; one that is there already is taken.

    ``label`` is the local version label, ``hip`` what ``torch.version.hip`` says. Needs gcc. Raises NoCpuTorch.
    """
    dest.mkdir(parents=True, exist_ok=True)
    there = sorted(dest.glob(f"torch-{BASE}+{label}-{_tag(python)}-*.whl"))
    if there:
        return there[0]
    source = cpu_wheel(cache_folder(), python, download=download)
    final = dest / source.name.replace("+cpu-", f"+{label}-")
    with tempfile.TemporaryDirectory(dir=dest) as folder:
        added = _additions(source, Path(folder), python)
        half = Path(folder) / final.name
        _repack(source, half, added, label, hip)
        half.replace(final)
    return final


def _additions(source: Path, folder: Path, python: str) -> dict[str, bytes]:
    """Member → bytes of what the HIP build has and the CPU wheel has not: translated headers and two empty libraries."""
    prefix = "torch/include/"
    with zipfile.ZipFile(source) as archive:
        wanted = [
            name
            for name in archive.namelist()
            if name.startswith((*(prefix + one + "/" for one in _TRANSLATED), "torch/utils/hipify/"))
        ]
        archive.extractall(folder, wanted)
    include = folder / "torch/include"
    before = {path for path in include.rglob("*") if path.is_file()}
    argv = [python, "-c", _HIPIFY, str(folder / "torch/utils/hipify"), str(include), *_TRANSLATED]
    subprocess.run(argv, check=True, capture_output=True)
    after = {path for path in include.rglob("*") if path.is_file()} - before
    added = {path.relative_to(folder).as_posix(): path.read_bytes() for path in after}
    added[prefix + "c10/hip/impl/hip_cmake_macros.h"] = b"#pragma once\n"
    # The CPU wheel has no c10/cuda/impl/cuda_cmake_macros.h either, and not every header names the translated one.
    added.setdefault(prefix + "c10/cuda/impl/cuda_cmake_macros.h", b"#pragma once\n")
    for name in ("libc10_hip.so", "libtorch_hip.so"):
        library = folder / name
        argv = ["gcc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", str(library), f"-Wl,-soname,{name}"]
        subprocess.run(argv, check=True)
        added["torch/lib/" + name] = library.read_bytes()
    return added


def _repack(source: Path, target: Path, added: dict[str, bytes], label: str, hip: str) -> None:
    """Copy the wheel with ``added``, the new version and a RECORD of it all. Stored, not deflated: quick to write and install."""
    old_info, new_info = f"torch-{BASE}+cpu.dist-info/", f"torch-{BASE}+{label}.dist-info/"
    rows: list[list[str]] = []
    with zipfile.ZipFile(source) as before, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as after:

        def put(name: str, data: bytes, mode: int = 0o644) -> None:
            member = zipfile.ZipInfo(name)
            member.external_attr = (0o100000 | mode) << 16
            after.writestr(member, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append([name, f"sha256={digest}", str(len(data))])

        for member in before.infolist():
            if member.is_dir() or member.filename == old_info + "RECORD" or member.filename in added:
                continue
            data = before.read(member)
            if member.filename == "torch/version.py":
                text = data.decode().replace(f"'{BASE}+cpu'", f"'{BASE}+{label}'")
                data = text.replace("hip: Optional[str] = None", f"hip: Optional[str] = {hip!r}").encode()
            elif member.filename == "torch/__init__.py":
                data = _with_count(data.decode()).encode()
            elif member.filename == old_info + "METADATA":
                data = data.replace(f"Version: {BASE}+cpu".encode(), f"Version: {BASE}+{label}".encode(), 1)
            name = member.filename.replace(old_info, new_info) if member.filename.startswith(old_info) else member.filename
            put(name, data, member.external_attr >> 16 & 0o777 or 0o644)
        for name, data in sorted(added.items()):
            put(name, data, 0o755 if name.endswith(".so") else 0o644)
        rows.append([new_info + "RECORD", "", ""])
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        after.writestr(new_info + "RECORD", text.getvalue())


def _with_count(text: str) -> str:
    """``torch/__init__.py`` with a device count of 0."""
    assert text.count(_LINE) == 1, "torch/__init__.py is not the one this was written for"
    return text.replace(_LINE, _LINE + _COUNT)


def hip_environment(python: str = sys.executable, *, download: bool = True) -> Path:
    """The interpreter of an environment with pip and the HIP torch in the cache folder, made once; tests must not change it.

    torch's other requirements are left out: ``import torch`` and its extension builder need typing_extensions alone.
    """
    from filelock import FileLock

    from tests.support.environments import make_venv, site_packages

    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    place = cache / f"hip-environment-{_tag(python)}"
    with FileLock(f"{place}.lock"):
        if (place / "ready").exists():
            return place / "bin/python"
        shutil.rmtree(place, ignore_errors=True)
        torch = make_hip_torch(cache, python=python, download=download)
        made = make_venv(place, python, with_pip=True)
        with zipfile.ZipFile(torch) as archive:
            archive.extractall(site_packages(made))
        import typing_extensions

        shutil.copy(typing_extensions.__file__, site_packages(made))
        # Byte code of what the builds import, whatever PYTHONDONTWRITEBYTECODE says to them.
        env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        subprocess.run(
            [str(made), "-W", "ignore", "-c", "import torch.utils.cpp_extension"], env=env, check=False, capture_output=True
        )
        (place / "ready").write_text("")
    return made


if __name__ == "__main__":
    sys.stdout.write(f"{make_hip_torch(Path(sys.argv[1]))}\n")
