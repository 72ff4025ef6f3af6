"""Other tools: uv behind the router, and settings with which uv and pip get the same torch without rocmpip."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from uv import find_uv_bin

from tests.support.commands import envelope, rocmpip
from tests.support.environments import installed
from tests.support.replica import Replica

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.pip


@pytest.fixture
def env(replica: Replica, tmp_path: Path, sysroot: Callable[..., Path]) -> dict[str, str]:
    return replica.env(tmp_path, ROCMPIP_SYSROOT=str(sysroot(["mi300x"], "6.4.0-47")), UV_CACHE_DIR=str(tmp_path / "uv"))


def no_cuda(python: Path) -> bool:
    return not any(name.startswith("nvidia-") for name in installed(python))


def test_uv_behind_the_router(env: dict[str, str], venv: Callable[..., Path]) -> None:
    python = venv()
    there = {**env, "VIRTUAL_ENV": str(python.parent.parent)}
    done = rocmpip("run", "--", find_uv_bin(), "pip", "install", "torch", "accelerate", env=there)
    assert done.returncode == 0, done.stderr
    assert installed(python)["torch"].endswith("+rocm6.4")
    assert "accelerate" in installed(python) and no_cuda(python)
    failing = rocmpip("run", "--", find_uv_bin(), "pip", "install", "nvidia-cublas-cu12", env=there)
    assert failing.returncode == 1
    assert "nvidia-cublas-cu12" in failing.stderr


def test_settings_for_pip(env: dict[str, str], venv: Callable[..., Path], tmp_path: Path) -> None:
    done = rocmpip("router", "--export", "pip", env=env)
    assert done.returncode == 0, done.stderr
    (tmp_path / "requirements.txt").write_text(done.stdout)
    python = venv(with_pip=True)
    plain = subprocess.run(
        [python, "-m", "pip", "install", "-q", "-r", str(tmp_path / "requirements.txt")],
        env=env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert plain.returncode == 0, plain.stderr
    assert installed(python)["torch"].endswith("+rocm6.4") and no_cuda(python)


def test_settings_for_uv(env: dict[str, str], tmp_path: Path) -> None:
    done = rocmpip("router", "--export", "uv", env=env)
    settings = tomllib.loads(done.stdout)["tool"]["uv"]
    assert settings["index"][0]["explicit"] is True
    assert settings["index"][0]["url"].endswith("/whl/rocm6.4/")
    assert settings["sources"]["torch"] == {"index": "rocm"}
    project = '[project]\nname = "mine"\nversion = "1"\nrequires-python = "==3.11.*"\ndependencies = ["torch"]\n\n'
    project = project.replace("3.11", ".".join(map(str, sys.version_info[:2])))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/pyproject.toml").write_text(project + done.stdout)
    locked = subprocess.run(
        [find_uv_bin(), "lock", "--no-config", "--default-index", env["PIP_INDEX_URL"], "--python", sys.executable],
        cwd=tmp_path / "mine", env=env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert locked.returncode == 0, locked.stderr
    versions = {row["name"]: row["version"] for row in tomllib.loads((tmp_path / "mine/uv.lock").read_text())["package"]}
    assert versions["torch"].endswith("+rocm6.4")
    assert not any(name.startswith("nvidia-") for name in versions)


def test_as_json_and_without_amd_hardware(env: dict[str, str], tmp_path: Path) -> None:
    told = envelope(rocmpip("router", "--export", "pip", "--json", env=env))
    assert "torch==" in told["result"]["settings"] and "rocm6.4" in told["result"]["index"]
    (tmp_path / "bare").mkdir()
    refused = envelope(rocmpip("router", "--export", "uv", "--json", env={**env, "ROCMPIP_SYSROOT": str(tmp_path / "bare")}))
    assert refused["errors"][0]["code"] == 40
