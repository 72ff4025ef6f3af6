"""``rocmpip detect`` as a whole: the contract of its JSON, its text, its errors, and what it may import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from machine_trees import (
    MI250X_DIE0,
    MI250X_DIE1,
    MI300X,
    RAPHAEL,
    RX7900XTX,
    RX9070XT,
    STRIX_HALO,
    UNKNOWN,
    hip_header,
    machine,
    pci,
    rocm,
    write,
)

from rocmpip.app.detect import detect_platform, detect_result, fast_main
from rocmpip.model.errors import BadConfiguration
from rocmpip.model.machine import InstalledDist
from rocmpip.report.detected import render
from rocmpip.report.platform import build_label

VENV_VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A virtual environment by its folders alone."""
    root = tmp_path / "venv"
    write(root, "pyvenv.cfg", f"home = {sys.base_prefix}/bin\nversion = {VENV_VERSION}.1\n")
    write(root, "bin/python", "#!/bin/sh\nexit 1\n").chmod(0o755)
    (root / f"lib/python{VENV_VERSION}/site-packages").mkdir(parents=True)
    return root


def install(venv: Path, name: str, version: str) -> Path:
    return write(
        venv,
        f"lib/python{VENV_VERSION}/site-packages/{name}-{version}.dist-info/METADATA",
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
    )


@pytest.fixture
def env(tmp_path: Path, venv: Path) -> dict[str, str]:
    root = tmp_path / "machine"
    root.mkdir()
    home = tmp_path / "home"
    home.mkdir()
    return {"ROCMPIP_SYSROOT": str(root), "HOME": str(home), "VIRTUAL_ENV": str(venv), "PATH": os.environ["PATH"]}


@pytest.fixture
def tree(env: dict[str, str]) -> Path:
    return Path(env["ROCMPIP_SYSROOT"])


def result(env: dict[str, str], **options: Any) -> dict[str, Any]:
    found = detect_result(env=env, **options)
    assert json.loads(json.dumps(found)) == found
    return found


def test_the_contract(env: dict[str, str], tree: Path, venv: Path) -> None:
    machine(tree, MI300X)
    rocm(tree)
    (tree / "opt/rocm").symlink_to("/opt/rocm-6.4.0")
    write(tree, "/sys/module/amdgpu/version", "6.12.12\n")
    install(venv, "torch", "2.9.1+rocm6.4")
    found = result(env)
    gpu = found["gpus"][0]
    assert {key: gpu[key] for key in ("gfx", "pci_id", "node", "integrated", "source")} == {
        "gfx": "gfx942",
        "pci_id": "1002:74a1",
        "node": 1,
        "integrated": False,
        "source": "/sys/class/kfd/kfd/topology/nodes/1/properties",
    }
    assert "MI300X" in gpu["name"]
    assert found["gfx_targets"] == ["gfx942"]
    assert [{key: row[key] for key in ("version", "path", "source", "chosen")} for row in found["rocm"]] == [
        {"version": "6.4.0", "path": "/opt/rocm", "source": "/opt/rocm/.info/version", "chosen": True}
    ]
    assert found["driver"] == "6.12.12"
    assert found["kernel"] == "6.8.0-45-generic"
    assert {key: found["python"][key] for key in ("version", "kind", "source")} == {
        "version": f"{VENV_VERSION}.1",
        "kind": "venv",
        "source": "VIRTUAL_ENV",
    }
    assert found["python"]["prefix"] == str(venv)
    assert [(row["name"], row["version"], row["build"]) for row in found["torch"]] == [("torch", "2.9.1+rocm6.4", "rocm6.4")]
    assert found["notes"] == []
    assert str(tree) not in json.dumps(found)


@pytest.mark.parametrize(
    ("gpus", "targets", "nodes"),
    [
        ([MI300X], ["gfx942"], 1),
        ([{**MI300X, "location_id": 4096 + number, "num_xcc": 1} for number in range(8)], ["gfx942"], 8),
        ([MI250X_DIE0, MI250X_DIE1], ["gfx90a"], 2),
        ([STRIX_HALO], ["gfx1151"], 1),
        ([RX7900XTX, RAPHAEL], ["gfx1100"], 2),
        ([RAPHAEL, RX7900XTX], ["gfx1100"], 2),
        ([RX7900XTX, RX9070XT], ["gfx1100", "gfx1201"], 2),
        ([RX9070XT], ["gfx1201"], 1),
        ([UNKNOWN], ["gfx132f"], 1),
        ([RAPHAEL], ["gfx1036"], 1),
    ],
)
def test_machines(env: dict[str, str], tree: Path, gpus: list[dict[str, int]], targets: list[str], nodes: int) -> None:
    machine(tree, *gpus)
    found = result(env)
    assert (found["gfx_targets"], len(found["gpus"])) == (targets, nodes)
    assert all(gfx in render(found) for gfx in targets)


def test_an_empty_machine(env: dict[str, str]) -> None:
    found = result(env)
    assert (found["gpus"], found["gfx_targets"], found["rocm"], found["driver"]) == ([], [], [], None)
    assert found["notes"] == []
    assert "no AMD GPU and no ROCm: rocmpip works as pip does here" in render(found)


def test_rocm_without_a_gpu_asks_for_gfx(env: dict[str, str], tree: Path) -> None:
    hip_header(tree, "/usr", 5, 2)
    text = render(result(env))
    assert "--gfx" in text
    assert "* 5.2  /usr  /usr/include/hip/hip_version.h" in text


def test_pci_ids_are_looked_up_in_the_table(env: dict[str, str], tree: Path) -> None:
    pci(tree, "0000:0c:00.0", "0x74a1", "0x120000")
    assert result(env)["gfx_targets"] == ["gfx942"]


@pytest.mark.parametrize("source", ["variable", "option"])
def test_overrides(env: dict[str, str], tree: Path, source: str) -> None:
    machine(tree, MI300X)
    rocm(tree)
    if source == "variable":
        found = result({**env, "ROCMPIP_GFX": "gfx90a;gfx1100", "ROCMPIP_ROCM": "7.2"})
        names = ("ROCMPIP_GFX", "ROCMPIP_ROCM")
    else:
        found = result({**env, "ROCMPIP_GFX": "gfx906", "ROCMPIP_ROCM": "5.7"}, gfx=("gfx90a", "gfx1100"), rocm="7.2")
        names = ("--gfx", "--rocm")
    assert (found["gfx_targets"], found["gfx_source"]) == (["gfx90a", "gfx1100"], names[0])
    assert [(row["version"], row["path"], row["source"], row["chosen"]) for row in found["rocm"]] == [
        ("7.2", None, names[1], True),
        ("6.4.0", "/opt/rocm-6.4.0", "/opt/rocm-6.4.0/.info/version", False),
    ]
    assert [gpu["gfx"] for gpu in found["gpus"]] == ["gfx942"]


def test_settings_files_come_after_the_environment(env: dict[str, str], tree: Path, tmp_path: Path) -> None:
    machine(tree, MI300X)
    write(Path(env["HOME"]), ".config/rocmpip/config.toml", 'gfx = ["gfx90a"]\nrocm = "6.3"\n')
    found = result(env)
    assert found["gfx_targets"] == ["gfx90a"]
    assert found["gfx_source"].endswith("config.toml")
    assert [row["version"] for row in found["rocm"] if row["chosen"]] == ["6.3"]
    assert result({**env, "ROCMPIP_GFX": "gfx942"})["gfx_targets"] == ["gfx942"]
    assert result(env, gfx=("gfx1100",), rocm="7.2")["gfx_targets"] == ["gfx1100"]


def test_a_project_s_settings(env: dict[str, str], tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tree, MI300X)
    project = tmp_path / "project"
    write(project, "pyproject.toml", '[tool.rocmpip]\ngfx = ["gfx1100"]\n')
    (project / "src").mkdir()
    monkeypatch.chdir(project / "src")
    assert result(env)["gfx_targets"] == ["gfx1100"]
    write(project, "pyproject.toml", '[project]\nname = "x"\n')
    assert result(env)["gfx_targets"] == ["gfx942"]


def test_rocm_from_pip(env: dict[str, str], venv: Path) -> None:
    install(venv, "rocm_sdk_core", "7.14.0")
    site = venv / f"lib/python{VENV_VERSION}/site-packages"
    (site / "_rocm_sdk_core").mkdir()
    rows = result(env)["rocm"]
    assert [(row["version"], row["path"], row["kind"], row["chosen"]) for row in rows] == [
        ("7.14.0", str(site / "_rocm_sdk_core"), "pip", True)
    ]
    assert rows[0]["source"].endswith("rocm_sdk_core-7.14.0.dist-info")


def test_the_torch_family(env: dict[str, str], venv: Path) -> None:
    for name, version in (("triton", "3.5.1"), ("torchvision", "0.24.1+cpu"), ("torch", "2.9.1+cu128"), ("numpy", "2.0")):
        install(venv, name, version)
    assert [(row["name"], row["build"]) for row in result(env)["torch"]] == [
        ("torch", "cu128"),
        ("torchvision", "cpu"),
        ("triton", "unlabelled"),
    ]


@pytest.mark.parametrize(
    ("name", "version", "label"),
    [
        ("torch", "2.9.1+rocm6.4", "rocm6.4"),
        ("torch", "2.13.0+rocm10.1.0a20260828", "rocm10.1.0"),
        ("triton", "3.7.1+git0263a6a6.rocm7.14.0", "rocm7.14.0"),
        ("torch", "2.9.1+cu128", "cu128"),
        ("torch", "2.9.1+cpu", "cpu"),
        ("torch", "2.9.1", "unlabelled"),
        ("triton-rocm", "3.8.0", "rocm"),
    ],
)
def test_build_labels(name: str, version: str, label: str) -> None:
    assert build_label(InstalledDist(name, version)) == label


def test_an_environment_that_nobody_named_may_be_broken(env: dict[str, str], tree: Path) -> None:
    machine(tree, MI300X)
    found = result({**env, "VIRTUAL_ENV": "/nowhere/at/all"})
    assert found["python"] is None
    assert found["gfx_targets"] == ["gfx942"]
    assert "no target environment" in found["notes"][0]
    assert "none found" in render(found)


def test_the_conductors_door(env: dict[str, str], tree: Path, venv: Path) -> None:
    machine(tree, RX7900XTX, RAPHAEL)
    install(venv, "torch", "2.9.1+rocm6.4")
    platform, target, dists = detect_platform(env=env, programs=False)
    assert platform.gfx_targets == ("gfx1100",)
    assert target is not None and target.prefix == str(venv)
    assert [dist.name for dist in dists] == ["torch"]


def test_a_root_folder_that_is_none(env: dict[str, str]) -> None:
    with pytest.raises(BadConfiguration, match="ROCMPIP_SYSROOT"):
        detect_result(env={**env, "ROCMPIP_SYSROOT": "/nowhere/at/all"})


def test_text(env: dict[str, str], tree: Path, venv: Path) -> None:
    machine(tree, *[{**MI300X, "location_id": 4096 * (1 + number)} for number in range(4)], cpus=2)
    rocm(tree, "/opt/rocm", "7.2.0-1\n")
    rocm(tree)
    install(venv, "torch", "2.9.1+cu128")
    lines = render(result({**env, "ROCR_VISIBLE_DEVICES": "0,1"})).splitlines()
    assert lines[:3] == [
        "GPUs",
        "  2 x gfx942  Instinct MI300X           1002:74a1  nodes 2-3  /sys/class/kfd/kfd/topology/nodes/N/properties",
        "  2 x gfx942  Instinct MI300X (hidden)  1002:74a1  nodes 4-5  /sys/class/kfd/kfd/topology/nodes/N/properties",
    ]
    assert "  * 7.2.0  /opt/rocm        /opt/rocm/.info/version" in lines
    assert "    6.4.0  /opt/rocm-6.4.0  /opt/rocm-6.4.0/.info/version" in lines
    assert any(line.startswith("  torch  2.9.1+cu128  cu128  ") for line in lines)
    assert lines[-1] == "  - ROCR_VISIBLE_DEVICES=0,1: 2 of 4 GPUs count (gfx942 node 2, gfx942 node 3)"


def test_text_holds_no_terminal_escapes(env: dict[str, str], tree: Path) -> None:
    machine(tree, MI300X)
    text = render(result({**env, "ROCM_PATH": "/x\x1b[31m", "HIP_VISIBLE_DEVICES": "\x1b]0;title\x07"}))
    assert "\x1b" not in text and "\x07" not in text


def run(env: dict[str, str], *argv: str, code: str = "") -> subprocess.CompletedProcess[str]:
    program = ["-c", code] if code else ["-m", "rocmpip"]
    return subprocess.run([sys.executable, *program, *argv], env=env, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_prints_one_envelope(env: dict[str, str], tree: Path) -> None:
    machine(tree, MI300X)
    done = run(env, "detect", "--json")
    envelope = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert (envelope["command"], envelope["ok"], envelope["errors"], envelope["schema"]) == ("detect", True, [], 1)
    assert envelope["result"]["gfx_targets"] == ["gfx942"]


@pytest.mark.parametrize("place", ["before", "after"])
def test_python_before_and_after_the_command(env: dict[str, str], venv: Path, place: str) -> None:
    del env["VIRTUAL_ENV"]
    option = ["--python", str(venv / "bin/python")]
    argv = [*option, "detect", "--json"] if place == "before" else ["detect", *option, "--json"]
    envelope = json.loads(run(env, *argv).stdout)
    assert envelope["result"]["python"]["prefix"] == str(venv)
    assert envelope["result"]["python"]["source"] == "--python"


@pytest.mark.parametrize(
    ("argv", "more", "code", "part"),
    [
        (["--gfx", "sm_90"], {}, 2, "--gfx: 'sm_90'"),
        (["--rocm=latest"], {}, 2, "--rocm: 'latest'"),
        ([], {"ROCMPIP_GFX": "banana"}, 45, "ROCMPIP_GFX: 'banana'"),
        ([], {"ROCMPIP_ROCM": "six"}, 45, "ROCMPIP_ROCM: 'six'"),
        (["--bogus"], {}, 2, "bogus"),
        (["--gfx"], {}, 2, "--gfx"),
        (["surplus"], {}, 2, "surplus"),
        ([], {"ROCMPIP_SYSROOT": "/nowhere/at/all"}, 45, "ROCMPIP_SYSROOT"),
    ],
)
def test_wrong_usage(env: dict[str, str], argv: list[str], more: dict[str, str], code: int, part: str) -> None:
    done = run({**env, **more}, "detect", *argv, "--json")
    envelope = json.loads(done.stdout)
    assert done.returncode == code
    assert (envelope["ok"], envelope["errors"][0]["code"], envelope["result"]) == (False, code, {})
    assert part in envelope["errors"][0]["message"]
    plain = run({**env, **more}, "detect", *argv)
    assert (plain.returncode, plain.stdout) == (code, "")
    assert part in plain.stderr and "Traceback" not in plain.stderr


def test_the_text_survives_a_poor_terminal(env: dict[str, str], tree: Path) -> None:
    machine(tree, MI300X)
    done = run({**env, "PYTHONIOENCODING": "ascii", "ROCM_PATH": "/opt/größe"}, "detect")
    assert (done.returncode, done.stderr) == (0, "")
    assert "gfx942" in done.stdout


def test_a_reader_that_goes_away_is_no_error(env: dict[str, str], tree: Path) -> None:
    machine(tree, *[MI300X] * 8)
    command = f"'{sys.executable}' -m rocmpip detect --json | head -c 1 > /dev/null"
    done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""


def test_a_working_directory_that_is_gone(env: dict[str, str], tree: Path, tmp_path: Path) -> None:
    machine(tree, MI300X)
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f"rmdir '{gone}' && exec '{sys.executable}' -P -m rocmpip detect --json"
    if sys.version_info < (3, 11):
        command = command.replace(" -P", "")
    done = subprocess.run(["sh", "-c", command], cwd=gone, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"]["gfx_targets"] == ["gfx942"]


def test_what_is_for_click_is_left_to_click() -> None:
    assert fast_main(["detect", "--help"]) is None
    assert fast_main(["-h"]) is None
    assert fast_main(["detect", "--gfx"]) is None
    assert fast_main(["detect", "detect"]) is None


def test_help(env: dict[str, str]) -> None:
    done = run(env, "detect", "--help")
    assert done.returncode == 0
    assert all(option in done.stdout for option in ("--gfx", "--rocm", "--python", "--json"))


HEAVY = {"click", "packaging", "httpx", "rich", "importlib.metadata", "subprocess", "pathlib", "argparse"}
HEAVY |= {"tomllib", "tomli", "dataclasses", "inspect", "asyncio", "http", "tempfile", "urllib.parse", "selectors"}


def test_what_detection_imports(env: dict[str, str], tree: Path) -> None:
    """Modules, not milliseconds: the same count on every machine."""
    machine(tree, MI300X)
    rocm(tree)
    code = (
        "import sys; before = set(sys.modules); from rocmpip.app.detect import fast_main; "
        "code = fast_main(['detect', '--json']); "
        "print('\\n'.join(sorted(set(sys.modules) - before)), file=sys.stderr); sys.exit(code)"
    )
    done = run(env, code=code)
    assert done.returncode == 0
    modules = set(done.stderr.split())
    assert modules & HEAVY == set()
    ours = {name for name in modules if name.startswith("rocmpip")}
    assert len(ours) <= 34, sorted(ours)
    assert len(modules - ours) <= 56, sorted(modules - ours)
