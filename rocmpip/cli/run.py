"""``rocmpip run``."""

from __future__ import annotations

import os

import click

from rocmpip.app.router import run


@click.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[--] COMMAND...")
def command(words: tuple[str, ...]) -> int:
    """Run any command behind the router: rocmpip run -- uv pip install torch.

    pip and uv see the router as their only index, by environment variables; so do the builds they start.
    The exit code is the command's.
    """
    return run(os.environ, words)
