"""Device code and links of one file: every bundle format, loose objects, both word sizes, stripped headers."""

from __future__ import annotations

import io
import mmap
import os
import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from rocmpip.elf import CodeObject, ElfError, code_objects, covers, examine_file, needed, undefined_symbols
from tests.support.elf_files import AMDGPU, bundle, compressed, elf

TWO = bundle({"gfx90a:sramecc+:xnack-": b"a" * 5000, "gfx1030": b"b" * 100})
EXPECTED = (CodeObject("gfx90a", ("sramecc+", "xnack-"), 5000), CodeObject("gfx1030", (), 100))


def test_a_plain_bundle_in_a_library() -> None:
    assert code_objects(elf({".hip_fatbin": TWO})) == EXPECTED


@pytest.mark.parametrize("method", ["zstd", "zlib"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_compressed_bundles(version: int, method: str) -> None:
    packed = compressed(TWO, version=version, method=method)
    assert code_objects(elf({".hip_fatbin": packed})) == EXPECTED
    assert examine_file_of(packed).kinds == (f"ccob-v{version}-{method}",)


def examine_file_of(data: bytes):  # type: ignore[no-untyped-def]
    from rocmpip.elf.objects import examine_source
    from rocmpip.elf.source import BytesSource

    return examine_source(BytesSource(data), "x")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_one_bundle_for_each_translation_unit(version: int) -> None:
    """-fno-gpu-rdc: the linker lays the units' bundles one after the other, page-aligned."""
    units = [bundle({f"gfx{number}": bytes([number % 256]) * number}) for number in (900, 906, 942, 1100)]
    packed = [compressed(units[0], version=version), units[1], compressed(units[2], version=version, method="zlib"), units[3]]
    section = b"".join(part + b"\0" * (-len(part) % 4096) for part in packed)
    found = code_objects(elf({".hip_fatbin": section}))
    assert [one.target for one in found] == ["gfx900", "gfx906", "gfx942", "gfx1100"]
    assert [one.size for one in found] == [900, 906, 942, 1100]


def test_the_magic_inside_compressed_data_is_not_a_bundle() -> None:
    """LLVM's own tools once cut bundles there: the size in the header counts, not the next four letters."""
    import zstandard

    # A skippable frame in front of the real one carries the letters.
    skip = struct.pack("<II", 0x184D2A50, 64) + b"CCOB" * 16
    payload = zstandard.ZstdCompressor().compress(TWO) + skip
    first = compressed(TWO, version=2, payload=payload)
    last = compressed(bundle({"gfx942": b"x"}), version=2)
    assert [one.target for one in code_objects(elf({".hip_fatbin": first + last}))] == ["gfx90a", "gfx1030", "gfx942"]


def test_a_bundle_file_and_a_library_without_section_headers() -> None:
    assert code_objects(TWO) == EXPECTED
    assert code_objects(compressed(TWO, version=3)) == EXPECTED
    assert code_objects(elf({".hip_fatbin": TWO}, strip=True)) == EXPECTED


def test_empty_entries_are_no_code() -> None:
    assert code_objects(elf({".hip_fatbin": bundle({"gfx90a": b""})})) == ()


@pytest.mark.parametrize(
    ("identity", "target", "features"),
    [
        ("hip-amdgcn-amd-amdhsa--gfx906", "gfx906", ()),
        ("hip-amdgcn-amd-amdhsa-unknown-gfx90c", "gfx90c", ()),
        ("openmp-amdgcn-amd-amdhsa--gfx90a:xnack+", "gfx90a", ("xnack+",)),
        ("hipv4-amdgcn-amd-amdhsa--gfx11-generic", "gfx11-generic", ()),
        ("hipv4-amdgcn-amd-amdhsa--gfx9-4-generic:sramecc+", "gfx9-4-generic", ("sramecc+",)),
        ("hip-spirv64-amd-amdhsa-unknown-amdgcnspirv", "amdgcnspirv", ()),
    ],
)
def test_identities(identity: str, target: str, features: tuple[str, ...]) -> None:
    name = identity.encode()
    raw = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<QQQQ", 1, 24 + 32 + len(name), 3, len(name)) + name + b"abc"
    assert code_objects(raw) == (CodeObject(target, features, 3),)


@pytest.mark.parametrize(
    ("flags", "abi", "expected"),
    [
        (0x3F, 2, "gfx90a"),
        # LLVM AMDGPUUsage, code object V4 and up: xnack in bits 8-9, sramecc in bits 10-11; 1 any, 2 off, 3 on.
        (0x3F | 2 << 8 | 3 << 10, 2, "gfx90a:sramecc+:xnack-"),
        (0x3F | 3 << 8 | 1 << 10, 3, "gfx90a:xnack+"),
        (0x4C | 1 << 8 | 1 << 10, 2, "gfx942"),
        # V3: one bit each.
        (0x2F | 0x100 | 0x200, 1, "gfx906:sramecc+:xnack+"),
        (0x2F, 1, "gfx906"),
        (0x41, 2, "gfx1100"),
        (0x4A, 3, "gfx1151"),
        (0x4F, 4, "gfx950"),
        (0x54, 4, "gfx11-generic"),
        (0xEE, 4, "unknown-0xee"),
    ],
)
def test_a_loose_code_object_tells_itself(flags: int, abi: int, expected: str) -> None:
    data = elf(machine=AMDGPU, flags=flags, abi_version=abi)
    found = code_objects(data)
    assert [str(one) for one in found] == [expected]
    assert found[0].size == len(data)


@pytest.mark.parametrize("bits", [64, 32])
@pytest.mark.parametrize("order", ["<", ">"])
def test_links_as_pyelftools_reads_them(bits: int, order: str) -> None:
    data = elf(
        needed=["libtorch_hip.so", "libc.so.6"], soname="libme.so.1", runpath="$ORIGIN:/opt/rocm/lib",
        undefined=["hipLaunchKernel", "memcpy"], bits=bits, order=order,
    )  # fmt: skip
    assert needed(data) == ("libtorch_hip.so", "libc.so.6")
    assert undefined_symbols(data) == ("hipLaunchKernel", "memcpy")
    theirs = ELFFile(io.BytesIO(data)).get_section_by_name(".dynamic")
    tags = list(theirs.iter_tags())
    assert [tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"] == list(needed(data))
    report = examine_file_of(data)
    assert (report.soname, report.runpath, report.problem) == ("libme.so.1", ("$ORIGIN", "/opt/rocm/lib"), "")


def test_links_without_section_headers() -> None:
    assert needed(elf(needed=["libamdhip64.so.7"], strip=True)) == ("libamdhip64.so.7",)


def test_architectures() -> None:
    assert examine_file_of(elf(machine=183)).arch == "aarch64"
    assert examine_file_of(elf(machine=62)).arch == "x86_64"
    assert examine_file_of(elf(machine=AMDGPU)).arch == "amdgpu"


def test_cuda_and_kernel_packs_are_told() -> None:
    assert examine_file_of(elf({".nv_fatbin": b"x" * 64})).kinds == ("cuda",)
    assert examine_file_of(elf({".rocm_kpack_ref": b"x"})).kinds == ("kpack-ref",)


def test_this_interpreters_own_library_as_pyelftools_reads_it() -> None:
    """A real file of this machine: the C library the interpreter runs on."""
    library = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libc" in line)
    with Path(library).open("rb") as stream:
        theirs = ELFFile(stream)
        wanted = [tag.needed for tag in theirs.get_section_by_name(".dynamic").iter_tags() if tag.entry.d_tag == "DT_NEEDED"]
        symbols = theirs.get_section_by_name(".dynsym")
        missing = {one.name for one in symbols.iter_symbols() if one.entry.st_shndx == "SHN_UNDEF" and one.name}
    assert needed(library) == tuple(wanted)
    assert set(undefined_symbols(library)) == missing


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"MZ" + b"\0" * 100, b"CCOB", b"__CLANG_OFFLOAD_BUNDLE__"])
def test_what_is_neither(data: bytes) -> None:
    with pytest.raises(ElfError):
        needed(data)


def test_text_has_no_device_code() -> None:
    assert code_objects(b"import torch\n") == ()


def test_paths_and_buffers_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.so"
    path.write_bytes(elf({".hip_fatbin": TWO}))
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        view = memoryview(mapped)
        assert code_objects(path) == code_objects(str(path)) == code_objects(view) == EXPECTED
        view.release()
    assert examine_file(path).path == "a.so"
    with pytest.raises(FileNotFoundError):
        code_objects(os.fspath(tmp_path / "none.so"))


@pytest.mark.parametrize(
    ("target", "gfx", "fits"),
    [
        ("gfx90a", "gfx90a", True),
        ("gfx90a", "gfx942", False),
        ("gfx9-4-generic", "gfx942", True),
        ("gfx9-generic", "gfx90a", False),
        ("gfx11-generic", "gfx1151", True),
        ("gfx12-generic", "gfx1201", True),
        ("amdgcnspirv", "gfx1031", True),
    ],
)
def test_which_gpu_runs_it(target: str, gfx: str, fits: bool) -> None:
    assert covers(target, gfx) is fits
