"""``rocmpip examine``."""

from __future__ import annotations

from pathlib import Path

import click

from rocmpip.cli.group import json_option


@click.command("examine")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def command(file: Path, as_json: bool) -> None:
    """Print the code objects, links and tags of a wheel, a library or a loose code object.

    Reads the file alone: no GPU, no ROCm and no LLVM is needed, and nothing of the file runs.
    """
    from rocmpip.app import examine

    report, record = examine.examine(file)
    if as_json:
        from rocmpip.report import envelope

        envelope.write("examine", examine.as_json(report, record))
        return
    click.echo(examine.words(report, record), nl=False)
