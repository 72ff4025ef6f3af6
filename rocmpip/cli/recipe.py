"""``rocmpip recipe``: list, show, check, new, trust."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from rocmpip.cli.group import json_option


@click.group("recipe")
def command() -> None:
    """List, show, check, create and trust build recipes."""


def _out(result: Mapping[str, Any], as_json: bool, render: Callable[[Mapping[str, Any]], str]) -> None:
    if as_json:
        from rocmpip.report import envelope

        envelope.write("recipe", result)
    else:
        click.echo(render(result), nl=False)


def _recipe_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--recipe", "files", multiple=True, metavar="FILE", help="A recipe of yours, above all others.")(
        function
    )


@command.command("list")
@_recipe_option
@json_option
def list_command(files: tuple[str, ...], as_json: bool) -> None:
    """List the packages that have a recipe, and what is done for each."""
    from rocmpip.app.recipe import book_here, list_recipes
    from rocmpip.report import say
    from rocmpip.report.recipes import render_list

    book = book_here(os.environ, str(Path.cwd()), files)
    _out(list_recipes(book), as_json, render_list)
    if not as_json:
        for text in book.skipped:
            say.note(text)


@command.command("show")
@click.argument("name")
@click.option(
    "--version",
    "version",
    default="",
    metavar="X",
    help="Version of the package (default: the one the recipe was written from).",
)
@click.option("--gfx", multiple=True, metavar="GFX", help="Target GPU instead of what is seen (repeatable; or none).")
@click.option("--rocm", default="", metavar="X.Y", help="ROCm version instead of what is installed (or none).")
@click.option("--torch", default="", metavar="X", help="Version of torch that the build will see (default: the installed one).")
@click.option("--python", default="", metavar="X.Y|PATH", help="Python of the target: a version, or an interpreter.")
@click.option("--backend", default="", metavar="NAME", help="A back end of the recipe instead of the one it would choose.")
@_recipe_option
@json_option
def show_command(
    name: str,
    version: str,
    gfx: tuple[str, ...],
    rocm: str,
    torch: str,
    python: str,
    backend: str,
    files: tuple[str, ...],
    as_json: bool,
) -> None:
    """Print each value of a recipe with the clause it came from."""
    from rocmpip.app.recipe import Shown, book_here, show_here
    from rocmpip.report import say
    from rocmpip.report.recipes import render_shown

    cwd = str(Path.cwd())
    book = book_here(os.environ, cwd, files)
    asked = Shown(name, version, torch, backend, gfx, rocm, python)
    _out(show_here(book, asked, os.environ, cwd), as_json, render_shown)
    if not as_json:
        for text in book.skipped:
            say.note(text)


@command.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@json_option
def check_command(files: tuple[str, ...], as_json: bool) -> None:
    """Check recipe files or folders: every fault is told at once, and nothing is run."""
    from rocmpip.app.recipe import check
    from rocmpip.report.recipes import render_checked

    _out(check(files, str(Path.cwd())), as_json, render_checked)


@command.command("new")
@click.argument("name")
@click.option("-o", "--output", default="", metavar="FILE", help="File or folder to write to (default: your recipes folder).")
@json_option
def new_command(name: str, output: str, as_json: bool) -> None:
    """Write a recipe to start from; for a package that has one, changes to it."""
    from rocmpip.app.recipe import book_here, new

    cwd = str(Path.cwd())
    result = new(name, output, os.environ, cwd, book_here(os.environ, cwd))
    _out(result, as_json, lambda told: f"{told['path']}\n")


@command.command("trust")
@click.argument("directory", metavar="DIR")
@click.option("--forget", is_flag=True, help="Take trust back.")
@json_option
def trust_command(directory: str, forget: bool, as_json: bool) -> None:
    """Trust the recipes and [tool.rocmpip] of a project, as they are now."""
    from rocmpip.app.recipe import trust
    from rocmpip.report.recipes import render_trusted

    _out(trust(directory, os.environ, str(Path.cwd()), forget=forget), as_json, render_trusted)
