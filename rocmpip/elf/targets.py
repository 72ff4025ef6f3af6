"""Names of device code: from an ELF file's flags, from a bundle entry's id, and which GPU runs on which name."""

from __future__ import annotations

import re

from rocmpip.model.record import Struct

EM_AMDGPU = 224
SPIRV = "amdgcnspirv"
"""Device code in AMD's SPIR-V: compiled for the GPU when it is loaded, so it fits every GPU."""

# EF_AMDGPU_MACH_AMDGCN_*: LLVM's AMDGPUUsage, "AMDGPU Processors" and "e_flags". Reserved numbers are left out.
_MACH = {
    0x20: "gfx600", 0x21: "gfx601", 0x22: "gfx700", 0x23: "gfx701", 0x24: "gfx702", 0x25: "gfx703", 0x26: "gfx704",
    0x28: "gfx801", 0x29: "gfx802", 0x2A: "gfx803", 0x2B: "gfx810", 0x2C: "gfx900", 0x2D: "gfx902", 0x2E: "gfx904",
    0x2F: "gfx906", 0x30: "gfx908", 0x31: "gfx909", 0x32: "gfx90c", 0x33: "gfx1010", 0x34: "gfx1011", 0x35: "gfx1012",
    0x36: "gfx1030", 0x37: "gfx1031", 0x38: "gfx1032", 0x39: "gfx1033", 0x3A: "gfx602", 0x3B: "gfx705", 0x3C: "gfx805",
    0x3D: "gfx1035", 0x3E: "gfx1034", 0x3F: "gfx90a", 0x40: "gfx940", 0x41: "gfx1100", 0x42: "gfx1013", 0x43: "gfx1150",
    0x44: "gfx1103", 0x45: "gfx1036", 0x46: "gfx1101", 0x47: "gfx1102", 0x48: "gfx1200", 0x49: "gfx1250", 0x4A: "gfx1151",
    0x4B: "gfx941", 0x4C: "gfx942", 0x4E: "gfx1201", 0x4F: "gfx950", 0x50: "gfx1310", 0x51: "gfx9-generic",
    0x52: "gfx10-1-generic", 0x53: "gfx10-3-generic", 0x54: "gfx11-generic", 0x55: "gfx1152", 0x57: "gfx1154",
    0x58: "gfx1153", 0x59: "gfx12-generic", 0x5A: "gfx1251", 0x5B: "gfx12-5-generic", 0x5C: "gfx1172", 0x5D: "gfx1170",
    0x5E: "gfx1171", 0x5F: "gfx9-4-generic", 0x62: "gfx11-7-generic", 0x63: "gfx13-generic",
}  # fmt: skip

# LLVM's AMDGPUUsage, "Generic Processors": code for the generic name runs on every GPU of its list.
_GENERIC = {
    "gfx9-generic": ("gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"),
    "gfx9-4-generic": ("gfx940", "gfx941", "gfx942", "gfx950"),
    "gfx10-1-generic": ("gfx1010", "gfx1011", "gfx1012", "gfx1013"),
    "gfx10-3-generic": ("gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"),
    "gfx11-generic": (
        "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153",
    ),
    "gfx11-7-generic": ("gfx1170", "gfx1171", "gfx1172"),
    "gfx12-generic": ("gfx1200", "gfx1201"),
    "gfx12-5-generic": ("gfx1250", "gfx1251"),
    "gfx13-generic": ("gfx1310",),
}  # fmt: skip

# hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-, hip-spirv64-amd-amdhsa--amdgcnspirv, openmp-amdgcn-amd-amdhsa--gfx906
_ID = re.compile(r"-(gfx[0-9a-f]+(?:-\d+)*(?:-generic)?|amdgcnspirv)((?::[a-z]+[+-])*)$")


class CodeObject(Struct, frozen=True):
    """Device code for one target: ``target`` (gfx90a, gfx11-generic, amdgcnspirv), features as written, size in bytes (uncompressed)."""

    target: str
    features: tuple[str, ...]
    size: int

    def __str__(self) -> str:
        return ":".join((self.target, *self.features))


def from_id(text: str, size: int) -> CodeObject | None:
    """A bundle entry's id as a code object; None for the host's (empty) entry and for what is no AMD GPU."""
    match = _ID.search(text)
    if match is None or text.startswith("host-"):
        return None
    features = tuple(part for part in match.group(2).split(":") if part)
    return CodeObject(match.group(1), features, size)


def from_flags(e_flags: int, abi_version: int, size: int) -> CodeObject:
    """An AMDGPU ELF file's own flags. ``abi_version`` (EI_ABIVERSION) tells how features are written: 1 is code object v3, 2 and up v4+."""
    number = e_flags & 0xFF
    target = _MACH.get(number, f"unknown-0x{number:02x}")
    features: list[str] = []
    if abi_version >= 2:
        # Two bits each: 1 any, 2 off, 3 on (0 unsupported). "any" is written as nothing.
        for name, value in (("sramecc", e_flags >> 10 & 3), ("xnack", e_flags >> 8 & 3)):
            if value >= 2:
                features.append(name + ("+" if value == 3 else "-"))
    else:
        features = [name + "+" for name, bit in (("sramecc", 0x200), ("xnack", 0x100)) if e_flags & bit]
    return CodeObject(target, tuple(features), size)


def fitting(gfx: str) -> tuple[str, ...]:
    """Every target whose code runs on a GPU named ``gfx``: itself, its generic families, SPIR-V."""
    return (gfx, *(name for name, members in _GENERIC.items() if gfx in members), SPIRV)


def covers(target: str, gfx: str) -> bool:
    """True when device code for ``target`` runs on a GPU named ``gfx`` (no features): itself, its generic family, or SPIR-V."""
    return target in (gfx, SPIRV) or gfx in _GENERIC.get(target, ())
