"""Run rocmpip on a fresh environment and look at what it left."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.support.commands import envelope, rocmpip
from tests.support.environments import installed, site_packages
from tests.support.replica import Replica

ROUTER = re.compile(r"127\.0\.0\.1:\d+/[A-Za-z0-9_-]{20,}")
"""The router's address with its secret path."""


class Target:
    """``run`` and ``json`` are rocmpip with the environment named by --python; every outcome is checked for tracebacks."""

    def __init__(self, replica: Replica, venv: Callable[..., Path], folder: Path) -> None:
        self.replica, self._venv, self.folder = replica, venv, folder
        self.python = venv()
        self.temporary = folder / "tmp"
        (folder / "machine").mkdir()
        self.temporary.mkdir()
        self.cwd = folder / "work"
        self.cwd.mkdir()
        self.env = replica.env(
            folder,
            ROCMPIP_SYSROOT=str(folder / "machine"),
            ROCMPIP_GFX="gfx942",
            ROCMPIP_ROCM="6.4",
            TMPDIR=str(self.temporary),
        )

    def fresh(self, python: str = "", *, with_pip: bool = False) -> Path:
        """Go on with another environment."""
        self.python = self._venv(python, with_pip=with_pip)
        return self.python

    def file(self, name: str, content: str | bytes) -> str:
        path = self.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return name

    def run(self, *words: str, timeout: float = 120, **env: str) -> subprocess.CompletedProcess[str]:
        command = ["--python", str(self.python), *words]
        done = rocmpip(*command, env={**self.env, **env}, cwd=self.cwd, timeout=timeout)
        said = done.stdout + done.stderr
        assert "Traceback" not in said and "failed inside" not in said, said[-3000:]
        assert not ROUTER.search(said), ROUTER.findall(said)
        assert "\x1b" not in said
        return done

    def ok(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        done = self.run(*words, **env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def json(self, *words: str, code: int = 0, timeout: float = 120, **env: str) -> dict[str, Any]:
        """The envelope of ``install --json WORDS``, which ends with ``code``."""
        told = envelope(self.run("install", "--json", *words, timeout=timeout, **env))
        assert (told["errors"][0]["code"] if told["errors"] else 0) == code, told["errors"]
        return told

    def plan(self, *words: str, **env: str) -> dict[str, str]:
        """Name → version of ``install --dry-run WORDS``."""
        rows = self.json("--dry-run", *words, **env)["result"]["plan"]
        for row in rows:
            assert not re.match(r"nvidia-(?!ml-py)|cuda-", row["name"]), row
            assert not re.search(r"\+(cu\d|cpu)", row["version"]), row
        return {row["name"]: row["version"] for row in rows}

    def installed(self) -> dict[str, str]:
        return installed(self.python)

    def torch(self) -> str:
        """What ``import torch`` says, "" when there is none. It must be there whole or not at all."""
        code = "import importlib.util as u\nif u.find_spec('torch'):\n import torch; print(torch.__version__)"
        done = subprocess.run([str(self.python), "-c", code], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        version = done.stdout.strip()
        assert bool(version) == ("torch" in self.installed())
        return version

    def half_done(self) -> list[str]:
        """pip's marks of something that was begun and not ended."""
        return [path.name for path in site_packages(self.python).iterdir() if path.name.startswith("~")]

    def left_behind(self) -> list[str]:
        """What lies in the temporary folder."""
        return sorted(path.name for path in self.temporary.iterdir())


def run_raw(command: Iterable[str], env: dict[str, str], cwd: Path, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """A shell line with ``$ROCMPIP`` for the command."""
    full = {**env, "ROCMPIP": f"{sys.executable} -m rocmpip"}
    return subprocess.run(
        ["bash", "-c", " ".join(command)], env=full, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=timeout, check=False, errors="replace",
    )  # fmt: skip


def processes_with(mark: str) -> list[str]:
    """Command lines of living processes whose environment holds ``mark``."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if mark.encode() in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
            except OSError:
                continue
    return found


def load(text: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(text)
    return told
