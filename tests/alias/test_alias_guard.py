"""`rocmpip guard` and real pips: nothing but rocmpip can swap the ROCm torch family."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rocmpip.demo.wheels import Wheel
from tests.support.commands import envelope, rocmpip
from tests.support.environments import installed, put, site_packages
from tests.support.replica import Replica

pytestmark = pytest.mark.pip

HELD = ["pytorch-triton-rocm==3.5.1", "pytorch-triton==3.5.1+rocm6.4", "torch==2.9.1+rocm6.4", "torchaudio==2.9.1+rocm6.4",
        "torchvision==0.24.1+rocm6.4", "triton==3.5.1+rocm6.4"]  # fmt: skip


class Environment:
    """An environment with a ROCm torch (and pip) on a machine with a MI300X, with the replica as its only index."""

    def __init__(self, replica: Replica, python: Path, folder: Path, sysroot: Path) -> None:
        self.python, self.folder, self.prefix = python, folder, python.parent.parent
        self.env = replica.env(folder, ROCMPIP_SYSROOT=str(sysroot), XDG_CONFIG_HOME=str(folder / "config"))
        self.env.pop("PIP_CONFIG_FILE", None)
        put(python, Wheel("torch", "2.9.1+rocm6.4", ("pytorch-triton-rocm==3.5.1",)), Wheel("pytorch-triton-rocm", "3.5.1"))
        for left in site_packages(python).glob("*torch*/INSTALLER"):
            left.unlink()  # not in RECORD: it would outlive the package

    @property
    def conf(self) -> Path:
        return self.prefix / "pip.conf"

    @property
    def constraints(self) -> Path:
        return self.prefix / "rocmpip-guard.txt"

    def guard(self, word: str, code: int = 0, **env: str) -> dict[str, Any]:
        done = rocmpip("guard", word, "--python", str(self.python), "--json", env={**self.env, **env}, cwd=self.folder)
        assert done.returncode == code, done.stdout + done.stderr
        return envelope(done)

    def on(self) -> dict[str, Any]:
        result: dict[str, Any] = self.guard("on")["result"]
        return result

    def status(self, **env: str) -> dict[str, Any]:
        result: dict[str, Any] = self.guard("status", 0, **env)["result"]
        return result

    def pip(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The environment's own pip, as an IDE or a notebook starts it."""
        return subprocess.run(
            [self.python, "-m", "pip", *words], env=self.env, cwd=self.folder, capture_output=True, text=True, check=False,
            timeout=120,
        )  # fmt: skip

    def rocmpip(self, *words: str) -> subprocess.CompletedProcess[str]:
        return rocmpip("--python", str(self.python), *words, env=self.env, cwd=self.folder)


@pytest.fixture
def place(replica: Replica, venv: Callable[..., Path], tmp_path: Path, sysroot: Callable[..., Path]) -> Environment:
    return Environment(replica, venv(with_pip=True), tmp_path, sysroot(["mi300x"], "6.4.0-47"))


def test_on_holds_what_is_installed_and_what_would_come_as_cuda(place: Environment) -> None:
    result = place.on()
    assert result["on"] and result["effective"]
    assert result["holds"] == HELD
    assert result["conf"] == str(place.conf)
    assert place.constraints.parent == place.prefix


def test_plain_pip_cannot_swap_torch(place: Environment) -> None:
    place.on()
    for words in (["torch"], ["-U", "torch"], ["--upgrade", "--upgrade-strategy", "eager", "torch"]):
        done = place.pip("install", *words)
        assert done.returncode == 0, done.stderr
        assert "already satisfied: torch" in done.stdout
    for words in (["torch==2.8.0"], ["--force-reinstall", "torch"], ["torchvision"], ["torchaudio"], ["triton"]):
        done = place.pip("install", *words)
        assert done.returncode == 1, (words, done.stdout)
    assert "constraint" in done.stdout + done.stderr
    assert installed(place.python)["torch"] == "2.9.1+rocm6.4"
    assert not [name for name in installed(place.python) if name.startswith("nvidia")]
    assert place.pip("install", "requests").returncode == 0


def test_without_the_guard_plain_pip_does_swap_it(place: Environment) -> None:
    """What the guard is for: the same command, and CUDA comes."""
    done = place.pip("install", "torch==2.8.0")
    assert done.returncode == 0, done.stderr
    assert "rocm" not in installed(place.python)["torch"]


def test_off_leaves_no_trace(place: Environment) -> None:
    before = sorted(path.name for path in place.prefix.iterdir())
    place.on()
    place.on()
    assert place.guard("off")["result"]["changed"] is True
    assert sorted(path.name for path in place.prefix.iterdir()) == before
    assert place.guard("off")["result"]["changed"] is False
    assert place.status()["on"] is False


def test_a_users_lines_and_constraints_stay(place: Environment) -> None:
    mine, lower = place.folder / "mine.txt", place.folder / "lower.txt"
    mine.write_text("idna<1\n")
    lower.write_text("certifi<1\n")
    (place.folder / "config/pip").mkdir(parents=True)
    (place.folder / "config/pip/pip.conf").write_text(f"[install]\nconstraint = {lower}\n")
    text = f"[global]\ntimeout = 7\nconstraint = {mine}\n"
    place.conf.write_text(text)
    assert place.on()["effective"]
    for line in text.splitlines():
        assert line in place.conf.read_text().splitlines()
    download = place.pip("download", "--dest", str(place.folder / "d"), "idna")
    assert download.returncode == 1 and "idna<1" in download.stdout + download.stderr
    install = place.pip("install", "--dry-run", "certifi")
    assert install.returncode == 1 and "certifi<1" in install.stdout + install.stderr
    place.guard("off")
    assert place.conf.read_text() == text


def test_rocmpip_is_not_held_and_the_guard_follows(place: Environment) -> None:
    place.on()
    done = place.rocmpip("install", "-q", "torch==2.8.0")
    assert done.returncode == 0, done.stderr
    assert installed(place.python)["torch"] == "2.8.0+rocm6.4"
    status = place.status()
    assert status["on"] and status["notes"] == []
    assert "torch==2.8.0+rocm6.4" in status["holds"] and "torchvision==0.23.0+rocm6.4" in status["holds"]
    assert place.pip("install", "torch==2.9.1").returncode == 1


def test_without_rocm_torch_there_is_nothing_to_guard(replica: Replica, venv: Callable[..., Path], tmp_path: Path) -> None:
    python = venv()
    put(python, Wheel("torch", "2.9.1+cu128"))
    done = rocmpip("guard", "on", "--python", str(python), "--json", env=replica.env(tmp_path), cwd=tmp_path)
    told = envelope(done)
    assert told["errors"][0]["code"] == 44
    assert "rocmpip install torch" in told["errors"][0]["hint"]
    assert not (python.parent.parent / "pip.conf").exists()


def test_a_broken_configuration_is_told_and_left_alone(place: Environment) -> None:
    place.conf.write_text("timeout = 3\n")
    told = place.guard("on", code=1)
    assert str(place.conf) in told["errors"][0]["message"]
    assert place.conf.read_text() == "timeout = 3\n"
    assert not place.constraints.exists()


def test_status_tells_what_is_wrong(place: Environment) -> None:
    place.on()
    assert "PIP_CONSTRAINT" in place.status(PIP_CONSTRAINT="x.txt")["notes"][0]
    assert place.status(PIP_CONFIG_FILE="/dev/null")["effective"] is False
    place.constraints.unlink()
    status = place.status()
    assert status["on"] is False and "is gone" in status["notes"][0]
    place.on()
    place.conf.unlink()
    assert "no longer names" in place.status()["notes"][0]
    assert place.guard("off")["result"]["changed"] is True


def test_a_folder_with_blanks(replica: Replica, tmp_path: Path, sysroot: Callable[..., Path]) -> None:
    from tests.support.environments import make_venv

    place = Environment(replica, make_venv(tmp_path / "my env", with_pip=True), tmp_path, sysroot(["mi300x"], "6.4.0-47"))
    assert place.on()["effective"]
    assert place.pip("install", "torch").returncode == 0
    assert place.pip("install", "torch==2.8.0").returncode == 1


def test_in_words(place: Environment) -> None:
    done = rocmpip("guard", "--python", str(place.python), "on", env=place.env, cwd=place.folder)
    assert done.returncode == 0
    assert done.stdout.splitlines() == HELD
    assert f"the guard of {place.prefix} is on" in done.stderr
    assert json.loads(rocmpip("guard", "status", "--json", env={**place.env, "VIRTUAL_ENV": str(place.prefix)}).stdout)["ok"]
