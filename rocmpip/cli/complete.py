"""The shell's completion of our own commands and options, in pip's protocol.

The shell sets PIP_AUTO_COMPLETE, COMP_WORDS and COMP_CWORD and reads words from stdout. What is ours is printed here; what
pip knows is printed by pip afterwards.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence

from rocmpip.argv.split import split_command
from rocmpip.cli.table import COMMANDS

# pathlib would cost the shell more than all the rest.
# ruff: noqa: PTH100, PTH110, PTH118, PTH120

_INSTALLERS = ("install", "download", "wheel", "lock")


def complete(env: Mapping[str, str]) -> bool:
    """Print what we have to offer; True when pip has nothing to add: the sub-command is ours."""
    try:
        position = int(env["COMP_CWORD"])
    except (KeyError, ValueError):
        return False
    words = env.get("COMP_WORDS", "").split()[1:]
    before = words[: max(position - 1, 0)]
    current = words[position - 1] if 0 < position <= len(words) else ""
    command = split_command(before)
    if not command.name:
        if not current.startswith("-"):
            _offer((name for name, _ in COMMANDS if name not in _INSTALLERS and shipped(name)), current)
        return False
    if command.name in _INSTALLERS:
        if current.startswith("-"):
            _offer(own_words(), current)
        return command.name == "lock" and shipped("lock")
    if not any(command.name == name for name, _ in COMMANDS):
        return False
    _offer(click_words(command.name, command.args, current), "")
    return True


def shipped(name: str) -> bool:
    return os.path.exists(os.path.join(os.path.dirname(os.path.abspath(__file__)), name.replace("-", "_") + ".py"))


def own_words() -> list[str]:
    """Our long options of install, download, wheel and lock, and ``--python``."""
    from rocmpip.argv.table import OURS

    return sorted({"--python", *(name for option in OURS for name in option.longs)})


def click_words(name: str, args: Sequence[str], current: str) -> list[str]:
    """What click offers for a command of ours; nothing where it expects a path, so that the shell offers files."""
    from click.shell_completion import ShellComplete

    from rocmpip.cli.group import main

    found = ShellComplete(main, {}, "rocmpip", "").get_completions([name, *args], current)
    return [item.value for item in found if item.type == "plain"]


def _offer(words: Iterable[str], current: str) -> None:
    found = [word for word in words if word.startswith(current)]
    if found:
        sys.stdout.write("\n".join(found) + "\n")
        sys.stdout.flush()
