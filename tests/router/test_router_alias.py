"""Wheels that exist only in the router."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile

import pytest
from packaging.metadata import Metadata
from packaging.utils import parse_wheel_filename

from rocmpip.router.alias import VIRTUAL_BUILD, alias_wheel, hollow_wheel, static_metadata, virtual_wheel


def members(content: bytes | None) -> dict[str, bytes]:
    assert content is not None
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_alias_has_nothing_but_its_requirement() -> None:
    made = alias_wheel("triton", "3.5.1", "pytorch-triton-rocm==3.5.1")
    assert made.filename == "triton-3.5.1-py3-none-any.whl"
    found = members(made.content)
    assert all(name.startswith("triton-3.5.1.dist-info/") for name in found)
    assert found["triton-3.5.1.dist-info/METADATA"] == made.metadata
    metadata = Metadata.from_email(made.metadata)
    assert (metadata.name, str(metadata.version)) == ("triton", "3.5.1")
    assert [str(each) for each in metadata.requires_dist or ()] == ["pytorch-triton-rocm==3.5.1"]


def test_the_same_bytes_every_time() -> None:
    assert alias_wheel("triton", "3.5.1", "a==3.5.1") == alias_wheel("triton", "3.5.1", "a==3.5.1")
    assert alias_wheel("triton", "3.5.1", "a==3.5.1") != alias_wheel("triton", "3.5.1", "b==3.5.1")


def test_record_is_right() -> None:
    found = members(alias_wheel("triton", "3.5.1", "triton-rocm==3.5.1").content)
    rows = [line.split(",") for line in found["triton-3.5.1.dist-info/RECORD"].decode().splitlines()]
    assert [row[0] for row in rows] == list(found)
    for path, digest, size in rows[:-1]:
        assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(found[path]).digest()).rstrip(b"=").decode()
        assert int(size) == len(found[path])
    assert rows[-1][1:] == ["", ""]


def test_a_stand_in_is_known_by_its_build_tag() -> None:
    metadata = static_metadata("Flash.Attn", "2.8.3+rocm", ["torch", 'einops; extra == "x"'], ["x"], ">=3.9")
    made = virtual_wheel("Flash.Attn", "2.8.3+rocm", metadata)
    name, version, build, _ = parse_wheel_filename(made.filename)
    assert (name, str(version), build) == ("flash-attn", "2.8.3+rocm", (0, VIRTUAL_BUILD[1:]))
    assert members(made.content)["flash_attn-2.8.3+rocm.dist-info/METADATA"] == metadata
    parsed = Metadata.from_email(metadata)
    assert (parsed.provides_extra, str(parsed.requires_python)) == (["x"], ">=3.9")


def test_a_hollow_wheel_has_the_tags_of_its_name() -> None:
    found = members(hollow_wheel("torch-2.9.1+rocm6.4-1x-cp312-cp312-linux_x86_64.whl", b"Metadata-Version: 2.1\n"))
    lines = found["torch-2.9.1+rocm6.4.dist-info/WHEEL"].decode().splitlines()
    assert "Tag: cp312-cp312-linux_x86_64" in lines
    assert "Build: 1x" in lines


@pytest.mark.parametrize("value", ["torch\nRequires-Dist: evil", "torch\r"])
def test_no_value_can_inject_a_line(value: str) -> None:
    with pytest.raises(ValueError, match="more than one line"):
        static_metadata("x", "1", [value])
