"""Write a shared object that carries (empty) device code for given gfx targets, without a compiler.

The layout is that of hipcc's output: an x86-64 ELF with a ``.hip_fatbin`` section, in it a clang offload bundle with one
AMDGPU ELF per target. Standard library only and self-contained: the demo's flash-attn source takes this file along.
"""

from __future__ import annotations

import struct

# EF_AMDGPU_MACH of each target (LLVM, "User Guide for AMDGPU Backend", table of e_flags).
MACH = {
    "gfx900": 0x2C, "gfx906": 0x2F, "gfx908": 0x30, "gfx90a": 0x3F, "gfx90c": 0x32, "gfx942": 0x4C, "gfx950": 0x4F,
    "gfx1010": 0x33, "gfx1011": 0x34, "gfx1012": 0x35, "gfx1013": 0x42, "gfx1030": 0x36, "gfx1031": 0x37, "gfx1032": 0x38,
    "gfx1033": 0x39, "gfx1034": 0x3E, "gfx1035": 0x3D, "gfx1036": 0x45, "gfx1100": 0x41, "gfx1101": 0x46, "gfx1102": 0x47,
    "gfx1103": 0x44, "gfx1150": 0x43, "gfx1151": 0x4A, "gfx1152": 0x55, "gfx1153": 0x58, "gfx1200": 0x48, "gfx1201": 0x4E,
    "gfx1250": 0x49,
}  # fmt: skip
_HOST, _AMDGPU = 62, 224  # e_machine: EM_X86_64, EM_AMDGPU
_PAGE = 4096


def elf(machine: int, flags: int, abi: tuple[int, int], section: str, content: bytes) -> bytes:
    """A 64-bit little-endian shared object with one section of ours; ``abi`` is (EI_OSABI, EI_ABIVERSION)."""
    names = b"\0" + section.encode() + b"\0.shstrtab\0"
    start = 64
    names_at = start + len(content)
    headers_at = (names_at + len(names) + 7) // 8 * 8
    ident = b"\x7fELF" + bytes([2, 1, 1, *abi]) + bytes(7)
    head = ident + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 0, headers_at, flags, 64, 56, 0, 64, 3, 2)
    rows = [
        bytes(64),
        struct.pack("<IIQQQQIIQQ", 1, 1, 2, start, start, len(content), 0, 0, 8, 0),
        struct.pack("<IIQQQQIIQQ", 2 + len(section), 3, 0, 0, names_at, len(names), 0, 0, 1, 0),
    ]
    return (head + content + names).ljust(headers_at, b"\0") + b"".join(rows)


def code_object(target: str) -> bytes:
    """The AMDGPU ELF of one target (``gfx942`` or ``gfx90a:xnack-``). Raises KeyError for an unknown gfx."""
    return elf(_AMDGPU, MACH[target.split(":")[0]], (64, 3), ".text", b"\0" * 64)


def bundle(targets: list[str]) -> bytes:
    """A clang offload bundle (uncompressed): magic, count, then (offset, size, id) of each entry, then the entries."""
    entries = [("host-x86_64-unknown-linux-gnu-", b"")]
    entries += [(f"hipv4-amdgcn-amd-amdhsa--{target}", code_object(target)) for target in targets]
    table_size = 32 + sum(24 + len(name) for name, _ in entries)
    table, body = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries)), b""
    for name, content in entries:
        offset = (table_size + _PAGE - 1) // _PAGE * _PAGE + len(body)
        table += struct.pack("<QQQ", offset, len(content), len(name)) + name.encode()
        body += content.ljust((len(content) + _PAGE - 1) // _PAGE * _PAGE, b"\0")
    return table.ljust((table_size + _PAGE - 1) // _PAGE * _PAGE, b"\0") + body


def shared_object(targets: list[str]) -> bytes:
    """An x86-64 shared object whose ``.hip_fatbin`` covers ``targets``."""
    return elf(_HOST, 0, (0, 0), ".hip_fatbin", bundle(targets))
