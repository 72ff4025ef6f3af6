"""``rocmpip router``."""

from __future__ import annotations

import os

import click

from rocmpip.app.export_index import TOOLS
from rocmpip.app.router import serve
from rocmpip.cli.group import json_option


@click.command("router")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port on 127.0.0.1 (default: any free).")
@click.option("--export", "tool", type=click.Choice(TOOLS), help="Print settings that give this tool the same torch, and end.")
@json_option
def command(port: int, tool: str | None, as_json: bool) -> int:
    """Serve the router alone: one index on 127.0.0.1 with ROCm's truth.

    Prints the index URL on stdout and answers until Ctrl-C. Only this user can connect.
    """
    if tool is not None:
        return exported(tool, as_json)
    return serve(os.environ, port=port, as_json=as_json)


def exported(tool: str, as_json: bool) -> int:
    """Print the settings for ``tool``."""
    from rocmpip.app.export_index import export
    from rocmpip.report import envelope

    text, choice = export(tool, os.environ)
    if as_json:
        envelope.write("router", {"tool": tool, "family": choice.family, "index": choice.index_url, "settings": text})
    else:
        click.echo(text, nl=False)
    return 0
