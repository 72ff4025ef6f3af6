"""``rocmpip doctor``."""

from __future__ import annotations

import os

import click

from rocmpip.cli.group import json_option


@click.command("doctor")
@click.option(
    "--for", "package", default="", metavar="NAME", help="Also check what the recipe of NAME (or NAME==VERSION) needs."
)
@click.option("--gfx", multiple=True, metavar="GFX", help="Target GPU instead of what is seen (repeatable).")
@click.option("--python", default="", metavar="PATH", help="The environment to look into: its interpreter or folder.")
@json_option
def command(package: str, gfx: tuple[str, ...], python: str, as_json: bool) -> int:
    """Check the machine: driver, permissions, ROCm roots, compilers, variables, environment, room.

    Each check tells what was seen, what it means, and the command that mends it; none of these commands is run and
    nothing is changed. Exit code 43 when something is broken; warnings alone leave 0.
    """
    from rocmpip.app import doctor
    from rocmpip.check import words
    from rocmpip.report import envelope

    answers = doctor.checks(doctor.look_at(env=os.environ, gfx=gfx, python=python, package=package))
    problem = doctor.verdict(answers)
    if as_json:
        result = {"checks": [check.as_json() for check in answers]}
        envelope.write("doctor", result, (problem,) if problem else ())
    else:
        click.echo(words.doctor(answers), nl=False)
    return problem.exit_code if problem else 0
