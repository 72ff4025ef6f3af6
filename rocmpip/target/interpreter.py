"""Ask a foreign interpreter about itself: one child process with a time limit, once per interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from rocmpip.model.errors import InputError
from rocmpip.model.record import Struct

SECONDS = 30
"""How long an interpreter may take to answer: network file systems are slow on the first start."""

_MARK = "rocmpip-interpreter:"
_PROGRAM = f"""
import json, os, sys
import sysconfig
paths = sysconfig.get_paths()
virtual = sys.prefix != getattr(sys, "base_prefix", sys.prefix)
print("\\n{_MARK}" + json.dumps({{
    "executable": sys.executable or "",
    "version": ".".join(map(str, sys.version_info[:3])),
    "prefix": sys.prefix,
    "virtual": virtual,
    "purelib": paths["purelib"],
    "platlib": paths["platlib"],
    "visible": [p for p in sys.path if p.endswith(("site-packages", "dist-packages")) and os.path.isdir(p)],
    "externally_managed": not virtual and os.path.isfile(os.path.join(paths["stdlib"], "EXTERNALLY-MANAGED")),
}}))
"""


class Facts(Struct, frozen=True):
    """What an interpreter says of itself. ``visible``: its site-packages folders in search order."""

    executable: str
    version: str
    prefix: str
    virtual: bool
    purelib: str
    platlib: str
    visible: tuple[str, ...]
    externally_managed: bool


_known: dict[str, Facts] = {}


def ask(interpreter: str, env: Mapping[str, str]) -> Facts:
    """Facts of ``interpreter``. Raises InputError when it does not run, does not answer in time, or is no Python 3."""
    facts = _known.get(interpreter)
    if facts is None:
        data = run_program(interpreter, _PROGRAM, _MARK, env)
        visible = data["visible"]
        facts = _known[interpreter] = Facts(
            executable=str(data["executable"]),
            version=str(data["version"]),
            prefix=str(data["prefix"]),
            virtual=bool(data["virtual"]),
            purelib=str(data["purelib"]),
            platlib=str(data["platlib"]),
            visible=tuple(map(str, visible)) if isinstance(visible, list) else (),
            externally_managed=bool(data["externally_managed"]),
        )
    return facts


def run_program(interpreter: str, program: str, mark: str, env: Mapping[str, str]) -> dict[str, object]:
    """Run ``program`` in ``interpreter`` and return the JSON object it prints after ``mark``. Raises InputError."""
    try:
        done = subprocess.run(
            [interpreter, "-c", program],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            # The folder of "" on sys.path: a json.py in the user's working directory must not be imported.
            cwd=Path(sys.executable).anchor or None,
            env={**env, "PYTHONIOENCODING": "utf-8"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InputError(
            f"{interpreter} did not answer within {SECONDS} seconds", hint="give another interpreter with --python"
        ) from None
    except OSError as problem:
        raise InputError(
            f"{interpreter} does not run: {problem.strerror or problem}", hint="give another interpreter with --python"
        ) from None
    text = done.stdout.decode("utf-8", "replace")
    _, found, answer = text.rpartition(mark)
    if done.returncode != 0 or not found:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise InputError(
            f"{interpreter} does not work as a Python 3 interpreter (exit code {done.returncode})",
            why=said[-1][:200] if said else "",
            hint="give another interpreter with --python",
        )
    try:
        data = json.loads(answer.splitlines()[0])
    except (ValueError, IndexError) as problem:
        raise InputError(f"{interpreter} answers in a way that is not understood", why=str(problem)) from None
    if not isinstance(data, dict):
        raise InputError(f"{interpreter} answers in a way that is not understood")
    return data
