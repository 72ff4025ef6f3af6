"""AMD's ``rocm`` without its guess: what its setup.py would declare, narrowed to the target GPUs."""

from __future__ import annotations

from email.parser import BytesParser

import pytest
from packaging.requirements import Requirement

from rocmpip.plan.family import rocm_build_env, rocm_metadata


def needs(metadata: bytes, extra: str = "") -> set[str]:
    message = BytesParser().parsebytes(metadata)
    found = [Requirement(line) for line in message.get_all("Requires-Dist") or []]
    return {f"{one.name}{one.specifier}" for one in found if one.marker is None or one.marker.evaluate({"extra": extra})}


def test_device_all_is_narrowed_to_the_targets() -> None:
    metadata = rocm_metadata("7.14.0.post1", gfx=["gfx942"])
    assert needs(metadata) == {"rocm-sdk-core==7.14.0.post1"}
    assert needs(metadata, "device-all") - needs(metadata) == {"rocm-sdk-device-gfx942==7.14.0.post1"}
    assert needs(metadata, "device-gfx942") == needs(metadata, "device-all")
    assert "rocm-sdk-libraries==7.14.0.post1" in needs(metadata, "libraries")
    assert "rocm-sdk-devel==7.14.0.post1" in needs(metadata, "devel")
    assert "rocm-profiler==7.14.0.post1" in needs(metadata, "profiler")
    assert b"gfx1100" not in metadata


def test_two_targets_and_no_third() -> None:
    metadata = rocm_metadata("10.1.0", gfx=["gfx942", "gfx1100", "gfx942"])
    assert needs(metadata, "device-all") == {
        "rocm-sdk-core==10.1.0",
        "rocm-sdk-device-gfx942==10.1.0",
        "rocm-sdk-device-gfx1100==10.1.0",
    }


def test_parts_that_were_not_released_again_keep_their_version() -> None:
    has = {"rocm-sdk-core": ["7.14.0", "7.14.1"], "rocm-sdk-device-gfx942": ["7.14.0.post1", "7.14.0"], "rocm-sdk-devel": ["x"]}
    metadata = rocm_metadata("7.14.0.post1", gfx=["gfx942"], has=has)
    assert needs(metadata) == {"rocm-sdk-core==7.14.0"}
    assert "rocm-sdk-device-gfx942==7.14.0.post1" in needs(metadata, "device-all")
    assert "rocm-sdk-devel==7.14.0.post1" in needs(metadata, "devel")


def test_the_older_form_has_libraries_of_one_family() -> None:
    metadata = rocm_metadata("7.10.0", gfx=["gfx1103"], style="family")
    assert "rocm-sdk-libraries-gfx110X-all==7.10.0" in needs(metadata, "libraries")
    assert b"device" not in metadata


def test_metadata_is_well_formed_and_the_same_every_time() -> None:
    metadata = rocm_metadata("10.0.0", gfx=["gfx1151"])
    message = BytesParser().parsebytes(metadata)
    assert (message["Name"], message["Version"]) == ("rocm", "10.0.0")
    assert set(message.get_all("Provides-Extra")) >= {"device", "device-all", "device-gfx1151", "devel", "libraries"}
    assert metadata == rocm_metadata("10.0.0", gfx=["gfx1151"])


def test_bad_versions_are_named() -> None:
    with pytest.raises(ValueError, match="not a version of rocm"):
        rocm_metadata("seven", gfx=["gfx942"])


def test_the_build_does_not_look_at_the_machine() -> None:
    assert rocm_build_env(["gfx942", "gfx1100"]) == {"ROCM_SDK_TARGET_FAMILY": "gfx942"}
    assert rocm_build_env(["gfx1103"], style="family") == {"ROCM_SDK_TARGET_FAMILY": "gfx110X-all"}
    assert rocm_build_env([]) == {}
