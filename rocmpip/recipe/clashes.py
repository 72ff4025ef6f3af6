"""Back ends, conflicts and releases of a recipe with what it extends."""

from __future__ import annotations

from collections.abc import Mapping

from packaging.version import Version

from rocmpip.model.errors import Refused
from rocmpip.model.recipe import Conflict, RecipeContext, Release, Source
from rocmpip.model.record import replace
from rocmpip.recipe.merge import clause_text
from rocmpip.recipe.schema import Backend, Clash, Recipe, When
from rocmpip.recipe.when import Match, match, version_matches, without_torch

Chain = tuple[Recipe, ...]


def backends_of(chain: Chain) -> list[tuple[Recipe, Backend]]:
    """The highest recipe that has back ends says which there are."""
    for recipe in reversed(chain):
        if recipe.backends:
            return [(recipe, backend) for backend in recipe.backends]
    return []


def choose_backend(chain: Chain, version: str | None, context: RecipeContext) -> tuple[str, str]:
    """The back end and the clause it came from: the user's word, else the first whose ``when`` holds, else ""."""
    backends = backends_of(chain)
    if context.backend in {backend.name for _, backend in backends}:
        return context.backend, "asked for"
    for recipe, backend in backends:
        if match(backend.when, version, context, "") is Match.YES:
            return backend.name, clause_text(recipe, backend.where, backend.when)
    return "", ""


def refuse_backend(chain: Chain, told: str, context: RecipeContext) -> None:
    """Raise Refused for a back end that the recipe has not, and where the choice needs a GPU and none is known."""
    backends = [backend for _, backend in backends_of(chain)]
    if context.backend and context.backend not in {backend.name for backend in backends}:
        known = ", ".join(dict.fromkeys(backend.name for backend in backends)) or "none"
        raise Refused(f"{told} has no back end {context.backend!r}", hint=f"its back ends: {known}")
    if not context.gfx and not context.backend and any(_asks_gfx(backend.when) for backend in backends):
        raise Refused(
            f"{told} has several back ends, and which one serves depends on the GPU",
            why="no target GPU is known",
            hint="say which GPU: --gfx gfx942 (rocmpip detect shows what this machine has)",
        )


def _asks_gfx(when: When) -> bool:
    return bool(when.gfx or when.gfx_any or when.gfx_outside)


def backend_asked(chain: Chain, env: Mapping[str, str]) -> str:
    """The back end that the user's exported variables ask for (``chosen_by``), or ""."""
    for _, backend in backends_of(chain):
        if backend.chosen_by and all(env.get(key) == value for key, value in backend.chosen_by.items()):
            return backend.name
    return ""


def _conflict(recipe: Recipe, clash: Clash, certain: bool) -> Conflict:
    return Conflict(
        message=clash.message,
        hint=clash.way_out,
        clause=clause_text(recipe, clash.where, clash.when),
        torch=clash.when.torch,
        kind=clash.kind,
        version=clash.when.version,
        scope=clash.scope,
        certain=certain,
    )


def conflicts_of(chain: Chain, version: str, context: RecipeContext, backend: str, source: Source) -> list[Conflict]:
    """Conflicts that hold, and (``certain`` False) those that wait for the torch version alone."""
    found = []
    for recipe in chain:
        for clash in recipe.clashes:
            verdict = match(clash.when, version, context, backend)
            if verdict is not Match.NO:
                found.append(_conflict(recipe, clash, verdict is Match.YES))
    if any(each.certain for each in found):
        return found
    recipe = chain[-1]
    backends = backends_of(chain)
    if backends and not backend:
        names = ", ".join(dict.fromkeys(each.name for _, each in backends))
        found.append(
            Conflict(
                f"none of the back ends of {recipe.name} ({names}) serves this version and GPU",
                hint="ask for another version, or name one with --backend",
                clause=f"{recipe.file} [[backend]]",
            )
        )
    if source.kind == "none":
        found.append(Conflict(source.reason, hint=source.way_out, clause=f"{recipe.file} [source]"))
    if source.kind == "git" and not source.commit:
        found += _release_conflicts(recipe, releases_of(chain), version, context)
    return found


def _release_conflicts(recipe: Recipe, rows: tuple[Release, ...], version: str, context: RecipeContext) -> list[Conflict]:
    row = release_for(rows, version)
    if row is None:
        known = ", ".join(each.version for each in rows) or "none"
        return [
            Conflict(
                f"the recipe knows no commit for {recipe.name} {version}",
                hint=f"ask for a version it knows ({known}), or write a recipe: rocmpip recipe new {recipe.name}",
                clause=f"{recipe.file} [[release]]",
            )
        ]
    steering = _release_steering(recipe, row)
    if steering is None or (context.torch and not version_matches(steering.torch, context.torch)):
        return []
    return [replace(steering, certain=bool(context.torch))]


def _release_steering(recipe: Recipe, row: Release) -> Conflict | None:
    """A release that is made for one torch is in conflict with every other."""
    if not row.torch:
        return None
    return Conflict(
        f"{recipe.name} {row.version} is made for torch {row.torch}",
        hint=f"take torch {row.torch}, or the {recipe.name} made for your torch",
        clause=f"{recipe.file} [[release]] {row.version}",
        torch=f"!={row.torch}.*",
        version=f"=={row.version}",
    )


def releases_of(chain: Chain) -> tuple[Release, ...]:
    """All ``[[release]]`` rows, a higher recipe's row for the same version replacing a lower one's."""
    rows = {Version(row.version): row for recipe in chain for row in recipe.releases}
    return tuple(rows[version] for version in sorted(rows, reverse=True))


def release_for(rows: tuple[Release, ...], version: str) -> Release | None:
    """The row of exactly this version."""
    return next((row for row in rows if version_matches(f"=={row.version}", version)), None)


def torch_conflicts_of(chain: Chain, version: str | None, context: RecipeContext) -> tuple[Conflict, ...]:
    """Conflicts with a torch specifier whose other conditions hold."""
    backend, _ = choose_backend(chain, version, context)
    found = [
        _conflict(recipe, clash, certain=True)
        for recipe in chain
        for clash in recipe.clashes
        if clash.when.torch and match(without_torch(clash.when), version, context, backend) is Match.YES
    ]
    rows = releases_of(chain)
    if version is not None:
        row = release_for(rows, version)
        rows = (row,) if row else ()
    steering = (_release_steering(chain[-1], row) for row in rows)
    return (*found, *(each for each in steering if each))
