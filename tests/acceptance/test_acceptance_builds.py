"""Builds in a plan: a kept wheel is seen before anything is done, and what the machine lacks is told before torch is installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import envelope, rocmpip
from tests.support.environments import installed
from tests.support.replica import Replica

pytestmark = pytest.mark.pip

Env = dict[str, str]


@pytest.fixture
def env(replica: Replica, tmp_path: Path) -> Env:
    (tmp_path / "machine").mkdir()
    return replica.env(tmp_path, ROCMPIP_SYSROOT=str(tmp_path / "machine"), ROCMPIP_GFX="gfx942", ROCMPIP_ROCM="6.4")


def rows_of(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in told["result"]["plan"]}


def test_a_kept_build_is_in_the_plan_of_the_next_environment(env: Env, venv: Callable[..., Path]) -> None:
    done = rocmpip("install", "--json", "--python", str(venv()), "torch", "flash-attn", env=env)
    assert rows_of(envelope(done))["flash-attn"]["action"] == "build"
    second = venv()
    told = envelope(rocmpip("install", "--dry-run", "--json", "--python", str(second), "torch", "flash-attn", env=env))
    row = rows_of(told)["flash-attn"]
    assert (row["action"], row["origin"]) == ("install", "wheelhouse")
    assert (row["index"], row["url"]) == (None, None)
    assert row["filename"].endswith(".whl") and row["sha256"] and row["size"]
    assert any("built here before" in reason for reason in row["because"])
    again = envelope(rocmpip("install", "--json", "--python", str(second), "torch", "flash-attn", env=env))
    assert again["result"]["built"] == []
    assert installed(second)["flash-attn"] == row["version"]
    # Another GPU is another build: nothing in the wheelhouse is for it.
    other = {**env, "ROCMPIP_GFX": "gfx90a"}
    told = envelope(rocmpip("install", "--dry-run", "--json", "--python", str(venv()), "torch", "flash-attn", env=other))
    assert rows_of(told)["flash-attn"]["action"] == "build"


def test_what_a_build_lacks_is_told_before_torch_is_installed(env: Env, venv: Callable[..., Path], tmp_path: Path) -> None:
    python = venv()
    bare = {**env, "PATH": str(tmp_path / "nothing")}
    told = envelope(rocmpip("install", "--json", "--python", str(python), "torch", "flash-attn", env=bare))
    error = told["errors"][0]
    assert error["code"] == 44
    assert "flash-attn" in error["message"] and "hipcc" in str(error["details"])
    assert all(f"{word}: " in error["hint"] for word in ("Debian, Ubuntu", "Fedora, RHEL", "TheRock"))
    assert installed(python) == {}
    # A plan that is only shown is shown, with the same words as a note.
    told = envelope(rocmpip("install", "--dry-run", "--json", "--python", str(python), "torch", "flash-attn", env=bare))
    assert any("hipcc" in note for note in told["result"]["notes"])


def test_a_build_that_comes_along_says_who_asked(env: Env, venv: Callable[..., Path]) -> None:
    told = envelope(rocmpip("install", "--dry-run", "--json", "--python", str(venv()), "needs-flash-attn", env=env))
    row = rows_of(told)["flash-attn"]
    assert (row["action"], row["origin"], row["direct"]) == ("build", "build", False)
    assert row["because"][0] == "required by needs-flash-attn"
    assert "built from source by the recipe flash-attn" in row["because"][1]
