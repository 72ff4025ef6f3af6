"""``rocmpip shell-init``: what a shell evaluates to have pip be rocmpip, with completion; and what takes it back."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

SHELLS = ("bash", "zsh", "fish", "powershell")
_ENDINGS = {"bash": "sh", "zsh": "zsh", "fish": "fish", "powershell": "ps1"}
_FOLDER = Path(__file__).parent.parent / "report" / "shells"


def script(shell: str, env: Mapping[str, str], *, undo: bool = False) -> str:
    """The text to evaluate. ``shell`` is one of SHELLS."""
    name = f"{shell}-undo" if undo else shell
    text = (_FOLDER / f"{name}.{_ENDINGS[shell]}").read_text(encoding="utf-8")
    words = own_command(env)
    if shell == "powershell":
        command = " ".join(word if word.isalnum() else "'" + word.replace("'", "''") + "'" for word in words)
    else:
        command = shlex.join(words)
    return text.replace("@ALIAS@", shlex.quote(command)).replace("@COMMAND@", command)


def own_command(env: Mapping[str, str]) -> list[str]:
    """How a shell starts this rocmpip: by its name when PATH leads to it, else by its path."""
    program = own_program()
    if program is None:
        return [sys.executable, "-m", "rocmpip"]
    found = shutil.which("rocmpip", path=env.get("PATH", os.defpath))
    if found is not None and os.path.realpath(found) == os.path.realpath(program):
        return ["rocmpip"]
    return [str(program)]


def own_program() -> Path | None:
    """The ``rocmpip`` command that belongs to this rocmpip, absolute; None when it was installed without one."""
    import sysconfig

    places = [Path(sys.argv[0])] if sys.argv and sys.argv[0] else []
    schemes = [sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")]
    places += [Path(sysconfig.get_path("scripts", scheme)) / "rocmpip" for scheme in schemes]
    for place in places:
        path = Path(os.path.abspath(place))  # noqa: PTH100 - links stay: a tool's command on PATH is one
        if path.name in ("rocmpip", "rocmpip.exe") and path.is_file() and os.access(path, os.X_OK):
            return path
    return None
