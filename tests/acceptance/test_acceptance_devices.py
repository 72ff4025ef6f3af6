"""A torch that pip or uv resolve by themselves behind the router has the kernels of this machine's GPU as well."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmpip.app.devices import compares, with_extras
from tests.support.commands import rocmpip
from tests.support.environments import installed, site_packages
from tests.support.replica import Replica

pytestmark = pytest.mark.pip

BACKEND = """\
import pathlib, zipfile
INFO = "distant-1.0.dist-info"
def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "distant-1.0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as wheel:
        wheel.writestr(f"{INFO}/METADATA", "Metadata-Version: 2.1\\nName: distant\\nVersion: 1.0\\nRequires-Dist: torch\\n")
        wheel.writestr(f"{INFO}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{INFO}/RECORD", "")
    return name
"""


@pytest.fixture
def env(replica: Replica, tmp_path: Path) -> dict[str, str]:
    (tmp_path / "machine").mkdir()
    return replica.env(tmp_path, ROCMPIP_SYSROOT=str(tmp_path / "machine"), ROCMPIP_GFX="gfx1031", ROCMPIP_ROCM="7.2")


def assert_kernels(python: Path) -> None:
    held = installed(python)
    assert held["torch"] == "2.12.0+rocm7.14.0"
    assert held["amd-torch-device-gfx1031"] == held["torch"]
    assert held["rocm-sdk-device-gfx1031"] == "7.14.0"
    assert not any(name.startswith("nvidia-") for name in held)


@pytest.mark.parametrize("version", ["25.3", "26.3"])
def test_a_repository_that_needs_torch(
    version: str, env: dict[str, str], venv: Callable[..., Path], pip_path: Callable[[str], Path], tmp_path: Path
) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (repository / "backend.py").write_text(BACKEND)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(repository)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    python = venv()
    shutil.copytree(pip_path(version), site_packages(python), dirs_exist_ok=True)
    done = rocmpip("install", "--python", str(python), f"distant @ git+{repository.as_uri()}", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert installed(python)["distant"] == "1.0"
    assert_kernels(python)


def test_uv_behind_the_router(env: dict[str, str], venv: Callable[..., Path], tmp_path: Path) -> None:
    python = venv()
    words = ["uv", "pip", "install", "--cache-dir", str(tmp_path / "uv"), "--python", str(python), "accelerate"]
    path = f"{Path(sys.executable).parent}:{env['PATH']}"
    done = rocmpip("run", "--", *words, env={**env, "PATH": path})
    assert done.returncode == 0, done.stderr
    assert_kernels(python)


@pytest.mark.parametrize("version", ["23.3.2", "25.3", "26.3"])
def test_a_pip_of_ones_own_behind_the_router(
    version: str, env: dict[str, str], venv: Callable[..., Path], pip_path: Callable[[str], Path]
) -> None:
    """Told by torch's metadata or, where that is compared with the wheel's, by the metadata of rocm's source."""
    python = venv()
    shutil.copytree(pip_path(version), site_packages(python), dirs_exist_ok=True)
    done = rocmpip("run", "--", str(python), "-m", "pip", "install", "accelerate", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ask for" not in done.stderr
    assert_kernels(python)
    check = subprocess.run([python, "-m", "pip", "check"], env=env, capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stdout


def test_rocm_by_itself_brings_no_kernels_of_torch(
    env: dict[str, str], venv: Callable[..., Path], pip_path: Callable[[str], Path]
) -> None:
    """And where rocm is there already nothing is asked about it, so its owner is told what to ask for."""
    python = venv()
    shutil.copytree(pip_path("26.3"), site_packages(python), dirs_exist_ok=True)
    done = rocmpip("run", "--", str(python), "-m", "pip", "install", "rocm[libraries]==7.14.0", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not any(name.startswith(("torch", "amd-torch", "rocm-sdk-device")) for name in installed(python))
    done = rocmpip("run", "--", str(python), "-m", "pip", "install", "torch", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("ask for torch[device-gfx1031]") == 1
    done = rocmpip("run", "--", str(python), "-m", "pip", "install", "torch[device-gfx1031]", env=env)
    assert done.returncode == 0, done.stderr
    assert_kernels(python)


def test_metadata_with_extras_built_in() -> None:
    head = b'Metadata-Version: 2.1\nName: torch\nRequires-Dist: a\nRequires-Dist: b[x]>=1 ; extra == "gpu"\n'
    more = b'Requires-Dist: c ; extra == "gpu" and sys_platform == "win32"\nRequires-Dist: d ; extra == "other"\n'
    told = with_extras(head + more + b"\nA description\n", ("gpu",), {"sys_platform": "linux"}).decode()
    assert told.endswith("Requires-Dist: b[x]>=1\n\nA description\n")
    assert told.count("Requires-Dist: c") == 1 and told.count("Requires-Dist: d") == 1


@pytest.mark.parametrize(
    ("agent", "expected"), [('pip/26.3 {"ci":true}', True), ("pip/25.3 {}", False), ("uv/0.9.1 {}", False), ("", False)]
)
def test_which_programs_compare_metadata(agent: str, expected: bool) -> None:
    assert compares(agent) is expected
