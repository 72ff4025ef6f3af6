"""``rocmpip lock``: its help. The work takes the fast path (``rocmpip.app.lock``), which needs no command-line library."""

from __future__ import annotations

import click


@click.command("lock", context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[REQUIREMENTS and pip's options]")
@click.option("-r", "--requirement", metavar="FILE", multiple=True, help="Lock what this file asks for.")
@click.option("-c", "--constraint", metavar="FILE", multiple=True, help="Keep to these bounds.")
@click.option("-o", "--output", metavar="FILE", help="Write here (default: stdout); pylock.toml gives PEP 751.")
@click.option("--gfx", metavar="GFX", multiple=True, help="Target GPUs (repeatable); none need be in this machine.")
@click.option("--rocm", metavar="X.Y", help="Target ROCm.")
@click.option("--python-version", metavar="X.Y", help="Target Python.")
@click.option("--platform", metavar="TAG", multiple=True, help="Target platform: manylinux_2_28_x86_64 …")
@click.option("--for", "targets", metavar="KEY=VALUE,…", multiple=True, help="One target; repeat it for a file each.")
@click.option("-U", "--upgrade", is_flag=True, help="Forget the pins of the file that is there.")
@click.option("-P", "--upgrade-package", metavar="NAME", multiple=True, help="Forget these pins only.")
@click.option("--check", is_flag=True, help="Fail (43) when the file no longer fits its inputs or this machine.")
@click.option("--wheelhouse", metavar="DIR", multiple=True, help="Take built wheels from here.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
@click.pass_context
def command(context: click.Context, /, **_: object) -> int:
    """Write pinned requirements with hashes for this machine or another.

    pip's own options are taken too. The file says which machine it is for, which command made it and which installs it.
    """
    import sys

    from rocmpip.app.lock import main

    argv = list(sys.argv[1:])
    return main(argv[argv.index("lock") + 1 :] if "lock" in argv else argv)
