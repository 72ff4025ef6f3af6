"""GPUs as the kernel's compute driver (KFD) lists them in sysfs: no ROCm and no program needed.

``nodes/N/properties`` holds "key value" lines with decimal values; ``nodes/N/name`` is a separate file. A GPU has
simd_count > 0, vendor_id 4098 and gfx_target_version ≠ 0. Nodes of devices that a container may not use answer EPERM.
(Kernel: drivers/gpu/drm/amd/amdkfd/kfd_topology.c.)
"""

from __future__ import annotations

import errno
from collections.abc import Mapping

from rocmpip.machine.files import Tree, reason
from rocmpip.model.gfx import decode_kfd
from rocmpip.model.machine import Gpu

NODES = "/sys/class/kfd/kfd/topology/nodes"
AMD = 4098
"""PCI vendor 0x1002."""

_WANTED = frozenset(
    {
        "cpu_cores_count",
        "simd_count",
        "simd_per_cu",
        "gfx_target_version",
        "vendor_id",
        "device_id",
        "location_id",
        "domain",
        "drm_render_minor",
        "unique_id",
    }
)

_TELLING = frozenset({"simd_count", "gfx_target_version", "cpu_cores_count"})
"""A file without any of these is no properties file."""

SMALL_SIMD_PER_CU = 2
SMALL_COMPUTE_UNITS = 4
"""Display-class iGPUs have two compute units; no discrete card that KFD knows has four or fewer."""


def parse_properties(text: str) -> dict[str, int]:
    """The properties that count here, from "key value" lines; values are decimals of at most 20 digits (u64).

    Anything else is left out, and the first of two lines with one key counts.
    """
    found: dict[str, int] = {}
    for line in text.splitlines():
        key, _, value = line.strip().partition(" ")
        if key in _WANTED:
            value = value.strip()
            if value.isascii() and value.isdigit() and len(value) <= 20:
                found.setdefault(key, int(value))
    return found


def read_topology(tree: Tree) -> tuple[tuple[Gpu, ...], int, bool]:
    """All GPU nodes in numeric order, the number of masked nodes, and whether sysfs answered at all.

    It did not when there is no topology or none of its nodes could be read.
    """
    numbers = sorted(int(name) for name in tree.names(NODES) if name.isascii() and name.isdigit() and len(name) < 10)
    gpus: list[Gpu] = []
    masked: list[int] = []
    read = 0
    for number in numbers:
        path = f"{NODES}/{number}/properties"
        try:
            text = tree.bytes_of(path).decode("utf-8", "replace")
        except OSError as problem:
            if problem.errno in (errno.EPERM, errno.EACCES):
                masked.append(number)
            else:
                tree.note(f"{path} cannot be read: {reason(problem)}")
            continue
        properties = parse_properties(text)
        if not properties.keys() & _TELLING:
            tree.note(f"{path} holds no node properties: node {number} is left out")
            continue
        read += 1
        gpu = _gpu(tree, number, path, properties)
        if gpu is not None:
            gpus.append(gpu)
    if masked:
        which = ", ".join(str(number) for number in masked)
        tree.note(
            f"KFD node{'s' if len(masked) > 1 else ''} {which}: permission denied. Other GPUs are on this machine that "
            "this container or user may not use; they are left out"
        )
    return tuple(gpus), len(masked), read > 0


def _gpu(tree: Tree, number: int, path: str, properties: Mapping[str, int]) -> Gpu | None:
    """The node as a GPU, or None for a CPU (and, with a note, for what cannot be told)."""
    version = properties.get("gfx_target_version", 0)
    simds = properties.get("simd_count", 0)
    vendor = properties.get("vendor_id")
    if simds == 0 and version == 0:
        return None
    if vendor not in (AMD, None):
        return None
    if simds == 0 or version == 0 or vendor is None:
        missing = [key for key in ("simd_count", "gfx_target_version", "vendor_id") if not properties.get(key)]
        if version == 0 or simds == 0:
            tree.note(f"{path}: {' and '.join(missing)} missing or 0: node {number} does not count as a GPU")
            return None
        tree.note(f"{path}: vendor_id is missing; its gfx_target_version counts all the same")
    try:
        gfx = decode_kfd(version)
    except ValueError as problem:
        tree.note(f"{path}: {problem}: node {number} is left out")
        return None
    device = properties.get("device_id", 0)
    unique = properties.get("unique_id", 0)
    minor = properties.get("drm_render_minor", 0)
    return Gpu(
        gfx=gfx,
        name=_name(tree, number),
        pci_id=f"1002:{device:04x}" if 0 < device <= 0xFFFF else "",
        node=number,
        integrated=_looks_integrated(properties),
        source=path,
        location=_location(properties),
        render_minor=minor or None,
        uuid=f"GPU-{unique:016x}" if unique else "",
    )


def _name(tree: Tree, number: int) -> str:
    """The driver's own word for the chip (``vega20``); new chips all say "ip discovery", which names nothing."""
    try:
        text = tree.bytes_of(f"{NODES}/{number}/name", 256).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    return text if text.isprintable() and text != "ip discovery" else ""


def _location(properties: Mapping[str, int]) -> str:
    """PCI address of ``location_id`` (bus << 8 | device << 3 | function) and ``domain``."""
    place = properties.get("location_id", 0)
    if not 0 < place <= 0xFFFF:
        return ""
    return f"{properties.get('domain', 0):04x}:{place >> 8:02x}:{place >> 3 & 31:02x}.{place & 7}"


def _looks_integrated(properties: Mapping[str, int]) -> bool:
    """A guess for chips that no table knows: a node that is CPU and GPU at once, or one with very few compute units."""
    if properties.get("cpu_cores_count", 0) > 0:
        return True
    per_unit = properties.get("simd_per_cu", 0) or SMALL_SIMD_PER_CU
    return properties.get("simd_count", 0) // per_unit <= SMALL_COMPUTE_UNITS
