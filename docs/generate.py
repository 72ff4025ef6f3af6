"""Write the reference pages that are made from the code, or check that they are up to date (``--check``)."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

import click

from rocmpip.cli.group import available, main
from rocmpip.cli.overview import overview, own_options
from rocmpip.cli.table import COMMANDS
from rocmpip.model.errors import CODES, RocmpipError
from rocmpip.model.settings import Settings
from rocmpip.store.settings_table import ROWS, Row, expected

REFERENCE = Path(__file__).parent / "reference"
MADE = "<!-- Made by docs/generate.py from the code: change the code, then run it. -->\n\n"
WIDTH = 96


def help_of(command: click.Command, words: tuple[str, ...], parent: click.Context | None) -> Iterator[str]:
    """``--help`` of a command and of all its sub-commands, each under a heading of its own."""
    told = command.context_settings
    context = click.Context(command, info_name=words[-1], parent=parent, terminal_width=WIDTH, max_content_width=WIDTH, **told)
    yield f"## {' '.join(words)}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from help_of(below, (*words, name), context)


def conducted(name: str) -> bool:
    """True for a command of pip that rocmpip conducts (install): pip's options, and ours beside them."""
    return importlib.util.find_spec(f"rocmpip.app.{name}") is not None and not available(name)


def cli_page() -> str:
    intro = (
        "# Commands\n\nWhat is not listed here is pip's: `rocmpip list`, `rocmpip show torch` and every other pip command work as "
        "they do with pip.\n"
    )
    sections = [intro, f"## rocmpip\n\n```text\n{overview().rstrip()}\n```\n"]
    parent = click.Context(main, info_name="rocmpip", **main.context_settings)
    for name, summary in COMMANDS:
        command = main.get_command(parent, name)
        if command is not None:
            sections += help_of(command, ("rocmpip", name), parent)
        elif conducted(name):
            options = own_options().strip()
            sections.append(f"## rocmpip {name}\n\n{summary}\n\nEvery option of pip's, and:\n\n```text\n{options}\n```\n")
    return MADE + "\n".join(sections)


def slug_rows() -> Iterator[tuple[str, type[RocmpipError]]]:
    for error in CODES:
        code = "130, 143" if error.slug == "interrupted" else str(error.exit_code)
        yield code, error


def errors_page() -> str:
    lines = [
        "# Exit codes and errors\n",
        "pip's own exit codes pass through (0 to 4, 23, 120). With `--json`, `errors[0].code` is the number and `errors[0].name` the",
        "name in this table; every error says what happened, why, and what to do next.\n",
        "| code | name | meaning |",
        "|---|---|---|",
        "| 0 | | done |",
    ]
    lines += [f"| {code} | {error.slug} | {error.meaning} |" for code, error in slug_rows()]
    return MADE + "\n".join(lines) + "\n"


def built_in(row: Row) -> str:
    value = getattr(Settings(), row.key)
    folders = {"cache_dir": "`~/.cache/rocmpip`", "state_dir": "`~/.local/state/rocmpip`"}
    if row.key in folders:
        return folders[row.key]
    return f"`{str(value).lower()}`" if value not in ("", ()) else ""


def settings_page() -> str:
    lines = [
        "# Settings\n",
        "Each setting can come from a flag, from its variable, from `[tool.rocmpip]` in the project's `pyproject.toml`, from your",
        "`~/.config/rocmpip/config.toml` (or the file that `ROCMPIP_CONFIG` names), or from `/etc/rocmpip/config.toml`: the first of",
        "these wins. `rocmpip settings` shows every value and where it came from. A project may set what is marked *trust* only when",
        "you trust it, because these keys say where code comes from.\n",
        "| key | variable | takes | built-in | |",
        "|---|---|---|---|---|",
    ]
    for row in ROWS:
        trust = " *trust*" if row.needs_trust else ""
        lines.append(f"| `{row.key}` | `{row.variable}` | {expected(row)} | {built_in(row)} | {row.help}{trust} |")
    return MADE + "\n".join(lines) + "\n"


def pages() -> dict[Path, str]:
    """Every generated page: path → text."""
    return {
        REFERENCE / "cli.md": cli_page(),
        REFERENCE / "errors.md": errors_page(),
        REFERENCE / "settings.md": settings_page(),
    }


def stale() -> list[str]:
    """One diff for each page that is not as the code says."""
    found = []
    for path, text in pages().items():
        present = path.read_text(encoding="utf-8") if path.exists() else ""
        if present != text:
            lines = unified_diff(present.splitlines(), text.splitlines(), str(path), "as the code says", lineterm="")
            found.append("\n".join(lines))
    return found


def run(argv: list[str]) -> int:
    # Help must not depend on who runs this.
    for key in [key for key in os.environ if key.startswith("ROCMPIP_")]:
        del os.environ[key]
    if argv == ["--check"]:
        differences = stale()
        print("\n".join([*differences, "run: python docs/generate.py"]) if differences else "generated pages are up to date")
        return 1 if differences else 0
    REFERENCE.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
