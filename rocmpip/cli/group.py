"""The click group: commands load when they are called, and every outcome ends in one place."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from rocmpip.cli.table import COMMANDS
from rocmpip.model.errors import Interrupted, RocmpipError, UsageError
from rocmpip.report.ending import drop_stdout, fail, last_net


def module_of(name: str) -> str:
    return "rocmpip.cli." + name.replace("-", "_")


def available(name: str) -> bool:
    """True when the command's module ships with this version."""
    return importlib.util.find_spec(module_of(name)) is not None


class LazyGroup(click.Group):
    """A group whose commands are imported when used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, _ in COMMANDS if available(name)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in dict(COMMANDS) or not available(cmd_name):
            return None
        command = importlib.import_module(module_of(cmd_name)).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([row for row in COMMANDS if available(row[0])])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """The pip that knows your AMD GPU.

    Every pip command works too: what is not listed here goes to pip as it is.
    """


def json_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--json``: one envelope on stdout for every outcome."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")(function)


def run(argv: Sequence[str]) -> int:
    """Run one of our commands and return its exit code. Errors become words on stderr, or the envelope with --json."""
    name = next((word for word in argv if not word.startswith("-")), "")
    as_json = "--json" in argv
    try:
        outcome = main.main(args=list(argv), prog_name="rocmpip", standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.UsageError as problem:
        usage = problem.ctx.get_usage() + "\n" if problem.ctx and not as_json else ""
        if usage:
            sys.stderr.write(usage)
        return fail(name, as_json, UsageError(problem.format_message(), hint=f"rocmpip {name} --help".replace("  ", " ")))
    except RocmpipError as problem:
        return fail(name, as_json, problem)
    except (KeyboardInterrupt, click.Abort):
        return fail(name, as_json, Interrupted("interrupted"))
    except BrokenPipeError:
        # The reader of our stdout went away (| head): not an error, but Python must not complain at exit either.
        drop_stdout()
        return 0
    except Exception as problem:  # the last net: a person gets words, the details go to a file
        return fail(name, as_json, last_net(problem))
