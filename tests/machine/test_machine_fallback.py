"""Machines whose sysfs has no answer: rocminfo, amd-smi, PCI ids, WSL2. And when programs must not run at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from machine_trees import MI300X, NODES, hip_header, machine, node, pci, program, rocm, write

from rocmpip.machine import programs
from rocmpip.machine.fallback import read_amd_smi, read_rocminfo
from rocmpip.machine.probe import probe
from rocmpip.model.machine import Evidence

ROCMINFO = """\
ROCk module version 6.8.5 is loaded
=====================
HSA System Attributes
=====================
Runtime Version:         1.14
==========
HSA Agents
==========
*******
Agent 1
*******
  Name:                    AMD EPYC 7763 64-Core Processor
  Uuid:                    CPU-XX
  Marketing Name:          AMD EPYC 7763 64-Core Processor
  Device Type:             CPU
  Node:                    0
  Chip ID:                 0(0x0)
*******
Agent 2
*******
  Name:                    gfx90a
  Uuid:                    GPU-5b8c1d2e3f4a5b6c
  Marketing Name:          AMD Instinct MI250X
  Device Type:             GPU
  Node:                    4
  Chip ID:                 29704(0x7408)
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: COARSE GRAINED
  ISA Info:
    ISA 1
      Name:                    amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-
      Machine Models:          HSA_MACHINE_MODEL_LARGE
    ISA 2
      Name:                    amdgcn-amd-amdhsa--gfx9-generic:sramecc+:xnack-
*** Done ***
"""

AMD_SMI = [
    {
        "gpu": 0,
        "asic": {
            "market_name": "AMD Instinct MI300X",
            "vendor_id": "0x1002",
            "device_id": "0x74a1",
            "target_graphics_version": "gfx942",
        },
        "bus": {"bdf": "0000:0c:00.0"},
    }
]

IDS = {"744c": "gfx1100", "74a1": "gfx942", "164e": "gfx1036"}


def look(root: Path, env: dict[str, str] | None = None, *, run: bool = True, limit: float = 5.0) -> Evidence:
    return probe(sysroot=str(root), env=env or {}, programs=run, time_limit=limit, gfx_of_pci=IDS.get)


def answer(root: Path, path: str, text: str, code: int = 0) -> None:
    write(root, path + ".txt", text)
    program(root, path, f"cat {root}{path}.txt\nexit {code}\n")


def test_rocminfo_answers(tmp_path: Path) -> None:
    answer(tmp_path, "/opt/rocm/bin/rocminfo", ROCMINFO)
    gpus = look(tmp_path).gpus
    assert [(gpu.gfx, gpu.name, gpu.pci_id, gpu.node, gpu.features, gpu.uuid) for gpu in gpus] == [
        ("gfx90a", "AMD Instinct MI250X", "1002:7408", 4, ("sramecc+", "xnack-"), "GPU-5b8c1d2e3f4a5b6c")
    ]
    assert gpus[0].source == "/opt/rocm/bin/rocminfo"


def test_rocminfo_of_another_root_is_found(tmp_path: Path) -> None:
    rocm(tmp_path, "/opt/rocm-6.2.4", "6.2.4-1\n")
    answer(tmp_path, "/opt/rocm-6.2.4/bin/rocminfo", ROCMINFO)
    assert look(tmp_path).gpus[0].source == "/opt/rocm-6.2.4/bin/rocminfo"


def test_rocminfo_is_asked_without_filters_and_overrides(tmp_path: Path) -> None:
    program(tmp_path, "/usr/bin/rocminfo", f"env > {tmp_path}/said\n")
    filters = {"HIP_VISIBLE_DEVICES": "0", "ROCR_VISIBLE_DEVICES": "", "HSA_OVERRIDE_GFX_VERSION_1": "10.3.0", "KEPT": "1"}
    look(tmp_path, {**filters, "PATH": os.environ["PATH"]})
    said = (tmp_path / "said").read_text()
    assert "KEPT=1" in said
    assert "VISIBLE_DEVICES" not in said and "HSA_OVERRIDE" not in said


def test_amd_smi_answers_where_rocminfo_does_not(tmp_path: Path) -> None:
    program(tmp_path, "/usr/bin/rocminfo", "echo ROCk module is NOT loaded, possibly no GPU devices\nexit 1\n")
    answer(tmp_path, "/usr/bin/amd-smi", json.dumps(AMD_SMI))
    evidence = look(tmp_path)
    assert [(gpu.gfx, gpu.pci_id, gpu.location) for gpu in evidence.gpus] == [("gfx942", "1002:74a1", "0000:0c:00.0")]
    assert evidence.gpus[0].source == "/usr/bin/amd-smi static --asic --bus --json"
    assert "/usr/bin/rocminfo names no GPU (exit code 1)" in evidence.notes


def test_amd_smi_in_its_later_form() -> None:
    assert read_amd_smi(json.dumps({"gpu_data": AMD_SMI}), "amd-smi")[0].gfx == "gfx942"


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"gpu_data": 3}', '[{"asic": []}]', "[" * 100000, "nonsense", "null"])
def test_amd_smi_s_nonsense_is_no_gpu(text: str) -> None:
    assert read_amd_smi(text, "amd-smi") == ()


@pytest.mark.parametrize("text", ["", "Agent 1\n", "Agent 1\nName: gfx000\n", "Agent 1\n Name: gfxzz\nDevice Type: GPU\n"])
def test_rocminfo_s_nonsense_is_no_gpu(text: str) -> None:
    assert read_rocminfo(text, "rocminfo") == ()


def test_a_program_that_hangs_is_stopped_with_its_children(tmp_path: Path) -> None:
    pci(tmp_path, "0000:03:00.0", "0x744c")
    program(tmp_path, "/usr/bin/rocminfo", f"sleep 600 & echo $! > {tmp_path}/child; wait\n")
    evidence = look(tmp_path, dict(os.environ), limit=0.5)
    assert [gpu.gfx for gpu in evidence.gpus] == ["gfx1100"]
    assert "/usr/bin/rocminfo gave no answer within 0.5 s and was stopped" in evidence.notes
    assert gone(int((tmp_path / "child").read_text()))


def gone(pid: int) -> bool:
    """True when the process has ended (or is a zombie nobody collects) within two seconds."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_a_terminated_detection_leaves_no_program_behind(tmp_path: Path) -> None:
    program(
        tmp_path, "/usr/bin/rocminfo", f"sleep 600 & echo $! > {tmp_path}/new && mv {tmp_path}/new {tmp_path}/child; wait\n"
    )
    code = f"from rocmpip.machine.probe import probe; probe(sysroot={str(tmp_path)!r}, env={{}}, time_limit=60)"
    asking = subprocess.Popen([sys.executable, "-c", code])
    for _ in range(500):
        if (tmp_path / "child").exists():
            break
        time.sleep(0.02)
    asking.terminate()
    assert asking.wait(20) in (143, -15)
    assert gone(int((tmp_path / "child").read_text()))


def test_a_program_that_leaves_its_output_open_is_not_waited_for(tmp_path: Path) -> None:
    write(tmp_path, "/answer", ROCMINFO)
    program(tmp_path, "/usr/bin/rocminfo", f"cat {tmp_path}/answer\nsleep 600 &\necho $! > {tmp_path}/child\n")
    assert [gpu.gfx for gpu in look(tmp_path, dict(os.environ), limit=30).gpus] == ["gfx90a"]
    assert gone(int((tmp_path / "child").read_text()))


def test_a_program_that_never_stops_talking(tmp_path: Path) -> None:
    program(tmp_path, "/usr/bin/rocminfo", "exec yes\n")
    assert "/usr/bin/rocminfo printed more than can be an answer and was stopped" in look(tmp_path, dict(os.environ)).notes


def test_a_program_that_cannot_start(tmp_path: Path) -> None:
    write(tmp_path, "/usr/bin/rocminfo", b"\x7fELFnot really").chmod(0o755)
    notes = look(tmp_path).notes
    assert [note.startswith("/usr/bin/rocminfo cannot be started") for note in notes] == [True]


def test_under_a_root_no_program_of_the_host_runs(tmp_path: Path) -> None:
    host = tmp_path / "host"
    program(host, "/rocminfo", f"touch {tmp_path}/ran\n")
    root = tmp_path / "root"
    root.mkdir()
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/rocminfo").symlink_to(host / "rocminfo")
    evidence = look(root, {"PATH": str(host)})
    assert evidence.gpus == ()
    assert not (tmp_path / "ran").exists()


@pytest.fixture
def no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a program was run")

    monkeypatch.setattr(programs, "output_of", refuse)


@pytest.mark.usefixtures("no_programs")
def test_no_program_runs_when_sysfs_answers(tmp_path: Path) -> None:
    machine(tmp_path, MI300X)
    answer(tmp_path, "/usr/bin/rocminfo", ROCMINFO)
    assert [gpu.gfx for gpu in look(tmp_path).gpus] == ["gfx942"]


@pytest.mark.usefixtures("no_programs")
def test_a_topology_of_cpus_is_an_answer(tmp_path: Path) -> None:
    machine(tmp_path)
    answer(tmp_path, "/usr/bin/rocminfo", ROCMINFO)
    assert look(tmp_path).gpus == ()


@pytest.mark.usefixtures("no_programs")
def test_programs_can_be_switched_off(tmp_path: Path) -> None:
    answer(tmp_path, "/usr/bin/rocminfo", ROCMINFO)
    pci(tmp_path, "0000:0c:00.0", "0x74a1", "0x120000")
    assert [gpu.source for gpu in look(tmp_path, run=False).gpus] == ["/sys/bus/pci/devices/0000:0c:00.0/device"]


def test_programs_are_asked_when_every_node_is_broken(tmp_path: Path) -> None:
    write(tmp_path, f"/{NODES}/0/properties", b"\xff" * 40)
    answer(tmp_path, "/usr/bin/rocminfo", ROCMINFO)
    assert [gpu.gfx for gpu in look(tmp_path, dict(os.environ)).gpus] == ["gfx90a"]


def test_pci_ids(tmp_path: Path) -> None:
    pci(tmp_path, "0000:03:00.0", "0x744c")
    pci(tmp_path, "0000:03:00.1", "0xab30", "0x040300")
    pci(tmp_path, "0000:0c:00.0", "0x74a1", "0x120000")
    pci(tmp_path, "0000:41:00.0", "0x2684", vendor="0x10de")
    pci(tmp_path, "0000:50:00.0", "0x7ffe", "0x038000")
    evidence = look(tmp_path)
    assert [(gpu.gfx, gpu.pci_id, gpu.location) for gpu in evidence.gpus] == [
        ("gfx1100", "1002:744c", "0000:03:00.0"),
        ("gfx942", "1002:74a1", "0000:0c:00.0"),
    ]
    assert any("1002:7ffe, which the table does not know" in note for note in evidence.notes)


def test_broken_pci_files(tmp_path: Path) -> None:
    for number, content in enumerate((b"", b"\xff\xfe", b"0x", b"1002", b"0x" + b"9" * 50)):
        for name in ("vendor", "device", "class"):
            write(tmp_path, f"/sys/bus/pci/devices/0000:0{number}:00.0/{name}", content)
    assert look(tmp_path).gpus == ()


def test_wsl_offers_a_gpu_without_saying_which(tmp_path: Path) -> None:
    write(tmp_path, "/dev/dxg")
    write(tmp_path, "/proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n")
    evidence = look(tmp_path)
    assert evidence.wsl
    assert evidence.gpus == ()
    assert [note.startswith("/dev/dxg: WSL2 offers a GPU") for note in evidence.notes] == [True]


def test_wsl_with_rocminfo(tmp_path: Path) -> None:
    write(tmp_path, "/dev/dxg")
    answer(tmp_path, "/usr/bin/rocminfo", ROCMINFO)
    evidence = look(tmp_path)
    assert [gpu.gfx for gpu in evidence.gpus] == ["gfx90a"]
    assert evidence.notes == ()


def test_an_empty_folder_is_a_machine_without_amd_hardware(tmp_path: Path) -> None:
    evidence = look(tmp_path)
    assert evidence == Evidence(kfd="missing")


def test_a_container_without_the_device(tmp_path: Path) -> None:
    machine(tmp_path, MI300X)
    (tmp_path / "dev/kfd").unlink()
    write(tmp_path, "/.dockerenv")
    evidence = look(tmp_path)
    assert [gpu.gfx for gpu in evidence.gpus] == ["gfx942"]
    assert (evidence.container, evidence.container_source, evidence.kfd) == (True, "/.dockerenv", "missing")
    assert any("/dev/kfd is missing in this container" in note for note in evidence.notes)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/run/.containerenv", ""),
        ("/proc/1/cgroup", "0::/system.slice/docker-abc.scope\n"),
        ("/proc/1/cgroup", "12:devices:/kubepods/burstable/pod1\n"),
    ],
)
def test_container_marks(tmp_path: Path, path: str, text: str) -> None:
    write(tmp_path, path, text)
    assert look(tmp_path).container_source == path


def test_a_container_that_only_a_variable_tells(tmp_path: Path) -> None:
    assert look(tmp_path, {"APPTAINER_CONTAINER": "/x.sif"}).container_source == "APPTAINER_CONTAINER"


def test_a_device_that_this_user_may_not_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, MI300X)
    monkeypatch.setattr(os, "access", lambda path, mode: not path.endswith("/dev/kfd"))
    evidence = look(tmp_path)
    assert evidence.kfd == "denied"
    assert any("permission denied" in note and "render" in note for note in evidence.notes)


def test_the_driver(tmp_path: Path) -> None:
    machine(tmp_path)
    evidence = look(tmp_path)
    assert (evidence.driver, evidence.driver_source) == ("in-kernel", "/sys/module/amdgpu")
    assert evidence.kernel == "6.8.0-45-generic"
    write(tmp_path, "/sys/module/amdgpu/version", "6.12.12\n")
    evidence = look(tmp_path)
    assert (evidence.driver, evidence.driver_source) == ("6.12.12", "/sys/module/amdgpu/version")


def test_garbage_in_driver_and_kernel(tmp_path: Path) -> None:
    write(tmp_path, "/sys/module/amdgpu/version", b"\x00\x01\x02")
    write(tmp_path, "/proc/sys/kernel/osrelease", b"\x1b[31mred")
    evidence = look(tmp_path)
    assert (evidence.driver, evidence.kernel) == ("in-kernel", "")


def test_only_variables_that_matter_are_kept(tmp_path: Path) -> None:
    env = {"HIP_VISIBLE_DEVICES": "0", "PYTORCH_ROCM_ARCH": "gfx90a", "SECRET_TOKEN": "x", "PATH": "/bin"}
    assert look(tmp_path, env).env == {"HIP_VISIBLE_DEVICES": "0", "PYTORCH_ROCM_ARCH": "gfx90a"}


def test_nothing_is_written(tmp_path: Path) -> None:
    machine(tmp_path, MI300X)
    rocm(tmp_path)
    hip_header(tmp_path, "/usr", 5, 2)
    node(tmp_path, 9, MI300X)
    before = {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")}
    look(tmp_path)
    assert {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")} == before
