"""What a build's environment depends on, looked up once: device libraries, nvcc's folders, compile caches, headers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from rocmpip.model.record import Struct

_LIMIT = 20.0
_SCCACHE_FROM = (0, 10)
"""Older sccache does not know hipcc and never hits (Debian's 0.4; measured)."""

# Where LLVM's device libraries stand under a ROCm root: classic, TheRock, Debian.
_DEVICE_LIBS = ("amdgcn/bitcode", "lib/llvm/amdgcn/bitcode", "llvm/amdgcn/bitcode", "lib/x86_64-linux-gnu/amdgcn/bitcode")


class CompileCache(Struct, frozen=True):
    """A compile cache that can be used: ``program`` is its path, ``masquerade`` a folder with compilers' names for it."""

    kind: str
    program: str
    masquerade: str = ""


class Surroundings(Struct, frozen=True):
    """Facts of the machine, so that composing the environment is a pure function."""

    device_libs: str = ""
    """Folder of the device libraries' bitcode, or ""."""
    nvcc_folders: frozenset[str] = frozenset()
    """PATH entries that hold an nvcc."""
    hipcc: str = ""
    cache: CompileCache | None = None
    cache_refused: str = ""
    """Why a compile cache that is there is not used, or ""."""
    include: str = ""
    """Folder of the HIP headers when compilers would not find them by themselves and ROCM_PATH does not hold them."""
    library: str = ""
    """Folder of the HIP runtime when the loader does not know it."""


def look_around(rocm_root: str, hip_root: str, env: Mapping[str, str], *, compile_cache: bool = True) -> Surroundings:
    """Look at the file system and the caches' versions. Never raises; what is not there is left out."""
    path = env.get("PATH", os.defpath)
    roots = [root for root in dict.fromkeys((hip_root, rocm_root)) if root]
    cache, refused = _cache(env, path) if compile_cache else (None, "")
    return Surroundings(
        device_libs=next(
            (str(Path(root) / place) for root in roots for place in _DEVICE_LIBS if _has_bitcode(Path(root) / place)), ""
        ),
        nvcc_folders=frozenset(folder for folder in path.split(os.pathsep) if folder and (Path(folder) / "nvcc").is_file()),
        hipcc=next(
            (found for root in roots if (found := shutil.which("hipcc", path=str(Path(root) / "bin")))),
            shutil.which("hipcc", path=path) or "",
        ),
        cache=cache,
        cache_refused=refused,
        include=_include(rocm_root, hip_root),
        library=_library(rocm_root),
    )


def _has_bitcode(folder: Path) -> bool:
    return (folder / "ocml.bc").is_file()


def _include(rocm_root: str, hip_root: str) -> str:
    """Torch adds ROCM_HOME/include by itself and /usr/include is known: only a HIP root apart from both is needed."""
    header = Path("include/hip/hip_runtime.h")
    if not hip_root or hip_root == "/usr" or (Path(rocm_root) / header).is_file():
        return ""
    return str(Path(hip_root) / "include") if (Path(hip_root) / header).is_file() else ""


def _library(rocm_root: str) -> str:
    """``ROOT/lib`` when it holds the HIP runtime and no line of the loader's configuration names it."""
    folder = Path(rocm_root or "/usr") / "lib"
    if str(folder) == "/usr/lib" or not any(folder.glob("libamdhip64.so*")):
        return ""
    known: set[Path] = set()
    for file in [Path("/etc/ld.so.conf"), *sorted(Path("/etc/ld.so.conf.d").glob("*.conf"))]:
        try:
            known |= {Path(line.strip()).resolve() for line in file.read_text().splitlines() if line.startswith("/")}
        except (OSError, UnicodeDecodeError):
            continue
    return "" if folder.resolve() in known else str(folder)


def _cache(env: Mapping[str, str], path: str) -> tuple[CompileCache | None, str]:
    ccache = shutil.which("ccache", path=path)
    if ccache:
        folder = Path(env.get("CCACHE_DIR") or Path(env.get("XDG_CACHE_HOME") or _home(env, ".cache")) / "ccache")
        if env.get("CCACHE_DISABLE"):
            return None, "ccache is disabled by CCACHE_DISABLE"
        if not _writable(folder):
            return None, f"ccache is not used: {folder} cannot be written"
        names = next((place for place in ("/usr/lib/ccache", "/usr/lib64/ccache") if Path(place, "c++").exists()), "")
        return CompileCache("ccache", ccache, names), ""
    sccache = shutil.which("sccache", path=path)
    if sccache:
        version = first_version(run_briefly([sccache, "--version"], env))
        if version < _SCCACHE_FROM:
            return None, f"sccache {'.'.join(map(str, version)) or 'of unknown version'} is too old to cache hipcc"
        return CompileCache("sccache", sccache), ""
    return None, ""


def _home(env: Mapping[str, str], below: str) -> Path:
    return Path(env.get("HOME") or "/nonexistent") / below


def _writable(folder: Path) -> bool:
    """True when the folder, or the nearest one above that exists, can be written."""
    for place in (folder, *folder.parents):
        if place.exists():
            return os.access(place, os.W_OK | os.X_OK)
    return False


def run_briefly(argv: list[str], env: Mapping[str, str]) -> str:
    """Output of a small helper program (both streams), "" when it fails to run or takes longer than 20 s."""
    try:
        done = subprocess.run(
            argv, env=dict(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=_LIMIT, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return ""
    return done.stdout.decode("utf-8", "replace")


def first_version(text: str) -> tuple[int, ...]:
    """The first dotted number in a program's ``--version``: ``cmake version 3.25.1`` → (3, 25, 1); () when there is none."""
    match = re.search(r"(?<![\w.])(\d+(?:\.\d+)+)", text)
    return tuple(int(part) for part in match.group(1).split(".")) if match else ()


def compiler_identity(hipcc: str, env: Mapping[str, str]) -> str:
    """Device and host compiler in one line, for the fingerprint: version lines without paths."""
    rows: list[str] = []
    if hipcc:
        lines = run_briefly([hipcc, "--version"], {**env, "HIP_PLATFORM": "amd"}).splitlines()
        rows.extend(line.strip() for line in lines if "version" in line.lower() and "/" not in line.split("version")[0])
    host = env.get("CXX") or "c++"
    program = shutil.which(host.split()[0], path=env.get("PATH", os.defpath))
    if program:
        rows.append(next(iter(run_briefly([program, "--version"], env).splitlines()), "").strip())
    return "; ".join(row for row in rows if row)
