"""``rocmpip journal list | show | search | note | export | import``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmpip.cli.group import json_option
from rocmpip.report import envelope, say

if TYPE_CHECKING:
    from rocmpip.store.journal_entry import Entry


@click.group("journal", no_args_is_help=True)
def command() -> None:
    """The notebook of failed and mended builds.

    Every failed build or install is written down by itself, with what was done until it worked. Credentials and home folders
    are left out. What was imported from a file is text: it is shown and looked for, never run.
    """


def _listed(entries: Sequence[Entry], as_json: bool, none: str) -> None:
    from rocmpip.app.journal import row

    if as_json:
        envelope.write("journal", {"entries": [one.as_json() for one in entries]})
        return
    for one in entries:
        click.echo(row(one))
    if not entries:
        say.note(none)


@command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """One line for each entry, newest last."""
    from rocmpip.app.journal import open_journal

    journal = open_journal(os.environ)
    _listed(journal.entries(), as_json, f"the journal is empty ({journal.path})")


@command.command("show")
@click.argument("entry_id", metavar="ID")
@json_option
def show_command(entry_id: str, as_json: bool) -> None:
    """Everything about one entry; the first letters of its ID are enough."""
    from rocmpip.app.journal import open_journal, words

    entry = open_journal(os.environ).find(entry_id)
    envelope.write("journal", {"entry": entry.as_json()}) if as_json else click.echo(words(entry), nl=False)


@command.command("search")
@click.argument("text", nargs=-1, required=True)
@json_option
def search_command(text: tuple[str, ...], as_json: bool) -> None:
    """Entries that hold every word of TEXT."""
    from rocmpip.app.journal import open_journal

    wanted = " ".join(text)
    _listed(open_journal(os.environ).search(wanted), as_json, f"no entry holds {wanted!r}")


@command.command("note")
@click.argument("entry_id", metavar="ID")
@click.argument("text", nargs=-1, required=True)
@json_option
def note_command(entry_id: str, text: tuple[str, ...], as_json: bool) -> None:
    """Add your own words to an entry: what the reason was, what helped."""
    from rocmpip.app.journal import open_journal

    journal = open_journal(os.environ)
    entry = journal.note(entry_id, " ".join(text))
    if as_json:
        envelope.write("journal", {"entry": journal.find(entry.id).as_json()})
    else:
        say.step(f"noted at {entry.id}")


@command.command("export")
@click.argument("file", metavar="FILE|-")
@json_option
def export_command(file: str, as_json: bool) -> None:
    """Write all entries to FILE as TOML, to share them in git."""
    from rocmpip.app.journal import export, open_journal

    count, text = export(open_journal(os.environ), file)
    if as_json:
        envelope.write("journal", {"entries": count, "file": file, **({"toml": text} if file == "-" else {})})
    elif file == "-":
        click.echo(text, nl=False)
    else:
        say.step(f"{count} entries in {file}")


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def import_command(file: Path, as_json: bool) -> None:
    """Add the entries of an exported FILE; a file with any fault is refused as a whole."""
    from rocmpip.app.journal import import_file, open_journal

    taken, known = import_file(open_journal(os.environ), file)
    if as_json:
        envelope.write("journal", {"imported": taken, "known": known})
    else:
        say.step(f"{taken} entries imported, {known} known already")
