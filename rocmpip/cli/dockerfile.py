"""``rocmpip dockerfile``."""

from __future__ import annotations

import click

from rocmpip.app.dockerfile import make
from rocmpip.cli.group import json_option


@click.command("dockerfile")
@click.argument("lock")
@click.option("-o", "--output", default="", metavar="FILE", help="Write here, and a .dockerignore beside it (default: stdout).")
@click.option("--base", default="", metavar="IMAGE", help="Base image instead of the usual one.")
@click.option("--tag", default="rocm-app", metavar="NAME", help="The image's name in the lines that are shown.")
@json_option
def command(lock: str, output: str, base: str, tag: str, as_json: bool) -> int:
    """Write a Dockerfile that reproduces LOCK.

    It installs from the lock with hashes, builds in a first stage what has no wheel, and fails unless torch is a ROCm
    build with kernels for the lock's GPUs. New hardware means a new lock and a new Dockerfile.
    """
    return make(lock, output=output, base=base, tag=tag, as_json=as_json)
