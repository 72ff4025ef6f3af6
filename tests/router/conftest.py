"""Several real pips: taken from ROCMPIP_TEST_PIPS (a folder of pip's wheels) or from the index this machine is set up for."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def pip_path(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``pip_path("23.3.2")``: a folder for PYTHONPATH with that pip. Session scope: asked before tests are set apart."""
    environment = dict(os.environ)
    shelf = Path(environment.get("ROCMPIP_TEST_PIPS", "") or tmp_path_factory.mktemp("pips"))
    unpacked: dict[str, Path] = {}

    def path(version: str) -> Path:
        if version not in unpacked:
            wheel = shelf / f"pip-{version}-py3-none-any.whl"
            if not wheel.exists():
                command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", str(shelf), f"pip=={version}"]
                done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
                if done.returncode:
                    pytest.skip(f"pip {version} cannot be had here: {done.stderr.strip().splitlines()[-1:]}")
            unpacked[version] = tmp_path_factory.mktemp(f"pip-{version}")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(unpacked[version])
        return unpacked[version]

    return path
