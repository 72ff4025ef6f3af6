"""The reference page of the shipped recipes, docs/reference/recipes.md: ``python -m rocmpip.recipe.document`` prints it."""

from __future__ import annotations

import sys

from rocmpip.recipe.book import RecipeBook, load_book, shipped_folder
from rocmpip.recipe.clashes import releases_of
from rocmpip.recipe.placeholders import names_in
from rocmpip.recipe.schema import Clause, Recipe

_HEAD = """\
# Recipes that come with rocmpip

This page is made from the recipes by `python -m rocmpip.recipe.document`. `rocmpip recipe show NAME` prints what a recipe comes to on
your machine, each value with the clause it came from; [the format](recipe-format.md) says how to write one.

## Packages

"Written from" is the version whose source was read. "Targets go into" is where the list of GPUs is handed to that package's build.

| package | what is done | written from | back ends | targets go into |
|---|---|---|---|---|
"""


def page(book: RecipeBook) -> str:
    """The whole page, as Markdown."""
    packages, refused, conflicts, mapped = [], [], [], []
    for name in book.names():
        recipe = book.recipes[name]
        chain = book.chain(recipe)
        refusals = [clash for clash in recipe.clashes if clash.kind == "refuse" and clash.scope == "any"]
        for clash in refusals:
            refused.append(f"| {_names(recipe)} | {clash.message} | {clash.way_out} |")
        if not refusals:
            cells = (_names(recipe), _done(chain), recipe.tested, _backends(chain), _targets(chain))
            packages.append(f"| {' | '.join(cells)} |")
        for clash in recipe.clashes:
            if clash.kind != "refuse":
                conflicts.append(f"| {name} | {_code(str(clash.when))} | {clash.message} | {clash.way_out} |")
        for row in recipe.cuda_names:
            extras = f"[{','.join(row.extras)}]" if row.extras else ""
            asked = ", ".join(_code(each) for each in row.names)
            mapped.append(f"| {asked} | {_code(row.name + extras)} | {_code(str(row.when))} | {row.because} |")
    sections = [
        _HEAD + "\n".join(packages),
        "## Refused, with a way out\n\n| package | why | what to do |\n|---|---|---|\n" + "\n".join(refused),
        "## Combinations that cannot work\n\nThose with a torch version steer which torch is chosen; the others refuse.\n\n"
        "| package | when | why | what to do |\n|---|---|---|---|\n" + "\n".join(conflicts),
        "## CUDA names and what they mean here\n\nUsed only with your word: `--map-cuda-names`, or `map_cuda_names = true` in the "
        "settings.\n\n| asked for | taken | when | why |\n|---|---|---|---|\n" + "\n".join(mapped),
    ]
    return "\n\n".join(sections) + "\n"


def _code(text: str) -> str:
    return f"`{text}`" if text else "always"


def _names(recipe: Recipe) -> str:
    return ", ".join((recipe.name, *recipe.aliases))


def _clauses(chain: tuple[Recipe, ...]) -> list[Clause]:
    return [clause for recipe in chain for clause in recipe.clauses]


def _done(chain: tuple[Recipe, ...]) -> str:
    sources = [clause.source for clause in _clauses(chain) if clause.source]
    kind = sources[-1].kind if sources else "sdist"
    ready = any(clause.wheels for clause in _clauses(chain))
    rows = releases_of(chain)
    built = {"sdist": "built from its sdist", "git": "built from git", "none": ""}[kind]
    if kind == "git" and rows:
        built += f" ({', '.join(row.version for row in reversed(rows))})"
    return ", else ".join(each for each in ("ready wheels" if ready else "", built) if each) or "not built here"


def _backends(chain: tuple[Recipe, ...]) -> str:
    return ", ".join(dict.fromkeys(backend.name for recipe in chain for backend in recipe.backends))


def _targets(chain: tuple[Recipe, ...]) -> str:
    """Variables and settings whose value holds the targets, those that a later clause drops everywhere left out."""
    dropped = {name for clause in _clauses(chain) if not str(clause.when) for name in clause.drop}
    found = [
        setting.key
        for clause in _clauses(chain)
        for setting in (*clause.env, *clause.config_settings)
        if "gfx" in names_in(setting.value) and setting.key not in dropped
    ]
    return ", ".join(f"`{key}`" for key in dict.fromkeys(found))


if __name__ == "__main__":
    sys.stdout.write(page(load_book([("shipped", shipped_folder())])))
