"""``rocmpip verify``."""

from __future__ import annotations

import os

import click

from rocmpip.cli.group import json_option


@click.command("verify")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--python", default="", metavar="PATH", help="The environment to verify: its interpreter or folder.")
@click.option(
    "--gfx", multiple=True, metavar="GFX", help="Target GPU instead of what is seen, features too: gfx90a:xnack+ (repeatable)."
)
@click.option("--no-run", is_flag=True, help="Read files only: import nothing, compute nothing.")
@click.option(
    "--time-limit", type=click.FloatRange(1), default=180.0, show_default=True, metavar="SECONDS", help="For each child."
)
@json_option
def command(names: tuple[str, ...], python: str, gfx: tuple[str, ...], no_run: bool, time_limit: float, as_json: bool) -> int:
    """Check what is installed (or NAME alone): builds, links, symbols, device code; then import it and compute on the GPU.

    Files are read as the loader would read them, so no GPU is needed for that; the rest runs in children of the
    environment's interpreter, and each step that cannot be taken here says why. Nothing is changed. Exit code 43 when
    a fault was found.
    """
    from rocmpip.app import verify
    from rocmpip.check import words
    from rocmpip.report import envelope

    site = verify.look_at(names, env=os.environ, gfx=gfx, python=python)
    outcome = verify.verify(site, run=not no_run, time_limit=time_limit)
    problem = verify.verdict(outcome)
    if as_json:
        envelope.write("verify", outcome.as_json(), (problem,) if problem else ())
    else:
        click.echo(words.verify(outcome), nl=False)
    return problem.exit_code if problem else 0
