"""``rocmpip build``: its help and its options; the words are read as pip reads them (``rocmpip.app.build``)."""

from __future__ import annotations

import click

_WORDS = "rocmpip.build.words"


class _AsWritten(click.Command):
    """Keeps the words as they were written: pip's grammar reads them, not click's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_WORDS] = list(args)
        return super().parse_args(ctx, args)


@click.command("build", cls=_AsWritten, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="NAME[SPECIFIER] | FOLDER | SDIST …")
@click.option("-w", "--wheel-dir", metavar="DIR", help="Put the wheels here (default: the current folder).")
@click.option("--gfx", metavar="GFX", multiple=True, help="Target GPUs (repeatable); none need be in this machine.")
@click.option("--rocm", metavar="X.Y", help="ROCm version instead of what is installed.")
@click.option("-C", "--config-settings", metavar="KEY=VAL", multiple=True, help="For the build back end; wins over a recipe's.")
@click.option("--recipe", metavar="FILE", multiple=True, help="A recipe of yours, above all others.")
@click.option("--jobs", metavar="N", type=int, help="Compile jobs (default: from cores, memory and limits).")
@click.option("--keep-build", is_flag=True, help="Keep the build folder and say where it is.")
@click.option("--rebuild", metavar="NAME", multiple=True, help="Build NAME even when the wheelhouse has it.")
@click.option("--python", metavar="PATH", help="The environment to build for: its torch is what builds see.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
@click.pass_context
def command(ctx: click.Context, /, **_: object) -> int:
    """Build wheels by recipe without installing them, also for another GPU.

    The wheels are kept in the wheelhouse, copied to the folder, and their paths printed. What was built before for exactly the
    same comes from the wheelhouse. pip's own options (-r, -c, --index-url …) are taken too.
    """
    from rocmpip.app.build import main

    words: list[str] = ctx.meta[_WORDS]
    return main(words)
