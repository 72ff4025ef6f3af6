"""``rocmpip why``."""

from __future__ import annotations

import click

from rocmpip.app.why import why
from rocmpip.cli.group import json_option

PASS = {"ignore_unknown_options": True}


@click.command("why", context_settings=PASS)
@click.argument("name")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[REQUIREMENTS and pip's options]")
@click.option("--lock", default="", metavar="FILE", help="Look into this lock.")
@json_option
def command(name: str, words: tuple[str, ...], lock: str, as_json: bool) -> int:
    """Say why NAME is in the plan: the chain from what you asked for, and each requirement on the way.

    With requirements (or -r FILE) it resolves them; with --lock it reads the lock; alone it looks into the environment.
    """
    return why(name, words, lock, as_json)
