"""What an environment holds for the GPU: distributions, their ELF files, their device code. Read from files alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from rocmpip.check.family import record
from rocmpip.elf import CodeObject, ElfError, FileReport, examine_file, read_installed
from rocmpip.elf.links import stem
from rocmpip.model.machine import InstalledDist
from rocmpip.model.provenance import Provenance
from rocmpip.model.record import Struct, field

ROCM_STEMS = frozenset(
    "libamdhip64 libhsa-runtime64 libamd_comgr libhiprtc librocblas libhipblas libhipblaslt libMIOpen librccl libhipfft librocfft "
    "libhiprand librocrand libhipsparse librocsparse libhipsparselt libhipsolver librocsolver libroctx64 libroctracer64 librocm_smi64 "
    "librocprofiler-register librocprofiler-sdk libmigraphx libmigraphx_c libhipcub librocm-core libamd_smi librocm_sysdeps".split()
)
"""Libraries of ROCm, by name without version."""
TORCH_STEMS = frozenset({"libtorch", "libtorch_cpu", "libtorch_hip", "libtorch_cuda", "libtorch_python", "libc10", "libc10_hip", "libc10_cuda", "libcaffe2_nvrtc"})  # fmt: skip

_SHARED = re.compile(r"\.so(?:\.[0-9.]+)?$")
_LOOSE = (".co", ".hsaco")
_PACKED = re.compile(r"_(gfx[0-9a-f]+)\.kpack$")
_VARIANT = re.compile(r"[_-]?(?:cuda|rocm|hip|cu)_?\d[\d_.]*|[_-](?:cuda|rocm|hip|cpu|xpu)(?=[._-]|$)")
_CUDA_VARIANT = re.compile(r"(?:cuda|cu)_?\d|[_-]cuda(?=[._-])")
_MAX_FILES = 500_000


class GpuFile(Struct, frozen=True):
    """One ELF file or loose code object of a distribution. ``path`` is absolute, ``name`` relative to site-packages."""

    path: str
    name: str
    report: FileReport

    @property
    def hip(self) -> bool:
        """AMD device code, or links to ROCm."""
        return (
            bool(self.report.code_objects)
            or any(stem(lib) in ROCM_STEMS for lib in self.report.needed)
            or "kpack-ref" in self.report.kinds
        )

    @property
    def torch(self) -> bool:
        return any(stem(library) in TORCH_STEMS for library in self.report.needed)

    @property
    def cuda(self) -> bool:
        """CUDA device code, or links to CUDA."""
        return bool(self.report.cuda_links) or "cuda" in self.report.kinds

    @property
    def variant(self) -> str:
        """The name without its CUDA or ROCm version, when it has one: files with one variant name are alternatives."""
        base = os.path.basename(self.name)  # noqa: PTH119
        bare = _VARIANT.sub("", base, count=1)
        return bare if bare != base else ""

    @property
    def cuda_variant(self) -> bool:
        return bool(self.variant) and bool(_CUDA_VARIANT.search(os.path.basename(self.name)))  # noqa: PTH119

    @property
    def loadable(self) -> bool:
        """A shared library for the host."""
        return self.report.arch not in ("", "amdgpu")


class Dist(Struct, frozen=True, dict=True):
    """One distribution with its files that matter."""

    dist: InstalledDist
    files: tuple[GpuFile, ...] = ()
    provenance: Provenance | None = None

    @property
    def name(self) -> str:
        return self.dist.name

    @cached_property
    def hip(self) -> bool:
        return any(file.hip for file in self.files)

    @cached_property
    def cuda(self) -> bool:
        return any(file.cuda for file in self.files)

    @cached_property
    def torch(self) -> bool:
        return any(file.torch for file in self.files)

    @property
    def gpu(self) -> bool:
        return self.hip or self.cuda or self.torch or self.provenance is not None

    @cached_property
    def objects(self) -> tuple[CodeObject, ...]:
        return tuple(found for file in self.files for found in file.report.code_objects)


class Inventory(Struct, frozen=True):
    """``dists`` are all of them; ``gpu`` those with something for a GPU in them."""

    dists: Mapping[str, Dist]
    elf_files: int = 0
    problems: tuple[str, ...] = ()
    unowned: tuple[GpuFile, ...] = field(default=())
    """GPU code in site-packages that no distribution records."""

    @property
    def gpu(self) -> tuple[Dist, ...]:
        return tuple(dist for dist in self.dists.values() if dist.gpu)


def take(site_packages: Sequence[str], dists: Iterable[InstalledDist], names: frozenset[str] = frozenset()) -> Inventory:
    """Look into every ELF file of the distributions (of ``names`` alone when given)."""
    owners: dict[str, str] = {}
    known = {dist.name: dist for dist in dists}
    for dist in known.values():
        site = os.path.dirname(dist.path)  # noqa: PTH120
        for file in record(dist):
            if _wanted(file):
                owners[os.path.normpath(os.path.join(site, file))] = dist.name  # noqa: PTH118
    files: dict[str, list[GpuFile]] = {}
    loose: list[GpuFile] = []
    problems: list[str] = []
    count = 0
    for site in dict.fromkeys(site_packages):
        for path in _walk(site):
            owner = owners.get(os.path.normpath(path)) or _by_folder(path, site, known)
            if names and owner not in names:
                continue
            name = os.path.relpath(path, site)
            try:
                report = _examined(path)
            except ElfError:
                continue
            except OSError as problem:
                problems.append(f"{name}: {problem.strerror or problem}")
                continue
            count += 1
            if report.problem:
                problems.append(f"{name}: {report.problem}")
            found = GpuFile(path, name, report)
            if owner:
                files.setdefault(owner, []).append(found)
            elif found.hip or found.cuda:
                loose.append(found)
    return Inventory(
        {name: Dist(dist, tuple(files.get(name, ())), read_installed(Path(dist.path))) for name, dist in known.items()
         if not names or name in names},
        count, tuple(problems), tuple(loose),
    )  # fmt: skip


def _wanted(file: str) -> bool:
    return bool(_SHARED.search(file)) or file.endswith(_LOOSE) or file.endswith(".kpack")


def _examined(path: str) -> FileReport:
    packed = _PACKED.search(path)
    if packed:
        size = os.stat(path).st_size  # noqa: PTH116
        return FileReport(path, size, "", ("kpack",), (CodeObject(packed.group(1), (), size),))
    return examine_file(path)


def _walk(site: str) -> Iterator[str]:
    seen = 0
    for folder, below, names in os.walk(site):
        below.sort()
        for name in sorted(names):
            seen += 1
            if seen > _MAX_FILES:
                return
            if _wanted(name):
                yield os.path.join(folder, name)  # noqa: PTH118


def _by_folder(path: str, site: str, known: Mapping[str, InstalledDist]) -> str:
    """The owner of a file without a record: the distribution that is called like its top folder."""
    top = Path(path).relative_to(site).parts[0].split(".")[0].lower().replace("_", "-")
    return top if top in known and not record(known[top]) else ""
