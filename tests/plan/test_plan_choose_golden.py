"""Request × machine → family, versions, extras: expectations written from what is published, not from the code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from choose_world import World, frozen_families, machine, november
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from rocmpip.catalogue import load
from rocmpip.model.errors import NetworkError, NoPlan
from rocmpip.model.packages import Absent, Page
from rocmpip.model.plan import FamilyChoice
from rocmpip.model.recipe import Conflict
from rocmpip.plan.choose import choose_family
from rocmpip.plan.tags import tags_for

CATALOGUE = load()


@pytest.fixture(scope="module")
def world() -> World:
    world = november()
    frozen_families(world)
    return world


def ask(
    world: World,
    gfx: str,
    rocm: str,
    python: str = "3.12",
    request: str = "torch",
    *,
    channel: str = "stable",
    conflicts: Sequence[Conflict] = (),
    held: dict[str, str] | None = None,
    override: bool = False,
    pre: bool = False,
    driver: str = "",
    wanted: set[str] | None = None,
) -> FamilyChoice:
    requirements: dict[str, SpecifierSet] = {}
    for text in request.split():
        requirement = Requirement(text)
        requirements[requirement.name] = requirement.specifier
    return choose_family(
        platform=machine(gfx, rocm, driver),
        python_tags=tags_for(python, glibc=(2, 35)),
        requirements=requirements,
        conflicts=conflicts,
        catalogue=CATALOGUE,
        candidates=world,
        channel=channel,
        held=held or {},
        allow_override=override,
        pre=pre,
        wanted=wanted,
    )


@dataclass(frozen=True)
class Row:
    gfx: str
    rocm: str
    python: str
    request: str
    family: str
    torch: str
    more: str = ""
    """Further pins: "torchvision==0.24.1+rocm6.4 …"."""
    extra: str = ""
    """torch's extras, with commas between."""

    def __str__(self) -> str:
        return f"{self.gfx}-{self.rocm or 'none'}-{self.python}-{self.request}".replace(" ", "_")


PT, SEVEN, TEN = "pytorch.org rocm", "AMD 7.14 multi-arch", "AMD 10.x"
R = Row
ROWS = [
    # the machine's own ROCm
    R("gfx90a", "5.7", "3.10", "torch", PT + "5.7", "2.3.1+rocm5.7", "torchvision==0.18.1+rocm5.7"),
    R("gfx90a", "6.0", "3.10", "torch", PT + "6.0", "2.4.1+rocm6.0", "pytorch-triton-rocm==3.0.0"),
    R("gfx942", "6.0", "3.11", "torch", PT + "6.0", "2.4.1+rocm6.0"),
    R("gfx90a", "6.1", "3.12", "torch", PT + "6.1", "2.6.0+rocm6.1", "pytorch-triton-rocm==3.2.0"),
    R("gfx942", "6.2", "3.12", "torch", PT + "6.2.4", "2.7.1+rocm6.2.4", "torchvision==0.22.1+rocm6.2.4"),
    R("gfx942", "6.2.4", "3.12", "torch", PT + "6.2.4", "2.7.1+rocm6.2.4"),
    R("gfx942", "6.2.1", "3.12", "torch==2.5.1", PT + "6.2", "2.5.1+rocm6.2", "pytorch-triton-rocm==3.1.0"),
    R("gfx942", "6.2.4", "3.12", "torch<2.6", PT + "6.2", "2.5.1+rocm6.2"),
    R("gfx1100", "6.2", "3.12", "torch==2.6.0", PT + "6.2.4", "2.6.0+rocm6.2.4"),
    R("gfx1100", "6.3", "3.12", "torch", PT + "6.3", "2.9.1+rocm6.3", "pytorch-triton-rocm==3.5.1"),
    R("gfx90a", "6.4", "3.12", "torch==2.9.1", PT + "6.4", "2.9.1+rocm6.4", "torchvision==0.24.1+rocm6.4"),
    R("gfx1100", "6.4.3", "3.13", "torch", PT + "6.4", "2.9.1+rocm6.4"),
    R("gfx942", "7.0", "3.12", "torch", PT + "7.0", "2.10.0+rocm7.0", "triton-rocm==3.6.0"),
    R("gfx1151", "7.0", "3.12", "torch", PT + "7.0", "2.10.0+rocm7.0"),
    R("gfx950", "7.1", "3.12", "torch", PT + "7.1", "2.13.0+rocm7.1", "triton-rocm==3.7.1"),
    R("gfx1151", "7.2", "3.12", "torch", PT + "7.2", "2.13.0+rocm7.2", "torchvision==0.28.0+rocm7.2"),
    R("gfx942", "7.2.1", "3.12", "torch", PT + "7.2", "2.13.0+rocm7.2"),
    R("gfx942", "7.2", "3.12", "torch torchaudio", PT + "7.2", "2.13.0+rocm7.2", "torchaudio==2.11.0+rocm7.2"),
    R("gfx942", "7.14", "3.12", "torch", PT + "7.14", "2.14.1+rocm7.14", "triton-rocm==3.8.0 rocm==7.14.0.post1"),
    R("gfx1103", "7.14", "3.12", "torch", PT + "7.14", "2.14.1+rocm7.14"),
    R("gfx942", "7.14.1", "3.12", "torch==2.14.0", PT + "7.14", "2.14.0+rocm7.14", "torchvision==0.29.0+rocm7.14"),
    R("gfx942", "7.14", "3.12", "torch==2.12.0", SEVEN, "2.12.0+rocm7.14.0", "", "device-gfx942"),
    R("gfx942", "10.0", "3.12", "torch", TEN, "2.13.0+rocm10.0.0", "torchvision==0.28.0+rocm10.0.0", "device-gfx942"),
    R("gfx1100", "10.0", "3.12", "torch torchaudio", TEN, "2.13.0+rocm10.0.0", "torchaudio==2.11.0.2+rocm10.0.0", "device-gfx1100"),
    R("gfx1151", "10.1", "3.12", "torch", TEN, "2.14.0+rocm10.1.0", "", "device-gfx1151"),
    R("gfx942", "10.0", "3.13", "torch==2.12.0", TEN, "2.12.0+rocm10.0.0", "", "device-gfx942"),
    # the highest lower ROCm
    R("gfx942", "6.2", "3.12", "torch==2.4.0", PT + "6.1", "2.4.0+rocm6.1", "torchvision==0.19.0+rocm6.1"),
    R("gfx942", "7.2", "3.12", "torch==2.9.1", PT + "6.4", "2.9.1+rocm6.4"),
    R("gfx942", "10.0", "3.12", "torch==2.9.1", PT + "6.4", "2.9.1+rocm6.4"),
    R("gfx1100", "10.0", "3.12", "torch==2.9.1", PT + "6.4", "2.9.1+rocm6.4"),
    R("gfx90a", "7.14", "3.12", "torch==2.13.0", PT + "7.2", "2.13.0+rocm7.2"),
    R("gfx90a", "7.2", "3.12", "torch==2.10.0", PT + "7.1", "2.10.0+rocm7.1", "triton-rocm==3.6.0"),
    R("gfx90a", "6.3", "3.11", "torch==2.3.1", PT + "6.0", "2.3.1+rocm6.0"),
    R("gfx90a", "10.1", "3.12", "torch==2.14.1", PT + "7.14", "2.14.1+rocm7.14"),
    R("gfx90a", "10.0", "3.12", "torch==2.14.0", PT + "7.14", "2.14.0+rocm7.14"),
    R("gfx942", "7.3", "3.12", "torch", PT + "7.2", "2.13.0+rocm7.2"),
    R("gfx942", "7.9", "3.12", "torch", PT + "7.2", "2.13.0+rocm7.2"),
    R("gfx942", "10.2", "3.12", "torch", TEN, "2.14.0+rocm10.1.0", "", "device-gfx942"),
    R("gfx942", "7.15", "3.12", "torch", PT + "7.14", "2.14.1+rocm7.14"),
    # the lowest higher ROCm
    R("gfx942", "5.7", "3.10", "torch", PT + "6.0", "2.4.1+rocm6.0"),
    R("gfx90a", "5.7", "3.12", "torch==2.5.1", PT + "6.1", "2.5.1+rocm6.1"),
    R("gfx90a", "6.4", "3.12", "torch==2.10.0", PT + "7.0", "2.10.0+rocm7.0"),
    R("gfx90a", "6.4", "3.12", "torch>=2.14", PT + "7.14", "2.14.1+rocm7.14"),
    R("gfx1151", "6.4", "3.12", "torch", PT + "7.0", "2.10.0+rocm7.0"),
    R("gfx1201", "6.1", "3.12", "torch", PT + "6.2.4", "2.7.1+rocm6.2.4"),
    # gfx906 ends at ROCm 6.3, whatever a list says
    R("gfx906", "6.2", "3.12", "torch", PT + "6.2.4", "2.7.1+rocm6.2.4"),
    R("gfx906", "6.3", "3.12", "torch", PT + "6.3", "2.9.1+rocm6.3"),
    R("gfx906", "6.4", "3.12", "torch", PT + "6.3", "2.9.1+rocm6.3"),
    R("gfx906", "7.2", "3.12", "torch==2.9.1", PT + "6.3", "2.9.1+rocm6.3"),
    R("gfx906", "10.0", "3.12", "torch", PT + "6.3", "2.9.1+rocm6.3"),
    R("gfx906", "", "3.12", "torch", PT + "6.3", "2.9.1+rocm6.3"),
    # GPUs that pytorch.org never had kernels for: AMD's native wheels
    R("gfx1103", "6.4", "3.12", "torch", SEVEN, "2.12.0+rocm7.14.0", "", "device-gfx1103"),
    R("gfx1103", "7.2", "3.12", "torch", SEVEN, "2.12.0+rocm7.14.0", "", "device-gfx1103"),
    R("gfx1103", "10.0", "3.12", "torch", TEN, "2.13.0+rocm10.0.0", "", "device-gfx1103"),
    R("gfx1031", "6.4", "3.12", "torch", SEVEN, "2.12.0+rocm7.14.0", "", "device-gfx1031"),
    R("gfx1031", "7.14", "3.12", "torch", SEVEN, "2.12.0+rocm7.14.0", "", "device-gfx1031"),
    R("gfx1031", "10.1", "3.12", "torch", TEN, "2.14.0+rocm10.1.0", "", "device-gfx1031"),
    R("gfx1010", "6.2", "3.12", "torch==2.13.0", TEN, "2.13.0+rocm10.0.0", "", "device-gfx1010"),
    R("gfx1152", "7.2", "3.12", "torch", SEVEN, "2.12.0+rocm7.14.0", "", "device-gfx1152"),
    R("gfx1031", "6.4", "3.12", "torch==2.9.1", "AMD per-family", "2.9.1+rocm7.10.0"),
    R("gfx1151", "7.2", "3.12", "torch==2.9.1", "AMD per-family", "2.9.1+rocm7.10.0"),
    # no ROCm installed: the newest stable family
    R("gfx942", "", "3.12", "torch", TEN, "2.14.0+rocm10.1.0", "", "device-gfx942"),
    R("gfx942", "", "3.12", "torch torchvision", TEN, "2.13.0+rocm10.0.0", "torchvision==0.28.0+rocm10.0.0", "device-gfx942"),
    R("gfx1100", "", "3.12", "torch>=2.14.1", PT + "7.14", "2.14.1+rocm7.14"),
    R("gfx90a", "", "3.12", "torch==2.9.1", PT + "6.4", "2.9.1+rocm6.4"),
    # Pythons
    R("gfx90a", "6.4", "3.10", "torch", PT + "6.4", "2.9.1+rocm6.4"),
    R("gfx90a", "6.4", "3.11", "torch", PT + "6.4", "2.9.1+rocm6.4"),
    R("gfx90a", "6.4", "3.13", "torch==2.8.0", PT + "6.4", "2.8.0+rocm6.4"),
    R("gfx90a", "6.4", "3.14", "torch", PT + "6.4", "2.9.1+rocm6.4"),
    R("gfx90a", "7.2", "3.14t", "torch", PT + "7.2", "2.13.0+rocm7.2"),
    R("gfx90a", "6.0", "3.13", "torch", PT + "6.1", "2.6.0+rocm6.1"),
    R("gfx90a", "6.2", "3.14", "torch", PT + "6.3", "2.9.1+rocm6.3"),
    # members steer torch
    R("gfx90a", "7.1", "3.12", "torch torchvision<0.28", PT + "7.1", "2.12.1+rocm7.1", "torchvision==0.27.1+rocm7.1"),
    R("gfx90a", "7.1", "3.12", "torch torchaudio==2.10.0", PT + "7.1", "2.10.0+rocm7.1", "torchaudio==2.10.0+rocm7.1"),
    R("gfx90a", "6.4", "3.12", "torch triton<3.5", PT + "6.4", "2.8.0+rocm6.4", "pytorch-triton-rocm==3.4.0"),
    R("gfx90a", "7.2", "3.12", "torch pytorch-triton-rocm", PT + "6.4", "2.9.1+rocm6.4", "pytorch-triton-rocm==3.5.1"),
    R("gfx90a", "10.1", "3.12", "torch torchvision", TEN, "2.13.0+rocm10.0.0", "torchvision==0.28.0+rocm10.0.0", "device-gfx90a"),
    # labels of other builds, and labels that say which ROCm
    R("gfx90a", "6.2", "3.12", "torch==2.5.1+cu121", PT + "6.2", "2.5.1+rocm6.2"),
    R("gfx90a", "6.4", "3.12", "torch==2.9.1+cpu torchvision==0.24.1+cpu", PT + "6.4", "2.9.1+rocm6.4"),
    R("gfx90a", "6.4", "3.12", "torch===2.9.1", PT + "6.4", "2.9.1+rocm6.4"),
    R("gfx90a", "6.4", "3.12", "torch==2.9.1+rocm6.3", PT + "6.3", "2.9.1+rocm6.3"),
    # several GPUs: one build for all of them
    R("gfx942 gfx1100", "7.2", "3.12", "torch", PT + "7.2", "2.13.0+rocm7.2"),
    R("gfx1100 gfx1036", "7.2", "3.12", "torch", SEVEN, "2.12.0+rocm7.14.0", "", "device-gfx1100,device-gfx1036"),
    R("gfx906 gfx1201", "7.2", "3.12", "torch", PT + "6.3", "2.9.1+rocm6.3"),
    R("gfx90a gfx950", "6.4", "3.12", "torch", PT + "7.0", "2.10.0+rocm7.0"),
]  # fmt: skip


def test_the_table_is_long_enough() -> None:
    assert len(ROWS) >= 60 and len({str(row) for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_choice(world: World, row: Row) -> None:
    choice = ask(world, row.gfx, row.rocm, row.python, row.request)
    assert choice.family == row.family
    assert choice.pins["torch"] == row.torch
    assert next(iter(choice.pins)) == "torch"
    for pin in row.more.split():
        name, _, version = pin.partition("==")
        assert choice.pins.get(name) == version, name
    assert choice.extras.get("torch", ()) == tuple(row.extra.split(",") if row.extra else ())
    assert all(choice.because)
    assert [tried for tried in choice.tried if tried.verdict == "chosen"]


NIGHTLY = [
    ("gfx942", "7.14", "pytorch.org nightly rocm7.14", "2.15.0.dev20261121+rocm7.14"),
    ("gfx942", "7.2", "pytorch.org nightly rocm7.14", "2.15.0.dev20261121+rocm7.14"),
    ("gfx942", "10.0", "pytorch.org nightly rocm10.0", "2.15.0.dev20261121+rocm10.0"),
    ("gfx1031", "10.0", "AMD nightly 10.x", "2.15.0a0+rocm10.2.0a20261120"),
    ("gfx900", "10.0", "AMD nightly 10.x", "2.15.0a0+rocm10.2.0a20261120"),
]


@pytest.mark.parametrize(("gfx", "rocm", "family", "torch"), NIGHTLY)
def test_nightly_channel(world: World, gfx: str, rocm: str, family: str, torch: str) -> None:
    choice = ask(world, gfx, rocm, channel="nightly")
    assert (choice.family, choice.pins["torch"]) == (family, torch)


def test_a_nightly_takes_the_torchvision_of_its_own_day(world: World) -> None:
    choice = ask(world, "gfx942", "7.14", channel="nightly", request="torch==2.15.0.dev20261120 torchvision")
    assert choice.pins["torchvision"] == "0.30.0.dev20261120+rocm7.14"


def test_an_explicit_nightly_is_found_from_the_stable_channel(world: World) -> None:
    choice = ask(world, "gfx942", "7.14", request="torch==2.15.0.dev20261120")
    assert choice.family == "pytorch.org nightly rocm7.14"


def test_gfx906_gets_no_nightly_above_its_end(world: World) -> None:
    assert ask(world, "gfx906", "10.0", channel="nightly").pins["torch"] == "2.9.1+rocm6.3"


REFUSED = [
    # gfx, rocm, python, request, word in the error
    ("gfx132f", "7.2", "3.12", "torch", "gfx132f is not known"),
    ("gfx132f", "", "3.12", "torch", "gfx132f is not known"),
    ("gfx90a", "6.4", "3.12", "torch==9.9", "ask without torch==9.9"),
    ("gfx906 gfx1151", "7.2", "3.12", "torch", "--gfx gfx906"),
    ("gfx1031", "6.4", "3.12", "torch==2.8.0", "2.12.0+rocm7.14.0"),
    ("gfx906", "7.2", "3.12", "torch>=2.10", "2.9.1+rocm6.3"),
    ("gfx803", "6.4", "3.12", "torch", "building torch from source"),
    ("gfx90a", "7.2", "3.12", "torch==2.13.0 torchvision==0.20.0", "ask without"),
    ("gfx900", "10.0", "3.14", "torch>=2.14", "nearest"),
]


@pytest.mark.parametrize(("gfx", "rocm", "python", "request_", "word"), REFUSED)
def test_nothing_fits(world: World, gfx: str, rocm: str, python: str, request_: str, word: str) -> None:
    with pytest.raises(NoPlan) as caught:
        ask(world, gfx, rocm, python, request_)
    error = caught.value
    assert error.exit_code == 40
    assert word in error.hint
    assert error.details and error.why
    assert "cpu" not in error.hint.lower()
    assert error.tried  # type: ignore[attr-defined]


def test_a_recipe_conflict_steers_torch(world: World) -> None:
    conflict = Conflict("flash-attn 2.8.3 cannot be compiled against torch 2.14", torch=">=2.14")
    choice = ask(world, "gfx942", "7.14", conflicts=(conflict,))
    assert choice.pins["torch"] == "2.12.0+rocm7.14.0"
    two = ask(world, "gfx942", "7.2", conflicts=(Conflict("needs torch before 2.13", torch=">=2.13"),))
    assert two.pins["torch"] == "2.12.1+rocm7.2"
    assert any("needs torch before 2.13" in line for line in two.because)


def test_conflicts_that_leave_nothing_are_refused_with_their_reason(world: World) -> None:
    with pytest.raises(NoPlan) as caught:
        ask(world, "gfx942", "7.2", conflicts=(Conflict("works with no torch 2 or newer", torch=">=1"),))
    assert "works with no torch 2 or newer" in f"{caught.value.why} {caught.value.details}"
    assert "without the package that conflicts" in caught.value.hint


def test_the_reason_for_another_rocm_is_told(world: World) -> None:
    choice = ask(world, "gfx942", "6.2", request="torch==2.4.0")
    text = " ".join(choice.because)
    assert "6.2" in text and "highest lower" in text and "no torch==2.4.0 there" in text


def test_what_was_tried_has_a_reason_each(world: World) -> None:
    choice = ask(world, "gfx942", "10.0", request="torch==2.9.1")
    assert choice.tried[-1].verdict == "chosen"
    assert [t.family for t in choice.tried if t.verdict == "fell out"][:2] == ["pytorch.org rocm10.0", "AMD 10.x (ROCm 10.0)"]
    assert all(t.because and t.url for t in choice.tried)


def test_same_torch_prefers_the_packages_of_one_gpu() -> None:
    world = november()
    index = "https://repo.amd.com/rocm/whl-multi-arch/"
    world.wheel(index, "torch", "2.14.1+rocm7.14.1")
    world.put(index, "amd-torch-device-gfx942", "amd_torch_device_gfx942-2.14.1+rocm7.14.1-py3-none-linux_x86_64.whl")
    choice = ask(world, "gfx942", "7.14")
    assert choice.pins["torch"] == "2.14.1+rocm7.14.1"
    assert choice.extras == {"torch": ("device-gfx942",)}
    # Without its device package it has no kernels, and the thin torch of pytorch.org is what is left.
    assert ask(world, "gfx1100", "7.14").family == "pytorch.org rocm7.14"


def test_an_index_newer_than_the_catalogue_is_asked() -> None:
    world = november()
    world.wheel("https://download.pytorch.org/whl/rocm7.3/", "torch", "2.13.1+rocm7.3")
    choice = ask(world, "gfx942", "7.3")
    assert choice.family == "pytorch.org rocm7.3" and choice.pins["torch"] == "2.13.1+rocm7.3"
    world.wheel("https://download.pytorch.org/whl/rocm7.2.1/", "torch", "2.13.1+rocm7.2.1")
    assert ask(world, "gfx942", "7.2.1").pins["torch"] == "2.13.1+rocm7.2.1"


def test_a_gpu_newer_than_the_catalogue_is_served_by_its_device_package() -> None:
    world = november()
    index = "https://stable.repo.amd.com/rocm/whl-next/"
    world.put(index, "amd-torch-device-gfx132f", "amd_torch_device_gfx132f-2.14.0+rocm10.1.0-py3-none-linux_x86_64.whl")
    choice = ask(world, "gfx132f", "10.1")
    assert choice.extras == {"torch": ("device-gfx132f",)}


def test_override_only_when_it_was_allowed(world: World) -> None:
    with pytest.raises(NoPlan) as caught:
        ask(world, "gfx1032", "6.2", request="torch==2.7.1")
    assert "AMD 7.14" in caught.value.hint
    choice = ask(world, "gfx1032", "6.2", request="torch==2.7.1", override=True)
    assert choice.pins["torch"] == "2.7.1+rocm6.2.4"
    assert any("HSA_OVERRIDE_GFX_VERSION=10.3.0" in note for note in choice.notes)
    assert "override" in choice.because[0]


def test_native_wheels_come_before_an_allowed_override(world: World) -> None:
    assert ask(world, "gfx1031", "6.4", override=True).family == SEVEN


@pytest.mark.parametrize(
    ("driver", "rocm", "request_", "torch"),
    [
        ("5.7.1", "6.1", "torch==2.6.0", "2.6.0+rocm6.1"),  # 5.7 carries 5.5 to 6.1
        ("6.3.2", "6.4", "torch==2.10.0", "2.10.0+rocm7.0"),  # 6.3 carries up to 7.0: not 7.1's 2.10.0
        ("6.8.5", "6.2", "torch>=2.14", "2.14.1+rocm7.14"),  # unknown: only noted
        ("6.3.6", "6.0", "torch==2.2.2", "2.2.2+rocm5.7"),  # contradicted by the installed ROCm: only noted
    ],
)
def test_driver_windows(world: World, driver: str, rocm: str, request_: str, torch: str) -> None:
    assert ask(world, "gfx90a", rocm, "3.11", request_, driver=driver).pins["torch"] == torch


def test_a_known_driver_window_forbids(world: World) -> None:
    with pytest.raises(NoPlan) as caught:
        ask(world, "gfx90a", "6.1", "3.12", "torch==2.9.1", driver="5.7.1")
    assert any("driver 5.7.1 carries ROCm 5.5 to 6.1" in line for line in caught.value.details)


def test_an_unknown_driver_is_noted(world: World) -> None:
    choice = ask(world, "gfx90a", "6.2", "3.12", "torch>=2.14", driver="6.8.5")
    assert any("6.8.5" in note for note in choice.notes)


def test_members_only_wanted_ones_must_be_there() -> None:
    world = november()
    del world.table["https://download.pytorch.org/whl/rocm7.2/", "torchaudio"]
    assert ask(world, "gfx942", "7.2", request="torch torchaudio").family == "pytorch.org rocm7.1"
    loose = ask(world, "gfx942", "7.2", request="torch torchaudio<3", wanted={"torch"})
    assert loose.family == "pytorch.org rocm7.2" and "torchaudio" not in loose.pins


def test_requested_parts_of_rocm_must_be_on_the_index(world: World) -> None:
    assert ask(world, "gfx942", "7.14", request="torch rocm").family == "pytorch.org rocm7.14"
    assert ask(world, "gfx942", "6.4", request="torch rocm").pins["rocm"] == "7.14.0.post1"
    assert ask(world, "gfx942", "10.0", request="torch rocm==10.0.0").family == TEN
    with pytest.raises(NoPlan) as caught:
        ask(world, "gfx942", "10.0", request="torch rocm-sdk-devel")
    assert any("has no rocm-sdk-devel" in line for line in caught.value.details)


def test_credentials_of_a_mirror_stay_out_of_the_table() -> None:
    from rocmpip.model.settings import Settings

    catalogue = load(Settings(pytorch_url="https://me:secret@mirror.example/"))
    with pytest.raises(NoPlan) as caught:
        choose_family(
            platform=machine("gfx942", "6.4"),
            python_tags=tags_for("3.12"),
            requirements={"torch": SpecifierSet()},
            catalogue=catalogue,
            candidates=World(),
        )
    error = caught.value
    assert "secret" not in f"{error.message} {error.why} {error.hint} {error.details} {error.tried}"  # type: ignore[attr-defined]


# -- what an index may try ------------------------------------------------------------------------------------------


def small() -> World:
    world = World()
    world.missing = "HTTP 404"
    return world


INDEX = "https://download.pytorch.org/whl/rocm6.4/"


def test_files_without_the_rocm_label_are_no_candidates() -> None:
    world = small()
    for version in ("2.9.1", "2.9.1+cpu", "2.9.1+cu128", "2.9.1+rocm6.3", "2.9.1+rocm10.0"):
        world.wheel(INDEX, "torch", version)
    with pytest.raises(NoPlan):
        ask(world, "gfx942", "6.4")
    world.wheel(INDEX, "torch", "2.8.0+rocm6.4")
    assert ask(world, "gfx942", "6.4").pins["torch"] == "2.8.0+rocm6.4"


def test_a_page_of_development_builds_serves_no_stable_request() -> None:
    world = small()
    world.wheel(INDEX, "torch", "2.10.0.dev20260101+rocm6.4")
    with pytest.raises(NoPlan) as caught:
        ask(world, "gfx942", "6.4")
    assert any("pre-release" in line for line in caught.value.details)
    assert ask(world, "gfx942", "6.4", pre=True).pins["torch"] == "2.10.0.dev20260101+rocm6.4"
    assert ask(world, "gfx942", "6.4", request="torch>=2.10.0.dev0").pins["torch"] == "2.10.0.dev20260101+rocm6.4"


def test_a_final_version_for_a_pre_release_of_rocm_is_a_pre_release() -> None:
    world = small()
    index = "https://stable.repo.amd.com/rocm/whl-next/"
    for version in ("2.14.0+rocm10.1.0a20260828", "2.13.0+rocm10.1.0"):
        world.wheel(index, "torch", version)
        world.put(index, "amd-torch-device-gfx942", f"amd_torch_device_gfx942-{version}-py3-none-linux_x86_64.whl")
    assert ask(world, "gfx942", "10.1").pins["torch"] == "2.13.0+rocm10.1.0"


def test_yanked_files_serve_an_exact_pin_alone() -> None:
    world = small()
    world.put(INDEX, "torch", "torch-2.9.1+rocm6.4-cp312-cp312-manylinux_2_28_x86_64.whl", yanked="broken")
    world.wheel(INDEX, "torch", "2.9.0+rocm6.4")
    assert ask(world, "gfx942", "6.4").pins["torch"] == "2.9.0+rocm6.4"
    assert ask(world, "gfx942", "6.4", request="torch==2.9.1").pins["torch"] == "2.9.1+rocm6.4"
    with pytest.raises(NoPlan) as caught:
        ask(world, "gfx942", "6.4", request="torch>=2.9.1")
    assert any("yanked: broken" in line for line in caught.value.details)


def test_requires_python_is_heeded() -> None:
    world = small()
    world.put(INDEX, "torch", "torch-2.9.1+rocm6.4-py3-none-any.whl", requires=">=3.13")
    world.put(INDEX, "torch", "torch-2.9.0+rocm6.4-py3-none-any.whl", requires=">=3.10")
    assert ask(world, "gfx942", "6.4").pins["torch"] == "2.9.0+rocm6.4"


def test_rocm_versions_compare_as_numbers() -> None:
    # One index, three labels of one torch: PEP 440 text would take 7.2 before 10.0, and 6.4 before 6.10.
    world = small()
    index = "https://stable.repo.amd.com/rocm/whl-next/"
    for rocm in ("10.0.0", "10.0.10", "10.0.9"):
        world.wheel(index, "torch", f"2.9.1+rocm{rocm}")
        world.put(index, "amd-torch-device-gfx942", f"amd_torch_device_gfx942-2.9.1+rocm{rocm}-py3-none-linux_x86_64.whl")
    assert ask(world, "gfx942", "10.0", request="torch==2.9.1").pins["torch"] == "2.9.1+rocm10.0.10"


def test_rocm_with_the_pip_fault_is_not_pinned() -> None:
    world = november()
    assert ask(world, "gfx942", "7.14").pins["rocm"] == "7.14.0.post1"
    del world.table["https://download.pytorch.org/whl/rocm7.14/", "rocm"]
    world.put("https://download.pytorch.org/whl/rocm7.14/", "rocm", "rocm-7.14.0.tar.gz")
    choice = ask(world, "gfx942", "7.14")
    assert choice.pins["rocm"] == "7.14.0"
    assert any("recursion" in note for note in choice.notes)


# -- held torch -------------------------------------------------------------------------------------------------------


def test_a_held_torch_stays(world: World) -> None:
    held = {"torch": "2.9.1+rocm6.4", "pytorch-triton-rocm": "3.5.1"}
    choice = ask(world, "gfx942", "7.2", request="torch torchvision", held=held)
    assert choice.family == "pytorch.org rocm6.4"
    assert choice.pins["torch"] == "2.9.1+rocm6.4" and choice.pins["torchvision"] == "0.24.1+rocm6.4"
    assert "stays" in choice.because[0]


def test_a_held_torch_of_amd_keeps_its_extras(world: World) -> None:
    choice = ask(world, "gfx942", "7.14", held={"torch": "2.12.0+rocm7.14.0"})
    assert choice.family == SEVEN and choice.extras["torch"] == ("device-gfx942",)


def test_a_conflict_with_a_held_torch_is_told_as_such(world: World) -> None:
    with pytest.raises(NoPlan) as caught:
        ask(world, "gfx942", "6.4", request="torch>=2.10", held={"torch": "2.9.1+rocm6.4"})
    assert "torch 2.9.1+rocm6.4 is installed" in caught.value.message and "torch>=2.10" in caught.value.message
    with pytest.raises(NoPlan) as caught:
        ask(world, "gfx942", "6.4", held={"torch": "2.9.1+rocm6.4"}, conflicts=(Conflict("too new", torch=">=2.9"),))
    assert "too new" in caught.value.why


def test_a_held_torch_that_no_index_lists_stays(world: World) -> None:
    choice = ask(world, "gfx942", "7.14", held={"torch": "2.15.0.dev20260901+rocm7.14"})
    assert choice.pins["torch"] == "2.15.0.dev20260901+rocm7.14"
    built = ask(world, "gfx942", "7.14", held={"torch": "2.14.0a0"})
    assert built.pins["torch"] == "2.14.0a0" and built.index_url


# -- politeness -------------------------------------------------------------------------------------------------------


def test_no_page_is_asked_for_twice_and_few_are(world: World) -> None:
    world.asked.clear()
    ask(world, "gfx942", "6.4", request="torch torchvision")
    assert len(world.asked) == len(set(world.asked)) <= 4
    assert all("rocm6.4" in url for url, _ in world.asked)


def test_no_gpu_is_no_choice(world: World) -> None:
    with pytest.raises(NoPlan) as caught:
        ask(world, "", "6.4")
    assert "--gfx" in caught.value.hint


@pytest.mark.parametrize(
    ("gfx", "rocm", "request_", "head", "why"),
    [
        # Indexes that have no kernels for a GPU were never the reason.
        (
            "gfx942",
            "6.4",
            "torch==99",
            "no stable index has a ROCm build of torch==99",
            "ROCm builds of torch 2.14.1, 2.14.0, ",
        ),
        ("gfx942", "6.4", "torch==99", "no stable index has", " … 2.1.0"),
        ("gfx1100", "7.2", "torch>=3", "no stable index has a ROCm build of torch>=3", "2.14.1"),
        ("gfx90a gfx1100", "", "torch==2.9.7 torchvision", "no stable index has a ROCm build of torch==2.9.7", "2.9.1"),
        # There is such a build, and the GPU is what it lacks.
        ("gfx942", "6.4", "torch==2.1.0", "no ROCm build of torch==2.1.0 fits gfx942 and ROCm 6.4", "kernels for gfx942"),
        ("gfx942", "6.4", "torch==2.9.1 torchvision==99", "no ROCm build of torch==2.9.1 with torchvision", "torchvision==99"),
    ],
)
def test_a_version_that_no_index_has(world: World, gfx: str, rocm: str, request_: str, head: str, why: str) -> None:
    with pytest.raises(NoPlan) as caught:
        ask(world, gfx, rocm, "3.11" if "2.1.0" in request_ else "3.12", request_)
    assert caught.value.message.startswith(head)
    assert why in caught.value.why, caught.value.why
    assert caught.value.hint.startswith("nearest: torch 2."), caught.value.hint


def test_an_old_index_without_an_answer_is_not_said_to_lack_it(world: World) -> None:
    class Silent:
        """Only the indexes that have kernels for the GPU answer."""

        def page(self, index_url: str, name: str) -> Page | Absent:
            if index_url.endswith(("/rocm5.6/", "/rocm5.7/")):
                raise NetworkError(f"{index_url} does not answer")
            return world.page(index_url, name)

    with pytest.raises(NoPlan) as caught:
        choose_family(
            platform=machine("gfx942", "6.4"),
            python_tags=tags_for("3.12"),
            requirements={"torch": SpecifierSet("==99")},
            catalogue=CATALOGUE,
            candidates=Silent(),
        )
    assert caught.value.message.startswith("no ROCm build of torch==99 fits gfx942")


def test_another_python_is_advised_only_where_it_helps(world: World) -> None:
    with pytest.raises(NoPlan) as caught:
        ask(world, "gfx942", "7.14", "3.15", "torch")
    assert "no wheel for Python 3.15" in caught.value.why
    assert re.search(r"another Python would do: torch 2\.1\d\.\d\+rocm.* has wheels for Python 3\.1\d", caught.value.hint)


@pytest.mark.parametrize("platform", ["win_amd64", "macosx_14_0_arm64", "manylinux_2_28_aarch64"])
def test_no_python_makes_up_for_the_platform(world: World, platform: str) -> None:
    with pytest.raises(NoPlan) as caught:
        choose_family(
            platform=machine("gfx942", "6.4"),
            python_tags=tags_for("3.12", platform),
            requirements={"torch": SpecifierSet()},
            catalogue=CATALOGUE,
            candidates=world,
        )
    assert f"no wheel for {platform} (it has " in caught.value.why
    assert "Python" not in caught.value.hint and f"no index has ROCm builds for {platform}" in caught.value.hint
