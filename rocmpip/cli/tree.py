"""``rocmpip tree``."""

from __future__ import annotations

import click

from rocmpip.app.tree import tree
from rocmpip.cli.group import json_option


@click.command("tree", context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[REQUIREMENTS and pip's options]")
@click.option("--lock", default="", metavar="FILE", help="Show this lock.")
@click.option("--depth", default=0, metavar="N", help="Show N levels only.")
@click.option("--root", default="", metavar="NAME", help="Start at this package.")
@json_option
def command(words: tuple[str, ...], lock: str, depth: int, root: str, as_json: bool) -> int:
    """Show who requires whom.

    With requirements (or -r FILE) it resolves them; with --lock it reads the lock; alone it shows the environment.
    """
    return tree(words, lock, depth, root, as_json)
