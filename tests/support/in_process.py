"""Run ``rocmpip install`` inside this process, for the many plans of a matrix: a start of Python for each would take most of the time."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from rocmpip.app import install


def plan(*argv: str, env: Mapping[str, str], cwd: Path) -> tuple[int, dict[str, Any]]:
    """``rocmpip install --dry-run --json ARGV`` with ``env`` → exit code and envelope. Its words on stderr are dropped."""
    out, here = io.StringIO(), Path.cwd()
    os.chdir(cwd)
    try:
        with (
            mock.patch.dict(os.environ, env, clear=True),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            code = install.main(["--dry-run", "--json", *argv])
    finally:
        os.chdir(here)
    return code, json.loads(out.getvalue())
