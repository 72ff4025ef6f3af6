"""The stale trap through ``rocmpip install`` with Debian's hipcc: what is installed always holds code for what was asked."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rocmpip.elf import code_objects, examine_wheel, needed
from tests.support.build_machine import EXTENSION, Machine
from tests.support.commands import envelope, rocmpip
from tests.support.environments import site_packages

pytestmark = [pytest.mark.hipcc, pytest.mark.slow, pytest.mark.pip]


def targets(machine: Machine) -> set[str]:
    """The code objects of the installed library."""
    return {one.target for one in code_objects(machine.library("hip_extension*.so"))}


def because(told: dict[str, Any]) -> str:
    (row,) = (row for row in told["result"]["plan"] if row["name"] == "hip-extension")
    return " ".join(row["because"])


def relabel(machine: Machine, label: str) -> None:
    """Another build of torch in the environment: its label and its metadata change, its files do not."""
    packages = site_packages(machine.python)
    (info,) = packages.glob("torch-*.dist-info")
    old = info.name.removeprefix("torch-").removesuffix(".dist-info")
    new = f"{old.partition('+')[0]}+{label}"
    for path in (info / "METADATA", packages / "torch/version.py"):
        text = path.read_text().replace(old, new)
        path.unlink()  # a hard link to the shared environment's file
        path.write_text(text)
    info.rename(info.with_name(f"torch-{new}.dist-info"))


def test_the_stale_trap(machine: Machine, tmp_path: Path) -> None:
    told = machine.told("install", "hip-extension")
    assert told["result"]["built"] == ["hip-extension 1.0"]
    library = machine.library("hip_extension*.so")
    assert targets(machine) == {"gfx90a"}
    assert any(name.startswith("libamdhip64.so") for name in needed(library))
    assert (
        machine.says("import torch, hip_extension; print(hip_extension.answer(), torch.version.hip is not None)") == "42 True"
    )
    log = next((machine.folder / "state/logs").glob("hip-extension-*.log")).read_text()
    for line in ("HIP_PLATFORM=amd", "PYTORCH_ROCM_ARCH=gfx90a", "ROCM_PATH=/usr", "HIP_PATH=/usr"):
        assert f"rocmpip: {line}\n" in log

    # Nothing changed: nothing is done.
    told = machine.told("install", "hip-extension")
    assert told["result"]["built"] == [] and targets(machine) == {"gfx90a"}

    # Another GPU: pip and uv hand back the gfx90a wheel here.
    told = machine.told("install", "hip-extension", ROCMPIP_GFX="gfx1030")
    assert told["result"]["built"] == ["hip-extension 1.0"] and targets(machine) == {"gfx1030"}
    assert "gfx90a" in because(told) and "gfx1030" in because(told)

    # The first one again, from the wheelhouse.
    told = machine.told("install", "hip-extension")
    assert told["result"]["built"] == [] and targets(machine) == {"gfx90a"}

    # Another torch.
    relabel(machine, "rocm7.1")
    told = machine.told("install", "hip-extension")
    assert told["result"]["built"] == ["hip-extension 1.0"] and targets(machine) == {"gfx90a"}
    assert "torch" in because(told) and "2.13.0+rocm7.2" in because(told)
    relabel(machine, "rocm7.2")
    told = machine.told("install", "hip-extension")
    assert told["result"]["built"] == [] and targets(machine) == {"gfx90a"}

    # Another recipe.
    recipe = tmp_path / "hip-extension.toml"
    recipe.write_text(
        'schema = 1\n[package]\nname = "hip-extension"\nextends = "_torch-extension"\n'
        '[metadata]\nrequires = ["torch"]\n[build.env]\nHIP_EXTENSION_SPEED = "1"\n'
    )
    told = machine.told("install", "hip-extension", "--recipe", str(recipe))
    assert told["result"]["built"] == ["hip-extension 1.0"]
    assert "recipe" in because(told)
    recipe.write_text(recipe.read_text().replace('"1"', '"2"'))
    told = machine.told("install", "hip-extension", "--recipe", str(recipe))
    assert told["result"]["built"] == ["hip-extension 1.0"] and targets(machine) == {"gfx90a"}
    assert "recipe" in because(told)

    told = envelope(rocmpip("wheelhouse", "list", "--json", env=machine.env))
    assert len(told["result"]["wheels"]) == 5
    assert rocmpip("wheelhouse", "verify", env=machine.env).returncode == 0


def test_a_local_folder_for_two_gpus(machine: Machine, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(EXTENSION, source)
    told = machine.told(
        "build", str(source), "-w", str(tmp_path / "wheels"), "--keep-build", "--jobs", "1", ROCMPIP_GFX="gfx90a,gfx1030"
    )
    (row,) = told["result"]["wheels"]
    assert examine_wheel(Path(row["path"])).gfx == ("gfx1030", "gfx90a")
    log = Path(row["log"]).read_text()
    assert "rocmpip: 1 job: " in log and "rocmpip: MAX_JOBS=1\n" in log
    (kept,) = (line.partition("kept: ")[2] for line in log.splitlines() if "the build folder is kept: " in line)
    assert (Path(kept) / "source").is_dir()
    shutil.rmtree(kept)
    assert not list(site_packages(machine.python).glob("hip_extension*"))
    assert sorted(path.name for path in source.iterdir()) == sorted(
        path.name for path in EXTENSION.iterdir() if path.name != "__pycache__"
    )

    told = machine.told("install", str(source))
    assert targets(machine) == {"gfx90a"}


def test_only_ready_builds_nothing(machine: Machine) -> None:
    done = machine.run("install", "--only-ready", "--json", "torch-scatter")
    told = json.loads(done.stdout)
    assert done.returncode == 40 and "--only-ready" in str(told["errors"])
    assert not (machine.folder / "state/logs").exists()


def processes_of(machine: Machine) -> list[str]:
    """The command lines of every process whose environment is this machine's."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if str(machine.folder).encode() in (folder / "environ").read_bytes():
                    found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_install_leaves_no_half_wheel(number: int, code: int, machine: Machine) -> None:
    """While the compiler runs: all its processes end, nothing is kept or installed, and the log stays."""
    command = [sys.executable, "-m", "rocmpip", "--python", str(machine.python), "install", "hip-extension"]
    process = subprocess.Popen(
        command, env={**machine.env, "CCACHE_DISABLE": "1"}, cwd=machine.folder, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while process.poll() is None and not any("-cc1" in line or "cc1plus" in line for line in processes_of(machine)):
        time.sleep(0.02)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == code, error
    assert "Traceback" not in error
    assert processes_of(machine) == []
    assert not list(machine.wheelhouse.rglob("*.whl")) and not list(machine.wheelhouse.rglob("*.part"))
    assert not list(site_packages(machine.python).glob("hip_extension*"))
    assert list((machine.folder / "state/logs").glob("hip-extension-*.log"))
