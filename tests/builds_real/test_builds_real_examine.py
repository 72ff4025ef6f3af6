"""Real ROCm wheels, read by us and by LLVM's and binutils' own tools."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from rocmpip.elf import code_objects, needed
from tests.support.commands import rocmpip
from tests.support.hipcc import llvm
from tests.support.real_sources import GPU_WHEELS, Source

pytestmark = pytest.mark.hipcc

PLAIN, PACKED = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"


@pytest.fixture(params=GPU_WHEELS, ids=lambda wheel: wheel.name)
def wheel(request: pytest.FixtureRequest) -> Path:
    source: Source = request.param
    if not source.path.is_file():
        pytest.skip(f"{source.path} is not there: python -m tests.support.real_sources")
    source.check(source.path)
    return source.path


def libraries(wheel: Path, folder: Path) -> Iterator[Path]:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if ".so" in name:
                yield Path(archive.extract(name, folder))


def bundles(library: Path, folder: Path) -> Iterator[Path]:
    """The bundles of a library, cut out by objcopy; compressed ones unpacked by zstd."""
    section = folder / "section"
    argv = ["objcopy", "-O", "binary", "--only-section=.hip_fatbin", str(library), str(section)]
    subprocess.run(argv, check=True, capture_output=True)
    data = section.read_bytes() if section.exists() else b""
    section.unlink(missing_ok=True)
    if data.startswith(PLAIN):
        assert data.count(PLAIN) == 1
        section.write_bytes(data)
        yield section
    at = data.find(PACKED)
    while at >= 0:
        version, method, size, whole = struct.unpack_from("<HHQQ", data, at + 4)
        assert (version, method) == (3, 1)
        section.write_bytes(zstandard.ZstdDecompressor().decompress(data[at + 32 : at + size], max_output_size=whole))
        yield section
        at = data.find(PACKED, at + size)


def test_the_bundler_lists_the_same(wheel: Path, tmp_path: Path) -> None:
    everything: set[str] = set()
    for library in libraries(wheel, tmp_path / "out"):
        theirs: list[str] = []
        for bundle in bundles(library, tmp_path):
            argv = [llvm("clang-offload-bundler"), "--list", "--type=o", f"--input={bundle}"]
            text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
            theirs += [line.rpartition("--")[2] for line in text.split() if not line.startswith("host-")]
        assert sorted(str(one) for one in code_objects(library)) == sorted(theirs), library.name
        everything |= {name.partition(":")[0] for name in theirs}
    assert len(everything) in (13, 27)
    told = json.loads(rocmpip("examine", "--json", str(wheel)).stdout)
    assert told["ok"] and all(f'"{name}"' in json.dumps(told["result"]) for name in everything)


def test_readelf_sees_the_same_links(wheel: Path, tmp_path: Path) -> None:
    count = 0
    for library in libraries(wheel, tmp_path):
        text = subprocess.run(["readelf", "-dW", str(library)], check=True, capture_output=True, text=True).stdout
        assert list(needed(library)) == re.findall(r"\(NEEDED\).*\[(.+)\]", text), library.name
        count += 1
    assert count >= 2
