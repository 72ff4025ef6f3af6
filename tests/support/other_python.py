"""An environment of a Python that is not on this machine: our interpreter, which says of itself what that one would say.

Enough for planning, which asks an interpreter only for its markers and tags; nothing can be installed with it.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

_PRETEND = """
import platform, sys, sysconfig, warnings
version = {version!r}
numbers = tuple(map(int, version.split(".")))
info = type(sys.implementation.version)
sys.version_info = (*numbers, "final", 0)
sys.implementation.version = type("Version", (tuple,), dict(
    major=numbers[0], minor=numbers[1], micro=numbers[2], releaselevel="final", serial=0))((*numbers, "final", 0))
platform.python_version = lambda: version
platform.python_version_tuple = lambda: tuple(version.split("."))
sysconfig.get_config_vars()["py_version_nodot"] = "%d%d" % numbers[:2]
if not hasattr(warnings, "deprecated"):
    warnings.deprecated = lambda *message, **more: lambda function: function
"""


def make_other_python(folder: Path, version: str) -> Path:
    """A virtual environment at ``folder`` whose interpreter passes for Python ``version`` ("3.14.1"); its bin/python."""
    minor = version.rpartition(".")[0]
    (folder / f"lib/python{minor}/site-packages").mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "pretend").mkdir()
    (folder / "pretend/sitecustomize.py").write_text(_PRETEND.format(version=version))
    (folder / "pyvenv.cfg").write_text(f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {version}\n")
    python = folder / "bin/python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(folder / "pretend"))} exec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    return python
