"""The target's installed distributions with their requirements, read from their METADATA."""

from __future__ import annotations

from pathlib import Path

from rocmpip.app.context import Context
from rocmpip.plan.assemble import Installed
from rocmpip.plan.metadata import parse_metadata


def installed_with_requirements(context: Context) -> dict[str, Installed]:
    """Normalised name → version and Requires-Dist. Unreadable metadata counts as no requirements."""
    if context.request.target or context.request.ignore_installed:
        return {}
    from rocmpip.target.environment import installed

    result: dict[str, Installed] = {}
    for dist in installed(context.target.site_packages):
        result.setdefault(dist.name, Installed(dist.name, dist.version, *_read(dist.path)))
    return result


def _read(folder: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """(Requires-Dist, normalised Provides-Extra)."""
    for name in ("METADATA", "PKG-INFO"):
        try:
            found = parse_metadata((Path(folder) / name).read_bytes())
        except OSError:
            continue
        return found.requires_dist, found.provides_extra
    return (), frozenset()
