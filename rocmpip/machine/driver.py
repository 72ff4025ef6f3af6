"""Kernel, amdgpu driver, /dev/kfd, WSL and container: each a file that is there or not."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rocmpip.machine.files import Tree

MODULE = "/sys/module/amdgpu"
KERNEL = "/proc/sys/kernel/osrelease"
KFD_DEVICE = "/dev/kfd"
DXG = "/dev/dxg"
_MARKS = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
_GROUPS = ("docker", "containerd", "kubepods", "libpod", "lxc", "podman", "crio")
_VARIABLES = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER", "KUBERNETES_SERVICE_HOST", "container")


def read_kernel(tree: Tree) -> str:
    """The kernel's release, or ""."""
    return _word(tree.text(KERNEL, 256))


def read_driver(tree: Tree) -> tuple[str, str]:
    """amdgpu's version and the file that tells it. The DKMS module carries one; the kernel's own has none: "in-kernel"."""
    version = _word(tree.text(f"{MODULE}/version", 256))
    if version:
        return version, f"{MODULE}/version"
    return ("in-kernel", MODULE) if tree.is_folder(MODULE) else ("", "")


def kfd_state(tree: Tree) -> str:
    """ "ok", "denied" or "missing": can programs of this user reach the compute device?"""
    if not tree.exists(KFD_DEVICE):
        return "missing"
    return "ok" if tree.allows(KFD_DEVICE, os.R_OK | os.W_OK) else "denied"


def is_wsl(tree: Tree, kernel: str) -> bool:
    return tree.exists(DXG) or "microsoft" in kernel.lower()


def container_mark(tree: Tree, env: Mapping[str, str]) -> str:
    """The file or variable that gives a container away, or ""."""
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


def _word(text: str | None) -> str:
    """One printable line, or "" for anything else."""
    line = (text or "").strip()
    return line if line.isprintable() else ""
