"""``rocmpip sync``."""

from __future__ import annotations

import click

from rocmpip.app.sync import sync
from rocmpip.cli.group import json_option


@click.command("sync", context_settings={"ignore_unknown_options": True})
@click.argument("lock")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS of install]")
@click.option("--remove-extras", is_flag=True, help="Remove what is installed and not in the lock.")
@click.option("--anyway", is_flag=True, help="Take a lock made for another GPU, ROCm or Python.")
@click.option("--dry-run", is_flag=True, help="Say what would be done.")
@json_option
def command(lock: str, words: tuple[str, ...], remove_extras: bool, anyway: bool, dry_run: bool, as_json: bool) -> int:
    """Make the environment exactly what LOCK says.

    Ready files are installed by pip with their hashes, the rest is built by its recipe. A lock made for another GPU,
    ROCm or Python is refused. --python, --gfx and --rocm work as in install.
    """
    return sync(lock, argv=words, remove=remove_extras, anyway=anyway, dry_run=dry_run, as_json=as_json)
