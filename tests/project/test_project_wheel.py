"""What ships: the wheel holds every data file that the code reads, and nothing of the tests."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("dist")
    code = "import sys, hatchling.build as b; print(b.build_wheel(sys.argv[1])); print(b.build_sdist(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, str(folder)], cwd=ROOT, capture_output=True, text=True, check=True)
    wheel, sdist = done.stdout.split()[-2:]
    return {"wheel": folder / wheel, "sdist": folder / sdist}


def members(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_every_source_and_data_file(built: dict[str, Path]) -> None:
    shipped = members(built["wheel"])
    wanted = [path for path in (ROOT / "rocmpip").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {path.relative_to(ROOT).as_posix() for path in wanted} <= shipped
    recipes = {f"rocmpip/_recipes/{path.name}" for path in (ROOT / "recipes").glob("*.toml")}
    assert recipes
    assert recipes <= shipped


def test_the_wheel_holds_nothing_else(built: dict[str, Path]) -> None:
    tops = {name.split("/")[0] for name in members(built["wheel"])}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"rocmpip"}
    assert "py3-none-any" in built["wheel"].name


def test_the_wheel_has_its_command_and_its_python(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built["wheel"]) as archive:
        info = next(name for name in archive.namelist() if name.endswith("/METADATA")).rpartition("/")[0]
        assert "rocmpip = rocmpip.__main__:main" in archive.read(f"{info}/entry_points.txt").decode()
        metadata = archive.read(f"{info}/METADATA").decode()
    assert "Requires-Python: >=3.10\n" in metadata
    assert "License-Expression: MIT" in metadata


def test_the_source_archive_can_run_its_tests(built: dict[str, Path]) -> None:
    with tarfile.open(built["sdist"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "hatch_build.py", "README.md", "noxfile.py", "tests/conftest.py", "docs/generate.py"} <= names
    assert any(name.startswith("recipes/") for name in names)
