"""Two facts for a lock's header: which hipcc the ROCm root has, and which catalogue data decided."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from rocmpip.app.context import Context

HIP_VERSIONS = ("share/hip/version", "bin/.hipVersion", "include/hip/hip_version.h")
"""Where below a ROCm root HIP's version stands."""

_FIELD = re.compile(r"HIP_VERSION_(MAJOR|MINOR|PATCH)\s*=?\s*(\d+)")


def hipcc_version(context: Context) -> str:
    """HIP's version as the ROCm root states it in a file (hipcc itself is not run), or ""."""
    root = context.platform.rocm_root
    if not root:
        return ""
    from rocmpip.machine.files import Tree

    tree = Tree(context.env.get("ROCMPIP_SYSROOT") or None)
    for place in HIP_VERSIONS:
        found = dict(_FIELD.findall(tree.text(f"{root}/{place}") or ""))
        if {"MAJOR", "MINOR"} <= found.keys():
            return ".".join(found[key] for key in ("MAJOR", "MINOR", "PATCH") if key in found)
    return ""


def catalogue_version(context: Context) -> str:
    """A digest of the catalogue's data files, the user's own ones included: it changes when the data does."""
    digest = hashlib.sha256()
    folder = Path(__file__).parent.parent / "catalogue" / "data"
    paths = sorted(folder.glob("*.toml"))
    for text in context.settings.catalogue_path:
        place = Path(text)
        paths += sorted(place.glob("*.toml")) if place.is_dir() else [place]
    for path in paths:
        try:
            digest.update(path.read_bytes())
        except OSError:
            continue
    return digest.hexdigest()[:12]
