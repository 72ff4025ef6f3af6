"""Run rocmpip as a person does: in a process of its own, with a whole environment, and read its envelope."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def rocmpip(
    *argv: str, env: Mapping[str, str] | None = None, cwd: Path | str | None = None, timeout: float = 180
) -> subprocess.CompletedProcess[str]:
    """``python -m rocmpip ARGV`` with ``env`` (default: this process's, which the tests keep clean) and no stdin."""
    command = [sys.executable, "-m", "rocmpip", *argv]
    return subprocess.run(
        command, env=dict(os.environ if env is None else env), cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=timeout, check=False,
    )  # fmt: skip


def envelope(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The one JSON document on stdout; its keys, its ``ok`` and its error code are as the contract says."""
    told: dict[str, Any] = json.loads(done.stdout)
    assert set(told) == {"rocmpip", "schema", "command", "ok", "result", "errors"}, done.stdout
    assert told["ok"] == (not told["errors"])
    assert isinstance(told["result"], dict)
    if told["errors"]:
        assert {"code", "message", "hint"} <= set(told["errors"][0])
    assert done.returncode == (told["errors"][0]["code"] if told["errors"] else 0), done.stderr
    assert "Traceback" not in done.stderr
    return told
