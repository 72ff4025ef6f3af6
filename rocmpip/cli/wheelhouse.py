"""``rocmpip wheelhouse list | show | verify | prune | path | export | import``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from rocmpip.cli.group import json_option
from rocmpip.report import envelope, say


@click.group("wheelhouse", no_args_is_help=True)
def command() -> None:
    """List, verify, prune, export and import the wheels that were built here.

    Each is kept under the fingerprint of everything that changed its bytes: source, recipe, GPUs, ROCm, torch, Python,
    compiler. What is not exactly what is asked for is never installed.
    """


@command.command("path")
@json_option
def path_command(as_json: bool) -> None:
    """Print the folder."""
    from rocmpip.app.wheelhouse import open_wheelhouse

    root = str(open_wheelhouse(os.environ).root)
    envelope.write("wheelhouse", {"path": root}) if as_json else click.echo(root)


@command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """One line for each wheel."""
    from rocmpip.app.wheelhouse import open_wheelhouse, row

    house = open_wheelhouse(os.environ)
    wheels = house.list()
    if as_json:
        envelope.write("wheelhouse", {"path": str(house.root), "wheels": [one.as_json() for one in wheels]})
        return
    for one in wheels:
        click.echo(row(one))
    if not wheels:
        say.note(f"nothing was built here yet ({house.root})")


@command.command("show")
@click.argument("wheel")
@json_option
def show_command(wheel: str, as_json: bool) -> None:
    """Everything about one wheel, by its file name or the beginning of its fingerprint."""
    from rocmpip.app.wheelhouse import open_wheelhouse, words

    one = open_wheelhouse(os.environ).show(wheel)
    envelope.write("wheelhouse", one.as_json()) if as_json else click.echo(words(one), nl=False)


@command.command("verify")
@json_option
def verify_command(as_json: bool) -> None:
    """Read every wheel again and compare its hash; exit 43 when one is damaged."""
    from rocmpip.app.wheelhouse import open_wheelhouse, verify

    sound = verify(open_wheelhouse(os.environ))
    if as_json:
        envelope.write("wheelhouse", {"sound": len(sound), "faults": []})
    else:
        say.step(f"{len(sound)} wheels, all sound")


@command.command("prune")
@click.option("--older-than", type=click.FloatRange(min=0), metavar="DAYS", help="Remove wheels built longer ago.")
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Keep the newest N of each package, remove the rest.")
@click.option("--all", "everything", is_flag=True, help="Remove everything.")
@json_option
def prune_command(older_than: float | None, keep: int | None, everything: bool, as_json: bool) -> None:
    """Remove damaged wheels and what killed builds left; with an option, more."""
    from rocmpip.app.wheelhouse import open_wheelhouse, prune

    removed, freed = prune(open_wheelhouse(os.environ), older_than_days=older_than, keep=keep, everything=everything)
    if as_json:
        envelope.write("wheelhouse", {"removed": [one.as_json() for one in removed], "freed": freed})
    else:
        say.step(f"{len(removed)} wheels removed, {freed / 1e6:.1f} MB freed")


@command.command("export")
@click.argument("target")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--torch", default="", metavar="VERSION", help="Only builds against this torch.")
@click.option("--rocm", default="", metavar="X.Y", help="Only builds with this ROCm.")
@click.option("--python-version", default="", metavar="X.Y", help="Only builds for this Python.")
@json_option
def export_command(target: str, folder: Path, torch: str, rocm: str, python_version: str, as_json: bool) -> None:
    """Copy the wheels for TARGET (gfx90a, or gfx90a,gfx942) into FOLDER, for `pip install --find-links FOLDER`."""
    from rocmpip.app.wheelhouse import export_target, open_wheelhouse

    house = open_wheelhouse(os.environ)
    done = export_target(house, target, folder, torch=torch, rocm=rocm, python=python_version)
    if as_json:
        result = {
            "folder": str(done.folder),
            "wheels": [one.as_json() for one in done.wheels],
            "passed_over": [one.as_json() for one in done.passed_over],
        }
        envelope.write("wheelhouse", result)
        return
    say.step(f"{len(done.wheels)} wheels in {done.folder}")
    for one in done.passed_over:
        say.note(f"passed over, since another build has the same file name: {one.fingerprint[:12]} {one.filename}")


@command.command("import")
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
def import_command(folder: Path, as_json: bool) -> None:
    """Store the wheels of an exported FOLDER; each hash and record is checked."""
    from rocmpip.app.wheelhouse import import_wheels, open_wheelhouse

    done = import_wheels(open_wheelhouse(os.environ), folder)
    if as_json:
        envelope.write("wheelhouse", {"imported": [one.as_json() for one in done.wheels], "refused": []})
    else:
        say.step(f"{len(done.wheels)} wheels imported")
