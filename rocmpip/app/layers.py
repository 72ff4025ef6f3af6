"""The recipe book of a run: shipped < site < user < project (when trusted) < --recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rocmpip.model.settings import Settings
from rocmpip.recipe.book import RecipeBook, load_book, shipped_folder

SITE_RECIPES = Path("/etc/rocmpip/recipes")


def recipe_layers(
    settings: Settings, env: Mapping[str, str], cwd: str, files: Sequence[str] = ()
) -> list[tuple[str, str | Path]]:
    """(layer, folder or file), lowest first. The user's layer holds ~/.config/rocmpip/recipes and the folders of recipe_path."""
    from rocmpip.store.settings import project_file, user_file

    layers: list[tuple[str, str | Path]] = [("shipped", shipped_folder()), ("site", SITE_RECIPES)]
    config = user_file(env)
    if config is not None:
        layers.append(("user", config.parent / "recipes"))
    layers.extend(("user", folder) for folder in settings.recipe_path)
    project = project_file(cwd)
    if project is not None:
        layers.append(("project", project.parent / "recipes"))
    layers.extend(("--recipe", file) for file in files)
    return layers


def load_layers(settings: Settings, env: Mapping[str, str], cwd: str, files: Sequence[str] = ()) -> RecipeBook:
    """Raises BadConfiguration (45) with every fault of every recipe file."""

    def accept(layer: str, folder: Path, digests: Mapping[str, str]) -> str:
        return f"not trusted yet: rocmpip recipe trust {folder}" if layer == "project" else ""

    return load_book(recipe_layers(settings, env, cwd, files), accept=accept)
