"""``rocmpip shell-init``."""

from __future__ import annotations

import os

import click

from rocmpip.app.shell_init import SHELLS, script
from rocmpip.cli.group import json_option


@click.command("shell-init")
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--undo", is_flag=True, help="Print what takes it back in a running shell.")
@json_option
def command(shell: str, undo: bool, as_json: bool) -> None:
    """Print the shell's alias pip=rocmpip and its completion.

    \b
    bash, zsh:   eval "$(rocmpip shell-init bash)"
    fish:        rocmpip shell-init fish | source
    powershell:  rocmpip shell-init powershell | Out-String | Invoke-Expression
    """
    text = script(shell, os.environ, undo=undo)
    if as_json:
        from rocmpip.report import envelope

        envelope.write("shell-init", {"shell": shell, "undo": undo, "script": text})
    else:
        click.echo(text, nl=False)
