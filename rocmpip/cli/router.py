"""``rocmpip router``."""

from __future__ import annotations

import os

import click

from rocmpip.app.router import serve
from rocmpip.cli.group import json_option


@click.command("router")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port on 127.0.0.1 (default: any free).")
@json_option
def command(port: int, as_json: bool) -> int:
    """Serve the router alone: one index on 127.0.0.1 with ROCm's truth.

    Prints the index URL on stdout and answers until Ctrl-C. Only this user can connect.
    """
    return serve(os.environ, port=port, as_json=as_json)
