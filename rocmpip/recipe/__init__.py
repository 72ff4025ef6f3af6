"""Recipes: decode, validate, layer, match ``when``, explain. Pure but for reading the files it is given.

book = load_book([("shipped", shipped_folder()), ("user", folder)])
resolved = book.resolve("flash-attn", "2.8.3.post2", RecipeContext(gfx=("gfx942",), rocm=parse_rocm("7.2"), torch="2.9.1"))
env, config_settings, notes = apply_user(resolved, os.environ, ())
"""

from rocmpip.recipe.book import LAYERS, RecipeBook, load_book, shipped_folder
from rocmpip.recipe.explain import explain, explain_unfilled
from rocmpip.recipe.override import apply_user
from rocmpip.recipe.refusal import refuse_conflicts
from rocmpip.recipe.schema import SCHEMA, Recipe

__all__ = [
    "LAYERS",
    "SCHEMA",
    "Recipe",
    "RecipeBook",
    "apply_user",
    "explain",
    "explain_unfilled",
    "load_book",
    "refuse_conflicts",
    "shipped_folder",
]
