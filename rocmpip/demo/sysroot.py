"""A machine as a folder: what the probe reads of /sys, /proc, /dev, /opt, for ROCMPIP_SYSROOT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

CPU: Mapping[str, int] = {
    "cpu_cores_count": 192, "simd_count": 0, "mem_banks_count": 1, "caches_count": 0, "io_links_count": 2,
    "gfx_target_version": 0, "vendor_id": 0, "device_id": 0, "location_id": 0, "domain": 0, "drm_render_minor": 0,
    "max_engine_clk_ccompute": 5391,
}  # fmt: skip


def _node(nodes: Path, number: int, properties: Mapping[str, object], gpu_id: int, name: str) -> None:
    folder = nodes / str(number)
    folder.mkdir(parents=True)
    (folder / "properties").write_text("".join(f"{key} {value}\n" for key, value in properties.items()))
    (folder / "gpu_id").write_text(f"{gpu_id}\n")
    (folder / "name").write_text(f"{name}\n")


def write_rocm(root: Path, version: str, *, tools: Sequence[str] = ("hipcc", "amdclang++")) -> None:
    """A ROCm root's files that tell its version and that builds look for; ``tools`` are stand-ins that tell a version."""
    numbers = [*version.split("-")[0].split("."), "0", "0"]
    major, minor, patch = numbers[:3]
    for folder in (".info", "bin", "include/hip", "include/rocm-core", "lib"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / ".info/version").write_text(f"{version}\n")
    (root / "include/hip/hip_version.h").write_text(
        f"#define HIP_VERSION_MAJOR {major}\n#define HIP_VERSION_MINOR {minor}\n#define HIP_VERSION_PATCH {patch}\n"
    )
    (root / "include/hip/hip_runtime.h").write_text("#pragma once\n")
    (root / "include/rocm-core/rocm_version.h").write_text(
        f"#define ROCM_VERSION_MAJOR   {major}\n#define ROCM_VERSION_MINOR   {minor}\n#define ROCM_VERSION_PATCH   {patch}\n"
    )
    said = f"HIP version: {major}.{minor}.{patch}-stand-in\\nAMD clang version 19.0.0 (stand-in)\\n"
    for tool in tools:
        program = root / "bin" / tool
        program.write_text(f"#!/bin/sh\nprintf '{said}'\n")
        program.chmod(0o755)


def write_sysroot(
    root: Path, gpus: Sequence[Mapping[str, object]] = (), rocm: str | Mapping[str, str] = "", *, driver: str = ""
) -> Path:
    """Write a machine under ``root`` and return it.

    ``gpus``: KFD properties of each GPU, with ``gpu_id`` and ``name`` among them; node 0 is the CPU. ``rocm``: the version
    of /opt/rocm (``6.4.0-47``, a link to /opt/rocm-6.4.0), or path → version for other layouts. ``driver``: the version of
    the amdgpu module, "" for one that came with the kernel.
    """
    for folder in ("sys", "proc", "dev", "opt", "usr", "etc"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "proc/version").write_text("Linux version 6.8.0-60-generic (demo)\n")
    (root / "proc/sys/kernel").mkdir(parents=True, exist_ok=True)
    (root / "proc/sys/kernel/osrelease").write_text("6.8.0-60-generic\n")
    if gpus:
        nodes = root / "sys/class/kfd/kfd/topology/nodes"
        _node(nodes, 0, CPU, 0, "")
        (root / "dev/dri").mkdir()
        (root / "dev/kfd").write_text("")
        for number, gpu in enumerate(gpus, 1):
            properties = {key: value for key, value in gpu.items() if key not in ("gpu_id", "name")}
            properties.setdefault("drm_render_minor", 127 + number)
            _node(nodes, number, properties, int(str(gpu.get("gpu_id", 1000 + number))), str(gpu.get("name", "ip discovery")))
            (root / f"dev/dri/renderD{properties['drm_render_minor']}").write_text("")
        (root / "sys/module/amdgpu").mkdir(parents=True)
        if driver:
            (root / "sys/module/amdgpu/version").write_text(f"{driver}\n")
    if isinstance(rocm, str) and rocm:
        folder = "rocm-" + rocm.split("-")[0]
        write_rocm(root / "opt" / folder, rocm)
        (root / "opt/rocm").symlink_to(f"/opt/{folder}")
    elif rocm:
        for path, version in dict(rocm).items():
            write_rocm(root / path.lstrip("/"), version)
    return root
