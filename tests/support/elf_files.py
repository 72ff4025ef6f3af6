"""ELF files, offload bundles and wheels made by hand from the format descriptions, to read them back with ``rocmpip.elf``."""

from __future__ import annotations

import base64
import hashlib
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import zstandard

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
AMDGPU = 224


def bundle(entries: Mapping[str, bytes], *, host: bool = True) -> bytes:
    """A plain offload bundle; ``entries``: target ("gfx90a:xnack-") → code. Code objects are aligned to 4096 as clang does."""
    ids = ({"host-x86_64-unknown-linux--": b""} if host else {}) | {
        f"hipv4-amdgcn-amd-amdhsa--{target}": code for target, code in entries.items()
    }
    table = MAGIC + struct.pack("<Q", len(ids))
    head = len(table) + sum(24 + len(name) for name in ids)
    body = b""
    for name, code in ids.items():
        offset = head + len(body)
        padding = -offset % 4096 if code else 0
        table += struct.pack("<QQQ", offset + padding, len(code), len(name)) + name.encode()
        body += b"\0" * padding + code
    return table + body


def compressed(plain: bytes, *, version: int = 2, method: str = "zstd", payload: bytes | None = None) -> bytes:
    """The bundle compressed as CCOB version 1, 2 or 3. ``payload`` replaces the compressed bytes."""
    if payload is None:
        payload = zlib.compress(plain) if method == "zlib" else zstandard.ZstdCompressor().compress(plain)
    number = 0 if method == "zlib" else 1
    digest = struct.unpack("<Q", hashlib.md5(plain).digest()[:8])[0]
    head = b"CCOB" + struct.pack("<HH", version, number)
    if version == 1:
        head += struct.pack("<IQ", len(plain), digest)
    elif version == 2:
        head += struct.pack("<IIQ", 24 + len(payload), len(plain), digest)
    else:
        head += struct.pack("<QQQ", 32 + len(payload), len(plain), digest)
    return head + payload


def elf(
    sections: Mapping[str, bytes] | None = None,
    *,
    machine: int = 62,
    flags: int = 0,
    abi_version: int = 0,
    needed: Sequence[str] = (),
    soname: str = "",
    runpath: str = "",
    undefined: Sequence[str] = (),
    bits: int = 64,
    order: str = "<",
    strip: bool = False,
) -> bytes:
    """A shared library with these sections, dynamic entries and undefined symbols; ``strip`` leaves the section headers out."""
    word = "Q" if bits == 64 else "I"
    header_size, ph_size, sh_size = (64, 56, 64) if bits == 64 else (52, 32, 40)
    strings = b"\0"

    def string(text: str) -> int:
        nonlocal strings
        place = len(strings)
        strings += text.encode() + b"\0"
        return place

    rows = [(1, string(name)) for name in needed]
    rows += [(14, string(soname))] if soname else []
    rows += [(29, string(runpath))] if runpath else []
    symbols = struct.pack(order + ("IBBHQQ" if bits == 64 else "IIIBBH"), *([0] * 6))
    for name in undefined:
        place = string(name)
        if bits == 64:
            symbols += struct.pack(order + "IBBHQQ", place, 0x12, 0, 0, 0, 0)
        else:
            symbols += struct.pack(order + "IIIBBH", place, 0, 0, 0x12, 0, 0)
    body = b""
    placed: list[tuple[str, int, int, int, int, int]] = []

    def put(name: str, data: bytes, kind: int, link: int = 0, entry: int = 0) -> int:
        nonlocal body
        body += b"\0" * (-(len(body)) % 16)
        place = header_size + 2 * ph_size + len(body)
        body += data
        placed.append((name, kind, place, len(data), link, entry))
        return place

    strtab = put(".dynstr", strings, 3)
    put(".dynsym", symbols, 11, 1, 24 if bits == 64 else 16)
    rows += [(5, strtab), (10, len(strings)), (0, 0)]
    table = b"".join(struct.pack(order + word * 2, tag, value) for tag, value in rows)
    dynamic = put(".dynamic", table, 6, 1, 16 if bits == 64 else 8)
    for name, data in (sections or {}).items():
        put(name, data, 1)
    names = b"\0"
    offsets = []
    for name, *_ in [*placed, (".shstrtab",)]:
        offsets.append(len(names))
        names += name.encode() + b"\0"
    put(".shstrtab", names, 3)
    shoff = header_size + 2 * ph_size + len(body)
    total = shoff
    header = b"\x7fELF" + bytes(
        [2 if bits == 64 else 1, 1 if order == "<" else 2, 1, 64 if machine == AMDGPU else 0, abi_version]
    )
    header += b"\0" * (16 - len(header))
    header += struct.pack(
        order + "HHI" + word * 3 + "IHHHHHH",
        3, machine, 1, 0, header_size, 0 if strip else shoff, flags, header_size, ph_size, 2, sh_size,
        0 if strip else len(placed) + 1, 0 if strip else len(placed),
    )  # fmt: skip
    segments = b""
    for kind, offset, size in ((1, 0, total), (2, dynamic, len(table))):
        if bits == 64:
            segments += struct.pack(order + "IIQQQQQQ", kind, 5, offset, offset, offset, size, size, 8)
        else:
            segments += struct.pack(order + "IIIIIIII", kind, offset, offset, offset, size, size, 5, 8)
    headers = b"\0" * sh_size
    layout = order + ("IIQQQQIIQQ" if bits == 64 else "IIIIIIIIII")
    for (_, kind, place, size, link, entry), offset in zip(placed, offsets, strict=True):
        headers += struct.pack(layout, offset, kind, 0, place, place, size, link, 0, 1, entry)
    return header + segments + body + (b"" if strip else headers)


def wheel(
    path: Path,
    files: Mapping[str, bytes],
    *,
    tags: Sequence[str] = ("cp311-cp311-linux_x86_64",),
    compression: int = zipfile.ZIP_DEFLATED,
) -> Path:
    """A wheel at ``path`` (its name gives name and version) with these files, METADATA, WHEEL and a true RECORD."""
    name, version = path.name.split("-")[:2]
    info = f"{name}-{version}.dist-info"
    pure = all(tag.endswith("-none-any") for tag in tags)
    members = dict(files)
    members[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n".encode()
    members[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: {str(pure).lower()}\n"
        + "".join(f"Tag: {tag}\n" for tag in tags)
    ).encode()
    record = ""
    for member, data in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{member},sha256={digest},{len(data)}\n"
    members[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", compression) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return path
