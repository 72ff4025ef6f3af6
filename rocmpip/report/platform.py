"""The machine, the target environment and its torch family as JSON values: ``detect``'s result, ``platform`` elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from rocmpip.model.machine import InstalledDist, Platform, TargetEnv
from rocmpip.model.rocm import rocm_of_label

# Type checkers take the name for typing's own; importing that would cost detection 2 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def platform_result(platform: Platform) -> dict[str, Any]:
    """The machine part of ``detect --json``, which ``result.platform`` of other commands repeats."""
    chosen = platform.roots[0] if platform.rocm is not None and platform.roots else None
    return {
        "state": platform.state,
        "gpus": [
            {
                "gfx": gpu.gfx,
                "name": gpu.name,
                "pci_id": gpu.pci_id or None,
                "node": gpu.node,
                "integrated": gpu.integrated,
                "source": gpu.source,
                "location": gpu.location or None,
                "render_minor": gpu.render_minor,
                "uuid": gpu.uuid or None,
                "features": list(gpu.features),
                "visible": gpu.visible,
                "known": gpu.known,
            }
            for gpu in platform.gpus
        ],
        "gfx_targets": list(platform.gfx_targets),
        "gfx_source": platform.gfx_source,
        "rocm": [
            {
                "version": None if root.version is None else str(root.version),
                "path": root.path or None,
                "source": root.source,
                "chosen": root is chosen,
                "kind": root.kind,
            }
            for root in platform.roots
        ],
        "driver": platform.driver or None,
        "driver_source": platform.driver_source or None,
        "kernel": platform.kernel or None,
        "kernel_source": "/proc/sys/kernel/osrelease",
        "kfd": platform.kfd,
        "wsl": platform.wsl,
        "container": platform.container,
        "container_source": platform.container_source or None,
        "notes": list(platform.notes),
    }


def python_result(target: TargetEnv | None) -> dict[str, Any] | None:
    """``result.python``."""
    if target is None:
        return None
    return {
        "path": target.python,
        "version": target.version,
        "kind": target.kind,
        "prefix": target.prefix,
        "source": target.source,
    }


def build_label(dist: InstalledDist) -> str:
    """Which build a version is: ``2.9.1+rocm6.4`` → rocm6.4, ``+cu128`` → cu128, ``+cpu`` → cpu, none → unlabelled."""
    local = dist.version.partition("+")[2]
    rocm = rocm_of_label(dist.version)
    if rocm is not None:
        return f"rocm{rocm.text}"
    if local:
        return local
    return "rocm" if dist.name.endswith("-rocm") else "unlabelled"


def torch_result(dists: Sequence[InstalledDist]) -> list[dict[str, Any]]:
    """``result.torch[]``."""
    return [{"name": dist.name, "version": dist.version, "build": build_label(dist), "path": dist.path} for dist in dists]
