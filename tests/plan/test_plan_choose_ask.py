"""Bounds written for CUDA builds, read for ROCm ones (PEP 440 as packaging has it)."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from rocmpip.model.recipe import Conflict
from rocmpip.plan.family_ask import clauses, drop_illegal_labels, eased, pinned, read_ask


@pytest.mark.parametrize(
    ("written", "read", "told"),
    [
        ("==2.5.1+cu121", "==2.5.1", True),
        ("==2.9.1+cpu,>=2", "==2.9.1,>=2", True),
        ("===2.9.1", "==2.9.1", True),
        ("===2.9.1+cu128", "==2.9.1", True),
        ("!=2.5.1+cu121", "", False),
        ("==2.9.1+rocm6.4", "==2.9.1+rocm6.4", False),
        (">=2.5,<3", "<3,>=2.5", False),
        ("==2.9.*", "==2.9.*", False),
        ("", "", False),
    ],
)
def test_labels_of_other_builds(written: str, read: str, told: bool) -> None:
    specifier, notes = eased("torch", SpecifierSet(written))
    assert specifier == SpecifierSet(read)
    assert bool(notes) is told


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("torch>=1.7.1+cu110", "torch>=1.7.1"),
        ("torchvision~=0.20+cu121", "torchvision~=0.20"),
        ("torch >= 2.0+cu118, < 3", "torch >=2.0, < 3"),
        ("torch==2.5.1+cu121", "torch==2.5.1+cu121"),
        ("torch!=2.5.1+cu121", "torch!=2.5.1+cu121"),
        ("torch>=2.5", "torch>=2.5"),
    ],
)
def test_illegal_labels_are_dropped_and_told(text: str, fixed: str) -> None:
    result, note = drop_illegal_labels(text)
    assert result == fixed and bool(note) == (text != fixed)
    Requirement(result)


def test_pre_releases_are_a_question_of_their_own() -> None:
    ask = read_ask({"torch": SpecifierSet(">=2.9"), "torchvision": SpecifierSet(">=0.30.0.dev1")}, (), pre=False)
    assert ask.admits("torch", Version("2.10.0.dev1+rocm7.1"))
    assert not ask.pre_allowed("torch") and ask.pre_allowed("torchvision")
    assert read_ask({}, (), pre=True).pre_allowed("torch")


def test_a_bound_on_any_name_of_triton_counts() -> None:
    ask = read_ask({"triton": SpecifierSet("<3.5")}, (), pre=False)
    assert ask.admits_triton(Version("3.4.0")) and not ask.admits_triton(Version("3.5.1"))


def test_conflicts_speak_of_development_builds_too() -> None:
    ask = read_ask({}, (Conflict("no", torch=">=2.14"), Conflict("of no torch"), Conflict("odd", torch="what")), pre=False)
    assert ask.avoided(Version("2.14.0+rocm7.14")) == "no"
    assert ask.avoided(Version("2.14.0.dev20260101+rocm7.14")) == "no"
    assert ask.avoided(Version("2.13.0+rocm7.2")) == ""


def test_exact_pins_as_pip_sees_them() -> None:
    assert pinned(SpecifierSet("==2.9.1")) and pinned(SpecifierSet("===x"))
    assert not pinned(SpecifierSet("==2.9.*")) and not pinned(SpecifierSet(">=2")) and not pinned(SpecifierSet(""))


def test_clauses_read_in_a_stable_order() -> None:
    assert clauses(SpecifierSet("<3,!=2.6,>=2.5")) == ">=2.5,<3,!=2.6"
