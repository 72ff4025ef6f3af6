"""The target environment: torch, triton and ROCm together, C++ runtime, glibc, system Python."""

from __future__ import annotations

import errno
import os
import re
import shlex
import stat

from rocmpip.check.family import Fault, cuda_faults, torch_faults, triton_faults
from rocmpip.check.look import MULTIARCH, Look
from rocmpip.check.result import BROKEN, OK, SKIPPED, WARN, Check
from rocmpip.model.rocm import rocm_of_label

_LIBRARY = "libstdc++.so.6"
_MARK = re.compile(rb"GLIBCXX_3\.4\.(\d+)\x00")
_LIBC = re.compile(rb"GNU C Library [^\n]*?release version (\d+)\.(\d+)")
_LIMIT = 32 << 20

GLIBC_FROM = (2, 28)
"""torch's ROCm wheels are manylinux_2_28 since torch 2.6."""


def _told(name: str, title: str, faults: list[Fault], fine: tuple[str, ...]) -> Check:
    if not faults:
        return Check(name, title, OK, fine)
    verdict = WARN if all(fault.warns for fault in faults) else BROKEN
    evidence = tuple(dict.fromkeys(row for fault in faults for row in (fault.what, *fault.evidence)))
    why = "; ".join(dict.fromkeys(fault.why for fault in faults if fault.why))
    return Check(name, title, verdict, evidence, why, tuple(dict.fromkeys(row for fault in faults for row in fault.fix)))


def torch(look: Look) -> Check:
    """Is the installed torch a ROCm build with kernels for the GPU, with its own torchvision and torchaudio?"""
    name, title = "torch", "torch fits the GPU and its companions"
    installed = look.installed.get("torch")
    if installed is None:
        return Check(name, title, SKIPPED, why="torch is not installed")
    aimed = look.platform.state != "none"
    faults = torch_faults(look.installed, look.catalogue, look.platform.gfx_targets, aimed=aimed)
    evidence = [f"torch {installed.version} ({installed.path})"]
    label = rocm_of_label(installed.version)
    if not faults and label is not None and look.rocm is not None and look.kind in ("root", "distribution"):
        evidence.append(f"ROCm {look.rocm} ({look.root})")
        if label.minor != look.rocm.minor:
            evidence.append("the wheel brings its own ROCm; packages that are compiled here mix the two")
            if label.minor[0] != look.rocm.minor[0] and hipcc_there(look):
                why = f"packages compiled with ROCm {look.rocm} do not load beside a torch for ROCm {label}"
                fix = (f"rocmpip install --force-reinstall --rocm {look.rocm.minor[0]}.{look.rocm.minor[1]} torch",)
                return Check(name, title, WARN, tuple(evidence), why, fix)
    return _told(name, title, faults, tuple(evidence))


def hipcc_there(look: Look) -> bool:
    return any(look.executable(f"{root}/bin/hipcc") for root in look.roots)


def triton(look: Look) -> Check:
    """One triton, and torch's."""
    name, title = "triton", "one triton, and torch's own"
    faults = triton_faults(look.installed, look.catalogue)
    tritons = tuple(f"{dist.name} {dist.version}" for key, dist in look.installed.items() if "triton" in key)
    if not tritons:
        return Check(name, title, SKIPPED, why="triton is not installed")
    return _told(name, title, faults, tritons)


def cuda_packages(look: Look) -> Check:
    """Packages of CUDA in the environment."""
    name, title = "cuda-packages", "no CUDA packages in the environment"
    if look.platform.state == "none":
        return Check(name, title, SKIPPED, why="no AMD GPU and no ROCm are seen here")
    faults = cuda_faults(look.installed, look.catalogue)
    if not faults:
        return Check(name, title, OK, (f"none of {len(look.installed)} packages is CUDA's",))
    listed = tuple(fault.what for fault in faults)
    names = " ".join(fault.name for fault in faults)
    return Check(
        name,
        title,
        WARN,
        listed,
        "they fill the disk, and other packages may take them for a CUDA machine",
        (f"rocmpip uninstall -y {names}",),
    )


def _content(look: Look, path: str) -> bytes:
    """The file's first bytes. Raises OSError, for a pipe or device too: reading one would never end."""
    with open(os.open(look.host(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        return stream.read(_LIMIT)


def glibcxx(look: Look, path: str) -> int:
    """The newest GLIBCXX_3.4.N that a libstdc++ provides (its own file is called libstdc++.so.6.0.N), 0 when neither tells."""
    try:
        found = max((int(number) for number in _MARK.findall(_content(look, path))), default=0)
    except OSError:
        return 0
    named = re.search(r"libstdc\+\+\.so\.6\.0\.(\d+)$", look.real(path))
    return found or (int(named.group(1)) if named else 0)


def libstdcxx(look: Look) -> Check:
    """A C++ runtime older than the system's in front of it: ROCm's libraries then do not load."""
    name, title = "libstdcxx", "no older libstdc++ in front of the system's"
    system = next((path for folder in look.library_folders if glibcxx(look, path := f"{folder}/{_LIBRARY}")), "")
    preload = look.env.get("LD_PRELOAD", "").replace(" ", ":").split(":")
    front = [(path, "LD_PRELOAD") for path in preload if path.endswith(_LIBRARY)]
    front += [(f"{folder.rstrip('/')}/{_LIBRARY}", "LD_LIBRARY_PATH") for folder in look.folders("LD_LIBRARY_PATH")]
    conda = look.env.get("CONDA_PREFIX", "")
    if look.target is not None and look.target.kind == "conda":
        conda = look.target.prefix
    if conda:
        # conda's interpreter looks in its own lib folder before all others (RPATH $ORIGIN/../lib).
        front.append((f"{conda.rstrip('/')}/lib/{_LIBRARY}", "conda"))
    have = glibcxx(look, system) if system else 0
    first = next(((path, source, number) for path, source in front if (number := glibcxx(look, path))), None)
    if not system and (first is None or first[1] == "conda" or not _of_conda(look, first[0])):
        return Check(name, title, SKIPPED, why="the system's libstdc++ was not found")
    evidence = [f"{system} provides GLIBCXX_3.4.{have}"] if system else []
    if first is None:
        return Check(name, title, OK, tuple(evidence))
    path, source, number = first
    evidence.insert(0, f"{path} (by {source}) provides GLIBCXX_3.4.{number}")
    if system and (number >= have or look.real(path) == look.real(system)):
        return Check(name, title, OK, tuple(evidence))
    needed = f"GLIBCXX_3.4.{have or 'N'}"
    why = f"libraries made for this system fail to load: version '{needed}' not found (required by …)"
    if source == "LD_LIBRARY_PATH":
        kept = [folder for folder in look.folders(source) if f"{folder.rstrip('/')}/{_LIBRARY}" != path]
        fix = f"export LD_LIBRARY_PATH={shlex.quote(':'.join(kept))}" if kept else "unset LD_LIBRARY_PATH"
    elif source == "LD_PRELOAD":
        fix = "unset LD_PRELOAD"
    else:
        why += f"; for good: conda install -c conda-forge 'libstdcxx-ng>={_gcc_of(have)}'"
        fix = f"export LD_PRELOAD={shlex.quote(system)}"
    return Check(name, title, WARN, tuple(evidence), why, (fix,))


def _of_conda(look: Look, path: str) -> bool:
    """True for a library in a conda environment's lib folder."""
    prefix = path.rpartition("/lib/")[0]
    return prefix == look.env.get("CONDA_PREFIX", "").rstrip("/") or look.is_folder(f"{prefix}/conda-meta")


def _gcc_of(number: int) -> int:
    """The GCC that brought GLIBCXX_3.4.N (libstdc++'s ABI history)."""
    for since, gcc in ((34, 15), (33, 14), (31, 13), (30, 12), (29, 11), (28, 10), (26, 9)):
        if number >= since:
            return gcc
    return 8


def glibc_version(look: Look) -> tuple[int, ...]:
    """The C library's version: of this process, or of the simulated root's libc."""
    if not look.simulated:
        try:
            text = os.confstr("CS_GNU_LIBC_VERSION") or ""
        except (ValueError, OSError):
            return ()
        return tuple(int(part) for part in re.findall(r"\d+", text)[:2])
    for folder in (
        *(f"/lib/{arch}" for arch in MULTIARCH),
        *(f"/usr/lib/{arch}" for arch in MULTIARCH),
        "/lib64",
        "/usr/lib64",
        "/lib",
    ):
        try:
            found = _LIBC.search(_content(look, f"{folder}/libc.so.6"))
        except OSError:
            continue
        named = re.search(r"libc-(\d+)\.(\d+)\.so$", look.real(f"{folder}/libc.so.6"))
        if found or named:
            return tuple(int(part) for part in (found or named).groups())  # type: ignore[union-attr]
    return ()


def glibc(look: Look) -> Check:
    """New enough for today's wheels."""
    name, title = "glibc", "C library"
    number = glibc_version(look)
    if not number:
        return Check(name, title, SKIPPED, why="no GNU C library was found")
    evidence = (f"glibc {number[0]}.{number[1]}",)
    if number < GLIBC_FROM:
        why = f"wheels of torch 2.6 and later need glibc {GLIBC_FROM[0]}.{GLIBC_FROM[1]}; pip does not see them here"
        return Check(name, title, WARN, evidence, why, ("rocmpip install 'torch<2.6'",))
    return Check(name, title, OK, evidence)


def place(look: Look) -> Check:
    """Installs go into an environment of their own."""
    name, title = "environment", "an environment of its own"
    target = look.target
    if target is None:
        why = "no Python environment was found: activate one, or name it with --python"
        return Check(name, title, WARN, (), why, ("python3 -m venv .venv", ". .venv/bin/activate"))
    evidence = (f"{target.python} ({target.kind}, {target.source})",)
    if target.kind == "system":
        why = "installs would change the Python that the system itself uses"
        if target.externally_managed:
            why += "; the distribution forbids it (EXTERNALLY-MANAGED)"
        return Check(name, title, WARN, evidence, why, (f"{shlex.quote(target.python)} -m venv .venv", ". .venv/bin/activate"))
    return Check(name, title, OK, evidence)
