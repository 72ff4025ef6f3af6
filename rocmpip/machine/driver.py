"""Kernel, amdgpu driver, /dev/kfd, WSL and container: each a file that is there or not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from rocmpip.machine.files import Tree

MODULE = "/sys/module/amdgpu"
KERNEL = "/proc/sys/kernel/osrelease"
KFD_DEVICE = "/dev/kfd"
DXG = "/dev/dxg"
_MARKS = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
_GROUPS = ("docker", "containerd", "kubepods", "libpod", "lxc", "podman", "crio")
_VARIABLES = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER", "KUBERNETES_SERVICE_HOST", "container")


@dataclass(frozen=True)
class Host:
    """The fields of Evidence that are neither GPUs nor ROCm."""

    driver: str
    driver_source: str
    kernel: str
    kfd: str
    wsl: bool
    container: str
    """What gave the container away, or ""."""


def read_host(tree: Tree, env: Mapping[str, str]) -> Host:
    kernel = _word(tree.text(KERNEL, 256))
    # The DKMS module carries a version; the kernel's own has none.
    version = _word(tree.text(f"{MODULE}/version", 256))
    driver, source = "", ""
    if version:
        driver, source = version, f"{MODULE}/version"
    elif tree.is_folder(MODULE):
        driver, source = "in-kernel", MODULE
    return Host(
        driver=driver,
        driver_source=source,
        kernel=kernel,
        kfd=_kfd(tree),
        wsl=tree.exists(DXG) or "microsoft" in kernel.lower(),
        container=_container(tree, env),
    )


def _word(text: str | None) -> str:
    """One printable line, or "" for anything else."""
    line = (text or "").strip()
    return line if line.isprintable() else ""


def _kfd(tree: Tree) -> str:
    if not tree.exists(KFD_DEVICE):
        return "missing"
    return "ok" if tree.allows(KFD_DEVICE, os.R_OK | os.W_OK) else "denied"


def _container(tree: Tree, env: Mapping[str, str]) -> str:
    for mark in _MARKS:
        if tree.exists(mark):
            return mark
    try:
        groups = tree.bytes_of("/proc/1/cgroup", 4096).decode("utf-8", "replace")
    except OSError:
        groups = ""
    if any(word in groups for word in _GROUPS):
        return "/proc/1/cgroup"
    return next((name for name in _VARIABLES if env.get(name)), "")
