"""What the environment of Python says reaches pip, as with the pip command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import rocmpip

pytestmark = pytest.mark.pip


def test_a_pythonpath_that_names_the_working_directory_counts(
    venv: Callable[..., Path], tmp_path: Path, clean_env: dict[str, str]
) -> None:
    """pip drops a first sys.path entry that is the working directory: that must not be the one of PYTHONPATH."""
    info = tmp_path / "here" / "here.egg-info"
    info.mkdir(parents=True)
    (info / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: here\nVersion: 1.0\n")
    env = {**clean_env, "VIRTUAL_ENV": str(venv(with_pip=True).parent.parent)}
    shown = rocmpip("show", "here", env={**env, "PYTHONPATH": str(info.parent)}, cwd=info.parent)
    assert (shown.returncode, "Name: here" in shown.stdout) == (0, True), shown.stderr
    assert rocmpip("show", "here", env=env, cwd=info.parent).returncode == 1
