"""The dynamic linker's search, replayed without loading anything (ld.so(8)): one process, its libraries in loading order."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from rocmpip.elf import ElfError, Linkage, Symbols, linkage, symbols
from rocmpip.model.record import Struct, field
from rocmpip.model.regular import regular

_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_DEFAULT = ("/lib", "/usr/lib", "/lib64", "/usr/lib64")
_ORIGIN = re.compile(r"\$(?:ORIGIN|\{ORIGIN\})")
_LIB = re.compile(r"\$(?:LIB|\{LIB\})")
_MULTIARCH = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu"}
# The program interpreter names itself; it is always loaded.
_INTERPRETERS = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}


class Module(Struct, frozen=True, dict=True):
    """One loaded file. ``path`` is the one it was found by."""

    path: str
    links: Linkage
    parent: Module | None = None
    """Who asked for it: RPATHs are inherited along this way."""

    @cached_property
    def real(self) -> str:
        return os.path.realpath(self.path)


class Missing(Struct, frozen=True):
    """A library that was not found. ``by`` is the file that needs it."""

    library: str
    by: str


class Files:
    """Headers and symbols of files, read once. ``place`` maps a path to where it really is (a simulated root's /opt)."""

    def __init__(self, place: Callable[[str], str] = lambda path: path) -> None:
        self._place = place
        self._links: dict[str, Linkage | None] = {}
        self._symbols: dict[str, Symbols] = {}

    def links(self, path: str) -> Linkage | None:
        """None for what is missing or no ELF file."""
        if path not in self._links:
            try:
                real = self._place(path)
                self._links[path] = linkage(real) if os.path.isfile(real) else None  # noqa: PTH113
            except (ElfError, OSError):
                self._links[path] = None
        return self._links[path]

    def symbols(self, path: str) -> Symbols:
        if path not in self._symbols:
            try:
                self._symbols[path] = symbols(self._place(path))
            except (ElfError, OSError):
                self._symbols[path] = Symbols()
        return self._symbols[path]


class Search(Struct, frozen=True):
    """Where libraries are looked for beside a file's own paths."""

    files: Files
    ld_library_path: tuple[str, ...] = ()
    cache: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Name → paths, from ld.so.cache."""
    folders: tuple[str, ...] = _DEFAULT
    preloads: Mapping[str, str] = field(default_factory=dict)
    """Name → path of libraries that a package loads by hand before its own (rocm_sdk for torch)."""
    preloaded: tuple[str, ...] = ()
    """LD_PRELOAD."""

    def candidates(self, library: str, module: Module, program: Module | None = None) -> list[str]:
        """Paths to try, in the linker's order. The program's own RPATH counts for every file without a RUNPATH: conda's
        interpreter has one, which is how its libstdc++ comes in front of the system's."""
        if "/" in library:
            return [library]
        found: list[str] = []
        if module.links.by_rpath or not module.links.runpath:
            step: Module | None = module
            while step is not None:
                if step.links.by_rpath:
                    found += [f"{folder}/{library}" for folder in _expanded(step)]
                step = step.parent
            if program is not None and program.links.by_rpath:
                found += [f"{folder}/{library}" for folder in _expanded(program)]
        found += [f"{folder}/{library}" for folder in self.ld_library_path]
        if not module.links.by_rpath:
            found += [f"{folder}/{library}" for folder in _expanded(module)]
        found += self.cache.get(library, ())
        arch = _MULTIARCH.get(module.links.machine, "")
        multi = [f"{base}/{arch}" for base in _DEFAULT[:2]] if arch else []
        found += [f"{folder}/{library}" for folder in (*multi, *self.folders)]
        return list(dict.fromkeys(found))


def _expanded(module: Module) -> list[str]:
    origin = os.path.dirname(module.path)  # noqa: PTH120
    lib = "lib64" if module.links.bits == 64 else "lib"
    folders = [_LIB.sub(lib, _ORIGIN.sub(lambda _: origin, folder)) for folder in module.links.runpath]
    return [os.path.normpath(folder) for folder in folders if folder]


class Process:
    """A process that loads one file after the other. ``copy`` starts from the same state."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.modules: list[Module] = []
        self.missing: list[Missing] = []
        self._by_name: dict[str, Module] = {}
        self._program: Module | None = None

    def copy(self) -> Process:
        twin = Process(self.search)
        twin.modules, twin.missing, twin._by_name = list(self.modules), list(self.missing), dict(self._by_name)
        twin._program = self._program
        return twin

    def start(self, program: str) -> None:
        """The program itself, what LD_PRELOAD names, and the interpreter."""
        first = self._program = self.load(program)
        for path in self.search.preloaded:
            self.load(path, first)
        if first is not None:
            interpreter = _INTERPRETERS.get(first.links.machine, "")
            if interpreter and interpreter not in self._by_name:
                self._find(interpreter, first)

    def load(self, path: str, parent: Module | None = None) -> Module | None:
        """dlopen: the file and, breadth first, all it needs. None when it is no ELF file."""
        known = next((module for module in self.modules if module.path == path), None)
        if known is not None:
            return known
        links = self.search.files.links(path)
        if links is None:
            return None
        module = self._add(Module(path, links, parent))
        waiting = [module]
        while waiting:
            current = waiting.pop(0)
            for library in current.links.needed:
                if library in self._by_name:
                    continue
                found, fresh = self._find(library, current)
                if found is None:
                    self.missing.append(Missing(library, current.path))
                elif fresh:
                    waiting.append(found)
        return module

    def _find(self, library: str, by: Module) -> tuple[Module | None, bool]:
        """(module, is it new)."""
        preload = self.search.preloads.get(library)
        for path in [*([preload] if preload else []), *self.search.candidates(library, by, self._program)]:
            links = self.search.files.links(path)
            # The linker passes over files of another machine or word size.
            if links is None or (links.machine, links.bits) != (by.links.machine, by.links.bits):
                continue
            real = os.path.realpath(path)
            known = next((module for module in self.modules if module.real == real), None)
            if known is not None:
                self._by_name[library] = known
                return known, False
            module = self._add(Module(path, links, by))
            self._by_name[library] = module
            return module, True
        return None, False

    def _add(self, module: Module) -> Module:
        self.modules.append(module)
        # A file answers to its SONAME: a second library that needs it by that name gets this one.
        for name in (module.links.soname, os.path.basename(module.path)):  # noqa: PTH119
            if name:
                self._by_name.setdefault(name, module)
        return module

    def by_name(self, library: str) -> Module | None:
        return self._by_name.get(library)


def read_cache(path: str = "/etc/ld.so.cache") -> dict[str, tuple[str, ...]]:
    """ld.so.cache as name → paths in its order; {} when it is missing or of another format.

    Layout (glibc dl-cache.h): magic, u32 count, u32 length of strings, 20 bytes; then entries of u32 flags, key, value,
    osversion and u64 hwcap, offsets counted from the header's begin.
    """
    try:
        with open(path, "rb", opener=regular) as stream:
            data = stream.read(64 << 20)
    except OSError:
        return {}
    start = data.find(_CACHE_MAGIC)
    if start < 0 or len(data) < start + 48:
        return {}
    count = struct.unpack_from("<I", data, start + 20)[0]
    found: dict[str, list[str]] = {}
    for number in range(min(count, 1_000_000)):
        place = start + 48 + number * 24
        if place + 24 > len(data):
            break
        _, key, value = struct.unpack_from("<iII", data, place)
        found.setdefault(_zero(data, start + key), []).append(_zero(data, start + value))
    return {name: tuple(paths) for name, paths in found.items() if name}


def _zero(data: bytes, start: int) -> str:
    end = data.find(b"\0", start)
    return data[start:end].decode("utf-8", "replace") if 0 <= start < end else ""


def shared_files(folders: Sequence[Path]) -> dict[str, str]:
    """File name → path of every shared library directly in ``folders``, earlier folders first."""
    found: dict[str, str] = {}
    for folder in folders:
        try:
            names = sorted(entry.name for entry in folder.iterdir() if ".so" in entry.name)
        except OSError:
            continue
        for name in names:
            found.setdefault(name, str(folder / name))
    return found
