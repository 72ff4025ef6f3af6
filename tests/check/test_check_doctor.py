"""doctor on simulated machines: each fault planted alone is named, and the command it shows mends it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rocmpip.check.look import Look
from rocmpip.recipe.allowed import groups
from tests.check.check_machines import (
    RENDER,
    answers,
    environment,
    healthy,
    libstdcxx,
    mend,
    other_rocm,
    program,
    remove,
    snapshot,
    text,
    troubles,
)
from tests.support.commands import envelope, rocmpip
from tests.support.kfd import GPUS


@dataclass(frozen=True)
class Plant:
    """One fault: what is done to the healthy machine, the check that must name it, what its packages bring back."""

    check: str
    verdict: str
    files: Callable[[Path], object] = lambda root: None
    env: Mapping[str, str] = field(default_factory=dict)
    brings: tuple[str, ...] = ()
    names: str = ""
    """A word that the evidence or the reason must hold."""
    gpus: tuple[str, ...] = ("mi300x",)


def _old_hipcc(root: Path) -> None:
    program(root, "opt/rocm-6.4.0/bin/hipcc", "hipcc: cannot execute clang", 1)


def _stale_loader(root: Path) -> None:
    text(root, "etc/ld.so.conf.d/20-old.conf", "/opt/rocm-5.7.0/lib\n")


def _stale_line(root: Path) -> None:
    text(root, "etc/ld.so.conf.d/10-rocm.conf", "/opt/rocm/lib\n/opt/rocm-5.7.0/lib\n")


def _other_loader(root: Path) -> None:
    other_rocm(root)
    text(root, "etc/ld.so.conf.d/05-other.conf", "/opt/rocm-6.2.0/lib\n")


def _no_hipcc_there(root: Path) -> None:
    remove(other_rocm(root) / "bin/hipcc")


def _dangling(root: Path) -> None:
    remove(root / "opt/rocm")
    (root / "opt/rocm").symlink_to("/opt/rocm-6.3.0")


def _group(root: Path, members: str) -> None:
    text(root, "etc/group", f"root:x:0:\nvideo:x:44:\nrender:x:{RENDER}:{members}\nalice:x:1000:\n")


def _nameless_group(root: Path) -> None:
    text(root, "etc/group", "root:x:0:\nvideo:x:44:\nalice:x:1000:\n")
    text(root, ".dockerenv")


def _newer_gcc(root: Path) -> None:
    text(root, "usr/lib/gcc/x86_64-linux-gnu/14/crtbegin.o")


def _gcc_15(root: Path) -> None:
    text(root, "usr/lib/gcc/x86_64-linux-gnu/15/crtbegin.o")
    text(root, "usr/include/c++/15/cmath")


def _gcc_8(root: Path) -> None:
    for name in ("g++", "c++"):
        program(root, f"usr/bin/{name}", "g++ (GCC) 8.5.0 20210514")
    program(root, "usr/bin/g++-13", "g++-13 (GCC) 13.2.0")


def _not_loaded(root: Path) -> None:
    remove(root / "sys/class/kfd")
    remove(root / "sys/module/amdgpu")
    for name, value in (("vendor", "0x1002"), ("device", "0x74a1"), ("class", "0x120000")):
        text(root, f"sys/bus/pci/devices/0000:05:00.0/{name}", value + "\n")


def _blocked(root: Path) -> None:
    _not_loaded(root)
    text(root, "etc/modprobe.d/no-gpu.conf", "blacklist amdgpu\n")


def _cuda(root: Path) -> None:
    program(root, "usr/local/cuda-12.4/bin/nvcc", "nvcc: NVIDIA (R) Cuda compiler driver")
    text(root, "usr/local/cuda-12.4/lib64/libcudart.so")
    text(root, "usr/local/cuda-12.4/include/cuda_runtime.h")


PLANTS = {
    "driver not loaded": Plant("driver", "broken", _not_loaded, brings=("sys/class/kfd", "sys/module/amdgpu"), names="74a1"),
    "driver blocked": Plant("driver", "broken", _blocked, brings=("sys/class/kfd", "sys/module/amdgpu"), names="no-gpu.conf"),
    "kfd missing": Plant("gpu-devices", "broken", lambda root: remove(root / "dev/kfd"), names="/dev/kfd"),
    "render node missing": Plant("gpu-devices", "broken", lambda root: remove(root / "dev/dri"), names="renderD128"),
    "not in the group": Plant("gpu-devices", "broken", lambda root: _group(root, ""), names=str(RENDER)),
    "kfd for root alone": Plant("gpu-devices", "broken", lambda root: (root / "dev/kfd").chmod(0o600), names="0600"),
    "container without the group's name": Plant("gpu-devices", "broken", _nameless_group, names=f"--group-add {RENDER}"),
    "override of another family": Plant("hsa-override", "broken", env={"HSA_OVERRIDE_GFX_VERSION": "11.0.0"}, names="gfx942"),
    "override that is no number": Plant("hsa-override", "broken", env={"HSA_OVERRIDE_GFX_VERSION": "gfx1100"}),
    "override on phoenix": Plant(
        "hsa-override", "broken", env={"HSA_OVERRIDE_GFX_VERSION": "11.0.0"}, names="hang", gpus=("phoenix",)
    ),
    "no such device": Plant("visible-devices", "broken", env={"ROCR_VISIBLE_DEVICES": "7"}, names="ROCR_VISIBLE_DEVICES"),
    "hidden twice": Plant(
        "visible-devices", "broken", env={"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "1"},
        names="HIP_VISIBLE_DEVICES", gpus=("mi300x", "mi300x"),
    ),
    "hip and cuda disagree": Plant(
        "visible-devices", "warn", env={"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "1"}, gpus=("mi300x", "mi300x")
    ),
    "opt/rocm leads nowhere": Plant("rocm-root", "broken", _dangling, names="/opt/rocm-6.4.0"),
    "ROCM_PATH is gone": Plant("rocm-variables", "broken", env={"ROCM_PATH": "/opt/rocm-5.4.0"}, names="ROCM_PATH"),
    "HIP_PATH differs": Plant(
        "rocm-variables", "broken", other_rocm, {"ROCM_PATH": "/opt/rocm", "HIP_PATH": "/opt/rocm-6.2.0"}, names="6.2.0"
    ),
    "ROCM_PATH differs": Plant(
        "rocm-variables", "broken", other_rocm, {"ROCM_PATH": "/opt/rocm-6.2.0", "HIP_PATH": "/opt/rocm"}, names="6.2.0"
    ),
    "PATH holds another ROCm": Plant("rocm-agree", "broken", _no_hipcc_there, {"PATH": "/opt/rocm-6.2.0/bin:/usr/bin"}, names="PATH"),
    "PATH differs": Plant("rocm-agree", "broken", other_rocm, {"PATH": "/opt/rocm-6.2.0/bin:/usr/bin:/bin"}, names="PATH"),
    "LD_LIBRARY_PATH differs": Plant("rocm-agree", "broken", other_rocm, {"LD_LIBRARY_PATH": "/opt/rocm-6.2.0/lib"}, names="loader"),
    "loader differs": Plant("rocm-agree", "broken", _other_loader, names="05-other.conf"),
    "CMake differs": Plant("rocm-agree", "broken", other_rocm, {"CMAKE_PREFIX_PATH": "/opt/rocm-6.2.0"}, names="CMAKE_PREFIX_PATH"),
    "loader file is stale": Plant("loader", "warn", _stale_loader, names="20-old.conf"),
    "loader line is stale": Plant("loader", "warn", _stale_line, names="/opt/rocm-5.7.0/lib"),
    "library path is stale": Plant("loader", "warn", env={"LD_LIBRARY_PATH": "/opt/rocm-5.7.0/lib"}, names="LD_LIBRARY_PATH"),
    "CUDA_HOME": Plant("cuda-left", "warn", env={"CUDA_HOME": "/usr/local/cuda"}, names="CUDA_HOME"),
    "nvcc in PATH": Plant(
        "cuda-left", "warn", _cuda, {"PATH": "/opt/rocm/bin:/usr/local/cuda-12.4/bin:/usr/bin:/bin"}, names="nvcc"
    ),
    "CUDA libraries": Plant("cuda-left", "warn", _cuda, {"LD_LIBRARY_PATH": "/usr/local/cuda-12.4/lib64"}, names="LD_LIBRARY_PATH"),
    "CUDA headers": Plant("cuda-left", "warn", _cuda, {"CPLUS_INCLUDE_PATH": "/usr/local/cuda-12.4/include"}, names="CPLUS"),
    "hipcc missing": Plant(
        "hipcc", "warn", lambda root: remove(root / "opt/rocm-6.4.0/bin/hipcc"), brings=("opt/rocm-6.4.0/bin/hipcc",)
    ),
    "hipcc broken": Plant("hipcc", "broken", _old_hipcc, brings=("opt/rocm-6.4.0/bin/hipcc",), names="cannot execute clang"),
    "newest GCC has no headers": Plant("host-compiler", "broken", _newer_gcc, brings=("usr/include/c++/14",), names="14"),
    "GCC too new": Plant("host-compiler", "warn", _gcc_15, names="15"),
    "GCC too old": Plant("host-compiler", "broken", _gcc_8, names="8.5.0"),
    "CXX is gone": Plant("host-compiler", "broken", env={"CXX": "g++-99"}, names="g++-99"),
    "CMake too old": Plant("cmake", "warn", lambda root: program(root, "usr/bin/cmake", "cmake version 3.16.3"), brings=("usr/bin/cmake",), names="3.16.3"),
    "CMake too new": Plant("cmake", "warn", lambda root: program(root, "usr/bin/cmake", "cmake version 4.1.0"), brings=("usr/bin/cmake",), names="4.1.0"),
    "little memory": Plant("memory", "warn", lambda root: text(root, "proc/meminfo", "MemTotal: 3500000 kB\nMemAvailable: 3000000 kB\n"), names="4 GiB"),
    "CMake missing": Plant("cmake", "warn", lambda root: remove(root / "usr/bin/cmake"), brings=("usr/bin/cmake",)),
    "ninja missing": Plant("ninja", "warn", lambda root: remove(root / "usr/bin/ninja"), brings=("usr/bin/ninja",)),
    "development package missing": Plant(
        "dev-packages", "warn", lambda root: remove(root / "opt/rocm-6.4.0/lib/cmake/hipblaslt"),
        brings=("opt/rocm-6.4.0/lib/cmake/hipblaslt",), names="hipblaslt",
    ),
    "older C++ runtime in front": Plant(
        "libstdcxx", "warn", lambda root: libstdcxx(root, "home/alice/conda/lib/libstdc++.so.6", 28),
        {"LD_LIBRARY_PATH": "/home/alice/conda/lib"}, names="GLIBCXX_3.4.28",
    ),
    "conda's C++ runtime": Plant(
        "libstdcxx", "warn", lambda root: libstdcxx(root, "home/alice/conda/lib/libstdc++.so.6", 28),
        {"CONDA_PREFIX": "/home/alice/conda"}, names="conda",
    ),
}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, venv: Callable[..., Path]) -> tuple[Path, Path]:
    return tmp_path, venv().parent.parent


@pytest.mark.parametrize("gpu", sorted(GPUS.keys() - {"strix_halo"}))
def test_a_healthy_machine_has_no_warning(place: tuple[Path, Path], gpu: str) -> None:
    folder, venv = place
    root = healthy(folder / "root", (gpu,))
    checks = answers(environment(root, venv))
    assert {name: check.evidence for name, check in checks.items() if check.verdict in ("warn", "broken")} == {}
    fine = {name for name, check in checks.items() if check.verdict == "ok"}
    assert {
        "driver",
        "gpu-devices",
        "rocm-root",
        "rocm-agree",
        "hipcc",
        "host-compiler",
        "cmake",
        "ninja",
        "dev-packages",
    } <= fine
    assert {"memory", "glibc", "libstdcxx", "environment", "disk"} <= fine


def test_an_empty_folder_is_a_machine_without_amd_hardware(place: tuple[Path, Path]) -> None:
    folder, venv = place
    (folder / "root").mkdir()
    assert troubles(environment(folder / "root", venv)) == {}


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_fault_is_named_alone_and_its_command_mends_it(place: tuple[Path, Path], name: str) -> None:
    folder, venv = place
    plant = PLANTS[name]
    whole = healthy(folder / "whole", plant.gpus)
    text(whole, "usr/include/c++/14/cmath")
    root = healthy(folder / "root", plant.gpus)
    plant.files(root)
    env = environment(root, venv, **plant.env)
    before = snapshot(root)
    found = troubles(env)
    assert snapshot(root) == before
    assert set(found) == {plant.check}, found
    check = found[plant.check]
    assert check.verdict == plant.verdict
    assert plant.names in " ".join((*check.evidence, check.why))
    assert check.why
    assert check.fix
    assert str(root) not in " ".join((*check.evidence, check.why, *check.fix))
    mended = mend(check, root, env, whole, plant.brings)
    assert troubles(mended) == {}, check.fix


def test_what_a_fix_asks_the_package_manager_for(place: tuple[Path, Path]) -> None:
    folder, venv = place
    root = healthy(folder / "root")
    remove(root / "opt/rocm-6.4.0/lib/cmake/hipblaslt")
    _newer_gcc(root)
    found = troubles(environment(root, venv))
    assert found["dev-packages"].fix == ("apt-get install -y hipblaslt-dev",)
    assert found["host-compiler"].fix == ("apt-get install -y libstdc++-14-dev",)
    text(root, "etc/os-release", "ID=rocky\nID_LIKE='rhel centos fedora'\n".replace("'", '"'))
    found = troubles(environment(root, venv))
    assert found["dev-packages"].fix == ("dnf install -y hipblaslt-devel",)
    assert found["host-compiler"].fix == ("dnf install -y gcc-c++",)


def test_a_driver_outside_its_window(place: tuple[Path, Path]) -> None:
    folder, venv = place
    root = healthy(folder / "root", driver="5.7.1")
    found = troubles(environment(root, venv))
    assert set(found) == {"driver"}
    assert found["driver"].verdict == "broken"
    assert "5.5 to 6.1" in " ".join(found["driver"].evidence)
    assert troubles(environment(healthy(folder / "other", driver="6.3.2"), venv)) == {}
    # AMD's newer drivers have no window that forbids anything.
    assert troubles(environment(healthy(folder / "newer", driver="30.10.1"), venv)) == {}


def test_devices_of_a_container_are_asked_from_outside(place: tuple[Path, Path]) -> None:
    folder, venv = place
    root = healthy(folder / "root")
    remove(root / "dev/kfd")
    text(root, "run/.containerenv")
    check = troubles(environment(root, venv))["gpu-devices"]
    assert check.fix[0].startswith("podman run --device=/dev/kfd --device=/dev/dri")
    if os.geteuid() == 0:
        assert "--group-add 109" in check.fix[0]


def test_a_rootless_container_keeps_the_hosts_groups(place: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, venv = place
    root = healthy(folder / "root")
    text(root, "run/.containerenv")
    real = Look.mode

    def nobodys(self: Look, path: str) -> os.stat_result | None:
        """As a user namespace shows a group that it has no number for."""
        found = real(self, path)
        return found and os.stat_result((found.st_mode, *found[1:4], 65534, 65534, *found[6:10]))

    monkeypatch.setattr(Look, "mode", nobodys)
    check = troubles(environment(root, venv))["gpu-devices"]
    assert "podman run" in check.fix[0]
    assert "--group-add keep-groups" in check.fix[0]


def test_strix_halo_wants_a_newer_kernel(place: tuple[Path, Path]) -> None:
    folder, venv = place
    root = healthy(folder / "root", ("strix_halo",))
    found = troubles(environment(root, venv))
    assert set(found) == {"kernel"}
    assert "6.18.4" in " ".join(found["kernel"].evidence)
    text(root, "proc/sys/kernel/osrelease", "6.18.4-1-generic\n")
    assert troubles(environment(root, venv)) == {}


def test_wsl_without_its_device(place: tuple[Path, Path]) -> None:
    folder, venv = place
    root = folder / "root"
    text(root, "proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n")
    assert set(troubles(environment(root, venv))) == {"wsl"}
    text(root, "dev/dxg")
    assert troubles(environment(root, venv)) == {}


def test_old_glibc_and_little_memory(place: tuple[Path, Path]) -> None:
    folder, venv = place
    root = healthy(folder / "root")
    (root / "usr/lib/x86_64-linux-gnu/libc.so.6").write_bytes(b"GNU C Library (GNU libc) stable release version 2.17.\n")
    text(root, "proc/meminfo", "MemTotal: 2048000 kB\nMemAvailable: 1500000 kB\nSwapFree: 0 kB\n")
    found = troubles(environment(root, venv))
    assert set(found) == {"glibc", "memory"}
    assert found["glibc"].fix == ("rocmpip install 'torch<2.6'",)
    assert any("swapon" in command for command in found["memory"].fix)


def test_full_disks(place: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, venv = place
    root = healthy(folder / "root")
    small = folder / "small"
    small.mkdir()
    from rocmpip.check import room

    real = room._free
    monkeypatch.setattr(
        room, "_free", lambda path: (100 << 20, path) if path == str(small) else (max(real(path)[0], 99 << 30), path)
    )
    found = troubles(environment(root, venv, TMPDIR=str(small)))
    assert set(found) == {"disk"}
    assert found["disk"].verdict == "broken"
    assert found["disk"].fix[0].startswith("export TMPDIR=")
    assert troubles(mend(found["disk"], root, environment(root, venv, TMPDIR=str(small)), root)) == {}


# -- the environment --------------------------------------------------------------------------------------------------


def dist(venv: Path, name: str, version: str, *files: str) -> None:
    site = next((venv / "lib").glob("python3*")) / "site-packages"
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    for file in files:
        text(site, file)
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in (*files, f"{info.name}/METADATA", f"{info.name}/RECORD")))


@pytest.mark.parametrize(
    ("installed", "check", "word"),
    [
        ([("torch", "2.9.1+cu128")], "torch", "CUDA"),
        ([("torch", "2.9.1+cpu")], "torch", "CPU"),
        ([("torch", "2.9.1")], "torch", "CUDA"),
        ([("torch", "2.9.1+rocm6.4"), ("torchvision", "0.24.1")], "torch", "torchvision"),
        ([("torch", "2.9.1+rocm6.4"), ("torchvision", "0.24.1+rocm6.3")], "torch", "6.3"),
        ([("torch", "2.9.1+rocm6.4"), ("torchvision", "0.20.0+rocm6.4")], "torch", "0.20.0"),
        ([("pytorch-triton-rocm", "3.5.1"), ("triton", "3.5.1")], "triton", "triton 3.5.1"),
        ([("nvidia-cublas-cu12", "12.8.4.1")], "cuda-packages", "nvidia-cublas-cu12"),
    ],
)  # fmt: skip
def test_the_environment(place: tuple[Path, Path], installed: list[tuple[str, str]], check: str, word: str) -> None:
    folder, venv = place
    root = healthy(folder / "root")
    for name, version in installed:
        dist(venv, name, version, f"{'triton' if 'triton' in name else name}/__init__.py")
    found = troubles(environment(root, venv))
    assert set(found) == {check}
    assert word in " ".join((*found[check].evidence, found[check].why))
    assert found[check].fix[0].startswith("rocmpip ")


def test_a_torch_that_fits(place: tuple[Path, Path]) -> None:
    folder, venv = place
    root = healthy(folder / "root")
    dist(venv, "torch", "2.9.1+rocm6.4", "torch/__init__.py")
    dist(venv, "torchvision", "0.24.1+rocm6.4", "torchvision/__init__.py")
    dist(venv, "pytorch-triton-rocm", "3.5.1", "triton/__init__.py")
    # The alias wheel holds no files of its own: it is no second triton.
    dist(venv, "triton", "3.5.1")
    assert troubles(environment(root, venv)) == {}


def test_a_torch_without_kernels_for_the_gpu(place: tuple[Path, Path]) -> None:
    folder, venv = place
    root = healthy(folder / "root", ("mi50",))
    dist(venv, "torch", "2.9.1+rocm6.4", "torch/__init__.py")
    found = troubles(environment(root, venv))
    assert "gfx906" in " ".join(found["torch"].evidence)


def test_a_conda_environment_outside_the_root(place: tuple[Path, Path]) -> None:
    """Folders that are no part of the machine's are the real ones under a root too."""
    folder, venv = place
    root = healthy(folder / "root")
    libstdcxx(folder, "conda/lib/libstdc++.so.6", 28)
    env = environment(root, venv, LD_LIBRARY_PATH=str(folder / "conda/lib"))
    found = troubles(env)
    assert set(found) == {"libstdcxx"}
    assert troubles(mend(found["libstdcxx"], root, env, root)) == {}


def test_a_driver_that_offers_no_gpu(place: tuple[Path, Path]) -> None:
    folder, venv = place
    root = healthy(folder / "root")
    remove(root / "sys/class/kfd")
    assert set(troubles(environment(root, venv))) == {"driver"}


def test_an_interpreter_that_is_no_environment(place: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, venv = place
    root = healthy(folder / "root")
    from msgspec.structs import replace

    from rocmpip.app import doctor
    from rocmpip.check import environment as room

    look = doctor.look_at(env=environment(root, venv), cwd="/")
    assert look.target is not None
    check = room.place(replace(look, target=replace(look.target, kind="system", externally_managed=True)))
    assert check.verdict == "warn"
    assert "-m venv" in check.fix[0]


# -- --for ------------------------------------------------------------------------------------------------------------


def test_the_needs_of_a_recipe(place: tuple[Path, Path]) -> None:
    folder, venv = place
    root = healthy(folder / "root")
    env = environment(root, venv)
    checks = answers(env, package="vllm")
    needs = {name for name in checks if name.startswith("needs-")}
    assert {"needs-tool-hipcc", "needs-tool-cmake", "needs-cmake-rocblas"} <= needs
    assert not {name for name, check in checks.items() if name in needs and check.verdict == "broken"}
    remove(root / "opt/rocm-6.4.0/lib/cmake/rocblas")
    found = troubles(env, package="vllm")
    assert found["needs-cmake-rocblas"].verdict == "broken"
    assert found["needs-cmake-rocblas"].fix == ("apt-get install -y rocblas-dev",)


def test_a_tool_out_of_a_recipes_bounds(place: tuple[Path, Path]) -> None:
    folder, venv = place
    root = healthy(folder / "root")
    program(root, "usr/bin/cmake", "cmake version 4.1.0")
    found = troubles(environment(root, venv), package="vllm")
    assert "4.1.0" in " ".join(found["needs-tool-cmake"].evidence)


# -- the command ------------------------------------------------------------------------------------------------------


def test_exit_codes_and_the_envelope(place: tuple[Path, Path]) -> None:
    folder, venv = place
    root = healthy(folder / "root")
    env = environment(root, venv)
    told = envelope(rocmpip("doctor", "--json", env=env))
    assert told["result"]["checks"]
    assert all(set(row) == {"id", "title", "verdict", "evidence", "why", "fix"} for row in told["result"]["checks"])
    env["CUDA_HOME"] = "/usr/local/cuda"
    done = rocmpip("doctor", env=env)
    assert done.returncode == 0, "a warning alone is no fault"
    assert done.stdout.startswith("warn")
    assert "unset CUDA_HOME" in done.stdout
    remove(root / "dev/kfd")
    done = rocmpip("doctor", "--json", env=env)
    assert done.returncode == 43
    told = envelope(done)
    assert told["result"]["checks"]
    assert "gpu-devices" in told["errors"][0]["message"]
    done = rocmpip("doctor", env=env)
    assert done.returncode == 43
    assert done.stdout.startswith("broken")
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    "words", [("--for", "no-such-thing"), ("--gfx", "banana"), ("--python", "/nonexistent"), ("extra",)], ids=" ".join
)
def test_bad_input(place: tuple[Path, Path], words: tuple[str, ...]) -> None:
    folder, venv = place
    env = environment(healthy(folder / "root"), venv)
    told = envelope(rocmpip("doctor", *words, "--json", env=env))
    assert told["errors"][0]["code"] in (1, 2)
    assert told["errors"][0]["message"]


def test_reading_changes_nothing(place: tuple[Path, Path]) -> None:
    folder, venv = place
    root = healthy(folder / "root")
    home = folder / "home"
    home.mkdir()
    env = environment(root, venv, HOME=str(home))
    before = snapshot(home, venv, root)
    assert rocmpip("doctor", "--for", "vllm", env=env).returncode == 0
    assert snapshot(home, venv, root) == before


def test_garbage_everywhere(place: tuple[Path, Path]) -> None:
    """Broken files end in verdicts, never in a traceback."""
    folder, venv = place
    root = healthy(folder / "root")
    for path in (
        "etc/group",
        "etc/passwd",
        "etc/os-release",
        "etc/ld.so.conf",
        "proc/meminfo",
        "usr/lib/x86_64-linux-gnu/libc.so.6",
    ):
        (root / path).write_bytes(bytes(range(256)) * 16)
    shutil.rmtree(root / "usr/include")
    (root / "usr/include").write_text("a file")
    program(root, "usr/bin/cmake", "")
    checks = answers(
        environment(root, venv, CXX="'", CUDA_HOME="\x1b[31m", HSA_OVERRIDE_GFX_VERSION="..", PATH=":::relative:/x")
    )
    assert len(checks) > 20
    assert groups()["torch"]


@pytest.mark.parametrize("path", ["usr/lib/x86_64-linux-gnu/libstdc++.so.6", "usr/lib/x86_64-linux-gnu/libc.so.6", "etc/os-release", "opt/rocm-6.4.0/.info/version"])  # fmt: skip
def test_a_pipe_in_place_of_a_file_keeps_nobody_waiting(place: tuple[Path, Path], path: str) -> None:
    folder, venv = place
    root = healthy(folder)
    (root / path).unlink()
    os.mkfifo(root / path)
    assert answers(environment(root, venv))


def test_a_rocm_that_is_named_and_not_installed(place: tuple[Path, Path]) -> None:
    """Wheels are chosen for it; beside another ROCm that is worth a word, without any it is how containers are made."""
    folder, venv = place
    root = healthy(folder / "root", ("mi300x",))
    found = answers({**environment(root, venv), "ROCMPIP_ROCM": "7.2"})["rocm-root"]
    assert found.verdict == "warn" and found.evidence[0] == "ROCm 7.2, named by ROCMPIP_ROCM"
    assert "/opt/rocm" in found.evidence[1]
    (folder / "bare").mkdir()
    bare = answers({**environment(folder / "bare", venv), "ROCMPIP_ROCM": "7.2"})["rocm-root"]
    assert (bare.verdict, bare.evidence) == ("ok", ("ROCm 7.2, named by ROCMPIP_ROCM",))
