"""Real installs by real pip into real environments, from the replica of the real indexes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import rocmpip
from tests.support.replica import Replica

pytestmark = pytest.mark.pip


class Machine:
    """One environment on a simulated machine. ``run`` is rocmpip; ``plain`` is plain pip against the PyPI side alone."""

    def __init__(self, replica: Replica, python: Path, folder: Path) -> None:
        self.replica, self.python, self.folder = replica, python, folder
        (folder / "machine").mkdir()
        self.env = {
            **replica.env(),
            "ROCMPIP_SYSROOT": str(folder / "machine"),
            "ROCMPIP_GFX": "gfx942",
            "ROCMPIP_ROCM": "6.4",
            "ROCMPIP_STATE_DIR": str(folder / "state"),
            "ROCMPIP_CACHE_DIR": str(folder / "cache"),
        }

    def run(self, *words: str, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
        done = rocmpip("--python", str(self.python), *words, env={**self.env, **env}, cwd=self.folder)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    def json(self, *words: str, code: int = 0, **env: str) -> dict[str, Any]:
        envelope: dict[str, Any] = json.loads(self.run(*words, "--json", code=code, **env).stdout)
        return envelope

    def plain(self, *words: str) -> None:
        done = rocmpip(
            "install", "-q", "--python", str(self.python), *words,
            env={**self.env, "ROCMPIP_GFX": "", "ROCMPIP_ROCM": ""}, cwd=self.folder,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def freeze(self) -> dict[str, str]:
        rows = json.loads(self.run("list", "--format", "json").stdout)
        return {row["name"].lower().replace("_", "-"): row["version"] for row in rows}

    def check(self) -> str:
        done = rocmpip("--python", str(self.python), "check", env=self.env, cwd=self.folder)
        return done.stdout


@pytest.fixture
def machine(replica: Replica, venv: Callable[..., Path], tmp_path: Path) -> Machine:
    return Machine(replica, venv(), tmp_path)


def no_cuda(installed: dict[str, str]) -> bool:
    return not any(
        (name.startswith("nvidia-") and name != "nvidia-ml-py") or "+cu" in version for name, version in installed.items()
    )


def test_the_main_job(machine: Machine) -> None:
    """torch, accelerate and a package that must be built: ROCm builds, nothing CUDA, and the same again changes nothing."""
    machine.run("install", "torch", "accelerate", "flash-attn")
    installed = machine.freeze()
    assert installed["torch"] == "2.9.1+rocm6.4" and installed["flash-attn"] == "2.8.3.post2"
    assert no_cuda(installed)
    assert "No broken requirements" in machine.check()
    again = machine.json("install", "--dry-run", "torch", "accelerate", "flash-attn")
    assert {row["action"] for row in again["result"]["plan"]} == {"keep"}


def test_the_words_of_pip_hold_no_address_of_the_router(machine: Machine) -> None:
    done = machine.run("install", "torch")
    index = machine.env["PIP_INDEX_URL"]
    assert f"Looking in indexes: {index}" in done.stdout
    looking = [line for line in done.stdout.splitlines() if line.startswith("Looking in")]
    assert set(looking) == {f"Looking in indexes: {index}"}
    assert "rocmpip-act" not in done.stdout


def test_a_cuda_torch_is_replaced_with_its_companions_and_said(machine: Machine) -> None:
    machine.plain("torch", "torchvision")
    before = machine.freeze()
    assert "rocm" not in before["torch"] and any(name.startswith("nvidia-") for name in before)
    plan = machine.json("install", "--dry-run", "torch")["result"]
    rows = {row["name"]: row for row in plan["plan"]}
    assert rows["torch"]["action"] == "replace" and rows["torch"]["installed_version"] == before["torch"]
    assert any("CUDA" in reason for reason in rows["torch"]["because"])
    assert "rocm6.4" in rows["torchvision"]["version"]
    assert any(name.startswith("nvidia-") for name in plan["leftovers"])
    done = machine.run("install", "torch")
    after = machine.freeze()
    assert after["torch"] == "2.9.1+rocm6.4" and after["torchvision"] == "0.24.1+rocm6.4"
    assert "pip uninstall" in done.stderr


def test_a_cuda_torch_under_a_package_is_replaced_too(machine: Machine) -> None:
    machine.plain("torch")
    machine.run("install", "accelerate")
    assert machine.freeze()["torch"] == "2.9.1+rocm6.4"


def test_an_unrelated_install_leaves_a_wrong_torch_alone(machine: Machine) -> None:
    machine.plain("torch==2.9.1", "--no-deps")
    machine.run("install", "requests")
    assert machine.freeze()["torch"] == "2.9.1"


def test_pypis_triton_goes_before_rocms_comes(machine: Machine) -> None:
    """Both write the folder ``triton``: installed in one step, pip would remove the shared files last."""
    machine.plain("triton", "--no-deps")
    machine.run("install", "torch")
    code = "import triton, sys; sys.exit(0)"
    done = subprocess.run([str(machine.python), "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "pytorch-triton-rocm" in machine.freeze()


def test_a_right_torch_is_held_and_a_conflict_with_it_is_told(machine: Machine) -> None:
    machine.run("install", "-q", "torch==2.8.0")
    machine.run("install", "-q", "accelerate")
    assert machine.freeze()["torch"] == "2.8.0+rocm6.4"
    told = machine.json("install", "--dry-run", "needs-torch-210", code=40)
    error = told["errors"][0]
    assert error["code"] == 40 and "2.8.0+rocm6.4" in error["message"]
    assert machine.freeze()["torch"] == "2.8.0+rocm6.4"


def test_torch_moves_to_the_next_rocm_when_a_package_needs_it(machine: Machine) -> None:
    """A package that needs torch>=2.10 on ROCm 6.4, whose wheels end at 2.9.1: the lowest higher ROCm has it."""
    plan = machine.json("install", "--dry-run", "needs-torch-210")["result"]["plan"]
    torch = next(row for row in plan if row["name"] == "torch")
    assert torch["version"] == "2.10.0+rocm7.0"


def test_another_gpu_and_another_torch_make_builds_stale(machine: Machine) -> None:
    machine.run("install", "-q", "torch", "flash-attn")
    seen = machine.json("install", "--dry-run", "flash-attn", ROCMPIP_GFX="gfx90a")["result"]["plan"]
    row = next(row for row in seen if row["name"] == "flash-attn")
    assert row["action"] == "build" and any("gfx942" in reason and "gfx90a" in reason for reason in row["because"])
    seen = machine.json("install", "--dry-run", "torch==2.8.0")["result"]["plan"]
    row = next(row for row in seen if row["name"] == "flash-attn")
    assert row["action"] == "build" and any("torch 2.9.1+rocm6.4" in reason for reason in row["because"])


def test_plain_conflicts_are_told_by_pip(machine: Machine) -> None:
    done = machine.run("install", "requests==99", code=1)
    assert "No matching distribution found for requests==99" in done.stderr


def test_a_failing_build_keeps_torch_and_the_same_command_resumes(machine: Machine) -> None:
    done = machine.run("install", "torch", "broken-torch-ext", code=41)
    assert "rocm_thing/missing.h: No such file or directory" in done.stderr
    assert "resumes" in done.stderr
    assert machine.freeze()["torch"] == "2.9.1+rocm6.4" and "broken-torch-ext" not in machine.freeze()
    log = re.search(r"\S+/logs/broken-torch-ext\S+\.log", done.stderr)
    assert log is not None and "rocm_thing" in Path(log.group(0)).read_text()
    told = machine.json("install", "broken-torch-ext", code=41)
    listed = rocmpip("journal", "list", "--json", env=machine.env, cwd=machine.folder)
    (row,) = json.loads(listed.stdout)["result"]["entries"]
    assert row["package"] == "broken-torch-ext" and "rocm_thing" in row["error"] and row["seen"] == 2
    assert told["errors"][0]["code"] == 41 and told["ok"] is False


def test_without_gpu_and_rocm_it_is_pip(machine: Machine) -> None:
    """Byte for byte on stdout, against pip itself (the one in the tests' own environment) with the same settings."""
    bare = {**machine.env, "ROCMPIP_GFX": "", "ROCMPIP_ROCM": "", "PIP_NO_CACHE_DIR": "1"}
    target = ["--python", str(machine.python)]
    theirs = subprocess.run(
        [sys.executable, "-m", "pip", *target, "install", "requests"], env=bare, capture_output=True, text=True, check=True
    )
    subprocess.run(
        [sys.executable, "-m", "pip", *target, "uninstall", "-qy", "requests", "idna", "urllib3"], env=bare, check=True
    )
    for name in machine.freeze():
        subprocess.run([sys.executable, "-m", "pip", *target, "uninstall", "-qy", name], env=bare, check=True)
    ours = rocmpip(*target, "install", "requests", env=bare, cwd=machine.folder)
    assert ours.returncode == 0
    speeds = re.compile(r"\d+(\.\d+)? [kM]B/s")
    assert speeds.sub("", ours.stdout) == speeds.sub("", theirs.stdout)


def test_requirement_files_stay_as_they_are(machine: Machine) -> None:
    folder = machine.folder / "reqs"
    folder.mkdir()
    pytorch = machine.env["ROCMPIP_PYTORCH_URL"].rstrip("/")
    (folder / "base.txt").write_text(f"--index-url {machine.env['PIP_INDEX_URL']}\neinops\n")
    (folder / "top.txt").write_text(f"-r base.txt\n--extra-index-url {pytorch}/whl/cu121\ntorch==2.9.1+cu121\n")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    machine.run("install", "-q", "-r", "reqs/top.txt")
    assert machine.freeze()["torch"] == "2.9.1+rocm6.4" and "einops" in machine.freeze()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_two_at_once_do_not_harm_each_other(machine: Machine) -> None:
    words = [sys.executable, "-m", "rocmpip", "install", "-q", "--python", str(machine.python), "torch", "flash-attn"]
    both = [
        subprocess.Popen(
            words, env=machine.env, cwd=machine.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=120)[0] for process in both]
    codes = [process.returncode for process in both]
    assert 0 in codes, outputs
    machine.run("install", "-q", "torch", "flash-attn")
    assert "No broken requirements" in machine.check()
