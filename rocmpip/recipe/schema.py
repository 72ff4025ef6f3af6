"""A recipe as it was decoded: templates and clauses, nothing matched and nothing filled yet."""

from __future__ import annotations

from collections.abc import Mapping

from rocmpip.model.recipe import ReadyWheels, Release, Source, SystemNeed
from rocmpip.model.record import Struct, field

SCHEMA = 1
"""The number in ``schema = 1``. A file with a higher one was written for a newer rocmpip."""


class When(Struct, frozen=True):
    """Conditions; all that are given must hold. Specifiers are PEP 440 text, ``rocm`` compares numbers."""

    version: str = ""
    rocm: str = ""
    python: str = ""
    torch: str = ""
    backend: tuple[str, ...] = ()
    gfx: tuple[str, ...] = ()
    """Every target matches one of these names or globs."""
    gfx_any: tuple[str, ...] = ()
    """At least one target does."""
    gfx_outside: tuple[str, ...] = ()
    """At least one target matches none of these."""

    def __str__(self) -> str:
        words = []
        for key in ("version", "rocm", "python", "torch"):
            if getattr(self, key):
                words.append(f"{key} {getattr(self, key)}")
        for key in ("backend", "gfx", "gfx_any", "gfx_outside"):
            if getattr(self, key):
                words.append(f"{key.replace('_', ' ')} {' '.join(getattr(self, key))}")
        return ", ".join(words)


class Setting(Struct, frozen=True):
    """One variable or config setting: ``value`` is a template."""

    key: str
    value: str
    force: bool = False
    note: str = ""


class Clause(Struct, frozen=True):
    """What one clause (the file's own tables, or one ``[[when]]``) says. ``None`` and empty mean it says nothing."""

    where: str
    """"" for the file's own tables, ``[[when]] #2`` for a clause."""
    when: When = field(default_factory=When)
    because: str = ""
    source: Source | None = None
    requires_dist: tuple[str, ...] | None = None
    wheels: tuple[ReadyWheels, ...] = ()
    system: tuple[SystemNeed, ...] = ()
    drop: tuple[str, ...] = ()
    """Variables and needs said earlier that do not count here."""
    env: tuple[Setting, ...] = ()
    config_settings: tuple[Setting, ...] = ()
    requires: tuple[str, ...] = ()
    isolation: bool | None = None
    memory_per_job: float | None = None
    ulimits: Mapping[str, int] = field(default_factory=dict)
    prepare: tuple[tuple[str, ...], ...] = ()
    runtime: tuple[Setting, ...] = ()
    import_name: str | None = None
    device_code: bool | None = None
    must_not_link: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()


class Backend(Struct, frozen=True):
    """One back end of a package. The first whose ``when`` holds is taken, unless the user names one."""

    name: str
    when: When = field(default_factory=When)
    summary: str = ""
    where: str = ""
    chosen_by: Mapping[str, str] = field(default_factory=dict)
    """Exported variables by which people choose this back end already: all equal means it is asked for."""


class Clash(Struct, frozen=True):
    """One ``[[conflict]]``, or ``[refuse]`` (kind refuse)."""

    message: str
    way_out: str
    when: When = field(default_factory=When)
    scope: str = "build"
    kind: str = "conflict"
    where: str = ""


class CudaName(Struct, frozen=True):
    """CUDA requirements (``cupy-cuda12x``, ``jax[cuda12]``) and what they mean on ROCm."""

    names: tuple[str, ...]
    name: str
    extras: tuple[str, ...] = ()
    when: When = field(default_factory=When)
    because: str = ""
    where: str = ""


class Recipe(Struct, frozen=True):
    """One decoded file."""

    name: str
    """Normalised; a leading ``_`` marks a template that is no package."""
    summary: str = ""
    aliases: tuple[str, ...] = ()
    tested: str = ""
    """The version whose source the recipe was written from: what ``recipe show`` takes when none is named."""
    extends: str = ""
    """A template's name, or the recipe's own name for the lower layer's recipe."""
    clauses: tuple[Clause, ...] = ()
    """The file's own tables first, then the ``[[when]]`` in order."""
    backends: tuple[Backend, ...] = ()
    clashes: tuple[Clash, ...] = ()
    cuda_names: tuple[CudaName, ...] = ()
    releases: tuple[Release, ...] = ()
    """Versions whose source is git, with their commits."""
    file: str = ""
    """File name, for clause texts."""
    path: str = ""
    layer: str = ""
