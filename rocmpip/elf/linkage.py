"""What one library asks of the dynamic linker and offers to others: links, search paths, symbols, symbol versions."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from rocmpip.elf.headers import ElfFile
from rocmpip.elf.objects import Data
from rocmpip.elf.source import ElfError, opened
from rocmpip.model.record import Struct, field

_SHT_DYNSYM, _SHT_VERDEF, _SHT_VERNEED = 11, 0x6FFFFFFD, 0x6FFFFFFE
_WEAK, _LOCAL = 2, 0
_LIMIT = 256 << 20
_MANY = 65_536


class Linkage(Struct, frozen=True):
    """``wants`` maps a library to the versions needed of it (``libstdc++.so.6`` → GLIBCXX_3.4.30 …); ``provides`` are its own."""

    machine: str
    """x86_64, aarch64 …"""
    bits: int
    needed: tuple[str, ...] = ()
    soname: str = ""
    runpath: tuple[str, ...] = ()
    by_rpath: bool = False
    """True when ``runpath`` is an RPATH."""
    wants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    provides: frozenset[str] = frozenset()


class Symbols(Struct, frozen=True):
    """Dynamic symbols by name: those a file must be given (weak ones left out), and those it defines."""

    undefined: tuple[str, ...] = ()
    defined: frozenset[str] = frozenset()


def linkage(data: Data) -> Linkage:
    """Links and versions of an ELF file (bytes, or a path). Raises ElfError for what is none, OSError."""
    with opened(data) as source:
        elf = ElfFile(source)
        dynamic = elf.dynamic()
        wants: dict[str, tuple[str, ...]] = {}
        provides: set[str] = set()
        for kind, raw, names in _tables(elf):
            if kind == _SHT_VERNEED:
                wants.update(_needs(elf, raw, names))
            elif kind == _SHT_VERDEF:
                provides |= _definitions(elf, raw, names)
        return Linkage(
            elf.arch, elf.bits, dynamic.needed, dynamic.soname, dynamic.runpath, dynamic.by_rpath, wants, frozenset(provides)
        )


def symbols(data: Data) -> Symbols:
    """Dynamic symbols of an ELF file (bytes, or a path). Raises ElfError for what is none, OSError."""
    undefined: dict[str, None] = {}
    defined: set[str] = set()
    with opened(data) as source:
        elf = ElfFile(source)
        order = elf.order
        layout, section = (order + "IBBHQQ", 3) if elf.bits == 64 else (order + "IIIBBH", 5)
        info = 1 if elf.bits == 64 else 3
        width = struct.calcsize(layout)
        for kind, raw, names in _tables(elf):
            if kind != _SHT_DYNSYM:
                continue
            for row in struct.iter_unpack(layout, raw[: len(raw) // width * width]):
                binding = row[info] >> 4
                if not row[0] or binding == _LOCAL:
                    continue
                name = _text(names, row[0])
                if row[section]:
                    defined.add(name)
                elif binding != _WEAK:
                    undefined[name] = None
    return Symbols(tuple(undefined), frozenset(defined))


def _tables(elf: ElfFile) -> Iterator[tuple[int, bytes, bytes]]:
    """(kind, body, strings) of the tables that speak of symbols. Nothing for a file whose section headers were stripped."""
    sections = elf.sections()
    for section in sections:
        if section.kind not in (_SHT_DYNSYM, _SHT_VERDEF, _SHT_VERNEED) or section.link >= len(sections):
            continue
        strings = sections[section.link]
        if section.size > _LIMIT or strings.size > _LIMIT:
            raise ElfError("a symbol table of more than 256 MB")
        yield section.kind, elf.source.read(section.offset, section.size), elf.source.read(strings.offset, strings.size)


def _needs(elf: ElfFile, raw: bytes, names: bytes) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Verneed: u16 version, u16 count, u32 file, u32 first, u32 next; Vernaux: u32 hash, u16 flags, u16 other, u32 name, u32 next."""
    place = 0
    for _ in range(_MANY):
        if place + 16 > len(raw):
            return
        _, count, file, first, step = struct.unpack_from(elf.order + "HHIII", raw, place)
        found: list[str] = []
        inner = place + first
        for _ in range(min(count, _MANY)):
            if inner + 16 > len(raw):
                break
            _, flags, _, name, following = struct.unpack_from(elf.order + "IHHII", raw, inner)
            # Weak needs (flag 2) do not stop the loader.
            if not flags & 2:
                found.append(_text(names, name))
            if not following:
                break
            inner += following
        yield _text(names, file), tuple(found)
        if not step:
            return
        place += step


def _definitions(elf: ElfFile, raw: bytes, names: bytes) -> set[str]:
    """Verdef: u16 version, u16 flags, u16 index, u16 count, u32 hash, u32 first, u32 next; Verdaux: u32 name, u32 next."""
    found: set[str] = set()
    place = 0
    for _ in range(_MANY):
        if place + 20 > len(raw):
            break
        _, _, _, _, _, first, step = struct.unpack_from(elf.order + "HHHHIII", raw, place)
        if place + first + 8 <= len(raw):
            found.add(_text(names, struct.unpack_from(elf.order + "I", raw, place + first)[0]))
        if not step:
            break
        place += step
    return found


def _text(strings: bytes, start: int) -> str:
    end = strings.find(b"\0", start)
    return strings[start : end if end >= 0 else len(strings)].decode("utf-8", "replace")
