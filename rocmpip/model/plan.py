"""The plan: everything an install will do, decided before anything is done."""

from __future__ import annotations

from rocmpip.model.packages import File
from rocmpip.model.record import Struct, field
from rocmpip.model.rocm import RocmVersion


class Tried(Struct, frozen=True):
    """One index family that came into question, and what became of it."""

    family: str
    url: str
    verdict: str
    """"chosen", "fell out", "not needed"."""
    because: str
    torch: str = ""
    """Highest torch there that fits the request, when one does."""


class FamilyChoice(Struct, frozen=True):
    """The one ROCm family that torch-family names come from, with exact pins."""

    family: str
    """Catalogue name: "pytorch.org rocm6.4"."""
    index_url: str
    rocm: RocmVersion
    pins: dict[str, str]
    """Normalised name → exact version with local label, torch first."""
    extras: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Extras to add: {"torch": ("device-gfx942",)}."""
    because: tuple[str, ...] = ()
    tried: tuple[Tried, ...] = ()
    notes: tuple[str, ...] = ()


class PlanItem(Struct, frozen=True):
    """One package of the plan (a row of ``result.plan[]``)."""

    name: str
    version: str
    action: str
    """install, replace, keep, build."""
    origin: str
    """index, wheelhouse, build, url."""
    file: File | None = None
    installed_version: str = ""
    because: tuple[str, ...] = ()
    direct: bool = False
    """Named by the user rather than pulled in."""
    recipe: str = ""
    """Recipe that builds it, or ""."""


class Plan(Struct, frozen=True):
    """All packages, kept ones too, in install order: torch family, builds, the rest."""

    items: tuple[PlanItem, ...]
    choice: FamilyChoice | None = None
    notes: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()
    """Installed CUDA packages that nothing needs any more."""
    loose: tuple[PlanItem, ...] = ()
    """What pip builds after all of that, with a version that only its build tells: repositories, local folders. Name and version
    are "" as long as they are not known."""
