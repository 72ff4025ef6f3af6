"""verify over real ROCm and CUDA wheels, against what binutils says of the same files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rocmpip.check.inventory import take
from rocmpip.target.installed import installed
from tests.check.check_packages import findings, outcome, site
from tests.conftest import IN_CI

# Downloads go through pip's own configuration, which the other tests are kept away from.
_SHELL = dict(os.environ)

pytestmark = pytest.mark.slow

WHEELS = {
    "gafime-rocm": "0.4.7",
    "torch-spline-conv-rocm": "1.2.2.post7",
    "jax-rocm7-plugin": "0.12.0",
    "ctranslate2": "4.8.5",
    "bitsandbytes": "0.50.2",
}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("shelf")

    def get(name: str) -> Path:
        there = next((folder / name).glob("*.whl"), None)
        if there is not None:
            return there
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--python-version",
            "3.12",
        ]
        done = subprocess.run(
            [*command, "-d", str(folder / name), f"{name}=={WHEELS[name]}"],
            env=_SHELL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0 and not IN_CI:
            pytest.skip(f"{name} cannot be had here: {done.stderr.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stderr
        return next((folder / name).glob("*.whl"))

    return get


@pytest.fixture
def unpacked(shelf: Callable[[str], Path], venv: Callable[..., Path]) -> Callable[..., Path]:
    def make(*names: str) -> Path:
        python = venv()
        for name in names:
            with zipfile.ZipFile(shelf(name)) as archive:
                archive.extractall(site(python))
        return python

    return make


@pytest.fixture
def env(clean_env: dict[str, str], tmp_path: Path) -> dict[str, str]:
    (tmp_path / "empty").mkdir()
    return {**clean_env, "ROCMPIP_SYSROOT": str(tmp_path / "empty")}


def kinds(python: Path, env: dict[str, str], gfx: str) -> set[str]:
    return {one.kind for one in findings(python, env=env, gfx=[gfx])}


def libraries(python: Path) -> Iterator[Path]:
    for path in sorted(site(python).rglob("*")):
        if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF":
            yield path


def readelf(path: Path) -> tuple[set[str], set[str]]:
    """(needed, names of sections)."""
    said = subprocess.run(["readelf", "-d", "-S", "-W", str(path)], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", said)), set(re.findall(r"\]\s+(\.[\w.]+)\s", said))


@pytest.mark.parametrize("name", WHEELS)
def test_the_inventory_is_readelfs(unpacked: Callable[..., Path], name: str) -> None:
    python = unpacked(name)
    found = take((str(site(python)),), installed((str(site(python)),)))
    files = {file.path: file for dist in found.dists.values() for file in dist.files}
    for path in libraries(python):
        if not re.search(r"\.so(\.[0-9.]+)?$", path.name):
            continue
        needed, sections = readelf(path)
        file = files[str(path)]
        assert set(file.report.needed) == needed
        assert (".hip_fatbin" in sections) == bool(file.report.code_objects)
        cuda = any(re.match(r"lib(cudart|cublas|cudnn|cusparse|cufft|curand|cusolver|nvrtc|cuda)[.L]", one) for one in needed)
        assert file.cuda == (cuda or ".nv_fatbin" in sections)


def test_a_rocm_wheel(unpacked: Callable[..., Path], env: dict[str, str]) -> None:
    python = unpacked("gafime-rocm")
    assert kinds(python, env, "gfx942") == {"missing-rocm-library"}
    assert "wrong-gfx" in kinds(python, env, "gfx803")


def test_a_torch_extension_alone(unpacked: Callable[..., Path], env: dict[str, str]) -> None:
    python = unpacked("torch-spline-conv-rocm")
    assert kinds(python, env, "gfx942") == {"torch-missing"}


def test_a_compressed_one(unpacked: Callable[..., Path], env: dict[str, str]) -> None:
    python = unpacked("jax-rocm7-plugin")
    assert "wrong-gfx" not in kinds(python, env, "gfx942")
    assert "wrong-gfx" in kinds(python, env, "gfx803")


def test_the_cuda_only_one(unpacked: Callable[..., Path], env: dict[str, str]) -> None:
    (found,) = findings(unpacked("ctranslate2"), env=env)
    assert (found.kind, found.level) == ("cuda-only", "fault")


def test_the_mixed_one(unpacked: Callable[..., Path], env: dict[str, str]) -> None:
    found = outcome(unpacked("bitsandbytes"), env=env)
    assert "mixed" in {one.kind for one in found.findings}
    assert found.faults == ()


def test_an_environment_of_several(unpacked: Callable[..., Path], env: dict[str, str]) -> None:
    found = outcome(unpacked("gafime-rocm", "ctranslate2", "bitsandbytes"), env=env)
    assert {(one.kind, one.name) for one in found.faults} == {("cuda-only", "ctranslate2")}
