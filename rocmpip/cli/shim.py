"""``rocmpip shim``: install, remove, status."""

from __future__ import annotations

import os
from pathlib import Path

import click

from rocmpip.cli.group import json_option
from rocmpip.report import envelope, say


@click.group("shim")
def command() -> None:
    """Put a real pip command in front of pip, for scripts and CI that call pip by name."""


@command.command("install")
@click.argument("directory", metavar="DIR")
@click.option("--force", is_flag=True, help="Also where another pip stands; shim remove brings that back.")
@json_option
def install_command(directory: str, force: bool, as_json: bool) -> None:
    """Put pip, pip3 and pipX.Y into DIR; each starts rocmpip.

    DIR must come before the other pip on PATH. X.Y is the active environment's Python: as with pip, the versioned name means
    that Python, the other two the active environment.
    """
    from rocmpip.app.shim import install

    result = install(directory, os.environ, str(Path.cwd()), force=force)
    if as_json:
        envelope.write("shim", result)
        return
    shims, kept = result["shims"], result["kept"]
    assert isinstance(shims, list)
    assert isinstance(kept, list)
    say.step(f"{', '.join(shims)} now start {result['program']}")
    for path in kept:
        say.note(f"what stood there is kept as {path}")
    if not result["first"]:
        say.note(f"pip does not mean the shim yet; put its folder first: export PATH={result['folder']}:$PATH")


@command.command("remove")
@click.argument("directory", metavar="DIR")
@json_option
def remove_command(directory: str, as_json: bool) -> None:
    """Take the shims out of DIR. Another's pip is never touched."""
    from rocmpip.app.shim import remove

    result = remove(directory, str(Path.cwd()))
    if as_json:
        envelope.write("shim", result)
        return
    removed, restored = result["removed"], result["restored"]
    assert isinstance(removed, list)
    assert isinstance(restored, list)
    say.step(f"removed {', '.join(removed)}" if removed else f"no shim of rocmpip in {result['folder']}")
    if restored:
        say.step(f"{', '.join(restored)} is again what it was")


@command.command("status")
@json_option
def status_command(as_json: bool) -> None:
    """Show every pip on PATH, the first first, and which are shims."""
    from rocmpip.app.shim import status

    result = status(os.environ)
    if as_json:
        envelope.write("shim", result)
        return
    pips = result["pips"]
    assert isinstance(pips, list)
    for row in pips:
        kind = f"shim of {row['program']}" if row["shim"] else "another pip"
        click.echo(f"{row['path']}  {kind}{'' if row['works'] else ' (which is gone)'}")
    say.step("pip means rocmpip" if result["active"] else "pip does not mean rocmpip")
