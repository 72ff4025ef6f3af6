"""``rocmpip recipe``: the layers of recipes, and what its sub-commands do."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from rocmpip.model.errors import BadConfiguration, RocmpipError, UsageError
from rocmpip.model.recipe import Explained, RecipeContext
from rocmpip.model.record import Struct, asdict, replace
from rocmpip.model.settings import Settings
from rocmpip.recipe.book import LAYERS, RecipeBook, load_book, shipped_folder
from rocmpip.recipe.decode import package_name_fault, recipe_name
from rocmpip.recipe.explain import explain, explain_unfilled
from rocmpip.recipe.override import apply_user
from rocmpip.recipe.schema import Recipe
from rocmpip.recipe.skeleton import skeleton
from rocmpip.store.trust import TrustStore, project_digest, state_folder

SITE_FOLDER = Path("/etc/rocmpip/recipes")
PROJECT_FOLDER = ".rocmpip/recipes"
"""Where a project keeps recipes of its own."""


def user_folder(env: Mapping[str, str]) -> Path | None:
    """``recipes`` beside the user's settings file; None without a home."""
    from rocmpip.store.settings import user_file

    file = user_file(env)
    return file.parent / "recipes" if file else None


def project_folder(cwd: str) -> Path | None:
    """The nearest ``.rocmpip/recipes`` at ``cwd`` or above it."""
    here = Path(cwd)
    return next((path for folder in (here, *here.parents) if (path := folder / PROJECT_FOLDER).is_dir()), None)


def layers(settings: Settings, env: Mapping[str, str], cwd: str, files: Sequence[str] = ()) -> list[tuple[str, Path]]:
    """(layer, folder or file), lowest first. Raises UsageError for a ``--recipe`` file that is not there."""
    shipped, site, user, project, named = LAYERS
    found = [(shipped, shipped_folder()), (site, SITE_FOLDER)]
    own = user_folder(env)
    found += [(user, own)] if own else []
    found += [(user, Path(folder)) for folder in settings.recipe_path]
    beside = project_folder(cwd)
    found += [(project, beside)] if beside else []
    for file in files:
        path = Path(cwd) / Path(file).expanduser()
        if not path.exists():
            raise UsageError(f"there is no recipe file {file}", hint="rocmpip recipe new NAME writes one to start from")
        found.append((named, path))
    return found


def load_layers(settings: Settings, env: Mapping[str, str], cwd: str, files: Sequence[str] = ()) -> RecipeBook:
    """The recipes in force: shipped < site < user < project (only when trusted) < ``--recipe`` files.

    ``book.skipped`` tells a project's recipes that do not count, and why. Raises BadConfiguration with every fault.
    """
    store = TrustStore(state_folder(env))

    def accept(layer: str, folder: Path, digests: Mapping[str, str]) -> str:
        return store.refuses(folder, digests) if layer == "project" else ""

    return load_book(layers(settings, env, cwd, files), accept=accept)


class Shown(Struct, frozen=True):
    """What ``recipe show`` was asked: empty fields are taken from this machine."""

    name: str
    version: str = ""
    torch: str = ""
    backend: str = ""
    gfx: tuple[str, ...] = ()
    rocm: str = ""
    python: str = ""
    """A version, 3.12, or the path of an interpreter."""


def book_here(env: Mapping[str, str], cwd: str, files: Sequence[str] = ()) -> RecipeBook:
    """The recipes in force in ``cwd``."""
    from rocmpip.store.settings import load_settings

    return load_layers(load_settings({}, env, cwd), env, cwd, files)


def show_here(book: RecipeBook, asked: Shown, env: Mapping[str, str], cwd: str) -> dict[str, object]:
    """:func:`show` for this machine, with what ``asked`` says instead of what is found."""
    from rocmpip.app.detect import detect_platform

    version = asked.python if re.fullmatch(r"\d+\.\d+(\.\d+)?", asked.python) else ""
    platform, target, dists = detect_platform(
        env=env, gfx=asked.gfx, rocm=asked.rocm, python="" if version else asked.python, cwd=cwd
    )
    installed = next((dist.version for dist in dists if dist.name == "torch"), "")
    context = RecipeContext(
        gfx=platform.gfx_targets,
        rocm=platform.rocm,
        python=".".join((version or (target.version if target else "")).split(".")[:2]),
        rocm_path=platform.rocm_root,
        hip_path=platform.rocm_root,
        jobs=os.cpu_count() or 1,
        site_packages=target.site_packages[0] if target and target.site_packages else "",
    )
    return show(book, replace(asked, torch=asked.torch or installed), context, env)


def list_recipes(book: RecipeBook) -> dict[str, object]:
    """Every package with a recipe: name, summary, what is done for it, layer, file."""
    rows = []
    for name in book.names():
        recipe = book.recipes[name]
        rows.append(
            {
                "name": name,
                "summary": recipe.summary,
                "way": way(book, recipe),
                "tested": recipe.tested,
                "backends": list(dict.fromkeys(backend.name for backend in recipe.backends)),
                "aliases": list(recipe.aliases),
                "layer": recipe.layer,
                "path": recipe.path,
            }
        )
    return {"recipes": rows, "skipped": list(book.skipped)}


def way(book: RecipeBook, recipe: Recipe) -> str:
    """ "refused", "ready wheels", "build", or "ready wheels, else build"."""
    chain = book.chain(recipe)
    if any(clash.kind == "refuse" and clash.scope == "any" for each in chain for clash in each.clashes):
        return "refused"
    sources = [clause.source.kind for each in chain for clause in each.clauses if clause.source]
    ready = any(clause.wheels for each in chain for clause in each.clauses)
    if sources and sources[-1] == "none":
        return "ready wheels" if ready else "refused"
    return "ready wheels, else build" if ready else "build"


def show(book: RecipeBook, asked: Shown, context: RecipeContext, env: Mapping[str, str]) -> dict[str, object]:
    """One recipe for one version and machine, each value with its clause.

    Where no GPU is known and the recipe needs one, its clauses as they are written (``resolved`` false, ``why`` says so).
    Raises UsageError when there is no such recipe.
    """
    recipe = book.get(asked.name)
    if recipe is None:
        raise UsageError(
            f"there is no recipe for {asked.name}",
            why="it has none in any layer: " + ", ".join(LAYERS),
            hint=f"rocmpip recipe list shows all; rocmpip recipe new {asked.name} writes one to start from",
        )
    version = asked.version or recipe.tested or next((row.version for row in book.releases(asked.name)), "0")
    context = _with_backend(book, asked, context, env)
    result: dict[str, object] = {
        "name": recipe.name,
        "version": version,
        "summary": recipe.summary,
        "layer": recipe.layer,
        "path": recipe.path,
        "backends": list(dict.fromkeys(backend.name for backend in recipe.backends)),
        "context": _context_result(context),
        "releases": [asdict(row) for row in book.releases(asked.name)],
    }
    try:
        resolved = book.resolve(asked.name, version, context)
    except RocmpipError as problem:
        if context.gfx:
            raise
        rows = explain_unfilled(book.chain(recipe))
        return {**result, "resolved": False, "why": problem.message, "hint": problem.hint, "rows": _rows(rows)}
    _, _, overridden = apply_user(resolved, env, ())
    return {
        **result,
        "resolved": True,
        "backend": resolved.backend,
        "digest": resolved.digest,
        "rows": _rows(explain(resolved)),
        "env": {value.key: value.value for value in resolved.env},
        "config_settings": [f"{value.key}={value.value}" for value in resolved.config_settings],
        "runtime": {value.key: value.value for value in resolved.runtime},
        "conflicts": [asdict(conflict) for conflict in resolved.conflicts],
        "notes": list(resolved.notes),
        "overridden": list(overridden),
    }


def _with_backend(book: RecipeBook, asked: Shown, context: RecipeContext, env: Mapping[str, str]) -> RecipeContext:
    return replace(context, torch=asked.torch, backend=asked.backend or book.backend_asked(asked.name, env))


def _context_result(context: RecipeContext) -> dict[str, object]:
    return {
        "gfx": list(context.gfx),
        "rocm": str(context.rocm) if context.rocm else None,
        "torch": context.torch or None,
        "python": context.python or None,
        "rocm_path": context.rocm_path or None,
    }


def _rows(rows: Sequence[Explained]) -> list[dict[str, object]]:
    return [asdict(row) for row in rows]


def check(files: Sequence[str], cwd: str) -> dict[str, object]:
    """Read recipe files (or folders) as ``--recipe`` would. Raises BadConfiguration with every fault of all of them."""
    found: list[dict[str, str]] = []
    faults: list[str] = []
    for file in files:
        path = Path(cwd) / Path(file).expanduser()
        if not path.exists():
            raise UsageError(f"there is no recipe file {file}")
        try:
            book = load_book([("shipped", shipped_folder()), ("--recipe", path)])
        except BadConfiguration as problem:
            faults += problem.details
            continue
        found += [{"name": recipe.name, "path": recipe.path} for recipe in book.recipes.values() if recipe.layer == "--recipe"]
    if faults:
        plural = "s" if len(faults) > 1 else ""
        raise BadConfiguration(
            f"{len(faults)} fault{plural} in the recipes",
            hint="docs/reference/recipe-format.md has every key",
            details=tuple(faults),
        )
    return {"recipes": found}


def new(name: str, output: str, env: Mapping[str, str], cwd: str, book: RecipeBook) -> dict[str, object]:
    """Write a recipe to start from; its path. Raises UsageError for a bad name and for a file that is there already."""
    wanted = recipe_name(name)
    problem = package_name_fault(name) or ("is the name of a template" if wanted.startswith("_") else "")
    if problem:
        raise UsageError(f"{name!r} {problem}")
    path = _place(wanted, output, env, cwd)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as stream:
            stream.write(skeleton(wanted, known=book.get(wanted) is not None))
    except FileExistsError:
        raise UsageError(f"{path} is there already", hint="say another place: --output FILE") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", hint="say another place: --output FILE") from None
    return {"name": wanted, "path": str(path)}


def _place(name: str, output: str, env: Mapping[str, str], cwd: str) -> Path:
    if output:
        path = Path(cwd) / Path(output).expanduser()
        return path / f"{name}.toml" if path.is_dir() else path
    folder = user_folder(env)
    if folder is None:
        raise UsageError("there is no home folder to put the recipe in", hint="say where: --output FILE")
    return folder / f"{name}.toml"


def trust(directory: str, env: Mapping[str, str], cwd: str, *, forget: bool = False) -> dict[str, object]:
    """Trust a project's recipes and its ``[tool.rocmpip]`` as they are now; ``forget`` takes that back.

    The result tells what was trusted: for each recipe its file, digest, the variables it sets, what it runs, where its
    source is. Raises UsageError when there is nothing to trust, BadConfiguration when a recipe is faulty.
    """
    base = Path(cwd) / Path(directory).expanduser()
    if not base.is_dir():
        raise UsageError(f"{directory} is not a folder", hint="name the project's folder: rocmpip recipe trust .")
    store = TrustStore(state_folder(env))
    if forget:
        return {"path": str(base), "forgotten": store.forget(base)}
    folder = _recipes_in(base)
    pyproject = base / "pyproject.toml"
    settings = pyproject if project_digest(pyproject) else None
    if folder is None and settings is None:
        raise UsageError(
            f"there is nothing to trust in {directory}",
            why=f"it has neither {PROJECT_FOLDER} nor a [tool.rocmpip] in pyproject.toml",
        )
    seen: dict[str, str] = {}

    def remember(layer: str, place: Path, digests: Mapping[str, str]) -> str:
        # Trust goes to the very bytes that were read and found in order, not to what stands there a moment later.
        if layer == "project":
            seen.update(digests)
        return ""

    book = load_book([("shipped", shipped_folder()), *([("project", folder)] if folder else [])], accept=remember)
    store.trust(folder=folder, digests=seen, pyproject=settings)
    rows = [_trusted_row(recipe, seen) for recipe in book.recipes.values() if recipe.layer == "project"]
    return {
        "path": str(base),
        "state": str(store.path),
        "recipes": sorted(rows, key=lambda row: str(row["file"])),
        "settings": str(settings) if settings else None,
    }


def _recipes_in(base: Path) -> Path | None:
    """The project's recipe folder, when ``base`` is the project, its .rocmpip, or that folder itself."""
    inside = Path(PROJECT_FOLDER)
    if base.resolve().parts[-2:] == inside.parts:
        return base
    for path in (base / inside, base / inside.name if base.resolve().name == inside.parts[0] else None):
        if path is not None and path.is_dir():
            return path
    return None


def _trusted_row(recipe: Recipe, digests: Mapping[str, str]) -> dict[str, object]:
    return {
        "file": recipe.file,
        "name": recipe.name,
        "sha256": digests.get(recipe.file, ""),
        "sets": sorted({setting.key for clause in recipe.clauses for setting in (*clause.env, *clause.runtime)}),
        "runs": [" ".join(step) for clause in recipe.clauses for step in clause.prepare],
        "sources": sorted({clause.source.url for clause in recipe.clauses if clause.source and clause.source.url}),
    }
