"""`rocmpip settings`, `settings set`, `settings unset`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from rocmpip.cli.group import json_option
from rocmpip.report import envelope, say


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if value != "" else "-"


@click.group("settings", invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Print each setting and where it came from.

    Order: flags, ROCMPIP_* variables, the project's [tool.rocmpip], your own file, the site's file, built-in.
    """
    if ctx.invoked_subcommand is not None:
        ctx.obj = as_json
        return
    from rocmpip.app.settings import show

    result = show(os.environ, str(Path.cwd()))
    if as_json:
        envelope.write("settings", result)
        return
    rows = result["settings"]
    assert isinstance(rows, list)
    width = max(len(row["key"]) for row in rows)
    for row in rows:
        click.echo(f"{row['key']:<{width}}  {_shown(row['value'])}  ({row['source']})")
    for text in result["notes"] if isinstance(result["notes"], list) else ():
        say.note(text)


@command.command("set")
@click.argument("key")
@click.argument("value")
@json_option
@click.pass_obj
def set_command(above: bool | None, key: str, value: str, as_json: bool) -> None:
    """Write KEY = VALUE into your settings file; its comments stay."""
    from rocmpip.app.settings import change

    result = change(os.environ, key, value)
    if as_json or above:
        envelope.write("settings", result)
    else:
        say.step(f"{result['key']} = {_shown(result['value'])} in {result['file']}")


@command.command("unset")
@click.argument("key")
@json_option
@click.pass_obj
def unset_command(above: bool | None, key: str, as_json: bool) -> None:
    """Take KEY out of your settings file; nothing happens when it is not there."""
    from rocmpip.app.settings import forget

    result = forget(os.environ, key)
    if as_json or above:
        envelope.write("settings", result)
    else:
        say.step(f"{result['key']} {'is no longer' if result['removed'] else 'was not'} in {result['file']}")
