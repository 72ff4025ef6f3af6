"""What a lock has to do with its machine: when it no longer fits, and when it need not be worked out again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmpip.demo.sysroot import write_sysroot
from rocmpip.lock import pylock, text
from tests.support.commands import rocmpip
from tests.support.kfd import GPUS
from tests.support.replica import Replica

pytestmark = pytest.mark.pip


class Machine:
    """A simulated machine whose driver and ROCm can be exchanged in place."""

    def __init__(self, replica: Replica, python: Path, folder: Path) -> None:
        self.replica, self.python, self.folder = replica, python, folder
        self.root = folder / "machine"
        self.env = replica.env(folder, ROCMPIP_SYSROOT=str(self.root))
        self.set()

    def set(self, gpu: str = "mi300x", rocm: str = "6.4.0-47", driver: str = "6.10.5") -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        write_sysroot(self.root, [GPUS[gpu]], rocm, driver=driver)

    def lock(self, *words: str, code: int = 0, **env: str) -> tuple[str, int]:
        """(stderr, how many requests it took)."""
        before = len(self.replica.requests())
        done = rocmpip(
            "lock", "--python", str(self.python), "torch", "flash-attn", "-o", "out.txt", *words,
            env={**self.env, **env}, cwd=self.folder,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stderr, len(self.replica.requests()) - before


@pytest.fixture
def machine(replica: Replica, venv: Callable[..., Path], tmp_path: Path) -> Machine:
    return Machine(replica, venv(), tmp_path)


def test_a_lock_no_longer_fits_another_driver_rocm_or_gpu(machine: Machine) -> None:
    machine.lock()
    coordinates = text.read((machine.folder / "out.txt").read_text()).coordinates
    assert (coordinates["gfx"], coordinates["driver"]) == ("gfx942", "6.10.5")
    assert coordinates["rocm"].startswith("6.4")
    machine.lock("--check")
    machine.set(driver="6.12.12")
    told, _ = machine.lock("--check", code=43)
    assert "the driver: the lock is for 6.10.5, here is 6.12.12" in told
    machine.set(rocm="7.0.0-1")
    told, _ = machine.lock("--check", code=43)
    assert "ROCm: the lock is for 6.4" in told and "torch: 2.9.1+rocm6.4 is locked" in told
    machine.set(gpu="mi250x")
    told, _ = machine.lock("--check", code=43)
    assert "the GPU: the lock is for gfx942, here is gfx90a" in told


def test_the_same_lock_again_asks_nobody_until_the_machine_or_a_recipe_changes(machine: Machine) -> None:
    assert machine.lock()[1] > 0
    content = (machine.folder / "out.txt").read_bytes()
    assert machine.lock()[1] == 0
    (machine.folder / "out.txt").unlink()
    assert machine.lock()[1] == 0
    assert (machine.folder / "out.txt").read_bytes() == content
    machine.set(driver="6.12.12")
    assert machine.lock()[1] > 0
    assert machine.lock()[1] == 0
    machine.set(rocm="7.0.0-1")
    assert machine.lock()[1] > 0
    assert machine.lock()[1] == 0
    recipes = Path(machine.env["ROCMPIP_CONFIG"]).parent / "recipes"
    recipes.mkdir()
    (recipes / "flash-attn.toml").write_text(
        'schema = 1\n\n[package]\nname = "flash-attn"\nextends = "flash-attn"\n\n[build.env]\nMAX_JOBS = "1"\n'
    )
    assert machine.lock()[1] > 0
    assert machine.lock()[1] == 0
    assert machine.lock(MAX_JOBS="7")[1] > 0  # a variable that a recipe names


@pytest.mark.parametrize(
    ("words", "python", "platform"),
    [
        (("--python-version", "3.10"), "3.10", "linux_x86_64"),
        (("--python-version", "313"), "3.13", "linux_x86_64"),
        (("--python-version", "3.14", "--platform", "manylinux_2_28_x86_64"), "3.14", "manylinux_2_28_x86_64"),
    ],
)
def test_another_python_without_a_gpu_at_hand(machine: Machine, words: tuple[str, ...], python: str, platform: str) -> None:
    write_sysroot(machine.folder / "laptop", [], "")
    laptop = {"ROCMPIP_SYSROOT": str(machine.folder / "laptop")}
    machine.lock("--gfx", "gfx942", "--rocm", "6.4", "-o", "pylock.toml", *words, **laptop)
    written = pylock.read((machine.folder / "pylock.toml").read_text())
    assert written.pins["torch"] == "2.9.1+rocm6.4"
    assert (written.coordinates["python"], written.coordinates["platform"]) == (python, platform)
    tags = f"cp{python.replace('.', '')}-cp{python.replace('.', '')}-manylinux_2_28_x86_64.whl"
    assert tags in (machine.folder / "pylock.toml").read_text()
