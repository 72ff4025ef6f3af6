"""``rocmpip env``."""

from __future__ import annotations

import os

import click

from rocmpip.cli.group import json_option


@click.command("env")
@click.option("--shell", type=click.Choice(("sh", "fish", "csh")), help="Syntax of the lines (default: that of $SHELL).")
@click.option("--python", default="", metavar="PATH", help="The environment to look into: its interpreter or folder.")
@json_option
def command(shell: str | None, python: str, as_json: bool) -> None:
    """Print the variables that installed packages need at run time.

    For example flash-attn's Triton back end is chosen by one when it runs. Use it as: eval "$(rocmpip env)".
    """
    from rocmpip.app import env
    from rocmpip.report import envelope, say

    found = env.needed(os.environ, python=python)
    if as_json:
        rows = [{"name": one.key, "value": one.value, "package": one.package, "source": one.source} for one in found.variables]
        envelope.write("env", {"variables": rows, "clashes": list(found.clashes)})
        return
    for one in found.variables:
        say.note(f"{one.key}: {one.package} ({one.source})")
    for text in found.clashes:
        say.warning(text)
    click.echo(env.lines(found, shell or env.shell_of(os.environ)), nl=False)
