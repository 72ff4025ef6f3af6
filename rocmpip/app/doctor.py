"""``rocmpip doctor``: settings → machine and environment → checks. Nothing is changed, no package is imported."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rocmpip.app.detect import detect_platform
from rocmpip.check.doctor import broken, examine
from rocmpip.check.look import Look
from rocmpip.check.result import Check
from rocmpip.machine.files import Tree
from rocmpip.model.errors import CheckFailed, Refused, RocmpipError, UsageError
from rocmpip.model.machine import InstalledDist, Platform, TargetEnv
from rocmpip.model.names import normalise
from rocmpip.model.recipe import RecipeContext, ResolvedRecipe
from rocmpip.model.settings import Settings
from rocmpip.target.installed import installed

if TYPE_CHECKING:
    from rocmpip.catalogue.catalogue import Catalogue


def look_at(*, env: Mapping[str, str], gfx: Sequence[str] = (), python: str = "", package: str = "", cwd: str = "") -> Look:
    """Everything the checks look at. Raises UsageError for a bad option, BadConfiguration for bad settings or recipes."""
    cwd = cwd or os.getcwd()  # noqa: PTH109
    settings, platform, target, catalogue = machine(env=env, gfx=gfx, python=python, cwd=cwd)
    dists = installed(target.site_packages) if target is not None else ()
    recipe, brought, refusal = (
        _recipe(package, settings, env, cwd, platform, target, dists) if package else (None, frozenset(), "")
    )
    sysroot = env.get("ROCMPIP_SYSROOT") or None
    rooms = [("TMPDIR", env.get("TMPDIR") or tempfile.gettempdir()), ("cache", settings.cache_dir)]
    rooms += [("site-packages", target.site_packages[0])] if target is not None and target.site_packages else []
    return Look(
        tree=Tree(sysroot),
        env=dict(env),
        platform=platform,
        catalogue=catalogue,
        target=target,
        dists=dists,
        recipe=recipe,
        brought=brought,
        rooms=tuple((what, folder) for what, folder in rooms if folder),
        refusal=refusal,
        installed={dist.name: dist for dist in dists},
    )


def machine(
    *, env: Mapping[str, str], gfx: Sequence[str], python: str, cwd: str
) -> tuple[Settings, Platform, TargetEnv | None, Catalogue]:
    """Settings, the verdict on the machine, the target environment and the catalogue, for doctor and verify."""
    from rocmpip.catalogue import load
    from rocmpip.store.settings import load_settings

    flags = {key: value for key, value in {"gfx": tuple(gfx), "python": python}.items() if value}
    settings = load_settings(flags, env, cwd)
    platform, target, _ = detect_platform(
        env=env,
        gfx=settings.gfx,
        gfx_source=settings.where.get("gfx", "--gfx"),
        rocm=settings.rocm,
        rocm_source=settings.where.get("rocm", "--rocm"),
        python=python or settings.python,
        cwd=cwd,
        catalogue=settings.catalogue_path,
    )
    return settings, platform, target, load(settings)


def _recipe(
    package: str,
    settings: Settings,
    env: Mapping[str, str],
    cwd: str,
    platform: Platform,
    target: TargetEnv | None,
    dists: Sequence[InstalledDist],
) -> tuple[ResolvedRecipe | None, frozenset[str], str]:
    """(recipe, names its build requirements bring, why it refuses): for the version asked for, else the newest tested."""
    from rocmpip.app.recipe import load_layers

    name, _, version = package.partition("==")
    book = load_layers(settings, env, cwd)
    recipe = book.get(name)
    if recipe is None:
        raise UsageError(f"--for: there is no recipe for {name}", hint="rocmpip recipe list shows those there are")
    versions = {dist.name: dist.version for dist in dists}
    context = RecipeContext(
        gfx=platform.gfx_targets,
        rocm=platform.rocm,
        torch=versions.get("torch", ""),
        python=".".join(target.version.split(".")[:2]) if target is not None else "",
        backend=book.backend_asked(name, env),
        rocm_path=platform.rocm_root,
        hip_path=platform.rocm_root,
        site_packages=target.site_packages[0] if target is not None and target.site_packages else "",
    )
    try:
        resolved = book.resolve(name, version or recipe.tested or "0", context)
    except Refused as problem:
        return None, frozenset(), problem.message + (f": {problem.why}" if problem.why else "")
    brought = {_project(text) for text in resolved.requires}
    return resolved, frozenset(brought), ""


def _project(requirement: str) -> str:
    end = next((i for i, char in enumerate(requirement) if not (char.isalnum() or char in "-_.")), len(requirement))
    return normalise(requirement[:end])


def checks(look: Look) -> tuple[Check, ...]:
    return examine(look)


def verdict(answers: tuple[Check, ...]) -> RocmpipError | None:
    """The error that a broken check amounts to, None when nothing is broken."""
    faults = broken(answers)
    if not faults:
        return None
    names = ", ".join(check.id for check in faults)
    first = next((command for check in faults for command in check.fix), "")
    return CheckFailed(f"{len(faults)} of {len(answers)} checks found a fault: {names}", hint=first)
