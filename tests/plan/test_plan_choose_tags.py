"""Tags of foreign targets against what packaging says of this interpreter, and against published wheels."""

from __future__ import annotations

import sys

import pytest

from rocmpip.plan.tags import Tags, expand_platform, fits, tags_for

TORCH = "torch-2.9.1+rocm6.4-{0}-manylinux_2_28_x86_64.whl"


@pytest.mark.parametrize("minor", range(10, 15))
def test_each_python_takes_its_own_wheel(minor: int) -> None:
    tags = tags_for(f"3.{minor}")
    assert tags.python == f"3.{minor}"
    for other in range(10, 15):
        assert (fits(TORCH.format(f"cp3{other}-cp3{other}"), tags) is not None) == (other == minor)


def test_free_threading_is_another_abi() -> None:
    free = tags_for("3.14t")
    assert fits(TORCH.format("cp314-cp314t"), free) is not None
    assert fits(TORCH.format("cp314-cp314"), free) is None
    assert fits("x-1-cp310-abi3-manylinux_2_28_x86_64.whl", free) is None
    assert fits(TORCH.format("cp314-cp314t"), tags_for("3.14")) is None


@pytest.mark.parametrize(
    ("glibc", "wheel", "good"),
    [
        ((2, 28), "manylinux_2_28_x86_64", True),
        ((2, 27), "manylinux_2_28_x86_64", False),
        ((2, 39), "manylinux_2_28_x86_64", True),
        ((2, 17), "manylinux2014_x86_64", True),
        ((2, 17), "linux_x86_64", True),
        ((2, 35), "linux_aarch64", False),
        ((2, 35), "manylinux_2_17_x86_64.manylinux2014_x86_64", True),
        ((2, 35), "win_amd64", False),
    ],
)
def test_c_library_of_the_target(glibc: tuple[int, int], wheel: str, good: bool) -> None:
    tags = tags_for("3.12", glibc=glibc)
    assert (fits(f"torch-2.5.1+rocm6.2-cp312-cp312-{wheel}.whl", tags) is not None) is good


def test_a_foreign_manylinux_takes_no_plain_linux_wheel() -> None:
    assert "linux_x86_64" not in expand_platform("manylinux_2_28_x86_64")
    assert expand_platform("win_amd64") == ("win_amd64",)


def test_this_interpreter_agrees_with_packaging() -> None:
    from packaging.tags import sys_tags

    own = list(map(str, sys_tags()))
    platforms = list(dict.fromkeys(tag.split("-")[2] for tag in own if not tag.endswith("any")))
    made = tags_for(f"{sys.version_info[0]}.{sys.version_info[1]}", platforms=platforms)
    assert list(made) == own


def test_ranks_prefer_the_nearest_build() -> None:
    tags = tags_for("3.12", glibc=(2, 35))
    own = fits("x-1-cp312-cp312-manylinux_2_28_x86_64.whl", tags)
    stable = fits("x-1-cp310-abi3-manylinux_2_28_x86_64.whl", tags)
    pure = fits("x-1-py3-none-any.whl", tags)
    assert own is not None and stable is not None and pure is not None
    assert own < stable < pure


@pytest.mark.parametrize("name", ["torch-2.9.1.tar.gz", "torch.whl", "torch-1-x.whl", "", "a-b-c-d.whl.zip"])
def test_what_is_no_wheel_fits_nothing(name: str) -> None:
    assert fits(name, tags_for("3.12")) is None


@pytest.mark.parametrize("text", ["", "three", "3", "3.x", "2.7.18.1.1"])
def test_bad_pythons_are_named(text: str) -> None:
    with pytest.raises(ValueError, match="not a Python version"):
        tags_for(text)


def test_tags_can_come_from_elsewhere() -> None:
    tags = Tags(["cp313-cp313t-linux_x86_64", "py3-none-any"])
    assert tags.python == "3.13t" and tags.platform == "linux_x86_64"
    assert len(tags) == 2
