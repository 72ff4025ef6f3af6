"""The recipes of all layers as one book."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rocmpip.model.packages import normalise
from rocmpip.model.recipe import Conflict, MappedName, ReadyWheels, RecipeContext, Release, ResolvedRecipe, Source
from rocmpip.model.record import Struct, field, replace
from rocmpip.recipe.clashes import backend_asked, releases_of, torch_conflicts_of
from rocmpip.recipe.decode import decode, recipe_name
from rocmpip.recipe.faults import Faults
from rocmpip.recipe.read import parse, read_folder
from rocmpip.recipe.resolve import resolve_chain, source_of, wheels_of
from rocmpip.recipe.schema import Recipe
from rocmpip.recipe.when import Match, match

LAYERS = ("shipped", "site", "user", "project", "--recipe")
"""Lowest first."""

Accept = Callable[[str, Path, Mapping[str, str]], str]
"""(layer, folder, file name → sha256) → "" to take the folder's recipes, else why they do not count."""


def shipped_folder() -> Path:
    """The recipes that came with rocmpip: inside the installed package, beside it in an editable install."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "_recipes"
    return inside if inside.is_dir() else package.parent / "recipes"


class RecipeBook(Struct, frozen=True):
    """All recipes, the highest layer's for each name. ``skipped`` tells folders that do not count, and why."""

    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    lower: Mapping[str, tuple[Recipe, ...]] = field(default_factory=dict)
    """Name → the recipes of lower layers, lowest first (``extends`` with a recipe's own name reads them)."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()

    def names(self) -> tuple[str, ...]:
        """Package names with a recipe, sorted, templates left out."""
        return tuple(sorted(name for name in self.recipes if not name.startswith("_")))

    def get(self, name: str) -> Recipe | None:
        """The recipe for ``name`` (any spelling, aliases too), or None."""
        wanted = recipe_name(name)
        return self.recipes.get(self.aliases.get(wanted, wanted))

    def chain(self, recipe: Recipe) -> tuple[Recipe, ...]:
        """What ``recipe`` extends, lowest first, then itself."""
        found: list[Recipe] = []
        step: Recipe | None = recipe
        while step is not None and not any(step is each for each in found):
            found.append(step)
            step = self._base(step)
        return tuple(reversed(found))

    def _base(self, recipe: Recipe) -> Recipe | None:
        if not recipe.extends:
            return None
        if recipe.extends != recipe.name:
            return self.recipes.get(recipe.extends)
        below = self.lower.get(recipe.name, ())
        place = next((number for number, each in enumerate(below) if each is recipe), len(below))
        return below[place - 1] if place else None

    def resolve(self, name: str, version: str, context: RecipeContext) -> ResolvedRecipe:
        """Everything that a build of ``name`` ``version`` needs in ``context``.

        Conflicts that hold come back in ``conflicts`` (``refusals`` are the certain ones): whether they stop the job
        depends on whether a ready wheel serves. Raises Refused when the recipe cannot be filled: no target GPU known,
        several where its variable takes one. Raises KeyError when there is no recipe.
        """
        recipe = self.get(name)
        if recipe is None:
            raise KeyError(name)
        return resolve_chain(self.chain(recipe), name, version, context)

    def releases(self, name: str) -> tuple[Release, ...]:
        """The versions that can be built from git, newest first: a git source has no index that lists them. Empty for a
        package whose source is an sdist."""
        recipe = self.get(name)
        return releases_of(self.chain(recipe)) if recipe else ()

    def source(self, name: str, version: str | None = None, context: RecipeContext | None = None) -> Source:
        """Where the source of ``name`` comes from, its commit filled in for a known version; never refuses. With kind ``git``
        the versions are :meth:`releases`, and what an index has under that name may be another project."""
        recipe = self.get(name)
        return source_of(self.chain(recipe), version, context or RecipeContext()) if recipe else Source()

    def backend_asked(self, name: str, env: Mapping[str, str]) -> str:
        """The back end that exported variables ask for (FLASH_ATTENTION_TRITON_AMD_ENABLE=TRUE), or "": for
        ``RecipeContext.backend`` when the user named none."""
        recipe = self.get(name)
        return backend_asked(self.chain(recipe), env) if recipe else ""

    def torch_conflicts(self, name: str, version: str | None, context: RecipeContext) -> tuple[Conflict, ...]:
        """Conflicts of ``name`` with torch versions, to choose torch around them: ``torch`` and ``version`` hold the
        specifiers. ``version`` None (not chosen yet) gives those of every version. Empty when there is no recipe."""
        recipe = self.get(name)
        return torch_conflicts_of(self.chain(recipe), version, context) if recipe else ()

    def ready_wheels(self, name: str, context: RecipeContext, version: str | None = None) -> tuple[ReadyWheels, ...]:
        """Indexes that may have a ready ROCm wheel, best first. ``version`` None: for any version.

        ``index`` is an address, "default" (the user's own indexes) or "family" (the one that torch was chosen from).
        """
        recipe = self.get(name)
        return wheels_of(self.chain(recipe), version, context) if recipe else ()

    def mapped_name(self, name: str, extras: Sequence[str] = (), context: RecipeContext | None = None) -> MappedName | None:
        """What a CUDA requirement means on ROCm (``cupy-cuda12x`` → ``cupy-rocm-7-0``; ``jax`` with extra ``cuda12``), or
        None. ``name`` may hold its extra: ``jax[cuda12]``. To be used on the user's word only."""
        bare, _, inside = name.partition("[")
        wanted = {normalise(part.strip()) for part in inside.rstrip("]").split(",") if part.strip()} | {
            normalise(extra) for extra in extras
        }
        asked = {normalise(bare)} | {f"{normalise(bare)}[{extra}]" for extra in wanted}
        for recipe in self.recipes.values():
            for row in recipe.cuda_names:
                hit = asked & set(row.names)
                if hit and match(row.when, None, context or RecipeContext(), "") is Match.YES:
                    extra = next(iter(hit)).partition("[")[2].rstrip("]")
                    kept = tuple(sorted(wanted - {extra}))
                    shown = normalise(bare) + (f"[{','.join(sorted(wanted))}]" if wanted else "")
                    return MappedName(shown, row.name, (*row.extras, *kept), row.because, f"{recipe.file} {row.where}")
        return None


def load_book(layers: Sequence[tuple[str, str | Path]], *, accept: Accept | None = None) -> RecipeBook:
    """Read the recipes of ``layers``: (layer name, folder or file), lowest first; a folder that is missing is empty.

    ``accept`` is asked once per folder with the digests of the very bytes that would be used (trust of a project's
    recipes). Raises BadConfiguration (45) with every fault of every file.
    """
    faults = Faults()
    recipes: dict[str, Recipe] = {}
    lower: dict[str, tuple[Recipe, ...]] = {}
    skipped: list[str] = []
    for layer, place in layers:
        folder = read_folder(Path(place), faults)
        if accept is not None and folder.texts:
            reason = accept(layer, folder.path, folder.digests)
            if reason:
                skipped.append(f"{folder.path}: {reason}")
                continue
        for text in folder.texts:
            data = parse(text, faults)
            if data is None:
                continue
            # A single file may have any name: --recipe ~/try-this.toml.
            stem = "" if folder.path == text.path else text.path.stem
            recipe = replace(decode(data, faults, stem=stem), layer=layer, path=str(text.path), file=text.path.name)
            if recipe.name:
                if recipe.name in recipes:
                    lower[recipe.name] = (*lower.get(recipe.name, ()), recipes[recipe.name])
                recipes[recipe.name] = recipe
    for recipe in recipes.values():
        _check_extends(recipe, recipes, lower, faults)
    faults.raise_if_any()
    aliases = {alias: recipe.name for recipe in recipes.values() for alias in recipe.aliases if alias not in recipes}
    return RecipeBook(recipes, lower, aliases, tuple(skipped))


def _check_extends(
    recipe: Recipe, recipes: Mapping[str, Recipe], lower: Mapping[str, tuple[Recipe, ...]], faults: Faults
) -> None:
    faults.file = recipe.path
    seen = {recipe.name}
    step = recipe
    while step.extends and step.extends != step.name:
        base = recipes.get(step.extends)
        if base is None:
            faults.add("package.extends", f"names {step.extends}, which no layer has")
            return
        if base.name in seen:
            faults.add("package.extends", "goes round in a circle")
            return
        seen.add(base.name)
        step = base
    if recipe.extends == recipe.name and not lower.get(recipe.name):
        faults.add("package.extends", f"names the recipe itself, and no lower layer has a recipe for {recipe.name}")
