"""The generators behind the demo and the replica make real files: wheels, source archives, code objects, sysfs trees."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.utils import parse_sdist_filename, parse_wheel_filename

from rocmpip.demo import fatbin
from rocmpip.demo.embedded import artifacts, read, source_archive, write_node
from rocmpip.demo.site import _span
from rocmpip.demo.surroundings import clean_environment
from rocmpip.demo.torchlike import torch_wheel
from rocmpip.demo.wheels import Sdist, Wheel
from rocmpip.elf import code_objects


def test_a_wheel_is_whole_and_always_the_same_bytes() -> None:
    made = [torch_wheel("2.9.1+rocm6.4", "cp311-cp311-manylinux_2_28_x86_64", rocm="6.4") for _ in range(2)]
    assert made[0].content == made[1].content
    name, version, _, tags = parse_wheel_filename(made[0].filename)
    assert (name, str(version), len(tags)) == ("torch", "2.9.1+rocm6.4", 1)
    with zipfile.ZipFile(io.BytesIO(made[0].content)) as archive:
        rows = list(csv.reader(archive.read("torch-2.9.1+rocm6.4.dist-info/RECORD").decode().splitlines()))
        assert {row[0] for row in rows} == set(archive.namelist())
        for path, digest, size in rows[:-1]:
            content = archive.read(path)
            told = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert (digest, size) == (f"sha256={told}", str(len(content)))
        assert archive.read("torch-2.9.1+rocm6.4.dist-info/METADATA") == made[0].metadata


def test_metadata_names_every_extra() -> None:
    wheel = Wheel("Some.Name", "1.0", ('a ; extra == "x"', "b>=2"), extras=("y",), requires_python=">=3.9")
    told = BytesParser().parsebytes(wheel.metadata)
    assert wheel.filename == "some_name-1.0-py3-none-any.whl"
    assert told.get_all("Provides-Extra") == ["y", "x"]
    assert [Requirement(text).name for text in told.get_all("Requires-Dist") or []] == ["a", "b"]
    assert told["Requires-Python"] == ">=3.9"


def test_a_source_archive_unpacks_into_one_folder() -> None:
    sdist = Sdist("tiny-ext", "1.0", files={"setup.py": "x\n", "pkg/__init__.py": ""})
    assert parse_sdist_filename(sdist.filename)[0] == "tiny-ext"
    with tarfile.open(fileobj=io.BytesIO(sdist.content)) as archive:
        assert set(archive.getnames()) == {f"tiny_ext-1.0/{path}" for path in ("PKG-INFO", "pkg/__init__.py", "setup.py")}


@pytest.mark.parametrize("targets", [["gfx942"], ["gfx90a", "gfx1100"], ["gfx90a:sramecc+:xnack-"], list(fatbin.MACH)])
def test_code_objects_are_found_by_the_reader(targets: list[str]) -> None:
    found = code_objects(fatbin.shared_object(targets))
    assert [one.target for one in found] == [target.split(":")[0] for target in targets]


def test_readelf_agrees(tmp_path: Path) -> None:
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(io.BytesIO(fatbin.shared_object(["gfx942"])))
    assert elf["e_machine"] == "EM_X86_64"
    section = elf.get_section_by_name(".hip_fatbin")
    assert section.data().startswith(b"__CLANG_OFFLOAD_BUNDLE__")


def test_every_row_of_the_index_makes_valid_files() -> None:
    table = read("index.toml")
    names = set()
    for row in table["package"]:
        for artifact in artifacts(row, table):
            names.add(artifact.project)
            parse = parse_wheel_filename if artifact.filename.endswith(".whl") else parse_sdist_filename
            assert parse(artifact.filename)[0] == artifact.project
            assert all(Requirement(text) for text in artifact.requires)
    assert {"torch", "pytorch-triton-rocm", "triton", "accelerate", "flash-attn", "setuptools"} <= names


def test_the_source_archive_carries_its_code_object_writer() -> None:
    files = source_archive("flash_attn", "2.8.3", "flash-attn").files
    assert 'version="2.8.3"' in str(files["setup.py"])
    assert "def shared_object" in str(files["fatbin.py"])


def test_the_node_is_what_its_file_says(tmp_path: Path) -> None:
    node = write_node(tmp_path)
    properties = (node.sysroot / "sys/class/kfd/kfd/topology/nodes/1/properties").read_text().splitlines()
    assert "gfx_target_version 90402" in properties
    assert "vendor_id 4098" in properties
    assert (node.rocm / ".info/version").read_text() == "6.4.0-47\n"
    inside = node.sysroot / str(node.rocm).lstrip("/")
    assert (inside / ".info/version").read_text() == "6.4.0-47\n"
    said = subprocess.run([node.rocm / "bin/hipcc", "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("HIP version: 6.4.0")


@given(st.integers(1, 1000), st.integers(-5, 2000), st.integers(-5, 2000))
def test_spans(size: int, first: int, last: int) -> None:
    """As a slice of the bytes would be; None for what is no single range. Beyond the end the first is past the last."""
    for header in ("bytes=-", "lines=1-2", "bytes=1-2,4-5", "bytes=", ""):
        assert _span(header, size) is None
    places = range(size)
    for header, expected in (
        (f"bytes={first}-{last}", places[first : last + 1] if first >= 0 and last >= 0 else None),
        (f"bytes={first}-", places[first:] if first >= 0 else None),
        (f"bytes=-{last}", (places[-last:] if last else places[size:]) if last >= 0 else None),
    ):
        span = _span(header, size)
        if expected is None:
            assert span is None, header
        else:
            assert span is not None and list(range(span[0], span[1] + 1)) == list(expected), header


def test_a_clean_environment_keeps_what_has_nothing_to_do_with_it() -> None:
    base = {"PATH": "/bin", "LANG": "C", "PIP_INDEX_URL": "x", "ROCM_PATH": "x", "http_proxy": "x", "CXX": "x", "HSA_X": "x"}
    assert clean_environment(base) == {"PATH": "/bin", "LANG": "C"}


def test_the_stand_in_backend_needs_only_the_standard_library() -> None:
    code = "import sys; before = set(sys.modules); import rocmpip.demo.standins.setuptools_build; print(*set(sys.modules) - before)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    roots = {name.split(".")[0] for name in loaded} - {"rocmpip"}
    assert roots <= set(sys.stdlib_module_names)
