"""An ELF file's headers: sections, the dynamic table, undefined symbols. Both word sizes, both byte orders, every count bounded.

Section headers locate device code; the dynamic table is found by the program headers, so a file whose section headers were
stripped still tells what it links. Only headers and tables are read, never a section's body.
"""

from __future__ import annotations

import struct

from rocmpip.elf.source import ElfError, PartSource, Source, exactly
from rocmpip.elf.targets import EM_AMDGPU
from rocmpip.model.record import Struct

MAGIC = b"\x7fELF"
_MAX_TABLE = 16 << 20
_MAX_STRINGS = 64 << 20
_MAX_NAME = 4_096

# e_machine → what people call it (System V ABI; the values wheels are built for).
_MACHINES = {
    3: "i386", 20: "ppc", 21: "ppc64", 22: "s390x", 40: "arm", 62: "x86_64", 183: "aarch64", 190: "cuda", EM_AMDGPU: "amdgpu",
    243: "riscv64", 258: "loongarch64",
}  # fmt: skip

_PT_LOAD, _PT_DYNAMIC = 1, 2
_SHT_NOBITS, _SHT_DYNSYM = 8, 11
_DT_NEEDED, _DT_STRTAB, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 5, 14, 15, 29


class Section(Struct, frozen=True):
    """One section header; ``size`` counts bytes in the file (0 for a NOBITS section)."""

    name: str
    kind: int
    offset: int
    size: int
    link: int
    entry: int


class Dynamic(Struct, frozen=True):
    """What the dynamic linker is told."""

    needed: tuple[str, ...] = ()
    soname: str = ""
    runpath: tuple[str, ...] = ()
    """RUNPATH, else RPATH, split at colons."""
    by_rpath: bool = False
    """True when ``runpath`` is an RPATH: searched before LD_LIBRARY_PATH, and for what the file's libraries need too."""


class ElfFile:
    """The headers of one ELF file. Raises ElfError for what is none, or whose header is cut short."""

    def __init__(self, source: Source) -> None:
        ident = exactly(source, 0, 16, "ELF header")
        if ident[:4] != MAGIC or ident[4] not in (1, 2) or ident[5] not in (1, 2):
            raise ElfError("not an ELF file")
        self.source = source
        self.bits = 64 if ident[4] == 2 else 32
        self.abi_version = ident[8]
        self._order = "<" if ident[5] == 1 else ">"
        word = "Q" if self.bits == 64 else "I"
        layout = f"{self._order}HHI{word * 3}IHHHHHH"
        fields = struct.unpack(layout, exactly(source, 16, struct.calcsize(layout), "ELF header"))
        (self.type, self.machine, _, _, self._phoff, self._shoff, self.flags, _) = fields[:8]
        (self._phentsize, self._phnum, self._shentsize, self._shnum, self._shstrndx) = fields[8:]
        self._sections: tuple[Section, ...] | None = None

    @property
    def order(self) -> str:
        """Byte order in struct's letters: ``<`` or ``>``."""
        return self._order

    @property
    def arch(self) -> str:
        """x86_64, aarch64, amdgpu …, or ``machine-N`` for what this table does not know."""
        return _MACHINES.get(self.machine, f"machine-{self.machine}")

    def sections(self) -> tuple[Section, ...]:
        """All sections in file order, () when the headers were stripped. Raises ElfError when the table lies."""
        if self._sections is None:
            self._sections = self._read_sections()
        return self._sections

    def section(self, name: str) -> Source | None:
        """The body of the first section called ``name``, or None."""
        found = next((section for section in self.sections() if section.name == name), None)
        return PartSource(self.source, found.offset, found.size) if found is not None else None

    def _read_sections(self) -> tuple[Section, ...]:
        layout = self._order + ("IIQQQQIIQQ" if self.bits == 64 else "IIIIIIIIII")
        width = struct.calcsize(layout)
        if self._shoff == 0:
            return ()
        if self._shentsize != width:
            raise ElfError(f"section headers of {self._shentsize} bytes instead of {width}")
        first = struct.unpack(layout, exactly(self.source, self._shoff, width, "section header table"))
        # More than 65,279 sections: the count and the index of the names stand in the first header (ELF gABI, e_shnum).
        count = self._shnum or first[5]
        names = self._shstrndx if self._shstrndx != 0xFFFF else first[6]
        if count * width > _MAX_TABLE:
            raise ElfError(f"a file that claims {count} sections")
        table = exactly(self.source, self._shoff, count * width, "section header table")
        rows = list(struct.iter_unpack(layout, table))
        strings = b""
        if names < len(rows):
            strings = self.source.read(rows[names][4], min(rows[names][5], _MAX_TABLE))
        return tuple(
            Section(_text(strings, row[0]), row[1], row[4], 0 if row[1] == _SHT_NOBITS else row[5], row[6], row[9])
            for row in rows
        )

    def _segments(self) -> list[tuple[int, int, int, int]]:
        """(type, offset, address, size in the file) of each program header."""
        if self.bits == 64:
            layout, order = self._order + "IIQQQQQQ", (0, 2, 3, 5)
        else:
            layout, order = self._order + "IIIIIIII", (0, 1, 2, 4)
        width = struct.calcsize(layout)
        if not self._phnum:
            return []
        if self._phentsize != width:
            raise ElfError(f"program headers of {self._phentsize} bytes instead of {width}")
        table = exactly(self.source, self._phoff, self._phnum * width, "program header table")
        return [tuple(row[i] for i in order) for row in struct.iter_unpack(layout, table)]

    def dynamic(self) -> Dynamic:
        """The dynamic table; empty for a static file."""
        segments = self._segments()
        table = next(((offset, size) for kind, offset, _, size in segments if kind == _PT_DYNAMIC), None)
        if table is None:
            return Dynamic()
        layout = self._order + ("QQ" if self.bits == 64 else "II")
        width = struct.calcsize(layout)
        raw = self.source.read(table[0], min(table[1], _MAX_TABLE))
        rows: list[tuple[int, int]] = []
        for tag, value in struct.iter_unpack(layout, raw[: len(raw) // width * width]):
            if tag == 0:
                break
            rows.append((tag, value))
        address = next((value for tag, value in rows if tag == _DT_STRTAB), None)
        start = _file_offset(segments, address) if address is not None else None
        if start is None:
            return Dynamic()

        def strings(wanted: int) -> list[str]:
            return [_text(self.source.read(start + value, _MAX_NAME), 0) for tag, value in rows if tag == wanted]

        path = strings(_DT_RUNPATH) or strings(_DT_RPATH)
        return Dynamic(
            tuple(strings(_DT_NEEDED)),
            next(iter(strings(_DT_SONAME)), ""),
            tuple(part for text in path for part in text.split(":") if part),
            bool(path) and not strings(_DT_RUNPATH),
        )

    def undefined(self) -> tuple[str, ...]:
        """Names of the dynamic symbols this file expects others to define, in table order, without repeats."""
        sections = self.sections()
        table = next((section for section in sections if section.kind == _SHT_DYNSYM), None)
        if table is None or table.link >= len(sections):
            return ()
        strings = sections[table.link]
        if table.size > _MAX_STRINGS or strings.size > _MAX_STRINGS:
            raise ElfError("a symbol table of more than 64 MB")
        layout = self._order + ("IBBHQQ" if self.bits == 64 else "IIIBBH")
        index = 3 if self.bits == 64 else 5
        width = struct.calcsize(layout)
        raw = self.source.read(table.offset, table.size)
        names = self.source.read(strings.offset, strings.size)
        rows = struct.iter_unpack(layout, raw[: len(raw) // width * width])
        found = (_text(names, row[0]) for row in rows if row[index] == 0 and row[0])
        return tuple(dict.fromkeys(name for name in found if name))


def _file_offset(segments: list[tuple[int, int, int, int]], address: int) -> int | None:
    """Where a virtual address stands in the file, by the loadable segments."""
    for kind, offset, start, size in segments:
        if kind == _PT_LOAD and start <= address < start + size:
            return offset + address - start
    return None


def _text(strings: bytes, start: int) -> str:
    """The zero-ended string at ``start``; "" when it is outside."""
    end = strings.find(b"\0", start, start + _MAX_NAME)
    return strings[start : end if end >= 0 else start + _MAX_NAME].decode("utf-8", "replace")
