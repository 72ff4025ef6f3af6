"""Which environment is meant. Standard library at its lightest: every plain pip call asks this."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# pathlib would cost plain pip calls more than this whole module.
# ruff: noqa: PTH100, PTH110, PTH112, PTH113, PTH118, PTH120

_INTERPRETERS = ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe")

Chosen = tuple[str, str, str]
"""(interpreter, prefix or "", source); the interpreter is "" when the environment has none."""


def choose(python: str, env: Mapping[str, str], cwd: str = ".") -> Chosen:
    """The environment that a command works on: ``--python``, PIP_PYTHON, ROCMPIP_PYTHON, VIRTUAL_ENV, CONDA_PREFIX, ours.

    The interpreter in the answer is "" when the named place has none; the caller says so in its own words.
    """
    named = (("--python", python), ("PIP_PYTHON", env.get("PIP_PYTHON", "")), ("ROCMPIP_PYTHON", env.get("ROCMPIP_PYTHON", "")))
    for source, place in named:
        if place:
            return (*_named(place, env, cwd), source)
    for source in _active(env):
        prefix = env.get(source, "")
        if prefix:
            prefix = os.path.join(cwd, prefix)
            return interpreter_in(prefix), prefix, source
    return sys.executable, sys.prefix, "the interpreter that runs rocmpip"


def _active(env: Mapping[str, str]) -> tuple[str, str]:
    """The variables of an active environment, the one that counts first: with both set, whose folder is first on PATH."""
    venv, conda = env.get("VIRTUAL_ENV", ""), env.get("CONDA_PREFIX", "")
    if venv and conda:
        folders = env.get("PATH", "").split(os.pathsep)
        at = [folders.index(place) if (place := os.path.join(one, "bin")) in folders else len(folders) for one in (venv, conda)]
        if at[1] < at[0]:
            return "CONDA_PREFIX", "VIRTUAL_ENV"
    return "VIRTUAL_ENV", "CONDA_PREFIX"


def _named(place: str, env: Mapping[str, str], cwd: str) -> tuple[str, str]:
    """(interpreter, prefix or "") for a path to an interpreter or an environment folder, or a command on PATH."""
    if place == "~" or place.startswith("~/"):
        place = env.get("HOME", "~") + place[1:]
    path = os.path.join(cwd, place)
    if os.path.isdir(path):
        return interpreter_in(path), path
    if os.path.exists(path):
        return os.path.abspath(path), ""
    if os.sep not in place:
        for folder in env.get("PATH", "").split(os.pathsep):
            candidate = os.path.join(folder, place)
            if folder and os.access(candidate, os.X_OK) and os.path.isfile(candidate):
                return candidate, ""
    return "", ""


def interpreter_in(prefix: str) -> str:
    """The interpreter of an environment folder, or ""."""
    for name in _INTERPRETERS:
        path = os.path.join(prefix, name)
        if os.path.exists(path):
            return os.path.abspath(path)
    return ""


def is_own(interpreter: str, prefix: str) -> bool:
    """True when the chosen environment is the one that runs rocmpip.

    By prefix, since the interpreters of two virtual environments may be one file; and by that file, since one prefix (/usr) may
    hold several Pythons.
    """
    if not prefix:
        folder = os.path.dirname(interpreter)
        prefix = os.path.dirname(folder)
    same = os.path.realpath
    return same(prefix) == same(sys.prefix) and same(interpreter) == same(sys.executable)
