"""Become pip: in this process when the target is our own environment, by exec elsewhere. No parent stays behind.

Standard library at its lightest: this is the path of every plain pip command.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

_START = """\
import sys
if sys.path[:1] == [""]: sys.path[0] = sys.executable.rpartition("/")[0]
import os, runpy
os.environ.pop("_ROCMPIP_BECOMING", None)
sys.argv[0] = "pip"
def become():
    try: import pip
    except ImportError:
        if not {runner!r}: sys.exit("ERROR: " + sys.prefix + " has no pip, and rocmpip's environment has none either")
        runpy.run_path({runner!r}, run_name="__main__")
    else: runpy.run_module("pip", run_name="__main__")
"""
"""What a foreign interpreter runs: its own pip if it has one, else ours. The folder of "" (the working directory) must not
be searched; the interpreter's own folder stands in its place, as when the pip command is run, because pip drops a first entry
that is the working directory, and PYTHONPATH may name that. pip's usage lines say what argv[0] says."""

RUNNER = _START + "become()\n"

VERSION_RUNNER = (
    _START
    + """\
try: become()
except SystemExit as stop:
    if not stop.code: print({line!r}, flush=True)
    raise
"""
)


def our_pip_runner() -> str:
    """The file of our own pip that runs it under any interpreter (pip ships it since 22.3). "" when we have no pip."""
    try:
        import pip
    except ImportError:
        return ""
    return os.path.join(os.path.dirname(pip.__file__), "__pip-runner__.py")  # noqa: PTH118, PTH120 - light


def pip_here(argv: Sequence[str], *, after: str = "") -> NoReturn:
    """Run our own environment's pip in this process; ends in SystemExit with pip's code. ``after``: a line to print then."""
    import runpy

    try:
        import pip  # noqa: F401 - a first look, so that what goes wrong inside pip is told by pip
    except ImportError:
        raise SystemExit(f"ERROR: {sys.prefix} has no pip; install it: {sys.executable} -m ensurepip") from None
    sys.argv[:] = ["pip", *argv]
    try:
        # Without alter_sys: argv[0] stays "pip", which is what pip's usage lines show under its own name.
        runpy.run_module("pip", run_name="__main__")
    except SystemExit as stop:
        if after and not stop.code:
            sys.stdout.write(after + "\n")
            sys.stdout.flush()
        raise
    raise SystemExit(0)


def pip_there(interpreter: str, argv: Sequence[str], *, env: Mapping[str, str] | None = None, after: str = "") -> NoReturn:
    """Replace this process by pip under ``interpreter``. Raises OSError when the interpreter cannot be started."""
    program = (VERSION_RUNNER if after else RUNNER).format(runner=our_pip_runner(), line=after)
    sys.stdout.flush()
    sys.stderr.flush()
    words = [interpreter, "-c", program, *argv]
    os.execve(interpreter, words, dict(os.environ if env is None else env))  # noqa: S606 - this is what we are for
