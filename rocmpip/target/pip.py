"""Which pip runs in the target, and how it is started."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from rocmpip.model.errors import InputError, Refused
from rocmpip.model.machine import TargetEnv
from rocmpip.model.record import Struct, field
from rocmpip.model.regular import regular
from rocmpip.target.become import our_pip_runner, pip_here, pip_there
from rocmpip.target.installed import installed

OLDEST = (23, 0)
"""The oldest pip that is used for our installs: older ones do not take the router's metadata."""


class PipCommand(Struct, frozen=True):
    """How to start pip for a target: ``[*argv, "install", …]`` with ``env`` added to the environment."""

    argv: tuple[str, ...]
    version: tuple[int, ...]
    """(26, 3); () when it cannot be told."""
    env: Mapping[str, str] = field(default_factory=dict)
    runner: str = ""
    """The runner file of our own pip when the target's interpreter runs that; "" when it runs its own pip."""

    @property
    def python(self) -> str:
        return self.argv[0]


def pip_command(target: TargetEnv) -> PipCommand:
    """The pip for ``target``: its own from 23.0 on, else ours, run by the target's interpreter.

    Ours is started through pip's own runner file and not with ``--python``: up to 25.3 that leaves a parent which ends
    Ctrl-C in a traceback. Raises Refused when there is no usable pip.
    """
    version = own_pip_version(target)
    if version >= OLDEST:
        return PipCommand((target.python, "-m", "pip"), version)
    runner = our_pip_runner()
    if not runner or not Path(runner).is_file():
        raise Refused(
            f"{target.prefix} has no usable pip, and rocmpip's environment has none either",
            hint=f"install pip there: {target.python} -m ensurepip",
        )
    needed = _needed_python(runner)
    if needed and tuple(int(part) for part in target.version.split(".")[:2]) < needed:
        raise Refused(
            f"pip {'.'.join(map(str, version))} in {target.prefix} is too old for rocmpip"
            if version
            else f"{target.prefix} has no pip",
            why=f"rocmpip's own pip needs Python {'.'.join(map(str, needed))} or later, and the target has {target.version}",
            hint=f"install pip 23.0 or later there: {target.python} -m ensurepip --upgrade",
        )
    return PipCommand((target.python, runner), _our_version(), runner=runner)


def own_pip_version(target: TargetEnv) -> tuple[int, ...]:
    """The version of the target's own pip, () when it has none."""
    if not target.has_pip:
        return ()
    found = installed(target.site_packages, ["pip"])
    if found:
        return read_version(found[0].version)
    for site in target.site_packages:
        text = _read(Path(site) / "pip" / "__init__.py")
        match = re.search(r"^__version__\s*=\s*[\"']([^\"']+)", text, re.MULTILINE)
        if match:
            return read_version(match[1])
    return ()


def read_version(text: str) -> tuple[int, ...]:
    """(26, 3, 1) of "26.3.1" or "26.3.1.dev0"; () of what is no version."""
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def _our_version() -> tuple[int, ...]:
    import pip

    return read_version(pip.__version__)


def _needed_python(runner: str) -> tuple[int, ...]:
    found = re.search(r"^PYTHON_REQUIRES\s*=\s*\((\d+),\s*(\d+)\)", _read(Path(runner)), re.MULTILINE)
    return (int(found[1]), int(found[2])) if found else ()


def _read(path: Path) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace", opener=regular) as stream:
            return stream.read()
    except OSError:
        return ""


def become_pip(argv: Sequence[str], target: TargetEnv | None = None, env: Mapping[str, str] | None = None) -> NoReturn:
    """Be plain pip from here on: same words, same output, pip's exit code. ``argv``: pip's arguments, without ``--python``.

    Without ``target``, in our own environment. Raises InputError when the target's interpreter cannot be started.
    """
    environment = dict(os.environ if env is None else env)
    here = target is None or (target.own and environment == dict(os.environ))
    # The target is chosen: pip must not start another process for it.
    environment.pop("PIP_PYTHON", None)
    os.environ.pop("PIP_PYTHON", None)
    if target is None or here:
        pip_here(argv)
    try:
        pip_there(target.python, argv, env=environment)
    except OSError as problem:
        raise InputError(
            f"{target.python} does not run: {problem.strerror or problem}", hint="give another interpreter with --python"
        ) from None


def option_arity(command: PipCommand, subcommand: str, env: Mapping[str, str]) -> Mapping[str, int]:
    """Option → how many values it takes (0 or 1), from ``pip SUBCOMMAND --help``: for pips newer than our table.

    Empty when pip does not answer within its time limit.
    """
    import subprocess

    environment = {**env, **command.env, "COLUMNS": "200", "NO_COLOR": "1"}
    try:
        done = subprocess.run(
            [*command.argv, subcommand, "--help"],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    found: dict[str, int] = {}
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        row = re.match(r"^\s+(-[-\w, ]*?)(\s<[^>]+>|\s\[[^\]]+\]\S*)?(?:\s{2,}|$)", line)
        if row:
            for name in re.findall(r"--[a-z][-a-z0-9]*", row[1]):
                found[name] = 1 if row[2] else 0
    return found
