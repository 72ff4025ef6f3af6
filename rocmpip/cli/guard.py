"""``rocmpip guard``: on, off, status."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from rocmpip.cli.group import json_option
from rocmpip.report import envelope, say


def _python_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--python", default="", metavar="PATH", help="The environment: its interpreter or its folder.")(
        function
    )


@click.group("guard")
@_python_option
@click.pass_context
def command(ctx: click.Context, python: str) -> None:
    """Hold the ROCm torch family for plain pip too: an IDE, a notebook's !pip install, another's script.

    Writes a constraints file and a line in pip.conf, both in the environment itself. rocmpip keeps them up to date.
    """
    ctx.obj = python


@command.command("on")
@_python_option
@json_option
@click.pass_obj
def on_command(above: str, python: str, as_json: bool) -> None:
    """Hold what is installed now; again: bring it up to date."""
    from rocmpip.app import guard
    from rocmpip.catalogue import load

    target = guard.target_of(python or above, os.environ, str(Path.cwd()))
    guard.on(target, os.environ, load())
    _tell(target, as_json)


@command.command("off")
@_python_option
@json_option
@click.pass_obj
def off_command(above: str, python: str, as_json: bool) -> None:
    """Take the guard away: no line of another's is touched."""
    from rocmpip.app import guard

    target = guard.target_of(python or above, os.environ, str(Path.cwd()))
    changed = guard.off(target)
    if as_json:
        envelope.write("guard", {"on": False, "python": target.python, "changed": changed})
    else:
        say.step(f"the guard of {target.prefix} is {'off' if changed else 'not on'}")


@command.command("status")
@_python_option
@json_option
@click.pass_obj
def status_command(above: str, python: str, as_json: bool) -> None:
    """Say whether the guard is on, what it holds, and whether pip reads it."""
    from rocmpip.app import guard

    _tell(guard.target_of(python or above, os.environ, str(Path.cwd())), as_json)


def _tell(target: Any, as_json: bool) -> None:
    from rocmpip.app.guard import state
    from rocmpip.catalogue import load

    result = state(target, os.environ, load())
    if as_json:
        envelope.write("guard", result)
        return
    holds, notes = result["holds"], result["notes"]
    assert isinstance(holds, list)
    assert isinstance(notes, list)
    say.step(f"the guard of {target.prefix} is {'on' if result['on'] else 'off'}")
    for line in holds:
        click.echo(line)
    for note in notes:
        say.note(note)
