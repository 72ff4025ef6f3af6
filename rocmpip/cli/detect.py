"""``rocmpip detect``."""

from __future__ import annotations

import os

import click

from rocmpip.app.detect import detect_result, show
from rocmpip.cli.group import json_option


@click.command("detect")
@click.option("--gfx", multiple=True, metavar="GFX", help="Target GPU instead of what is seen (repeatable; or none).")
@click.option("--rocm", default="", metavar="X.Y", help="ROCm version instead of what is installed (or none).")
@click.option("--python", default="", metavar="PATH", help="The environment to look into: its interpreter or folder.")
@json_option
def command(gfx: tuple[str, ...], rocm: str, python: str, as_json: bool) -> None:
    """Show the GPUs, ROCm, driver and target environment, each with its source.

    Reads files only; helper programs (rocminfo, amd-smi) run only where the kernel's own files have no answer.
    Changes nothing.
    """
    show(detect_result(env=os.environ, gfx=gfx, rocm=rocm, python=python), as_json)
