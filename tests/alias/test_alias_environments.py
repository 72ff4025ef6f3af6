"""Which environment a bare command works on: what a user of pip expects, as `rocmpip detect` tells it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uv

from rocmpip.target.choose import choose
from tests.support.commands import envelope, rocmpip
from tests.support.environments import site_packages, version_of

Venv = Callable[..., Path]
MINOR = ".".join(map(str, sys.version_info[:2]))
BASE = str(Path(sys.base_prefix) / "bin" / f"python{MINOR}")


@pytest.fixture
def env(clean_env: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """A machine without AMD hardware."""
    (tmp_path / "sysroot").mkdir()
    return {**clean_env, "ROCMPIP_SYSROOT": str(tmp_path / "sysroot")}


def told(env: dict[str, str], *words: str) -> dict[str, Any]:
    result = envelope(rocmpip("detect", "--json", *words, env=env))["result"]
    python: dict[str, Any] = result["python"]
    return python


@pytest.fixture
def conda(tmp_path: Path) -> Path:
    """A conda environment as its folders look."""
    prefix = tmp_path / "conda"
    site = prefix / "lib" / f"python{MINOR}" / "site-packages"
    site.mkdir(parents=True)
    (prefix / "conda-meta").mkdir()
    version, home = version_of(sys.executable)
    (prefix / "conda-meta" / f"python-{version}-h123_0_cpython.json").write_text("{}")
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python").symlink_to(Path(home) / f"python{MINOR}")
    return prefix


def test_an_active_virtual_environment(venv: Venv, env: dict[str, str]) -> None:
    python = venv()
    found = told({**env, "VIRTUAL_ENV": str(python.parent.parent)})
    assert (found["path"], found["kind"], found["source"]) == (str(python), "venv", "VIRTUAL_ENV")


def test_an_active_conda_environment(conda: Path, env: dict[str, str]) -> None:
    found = told({**env, "CONDA_PREFIX": str(conda)})
    assert (found["path"], found["kind"], found["source"]) == (str(conda / "bin/python"), "conda", "CONDA_PREFIX")


def test_of_two_active_ones_the_first_on_path(conda: Path, venv: Venv) -> None:
    python = venv()
    prefix = python.parent.parent
    both = {"VIRTUAL_ENV": str(prefix), "CONDA_PREFIX": str(conda)}
    assert choose("", both)[2] == "VIRTUAL_ENV"
    assert choose("", {**both, "PATH": f"{prefix}/bin:{conda}/bin:/usr/bin"})[0] == str(python)
    assert choose("", {**both, "PATH": f"{conda}/bin:{prefix}/bin:/usr/bin"})[2] == "CONDA_PREFIX"
    assert choose("", {**both, "PATH": "/usr/bin"})[2] == "VIRTUAL_ENV"
    assert choose("", {**both, "PATH": f"/usr/bin:{conda}/bin"})[2] == "CONDA_PREFIX"


@pytest.mark.pip
def test_a_uv_made_environment_without_pip(env: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "uv"
    subprocess.run(
        [uv.find_uv_bin(), "venv", "--no-project", "--no-config", "--offline", "-q", "--python", BASE, str(folder)],
        env=env, check=True,
    )  # fmt: skip
    there = {**env, "VIRTUAL_ENV": str(folder)}
    found = told(there)
    assert (found["path"], found["kind"]) == (str(folder / "bin/python"), "venv")
    listed = rocmpip("list", "--format", "json", env=there)
    assert (listed.returncode, json.loads(listed.stdout)) == (0, [])
    version = rocmpip("--version", env=there)
    assert f"(python {MINOR})" in version.stdout


def test_a_version_managers_shim_leads_to_what_it_starts(venv: Venv, env: dict[str, str], tmp_path: Path) -> None:
    """A shim as pyenv writes it: which Python it means is decided when it runs."""
    python = venv(with_pip=True)
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "python3").write_text(f'#!/usr/bin/env bash\nset -e\nexec "{python}" "$@"\n')
    (shims / "python3").chmod(0o755)
    there = {**env, "PATH": f"{shims}:{env['PATH']}"}
    found = told(there, "--python", "python3")
    assert Path(found["path"]).parent == python.parent
    assert found["source"] == "--python"
    shown = rocmpip("--python", "python3", "show", "-f", "pip", env=there)
    assert f"Location: {site_packages(python)}" in shown.stdout


def test_the_named_one_goes_before_the_active_one(venv: Venv, env: dict[str, str]) -> None:
    active, named = venv(), venv()
    there = {**env, "VIRTUAL_ENV": str(active.parent.parent)}
    for place in (str(named), str(named.parent.parent)):
        assert told(there, "--python", place)["path"] == str(named)
    assert told({**there, "PIP_PYTHON": str(named)})["path"] == str(named)
    assert told({**there, "ROCMPIP_PYTHON": str(named)})["path"] == str(named)


def test_nothing_active_means_the_interpreter_that_runs_rocmpip(env: dict[str, str]) -> None:
    assert told(env)["path"] == sys.executable


@pytest.fixture
def managed(tmp_path: Path) -> dict[str, str]:
    """What makes a Python one whose distribution keeps pip out (PEP 668), as variables."""
    stdlib, start = tmp_path / "usr/lib/python3", tmp_path / "start"
    stdlib.mkdir(parents=True)
    start.mkdir()
    (stdlib / "EXTERNALLY-MANAGED").write_text("[externally-managed]\nError=Ask your distribution for packages.\n")
    (start / "sitecustomize.py").write_text(
        "import sysconfig\nreal_path, real_paths = sysconfig.get_path, sysconfig.get_paths\n"
        f"STDLIB = {str(stdlib)!r}\n"
        "sysconfig.get_path = lambda name, *a, **k: STDLIB if name == 'stdlib' else real_path(name, *a, **k)\n"
        "sysconfig.get_paths = lambda *a, **k: {**real_paths(*a, **k), 'stdlib': STDLIB}\n"
    )
    return {"PYTHONPATH": str(start)}


@pytest.mark.pip
@pytest.mark.parametrize("gfx", ["", "gfx942"])
def test_a_managed_system_python_is_refused_in_pips_words(
    managed: dict[str, str], env: dict[str, str], gfx: str, tmp_path: Path
) -> None:
    there = {
        **env,
        **managed,
        "ROCMPIP_GFX": gfx,
        "ROCMPIP_ROCM": "6.4" if gfx else "",
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
    }
    done = rocmpip("--python", BASE, "install", "torch", env=there)
    assert done.returncode == 1, done.stdout
    assert "error: externally-managed-environment" in done.stderr
    assert "Ask your distribution for packages." in done.stderr
    assert "127.0.0.1" not in done.stdout + done.stderr
    wheels = ["--no-index", "--find-links", str(tmp_path), "nothing-of-that-name"]
    allowed = rocmpip("--python", BASE, "install", "--break-system-packages", *wheels, env=there)
    assert allowed.returncode == 1
    assert "No matching distribution found" in allowed.stderr
