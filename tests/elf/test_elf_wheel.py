"""A wheel as a whole: gfx, links, tags, large members, broken archives."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rocmpip.elf import ElfError, cuda_links, examine_wheel, links, read_wheel
from tests.support.elf_files import AMDGPU, bundle, compressed, elf, wheel

NAME = "kernels-1.2-cp311-cp311-linux_x86_64.whl"


def test_the_whole_of_a_wheel(tmp_path: Path) -> None:
    path = wheel(
        tmp_path / NAME,
        {
            "kernels/__init__.py": b"import os\n",
            "kernels/a.so": elf({".hip_fatbin": bundle({"gfx90a": b"x" * 9})}, needed=["libb.so", "libtorch_hip.so"]),
            "kernels/libb.so": elf({".hip_fatbin": compressed(bundle({"gfx942": b"y"}), version=3)}, soname="libb.so"),
            "kernels/c.hsaco": elf(machine=AMDGPU, flags=0x41, abi_version=2),
            "kernels/d.co": compressed(bundle({"gfx1201": b"z"}), version=2),
            "kernels/.kpack/k_gfx950.kpack": b"KPAK....",
        },
        tags=("cp311-cp311-manylinux_2_28_x86_64", "cp311-cp311-linux_x86_64"),
    )
    report = examine_wheel(path)
    assert (report.name, report.version) == ("kernels", "1.2")
    assert report.gfx == ("gfx1100", "gfx1201", "gfx90a", "gfx942", "gfx950")
    assert report.kinds == ("ccob-v2-zstd", "ccob-v3-zstd", "kpack", "loose", "plain")
    assert report.links == ("libtorch_hip.so",), "what the wheel brings itself is no link of the whole"
    assert report.tags == ("cp311-cp311-manylinux_2_28_x86_64", "cp311-cp311-linux_x86_64")
    assert report.missing(("gfx90a", "gfx1030")) == ("gfx1030",)
    assert report.cuda_links == () and report.problems == ()
    assert [file.path for file in report.files][:2] == ["kernels/a.so", "kernels/libb.so"]


def test_cuda_is_told(tmp_path: Path) -> None:
    library = elf({".nv_fatbin": b"x"}, needed=["libcudart-9335f6a2.so.12.4.127", "libcudnn_ops.so.9", "libc.so.6"])
    report = examine_wheel(wheel(tmp_path / NAME, {"a.so": library}))
    assert report.cuda_links == ("libcudart-9335f6a2.so.12.4.127", "libcudnn_ops.so.9")
    assert report.kinds == ("cuda",) and report.gfx == ()
    assert report.forbidden_links(("libcudart.so",)) == (("a.so", "libcudart-9335f6a2.so.12.4.127"),)


@pytest.mark.parametrize(
    ("library", "is_cuda"),
    [
        ("libcudart.so.12", True),
        ("libcuda.so.1", True),
        ("libcublasLt.so.12", True),
        ("libc10_cuda.so", True),
        ("libtorch_cuda.so", True),
        ("libnvrtc.so.12", True),
        ("libcudnn.so.9", True),
        ("libtorch_hip.so", False),
        ("libamdhip64.so.6", False),
        ("librccl.so.1", False),
        ("libhipblas.so.2", False),
        ("libcudaless.so", False),
    ],
)
def test_names_of_cuda(library: str, is_cuda: bool) -> None:
    assert bool(cuda_links((library,))) is is_cuda


def test_a_library_named_without_its_suffix() -> None:
    assert links(("libcudart.so.12",), ("libcudart",)) == ("libcudart.so.12",)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_large_member(tmp_path: Path, compression: int) -> None:
    """Past the size that is read in memory: stored members are read in place, deflated ones through a temporary file."""
    data = elf({".data": os.urandom(1 << 16) * 160, ".hip_fatbin": bundle({"gfx90a": b"x"})}, needed=["libc.so.6"])
    assert len(data) > 9 << 20
    report = examine_wheel(wheel(tmp_path / NAME, {"first.py": b"1", "a.so": data}, compression=compression))
    assert report.gfx == ("gfx90a",) and report.links == ("libc.so.6",) and report.problems == ()


def test_a_pure_wheel(tmp_path: Path) -> None:
    report = examine_wheel(wheel(tmp_path / "pure-1-py3-none-any.whl", {"p.py": b"1"}, tags=("py3-none-any",)))
    assert report.files == () and report.gfx == () and report.tags == ("py3-none-any",)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"not a zip at all", b"PK\x05\x06" + b"\0" * 18])
def test_no_wheel(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / NAME
    path.write_bytes(data)
    if data.startswith(b"PK\x05"):
        assert examine_wheel(path).files == ()  # an empty archive, told as such
        return
    with pytest.raises(ElfError, match="not a readable wheel"):
        examine_wheel(path)


def test_a_broken_library_is_a_problem_of_its_file(tmp_path: Path) -> None:
    good = elf({".hip_fatbin": bundle({"gfx90a": b"x"})})
    report = examine_wheel(wheel(tmp_path / NAME, {"good.so": good, "bad.so": good[:100]}))
    assert report.gfx == ("gfx90a",)
    assert report.problems and report.problems[0].startswith("bad.so: ")


# VmHWM, not ru_maxrss: that one a child inherits from the process that started it. Times: bench/examine.py.
_MEASURE = """
import sys
from rocmpip.elf import code_objects
found = code_objects(sys.argv[1])
with open("/proc/self/status") as stream:
    peak = next(line.split()[1] for line in stream if line.startswith("VmHWM:"))
print(len(found), peak)
"""


def _big(path: Path, size: int) -> None:
    """A sparse library of ``size`` bytes whose device code stands behind a long hole and whose headers stand at its end."""
    hole = size - (1 << 16)
    tail = bundle({"gfx90a": b"a" * 100, "gfx942": b"b" * 100}) + b"\0" * 64
    # The headers of a small library, moved: .hip_fatbin covers the hole and the bundle after it.
    import struct

    small = elf({".hip_fatbin": b"@" * 16})
    place = small.index(b"@" * 16)
    shoff = struct.unpack_from("<Q", small, 40)[0]
    headers = bytearray(small[shoff:])
    for at in range(0, len(headers), 64):
        row = list(struct.unpack_from("<IIQQQQIIQQ", headers, at))
        if row[4] == place:
            row[5] = hole + len(tail)
        struct.pack_into("<IIQQQQIIQQ", headers, at, *row)
    start = bytearray(small[:shoff])
    struct.pack_into("<Q", start, 40, place + hole + len(tail))
    with path.open("wb") as stream:
        stream.write(start)
        stream.seek(place + hole)
        stream.write(tail)
        stream.write(headers)


def test_500_mb_in_100_mb_of_memory(tmp_path: Path) -> None:
    path = tmp_path / "big.so"
    _big(path, 500 << 20)
    assert path.stat().st_size > 499 << 20
    done = subprocess.run([sys.executable, "-c", _MEASURE, str(path)], capture_output=True, text=True, check=True)
    count, peak = done.stdout.split()
    assert int(count) == 2
    assert int(peak) < 100 << 10


def test_a_decompression_bomb_expands_to_nothing(tmp_path: Path) -> None:
    """A bundle that claims and holds 2 GiB behind its table costs kilobytes."""
    import zstandard

    head = bundle({"gfx90a": b"x"})
    compressor = zstandard.ZstdCompressor().compressobj()
    payload = compressor.compress(head)
    zeros = bytes(1 << 24)
    for _ in range(128):
        payload += compressor.compress(zeros)
    payload += compressor.flush()
    path = tmp_path / "bomb.so"
    path.write_bytes(elf({".hip_fatbin": compressed(head, version=2, payload=payload)}))
    done = subprocess.run([sys.executable, "-c", _MEASURE, str(path)], capture_output=True, text=True, check=True)
    count, peak = done.stdout.split()
    assert int(count) == 1 and int(peak) < 100 << 10


def test_an_archive_bomb_fills_no_disk(tmp_path: Path) -> None:
    """A member of a gigabyte of zeros becomes holes, and costs no memory."""
    path = tmp_path / NAME
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("a.so", "w", force_zip64=True) as stream,
    ):
        stream.write(elf()[:200])
        for _ in range(16):
            stream.write(bytes(1 << 26))
    code = (
        "import sys; from rocmpip.elf import examine_wheel; print(len(examine_wheel(sys.argv[1]).files))\n"
        "with open('/proc/self/status') as stream: print(*(line for line in stream if line.startswith('VmHWM:')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False, timeout=600,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    count, _, peak, _ = done.stdout.split()
    assert count == "1", done.stderr
    assert int(peak) < 400 << 10


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_member_is_told(method: int, tmp_path: Path) -> None:
    """Each method's library has errors of its own, which zipfile lets through; bz2's is an OSError."""
    path = tmp_path / NAME
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("kernels-1.2.dist-info/rocmpip.json"), elf() * 200, method)
    data = path.read_bytes()
    path.write_bytes(data[:70] + bytes(byte ^ 0xA5 for byte in data[70:100]) + data[100:])
    with pytest.raises(ElfError, match="not a readable wheel"):
        examine_wheel(path)
    with pytest.raises(ValueError, match="not a readable wheel"):
        read_wheel(path)


def test_a_pipe_is_no_wheel(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / NAME)
    with pytest.raises(OSError, match="not a regular file"):
        read_wheel(tmp_path / NAME)
    with pytest.raises(OSError, match="not a regular file"):
        examine_wheel(tmp_path / NAME)
