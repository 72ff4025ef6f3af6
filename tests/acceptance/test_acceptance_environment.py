"""The environment that is meant, and what it holds: --python in both places, AMD's per-device packages kept and told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import envelope, rocmpip
from tests.support.environments import installed
from tests.support.replica import Replica

pytestmark = pytest.mark.pip


@pytest.mark.parametrize("words", [("list", "--python"), ("--python",)])
def test_python_may_stand_before_and_after_a_command_of_pip(venv: Callable[..., Path], words: tuple[str, ...]) -> None:
    python = venv(with_pip=True)
    argv = [*words, str(python)] + ([] if words[0] == "list" else ["list"])
    freeze = ("--disable-pip-version-check", "--format=freeze")
    done = rocmpip(*argv, *freeze)
    assert done.returncode == 0, done.stderr
    assert [line.partition("==")[0] for line in done.stdout.split()] == ["pip"]
    argv = [*(word + "=" + str(python) if word == "--python" else word for word in words)]
    assert rocmpip(*argv, *([] if words[0] == "list" else ["list"]), *freeze).stdout == done.stdout


def test_amds_packages_of_one_gpu_are_installed_and_kept(replica: Replica, venv: Callable[..., Path], tmp_path: Path) -> None:
    """torch comes along from AMD's multi-arch index: with the packages of this GPU, its ``rocm`` built for it and not by a guess."""
    (tmp_path / "machine").mkdir()
    env = replica.env(tmp_path, ROCMPIP_SYSROOT=str(tmp_path / "machine"), ROCMPIP_GFX="gfx1031", ROCMPIP_ROCM="7.2")
    python = venv()
    done = envelope(rocmpip("install", "--json", "--python", str(python), "accelerate", env=env))
    held = installed(python)
    assert held["torch"].endswith("+rocm7.14.0")
    assert held["amd-torch-device-gfx1031"] == held["torch"]
    assert [name for name in held if name.startswith("rocm-sdk-device-")] == ["rocm-sdk-device-gfx1031"]
    assert "rocm 7.14.0" in done["result"]["done"]
    again = envelope(rocmpip("install", "--dry-run", "--json", "--python", str(python), "torch", "torchvision", env=env))
    rows = {row["name"]: row for row in again["result"]["plan"]}
    assert {name: row["action"] for name, row in rows.items() if "device" in name or name == "torch"} == {
        "torch": "keep",
        "amd-torch-device-gfx1031": "keep",
        "rocm-sdk-device-gfx1031": "keep",
        "amd-torchvision-device-gfx1031": "install",
    }
    assert "required by torch" in rows["amd-torch-device-gfx1031"]["because"]
    assert not [note for note in again["result"]["notes"] if "has no extra" in note]
