"""flash-attn, deepspeed and torch-scatter from their real source archives, by ``rocmpip install``."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.build_machine import TORCH, Machine
from tests.support.commands import envelope
from tests.support.environments import site_packages
from tests.support.real_sources import SOURCES

pytestmark = [pytest.mark.hipcc, pytest.mark.slow, pytest.mark.pip]

HASHES = {source.name: f"sha256:{source.sha256}" for source in SOURCES}


def no_cuda(machine: Machine) -> bool:
    return not any(name.startswith(("nvidia-", "cuda-")) or "+cu" in version for name, version in machine.versions().items())


def kept_wheel(machine: Machine, name: str) -> tuple[Path, dict[str, Any]]:
    """The one kept wheel of ``name`` and the record inside it."""
    (wheel,) = (machine.wheelhouse / name).glob("*/*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return wheel, json.loads(archive.read(next(one for one in archive.namelist() if one.endswith("rocmpip.json"))))


def install(machine: Machine, name: str, version: str, **env: str) -> dict[str, Any]:
    """Install ``name`` twice: built, then (after it was removed) from the wheelhouse without a build. The record of the wheel."""
    told = machine.told("install", f"{name}=={version}", **env)
    assert told["result"]["built"] == [f"{name} {version}"]
    installed = machine.versions()
    assert (installed[name], installed["torch"]) == (version, TORCH)
    assert no_cuda(machine)
    wheel, record = kept_wheel(machine, name)
    assert (record["name"], record["version"], record["torch"]) == (name, version, TORCH)
    assert record["source"] == HASHES[name]
    log = next((machine.folder / "state/logs").glob(f"{name}-*.log")).read_text()

    assert machine.run("uninstall", "-y", name).returncode == 0
    again = machine.told("install", f"{name}=={version}", **env)
    (row,) = (row for row in again["result"]["plan"] if row["name"] == name)
    assert (row["action"], row["origin"], again["result"]["built"]) == ("install", "wheelhouse", [])
    assert machine.versions()[name] == version
    assert len(list((machine.folder / "state/logs").glob(f"{name}-*.log"))) == 1
    return {**record, "log": log, "wheel": wheel}


def test_flash_attn_by_its_triton_back_end(machine: Machine) -> None:
    made = install(machine, "flash-attn", "2.8.3.post2", ROCMPIP_GFX="gfx1100")
    assert made["wheel"].name == "flash_attn-2.8.3.post2-py3-none-any.whl"
    assert (made["gfx"], made["backend"], made["code_objects"]) == (["gfx1100"], "triton", [])
    for line in (
        "rocmpip: BUILD_TARGET=rocm",
        "rocmpip: FLASH_ATTENTION_TRITON_AMD_ENABLE=TRUE",
        "rocmpip: FLASH_ATTENTION_FORCE_BUILD=TRUE",
        "rocmpip: HIP_ARCHS=gfx1100",
    ):
        assert f"{line}\n" in made["log"]
    told = machine.run("env", ROCMPIP_GFX="gfx1100", SHELL="/bin/sh")
    assert "export FLASH_ATTENTION_TRITON_AMD_ENABLE=TRUE\n" in told.stdout
    assert (site_packages(machine.python) / "flash_attn/flash_attn_interface.py").is_file()


def test_deepspeed(machine: Machine) -> None:
    made = install(machine, "deepspeed", "0.19.8")
    assert made["wheel"].name == "deepspeed-0.19.8-py3-none-any.whl"
    assert (made["gfx"], made["backend"], made["code_objects"]) == (["gfx90a"], "jit", [])
    assert "rocmpip: DS_ACCELERATOR=cuda\n" in made["log"]
    assert (site_packages(machine.python) / "deepspeed/ops/csrc").is_dir()


def test_torch_scatter_is_attempted(machine: Machine) -> None:
    """Debian's hipcc is older than what torch-scatter is written for: either a wheel with code for the GPU, or its first error."""
    done = machine.run("install", "--json", "torch-scatter==2.1.2")
    told = envelope(done)
    log = next((machine.folder / "state/logs").glob("torch-scatter-*.log"))
    text = log.read_text()
    assert "rocmpip: FORCE_CUDA=1\n" in text and "rocmpip: PYTORCH_ROCM_ARCH=gfx90a\n" in text
    if done.returncode == 0:
        print("torch-scatter 2.1.2 was built")
        _, record = kept_wheel(machine, "torch-scatter")
        assert record["code_objects"] == ["gfx90a"] and machine.versions()["torch-scatter"] == "2.1.2"
        return
    (error,) = told["errors"]
    print("torch-scatter 2.1.2 was not built:", error)
    assert error["code"] == 41, error
    # The first error of the compiler, and where the rest of it is.
    first = next(line.strip() for line in text.splitlines() if " error: " in line)
    assert first in str(error)
    assert str(log) in error["hint"]
    assert not (machine.wheelhouse / "torch-scatter").exists()
    assert "torch-scatter" not in machine.versions()
