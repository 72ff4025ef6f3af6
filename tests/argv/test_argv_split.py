"""The split at the sub-command."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmpip.argv.split import split_command


@pytest.mark.parametrize(
    ("line", "general", "name", "args"),
    [
        ("install torch", [], "install", ["torch"]),
        ("-q install -q torch", ["-q"], "install", ["-q", "torch"]),
        ("-qv --timeout 3 list", ["-qv", "--timeout", "3"], "list", []),
        ("--timeout=3 list", ["--timeout=3"], "list", []),
        ("--log install install x", ["--log", "install"], "install", ["x"]),
        ("--prox http://p.example install x", ["--prox", "http://p.example"], "install", ["x"]),
        ("-- install x", ["--"], "install", ["x"]),
        ("insta x", [], "insta", ["x"]),
        ("", [], "", []),
        ("-", [], "-", []),
    ],
)
def test_golden(line: str, general: list[str], name: str, args: list[str]) -> None:
    command = split_command(line.split())
    assert (command.global_args, command.name, command.args, command.problem) == (general, name, args, "")


@pytest.mark.parametrize(
    "line", ["--python X install y", "--python=X install y", "--pyth X install y", "-q --python X install y"]
)
def test_python_is_taken_out(line: str) -> None:
    command = split_command(line.split())
    assert (command.python, command.name, command.args) == ("X", "install", ["y"])
    assert not any("pyth" in word for word in command.global_args)


def test_ours_before_the_command() -> None:
    command = split_command("--gfx gfx942 --json --rocm=6.4 -q install torch".split())
    assert command.ours == ["--gfx", "gfx942", "--json", "--rocm=6.4"]
    assert command.global_args == ["-q"]
    assert command.words == ["-q", "torch"]


@pytest.mark.parametrize("line", ["-V", "--version", "--vers", "-qV", "--python X --version", "--version install"])
def test_version(line: str) -> None:
    assert split_command(line.split()).version


@pytest.mark.parametrize("line", ["-h", "--help", "-h install", "--he"])
def test_help(line: str) -> None:
    assert split_command(line.split()).help


def test_help_after_the_command_is_the_commands() -> None:
    assert not split_command(["install", "--help"]).help


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("--no-such list", "no such option: --no-such"),
        ("-Z list", "no such option: -Z"),
        ("--timeout", "--timeout option requires 1 argument"),
        ("--python", "--python option requires 1 argument"),
        ("--gfx", "--gfx option requires 1 argument"),
        ("--isolated=1 list", "--isolated option does not take a value"),
    ],
)
def test_problems_are_told_and_never_raised(line: str, problem: str) -> None:
    assert split_command(line.split()).problem == problem


@given(
    st.lists(
        st.sampled_from(["-q", "--python", "X", "--json", "--", "-", "install", "--timeout=1", "--no-such", "-Vh", "--gfx"])
    )
)
def test_no_word_is_lost(words: list[str]) -> None:
    command = split_command(words)
    name = [command.name] if command.name else []
    python = sum(word == "--python" for word in words[: len(words) - len(command.args) - len(name)])
    kept = [*command.ours, *command.global_args, *name, *command.args]
    assert len(kept) >= len(words) - 2 * python
    assert set(kept) <= set(words)
