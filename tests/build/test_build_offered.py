"""What a router without an install offers of the wheelhouse: only what would be made now, whichever input has changed since."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmpip.demo.torchlike import torch_wheel
from tests.support.commands import rocmpip
from tests.support.environments import put, site_packages
from tests.support.replica import Replica

pytestmark = pytest.mark.pip

PAGE = (
    "import os, urllib.request as u; print(u.urlopen(os.environ['PIP_INDEX_URL'].rstrip('/') + '/flash-attn/').read().decode())"
)

Offered = Callable[..., set[str]]


@pytest.fixture
def python(venv: Callable[..., Path]) -> Path:
    python = venv(with_pip=True)
    put(python, torch_wheel("2.9.1+rocm6.4", "py3-none-any", rocm="6.4"))
    return python


@pytest.fixture
def env(replica: Replica, python: Path, tmp_path: Path) -> dict[str, str]:
    (tmp_path / "machine").mkdir()
    return replica.env(
        tmp_path,
        ROCMPIP_SYSROOT=str(tmp_path / "machine"),
        ROCMPIP_ROCM="6.4",
        ROCMPIP_GFX="gfx1100",
        ROCMPIP_PYTHON=str(python),
    )


@pytest.fixture
def built(env: dict[str, str], tmp_path: Path) -> str:
    """The file name of the wheel that was built for gfx1100."""
    done = rocmpip("build", "flash-attn", "-w", "wheels", env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.split()[-1]).name


@pytest.fixture
def offered(env: dict[str, str], python: Path, tmp_path: Path) -> Offered:
    def call(**more: str) -> set[str]:
        done = rocmpip("run", str(python), "-c", PAGE, env={**env, **more}, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        names = set(re.findall(r">\s*([\w.+-]+\.(?:whl|tar\.gz))\s*<", done.stdout))
        assert any(name.endswith(".tar.gz") for name in names), done.stdout
        return {name for name in names if name.endswith(".whl")}

    return call


def test_what_was_built_for_exactly_this(built: str, offered: Offered) -> None:
    assert offered() == {built}


@pytest.mark.parametrize(
    "changed",
    [{"ROCMPIP_GFX": "gfx1101"}, {"ROCMPIP_GFX": "gfx90a"}, {"ROCMPIP_ROCM": "6.4.2"}, {"CXXFLAGS": "-O1"}],
    ids=["another GPU", "another back end", "another ROCm", "a variable of the user's"],
)
def test_another_input(changed: dict[str, str], built: str, offered: Offered) -> None:
    assert offered(**changed) == set()


def test_another_recipe(built: str, offered: Offered, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "flash-attn.toml").write_text(
        'schema = 1\n[package]\nname = "flash-attn"\nextends = "flash-attn"\n[build.env]\nFLASH_ATTN_LOCAL_VERSION = "mine"\n'
    )
    assert offered(ROCMPIP_RECIPE_PATH=str(mine)) == set()
    assert offered() == {built}


def test_another_build_of_torch(built: str, offered: Offered, python: Path) -> None:
    packages = site_packages(python)
    (info,) = packages.glob("torch-*.dist-info")
    metadata = info / "METADATA"
    metadata.write_text(metadata.read_text().replace("2.9.1+rocm6.4", "2.9.0+rocm6.4"))
    info.rename(info.with_name("torch-2.9.0+rocm6.4.dist-info"))
    assert offered() == set()
