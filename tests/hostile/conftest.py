"""One environment on a simulated machine against the replica, for hostile inputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.target import Target
from tests.support.replica import Replica


@pytest.fixture
def target(replica: Replica, venv: Callable[..., Path], tmp_path: Path) -> Target:
    """gfx942 with ROCm 6.4 unless the environment says otherwise; a fresh environment without pip."""
    return Target(replica, venv, tmp_path)
