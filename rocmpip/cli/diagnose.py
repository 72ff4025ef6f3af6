"""``rocmpip diagnose``."""

from __future__ import annotations

import os
import sys

import click

from rocmpip.cli.group import json_option
from rocmpip.report import envelope


@click.command("diagnose")
@click.argument("file", metavar="FILE|-")
@click.option("--package", default="", metavar="NAME", help="The package that was being built or installed.")
@click.option("--rules", multiple=True, metavar="FILE", help="More rules, after the shipped ones (repeatable).")
@json_option
def command(file: str, package: str, rules: tuple[str, ...], as_json: bool) -> None:
    """Find the first real cause in a log.

    Reads a build log, the output of pip or uv, or a traceback, of any size, and prints the first real cause, the line that shows
    it, and the commands that mend it, fitted to this machine. Nothing is run or changed.
    """
    from rocmpip.app.diagnose import diagnose_log, words

    told = diagnose_log(file, env=os.environ, package=package, rules=rules)
    if as_json:
        envelope.write("diagnose", told.as_json())
        return
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(words(told).encode(encoding, "replace").decode(encoding))
