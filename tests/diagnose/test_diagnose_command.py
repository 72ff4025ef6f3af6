"""``rocmpip diagnose`` as a person runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import envelope, rocmpip

LOG = "Building wheel for my-attn (setup.py)\n\x1b[31mhipcc: error: cannot find ROCm device library\x1b[0m\nninja: build stopped: subcommand failed.\n"


@pytest.fixture
def machine(clean_env: dict[str, str], sysroot: Callable[..., Path], tmp_path: Path) -> dict[str, str]:
    """A node with one MI300X and ROCm 6.4, and a state folder of its own."""
    root = sysroot(gpus=["mi300x"], rocm="6.4.0-47")
    return {**clean_env, "ROCMPIP_SYSROOT": str(root), "ROCMPIP_STATE_DIR": str(tmp_path / "state")}


def test_words(machine: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    done = rocmpip("diagnose", str(tmp_path / "log"), env=machine)
    assert done.returncode == 0, done.stderr
    assert "line 2: hipcc: error: cannot find ROCm device library" in done.stdout
    assert "device-libs-not-found" in done.stdout
    assert "rocmpip doctor" in done.stdout
    assert "\x1b" not in done.stdout
    assert not (tmp_path / "state").exists(), "reading changes nothing"


def test_json(machine: dict[str, str], tmp_path: Path) -> None:
    log = "clang++: error: cannot determine amdgcn architecture: amdgpu-arch: ; consider passing it via '--offload-arch'\n"
    (tmp_path / "log").write_text(log)
    told = envelope(rocmpip("diagnose", "--json", "--package", "my-attn", str(tmp_path / "log"), env=machine))
    (found,) = told["result"]["findings"]
    assert set(found) == {"kind", "family", "confidence", "line", "evidence", "cause", "fix", "source"}
    assert (found["kind"], found["family"], found["line"]) == ("arch-autodetect-without-gpu", "gpu-arch", 1)
    assert found["fix"] == ["rocmpip install --gfx gfx942 my-attn"]


def test_the_package_is_read_from_the_log(machine: dict[str, str]) -> None:
    log = LOG.replace("cannot find ROCm device library", "cannot determine amdgcn architecture")
    command = [sys.executable, "-m", "rocmpip", "diagnose", "-", "--json"]
    done = subprocess.run(command, input=log, env=machine, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["result"]["findings"][0]["fix"] == ["rocmpip install --gfx gfx942 my-attn"]


def test_unknown_and_good_logs(machine: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "log").write_text("ValueError: the flux is not capacitated\n")
    done = rocmpip("diagnose", str(tmp_path / "log"), env=machine)
    assert done.returncode == 0
    assert done.stdout.startswith("unknown")
    assert "1  ValueError: the flux is not capacitated" in done.stdout
    (tmp_path / "good").write_text("Successfully installed torch-2.9.1+rocm6.4\n")
    assert "ends well" in rocmpip("diagnose", str(tmp_path / "good"), env=machine).stdout
    (tmp_path / "empty").write_text("")
    assert "empty" in rocmpip("diagnose", str(tmp_path / "empty"), env=machine).stdout


def test_bad_input_in_words(machine: dict[str, str], tmp_path: Path) -> None:
    for argv, code in (
        ([str(tmp_path / "none")], 1),
        ([str(tmp_path)], 1),
        ([str(tmp_path / "a\0b").replace("\0", "?")], 1),
        ([], 2),
        ([str(tmp_path / "log"), "--package", "a; rm -rf"], 2),
        ([str(tmp_path / "log"), "--rules", str(tmp_path / "none.toml")], 45),
    ):
        (tmp_path / "log").write_text("x\n")
        told = envelope(rocmpip("diagnose", "--json", *argv, env=machine))
        assert told["errors"][0]["code"] == code, argv


def test_credentials_in_a_log_are_not_shown(machine: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "log").write_text(
        "ERROR: Could not find a version that satisfies the requirement torch (from versions: none) https://me:hunter2@host/simple\n"
    )
    for option in ((), ("--json",)):
        done = rocmpip("diagnose", str(tmp_path / "log"), *option, env=machine)
        assert "hunter2" not in done.stdout + done.stderr
        assert "python-has-no-wheel" in done.stdout


def test_a_users_rule(machine: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "log").write_text("ValueError: the flux is not capacitated\n")
    rule = '[[rule]]\nkind = "flux"\nfamily = "flow"\nline = ["flux is not"]\ncause = "No flux."\nsource = "us"\n'
    (tmp_path / "mine.toml").write_text(rule)
    done = rocmpip("diagnose", str(tmp_path / "log"), "--rules", str(tmp_path / "mine.toml"), env=machine)
    assert "cause    No flux." in done.stdout


def test_reading_changes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    log = tmp_path / "x.log"
    log.write_text("RuntimeError: HIP error: invalid device function\n")
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "ROCMPIP_SYSROOT": str(home)}
    for words in (("diagnose", str(log)), ("journal", "list"), ("journal", "search", "hip"), ("journal", "export", "-")):
        done = subprocess.run([sys.executable, "-m", "rocmpip", *words], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert list(home.rglob("*")) == []
