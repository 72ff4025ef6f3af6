"""Any bytes: no crash, no hang, no unbounded memory; only ElfError says no."""

from __future__ import annotations

import contextlib
import struct

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocmpip.elf import CodeObject, ElfError, code_objects, needed, undefined_symbols
from rocmpip.elf.objects import examine_source
from rocmpip.elf.source import BytesSource
from tests.support.elf_files import bundle, compressed, elf

QUICK = settings(max_examples=300, deadline=2000, suppress_health_check=[HealthCheck.too_slow])

GOOD = elf(
    {".hip_fatbin": bundle({"gfx90a": b"a" * 40, "gfx942": b"b"}) + compressed(bundle({"gfx1100": b"c" * 9}), version=3)},
    needed=["libamdhip64.so.6"],
    undefined=["hipMalloc"],
)
PACKED = [compressed(bundle({"gfx90a": b"q" * 300}), version=v, method=m) for v in (1, 2, 3) for m in ("zstd", "zlib")]


def read_all(data: bytes) -> None:
    """Everything the room can do with bytes. Only ElfError may come out, and both ways to the code objects agree."""
    report = examine_source(BytesSource(data), "x")
    assert (report.path, report.size) == ("x", len(data))
    for reader in (needed, undefined_symbols):
        with contextlib.suppress(ElfError):
            reader(data)
    try:
        found = code_objects(data)
    except ElfError as problem:
        assert str(problem)
    else:
        assert report.problem or tuple(found) == report.code_objects


@QUICK
@given(st.binary(max_size=2000))
def test_any_bytes(data: bytes) -> None:
    read_all(data)
    read_all(b"\x7fELF\x02\x01\x01" + data)
    read_all(b"__CLANG_OFFLOAD_BUNDLE__" + data)
    read_all(b"CCOB" + data)


@QUICK
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=12))
def test_a_good_file_with_bytes_changed(changes: list[tuple[int, int]]) -> None:
    data = bytearray(GOOD)
    for place, value in changes:
        data[place] = value
    read_all(bytes(data))


@QUICK
@given(st.integers(0, len(GOOD)), st.integers(0, len(GOOD)))
def test_a_good_file_cut(start: int, end: int) -> None:
    read_all(GOOD[start:end])


@QUICK
@given(st.sampled_from(PACKED), st.data())
def test_compressed_bundles_with_bytes_changed(packed: bytes, draw: st.DataObject) -> None:
    data = bytearray(packed)
    for _ in range(draw.draw(st.integers(1, 6))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    read_all(bytes(data))


@QUICK
@given(st.sampled_from([0, 1, 4096, 2**31, 2**32 - 1, 2**63, 2**64 - 1]), st.integers(0, 12))
def test_absurd_numbers_in_the_header(number: int, field: int) -> None:
    data = bytearray(GOOD)
    place = 24 + field * 4
    width = 8 if place % 8 == 0 else 4
    struct.pack_into("<Q" if width == 8 else "<I", data, place, number % (1 << (8 * width)))
    read_all(bytes(data))


@QUICK
@given(
    st.dictionaries(
        st.sampled_from(["gfx900", "gfx90a:xnack-", "gfx90a:sramecc+:xnack+", "gfx942", "gfx1100", "gfx12-generic"]),
        st.binary(min_size=1, max_size=60),
        max_size=6,
    ),
    st.sampled_from([0, 1, 2, 3]),
    st.sampled_from(["zstd", "zlib"]),
    st.binary(max_size=40),
)
def test_what_was_written_is_read(entries: dict[str, bytes], version: int, method: str, junk: bytes) -> None:
    plain = bundle(entries)
    packed = compressed(plain, version=version, method=method) if version else plain
    found = code_objects(elf({".text": junk, ".hip_fatbin": packed}))
    assert found == tuple(
        CodeObject(target.split(":")[0], tuple(target.split(":")[1:]), len(code)) for target, code in entries.items()
    )


def test_a_section_full_of_false_magics_ends() -> None:
    """Each look-alike costs a parse; their number is bounded, and past it the file is called broken."""
    data = b"CCOB\x02\x00\x01\x00" * 100_000
    report = examine_source(BytesSource(elf({".hip_fatbin": data})), "x")
    assert report.code_objects == ()
    assert "bundles" in report.problem
