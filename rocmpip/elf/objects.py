"""One file: its device code and what it links."""

from __future__ import annotations

import os
from pathlib import Path

from rocmpip.elf.bundle import bundles, is_bundle
from rocmpip.elf.headers import MAGIC, ElfFile
from rocmpip.elf.links import cuda_links
from rocmpip.elf.source import ElfError, PartSource, Source, opened
from rocmpip.elf.targets import EM_AMDGPU, CodeObject, from_flags
from rocmpip.model.record import Struct

Data = bytes | bytearray | memoryview | str | os.PathLike[str]

# Where CUDA's compiler puts its device code, and the marker of AMD's kernel packs (the code stands in .kpack files beside).
_CUDA_SECTIONS = (".nv_fatbin", ".nvFatBinSegment")
_KPACK_SECTION = ".rocm_kpack_ref"
HEAD = 24
"""How many of a file's first bytes ``interesting`` wants to see."""


class FileReport(Struct, frozen=True):
    """What one file holds. ``path`` is the caller's name for it (a wheel's member)."""

    path: str
    size: int
    arch: str
    """Host architecture (x86_64, aarch64 …), "amdgpu" for a loose code object, "" for a bundle without ELF around it."""
    kinds: tuple[str, ...] = ()
    """Device code kinds, sorted: plain, ccob-v2-zstd …, loose, kpack-ref, cuda."""
    code_objects: tuple[CodeObject, ...] = ()
    needed: tuple[str, ...] = ()
    soname: str = ""
    runpath: tuple[str, ...] = ()
    problem: str = ""
    """Why the file could not be read to the end, or ""."""

    @property
    def gfx(self) -> tuple[str, ...]:
        """Targets without features, sorted, without repeats."""
        return tuple(sorted({found.target for found in self.code_objects}))

    @property
    def cuda_links(self) -> tuple[str, ...]:
        """CUDA libraries it needs."""
        return cuda_links(self.needed)

    def as_json(self) -> dict[str, object]:
        return {
            "path": self.path,
            "size": self.size,
            "arch": self.arch,
            "gfx": list(self.gfx),
            "kinds": list(self.kinds),
            "code_objects": [
                {"target": target, "count": count, "size": size} for target, count, size in counted(self.code_objects)
            ],
            "needed": list(self.needed),
            "cuda_links": list(self.cuda_links),
            "runpath": list(self.runpath),
            "problem": self.problem,
        }


def counted(objects: tuple[CodeObject, ...]) -> list[tuple[str, int, int]]:
    """(target with features, how many, bytes), sorted: one code object for each source file and target."""
    rows: dict[str, tuple[int, int]] = {}
    for found in objects:
        count, size = rows.get(str(found), (0, 0))
        rows[str(found)] = (count + 1, size + found.size)
    return [(target, count, size) for target, (count, size) in sorted(rows.items())]


def interesting(head: bytes) -> bool:
    """True when a file that starts with ``head`` may hold device code or links."""
    return head.startswith(MAGIC) or is_bundle(head)


def examine_source(source: Source, path: str) -> FileReport:
    """Read one file's headers. Never raises for broken content: the report's ``problem`` says what is wrong."""
    if is_bundle(source.read(0, HEAD)):
        return _bundles_only(source, path)
    try:
        elf = ElfFile(source)
    except ElfError as problem:
        return FileReport(path, source.size, "", problem=str(problem))
    if elf.machine == EM_AMDGPU:
        found = from_flags(elf.flags, elf.abi_version, source.size)
        return FileReport(path, source.size, elf.arch, ("loose",), (found,))
    kinds: set[str] = set()
    objects: list[CodeObject] = []
    problems: list[str] = []
    try:
        names = {section.name for section in elf.sections()}
        kinds |= {"cuda"} if names & set(_CUDA_SECTIONS) else set()
        kinds |= {"kpack-ref"} if _KPACK_SECTION in names else set()
        # Without section headers the bundles are still there: their magic finds them.
        if not elf.sections():
            for bundle in bundles(source):
                kinds.add(bundle.kind)
                objects.extend(bundle.objects)
        for section in elf.sections():
            # One object file may carry several (relocatable objects name them .hip_fatbin, .hip_fatbin.1 …).
            if section.name.startswith(".hip_fatbin") and section.size:
                for bundle in bundles(PartSource(source, section.offset, section.size)):
                    kinds.add(bundle.kind)
                    objects.extend(bundle.objects)
    except ElfError as problem:
        problems.append(str(problem))
    try:
        dynamic = elf.dynamic()
    except ElfError as problem:
        problems.append(str(problem))
        return FileReport(path, source.size, elf.arch, tuple(sorted(kinds)), tuple(objects), problem="; ".join(problems))
    return FileReport(
        path, source.size, elf.arch, tuple(sorted(kinds)), tuple(objects),
        dynamic.needed, dynamic.soname, dynamic.runpath, "; ".join(problems),
    )  # fmt: skip


def _bundles_only(source: Source, path: str) -> FileReport:
    kinds: set[str] = set()
    objects: list[CodeObject] = []
    problem = ""
    try:
        for bundle in bundles(source):
            kinds.add(bundle.kind)
            objects.extend(bundle.objects)
    except ElfError as trouble:
        problem = str(trouble)
    return FileReport(path, source.size, "", tuple(sorted(kinds)), tuple(objects), problem=problem)


def examine_file(path: str | os.PathLike[str]) -> FileReport:
    """One library, loose code object or bundle. Raises ElfError for what is none of them, OSError when it cannot be read."""
    with opened(path) as source:
        if not interesting(source.read(0, HEAD)):
            raise ElfError("neither an ELF file nor an offload bundle")
        return examine_source(source, Path(path).name)


def code_objects(data: Data) -> tuple[CodeObject, ...]:
    """All device code of one file (bytes, or a path): every entry of every bundle in file order, or the loose object itself.

    () for a file without any, and for what is neither ELF nor a bundle. Raises ElfError only when the file is broken
    in a way that hides device code; OSError when a path cannot be read.
    """
    with opened(data) as source:
        if not interesting(source.read(0, HEAD)):
            return ()
        report = examine_source(source, "")
    if report.problem and not report.code_objects:
        raise ElfError(report.problem)
    return report.code_objects


def needed(data: Data) -> tuple[str, ...]:
    """DT_NEEDED of one ELF file (bytes, or a path), in order; () for what has none. Raises ElfError for what is no ELF file."""
    with opened(data) as source:
        return ElfFile(source).dynamic().needed


def undefined_symbols(data: Data) -> tuple[str, ...]:
    """Dynamic symbols that others must define. Raises ElfError for what is no ELF file."""
    with opened(data) as source:
        return ElfFile(source).undefined()
