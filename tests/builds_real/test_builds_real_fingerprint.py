"""Each input of a build alone makes another fingerprint, from what a run of rocmpip knows to the kept wheel."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from rocmpip.app.build_package import Package, Toolbox, fingerprint_inputs
from rocmpip.model.machine import Platform, TargetEnv
from rocmpip.model.provenance import FingerprintInputs
from rocmpip.model.recipe import ResolvedRecipe
from rocmpip.model.rocm import parse_rocm
from rocmpip.store.wheelhouse import Wheelhouse, fingerprint

Change = Callable[[Package, Toolbox, Path], tuple[Package, Toolbox]]


def compiler(folder: Path, version: str) -> dict[str, str]:
    """An environment whose hipcc says ``version``."""
    folder.mkdir(exist_ok=True)
    (folder / "hipcc").write_text(f"#!/bin/sh\necho HIP version: {version}\n")
    (folder / "hipcc").chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


@pytest.fixture
def build(tmp_path: Path) -> tuple[Package, Toolbox]:
    source = tmp_path / "kernels-1.0.tar.gz"
    source.write_bytes(b"source")
    recipe = ResolvedRecipe("kernels", "1.0", "shipped", "x.toml", "d1", backend="ck", env=())
    version = "{}.{}.{}".format(*sys.version_info[:3])
    tools = Toolbox(
        platform=Platform((), ("gfx90a",), "--gfx", parse_rocm("6.4.1"), "", "", ()),
        target=TargetEnv("/env/bin/python", version, "venv", "/env", ("/env/lib/python3.11/site-packages",), "--python"),
        torch="2.9.1+rocm6.4",
        pip_argv=(),
        pip_env={},
        user_env=compiler(tmp_path / "one", "6.4.1"),
        wheelhouse=Wheelhouse(tmp_path / "state/wheelhouse"),
        logs=tmp_path / "logs",
        settings={"kernels": ("--build-option=-O2",)},
    )
    return Package("kernels", "1.0", recipe, source), tools


def other_source(package: Package, tools: Toolbox, folder: Path) -> tuple[Package, Toolbox]:
    path = folder / "other.tar.gz"
    path.write_bytes(b"sourcf")
    return structs.replace(package, source=path), tools


def recipe_with(**changes: object) -> Change:
    return lambda package, tools, folder: (
        structs.replace(package, recipe=structs.replace(package.recipe, **changes)),  # type: ignore[arg-type]
        tools,
    )


def platform_with(**changes: object) -> Change:
    return lambda package, tools, folder: (
        package,
        structs.replace(tools, platform=structs.replace(tools.platform, **changes)),  # type: ignore[arg-type]
    )


def tools_with(**changes: object) -> Change:
    return lambda package, tools, folder: (package, structs.replace(tools, **changes))  # type: ignore[arg-type]


def other_python(package: Package, tools: Toolbox, folder: Path) -> tuple[Package, Toolbox]:
    return package, structs.replace(tools, target=structs.replace(tools.target, version="3.14.0"))


def other_compiler(package: Package, tools: Toolbox, folder: Path) -> tuple[Package, Toolbox]:
    return package, structs.replace(tools, user_env=compiler(folder / "two", "6.4.2"))


CHANGES: dict[str, Change] = {
    "name": lambda package, tools, folder: (
        structs.replace(package, name="kernel"),
        structs.replace(tools, settings={"kernel": ("--build-option=-O2",)}),
    ),
    "version": lambda package, tools, folder: (structs.replace(package, version="1.0.1"), tools),
    "source": other_source,
    "recipe": recipe_with(digest="d2"),
    "backend": recipe_with(backend="triton"),
    "gfx": platform_with(gfx_targets=("gfx1100",)),
    "rocm": platform_with(rocm=parse_rocm("6.4.2")),
    "torch": tools_with(torch="2.9.1+rocm7.0"),
    "python_abi": other_python,
    "compiler": other_compiler,
    "config_settings": tools_with(settings={"kernels": ("--build-option=-O3",)}),
}
ELSEWHERE = {"platform", "env"}
"""The machine's own, and the user's exported values of a recipe's keys: the next two tests."""


def test_every_input_is_here() -> None:
    assert set(CHANGES) | ELSEWHERE == {field.name for field in structs.fields(FingerprintInputs)}


@pytest.mark.parametrize("field", CHANGES)
def test_each_alone(field: str, build: tuple[Package, Toolbox], tmp_path: Path) -> None:
    before = fingerprint_inputs(*build)
    now = fingerprint_inputs(*CHANGES[field](*build, tmp_path))
    changed = {one.name for one in structs.fields(before) if getattr(before, one.name) != getattr(now, one.name)}
    assert changed == {field}
    assert fingerprint(now) != fingerprint(before)
    assert fingerprint(fingerprint_inputs(*build)) == fingerprint(before)


def test_the_users_word_for_a_recipes_variable(build: tuple[Package, Toolbox]) -> None:
    from rocmpip.model.recipe import Value

    package, tools = build
    package = structs.replace(
        package,
        recipe=structs.replace(
            package.recipe, env=(Value("KERNELS_OPT", "1", "c"), Value("KERNELS_GPU", "1", "c", force=True))
        ),
    )
    before = fingerprint_inputs(package, tools)
    mine = structs.replace(tools, user_env={**tools.user_env, "KERNELS_OPT": "2"})
    assert fingerprint(fingerprint_inputs(package, mine)) != fingerprint(before)
    forced = structs.replace(tools, user_env={**tools.user_env, "KERNELS_GPU": "2", "UNRELATED": "x"})
    assert fingerprint_inputs(package, forced) == before


def test_another_machine(build: tuple[Package, Toolbox], monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint_inputs(*build)
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    monkeypatch.setattr("sysconfig.get_platform", lambda: "linux-riscv64")
    assert fingerprint(fingerprint_inputs(*build)) != fingerprint(before)
