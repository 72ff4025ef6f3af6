"""The option table against what twelve real pips say of their options."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocmpip.argv import split
from rocmpip.argv.table import OURS, command_grammar

LINES = Path(__file__).with_name("data").joinpath("pip_options.tsv").read_text(encoding="utf-8").splitlines()
VERSIONS = LINES[1].partition(": ")[2].split()
COMMANDS = ("install", "download", "wheel", "lock")
FIRST_LOCK = (25, 1)


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def real(command: str, version: str) -> dict[str, str]:
    """Option → flag, count or value of one command of one real pip."""
    rows = [line.split("\t") for line in LINES[2:]]
    return {
        name: kind
        for where, name, kind, versions in rows
        if where == command and (versions == "*" or version in versions.split())
    }


REAL = [(one, version) for one in COMMANDS for version in VERSIONS if one != "lock" or number(version) >= FIRST_LOCK]


@pytest.mark.parametrize(("command", "version"), REAL)
def test_every_option_of_every_pip(command: str, version: str) -> None:
    grammar = command_grammar(command, number(version))
    ours = {
        name: "value" if row.takes_value else "count" if row.action == "count" else "flag"
        for name, row in (grammar.longs | grammar.shorts).items()
    }
    assert ours == real(command, version)


def test_general_options_of_the_fast_path() -> None:
    every: dict[str, str] = {}
    for version in VERSIONS:
        every.update(real("main", version))
    assert {name for name, kind in every.items() if kind == "value"} == set(split.VALUED)
    assert {name for name, kind in every.items() if kind != "value"} == {*split.FLAGS, *split.SHORTS}


def test_our_options_are_none_of_pips() -> None:
    names = {name for version in VERSIONS for command in COMMANDS for name in real(command, version)}
    assert names.isdisjoint(name for row in OURS for name in row.longs)
