"""Every shipped recipe × 9 gfx × 6 ROCm × 3 torch × 4 Python: planned, or refused with a reason. No empty list of GPUs."""

from __future__ import annotations

import itertools

import pytest

from rocmpip.model.errors import Refused
from rocmpip.model.recipe import RecipeContext
from rocmpip.model.rocm import parse_rocm
from rocmpip.recipe.book import RecipeBook, load_book, shipped_folder
from rocmpip.recipe.placeholders import names_in

GFX = ("gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1151", "gfx1201")
ROCM = ("6.2", "6.4", "7.0", "7.2", "7.14", "10.0")
TORCH = ("2.9.1", "2.12.0", "2.14.1")
PYTHON = ("3.10", "3.11", "3.12", "3.13")
BOOK = load_book([("shipped", shipped_folder())])
TEMPLATES = tuple(name for name in BOOK.recipes if name.startswith("_"))


def versions(book: RecipeBook, name: str) -> list[str]:
    recipe = book.recipes[name]
    return list(dict.fromkeys([recipe.tested or "1.0", *(row.version for row in book.releases(name))]))


@pytest.mark.parametrize("name", (*BOOK.names(), *TEMPLATES))
def test_every_combination_plans_or_is_refused(name: str, record_property: pytest.RecordProperty) -> None:
    planned = refused = ready = 0
    for version in versions(BOOK, name):
        for gfx, rocm, torch, python in itertools.product(GFX, ROCM, TORCH, PYTHON):
            context = RecipeContext(
                gfx=(gfx,),
                rocm=parse_rocm(rocm),
                torch=f"{torch}+rocm{rocm}",
                python=python,
                rocm_path="/opt/rocm",
                hip_path="/opt/rocm",
                jobs=8,
                site_packages="/v/lib",
            )
            resolved = BOOK.resolve(name, version, context)
            for value in (*resolved.env, *resolved.config_settings, *resolved.runtime):
                assert "{" not in value.value
                assert value.clause
                assert value.value or value.key in ("TORCH_CUDA_ARCH_LIST", "VERSION_SUFFIX")
            assert all(conflict.message and conflict.hint and conflict.clause for conflict in resolved.conflicts)
            assert all(conflict.certain for conflict in resolved.conflicts)
            if not resolved.refusals:
                planned += 1
                if resolved.source.kind == "git":
                    assert len(resolved.source.commit) == 40
            elif resolved.wheels and all(conflict.scope == "build" for conflict in resolved.refusals):
                ready += 1
            else:
                refused += 1
    total = planned + ready + refused
    record_property("recipe", [planned, ready, refused])
    assert total == len(versions(BOOK, name)) * 9 * 6 * 3 * 4


def _arch_keys(name: str) -> set[str]:
    return {
        setting.key
        for recipe in BOOK.chain(BOOK.recipes[name])
        for clause in recipe.clauses
        for setting in (*clause.env, *clause.config_settings, *clause.runtime)
        if "gfx" in names_in(setting.value)
    }


@pytest.mark.parametrize("name", (*BOOK.names(), *TEMPLATES))
def test_no_gpu_known_never_gives_an_empty_list(name: str) -> None:
    for version in versions(BOOK, name):
        try:
            resolved = BOOK.resolve(
                name, version, RecipeContext(rocm=parse_rocm("7.2"), torch="2.12.0", python="3.12", rocm_path="/opt/rocm")
            )
        except Refused as problem:
            assert problem.exit_code == 44
            assert "--gfx" in problem.hint
            continue
        keys = {value.key for value in (*resolved.env, *resolved.config_settings)}
        assert not keys & _arch_keys(name), "an arch variable came out without a GPU"


@pytest.mark.parametrize("name", BOOK.names())
def test_arch_lists_are_complete_and_forced(name: str) -> None:
    """Every variable with the targets holds all of them, and no export of the user's makes the build one for other GPUs."""
    recipe = BOOK.recipes[name]
    context = RecipeContext(
        gfx=("gfx90a", "gfx942"), rocm=parse_rocm("7.2"), torch="2.12.0", python="3.12", rocm_path="/opt/rocm"
    )
    resolved = BOOK.resolve(name, recipe.tested or "1.0", context)
    arch = [value for value in (*resolved.env, *resolved.config_settings) if value.key in _arch_keys(name)]
    dropped = {key for clause in recipe.clauses if clause.when.backend for key in clause.drop}
    assert arch or _arch_keys(name) <= dropped, "the recipe knows such variables and sets none for two GPUs"
    for value in arch:
        assert "gfx90a" in value.value
        assert "gfx942" in value.value
        assert value.force or value in resolved.config_settings
