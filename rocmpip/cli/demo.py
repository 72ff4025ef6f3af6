"""`rocmpip demo`."""

from __future__ import annotations

import click

from rocmpip.cli.group import json_option


@click.command("demo")
@click.option("--keep", is_flag=True, help="Leave the demo's folder in place and print its path.")
@json_option
def command(keep: bool, as_json: bool) -> None:
    """Show the main job on any machine, without a GPU.

    A simulated MI300X node, embedded indexes of small wheels with true names, tags and requirements, a real temporary
    environment, real pip and a real recipe build. It shows what each step decides and checks what came out; nothing outside
    a temporary folder is changed, and no other host is asked. Exit code 0, or 43 when a step or a check fails.
    """
    from rocmpip.app.command import terminated_as_interrupt
    from rocmpip.demo.show import show
    from rocmpip.report import envelope

    with terminated_as_interrupt():
        story = show(lambda line: click.echo(line, err=as_json), keep=keep)
    if as_json:
        envelope.write("demo", story.as_json())
