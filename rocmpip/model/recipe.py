"""A recipe after ``when`` clauses matched and placeholders were filled: what a build of one version will set and run."""

from __future__ import annotations

from collections.abc import Mapping

from rocmpip.model.record import Struct, field
from rocmpip.model.rocm import RocmVersion


class RecipeContext(Struct, frozen=True):
    """What ``when`` clauses match on and placeholders are filled from."""

    gfx: tuple[str, ...] = ()
    rocm: RocmVersion | None = None
    torch: str = ""
    """Version with local label, or ""."""
    python: str = ""
    """major.minor: 3.12."""
    backend: str = ""
    """The user's choice among a recipe's back ends, or ""."""
    rocm_path: str = ""
    hip_path: str = ""
    jobs: int = 1
    site_packages: str = ""


class Value(Struct, frozen=True):
    """One variable or config setting, with the clause it came from (``flash-attn.toml: [[when]] #2 gfx = …``)."""

    key: str
    value: str
    clause: str
    force: bool = False
    """The recipe's value wins over the user's."""
    note: str = ""
    """For people: "no known version reads it"."""


class Explained(Struct, frozen=True):
    """One thing a recipe says, for ``recipe show``: where it stands in the schema, and the clause it came from."""

    section: str
    """build.env, build.requires, system, wheels, runtime, verify, source …"""
    key: str
    value: str
    clause: str
    note: str = ""


class SystemNeed(Struct, frozen=True):
    """One thing that must be on the machine before work starts."""

    kind: str
    """tool, header, cmake, library."""
    name: str
    """Program name, header path (``hip/hip_runtime.h``), CMake package, or library (``libaio.so``)."""
    specifier: str = ""
    """Version bounds for tools: ``>=3.20,<4``."""
    apt: str = ""
    dnf: str = ""
    therock: str = ""
    """What TheRock's pip packages offer for it."""
    reason: str = ""
    clause: str = ""


class Source(Struct, frozen=True):
    """Where the source comes from: an sdist of the package's own index, or git over https with a full commit."""

    kind: str = "sdist"
    """sdist, git, or none (never built here: ready wheels only)."""
    url: str = ""
    commit: str = ""
    submodules: bool = False
    subdirectory: str = ""
    reason: str = ""
    """For kind none: why there is nothing to build from."""
    way_out: str = ""


class Release(Struct, frozen=True):
    """One version of a package whose source is git, pinned by commit."""

    version: str
    commit: str
    torch: str = ""
    """major.minor of the torch it is made for, "" for any."""


class ReadyWheels(Struct, frozen=True):
    """An index with ready ROCm wheels, tried before any build."""

    index: str
    """An https URL, "default" (the user's own indexes), or "family" (the index that torch was chosen from)."""
    name: str = ""
    """The project's name there when it differs."""
    specifier: str = ""
    clause: str = ""
    local: str = ""
    """The local label a file must carry to be taken (``rocm721``), or "" for any."""


class MappedName(Struct, frozen=True):
    """What a CUDA name means on ROCm. Used only on the user's word (``map_cuda_names``)."""

    asked: str
    """As asked for, normalised, with extras: ``jax[cuda12]``."""
    name: str
    """Normalised name to install instead."""
    extras: tuple[str, ...] = ()
    because: str = ""
    clause: str = ""


class Conflict(Struct, frozen=True):
    """A combination that cannot work: steers the choice of torch, or refuses."""

    message: str
    hint: str = ""
    clause: str = ""
    torch: str = ""
    """Specifier of the torch versions that are in conflict (">=2.14"), "" when torch does not matter."""
    kind: str = "conflict"
    """conflict (a combination) or refuse (never works on ROCm)."""
    version: str = ""
    """Specifier of the package's own versions that it is about, "" for all."""
    scope: str = "build"
    """build (a ready wheel is free of it) or any."""
    certain: bool = True
    """False when only the torch version is not known yet: it steers, it does not refuse."""


class Verify(Struct, frozen=True):
    """What the built wheel must be like."""

    import_name: str = ""
    device_code: bool = False
    """It must hold code objects for every gfx asked for."""
    must_not_link: tuple[str, ...] = ("libcudart.so", "libcuda.so", "libcublas.so", "libnvrtc.so", "libcudnn.so")


class ResolvedRecipe(Struct, frozen=True):
    """Everything one build needs to know."""

    name: str
    version: str
    layer: str
    """shipped, site, user, project, or --recipe."""
    path: str
    digest: str
    """sha256 of every value that reaches the build (jobs and paths of this machine left as placeholders, comments and
    notes left out): part of the wheelhouse fingerprint."""
    source: Source = field(default_factory=Source)
    backend: str = ""
    env: tuple[Value, ...] = ()
    config_settings: tuple[Value, ...] = ()
    requires: tuple[str, ...] = ()
    """Build requirements with bounds, installed into an overlay."""
    isolation: bool = False
    memory_per_job: float = 2.0
    """GiB."""
    ulimits: Mapping[str, int] = field(default_factory=dict)
    prepare: tuple[tuple[str, ...], ...] = ()
    system: tuple[SystemNeed, ...] = ()
    wheels: tuple[ReadyWheels, ...] = ()
    runtime: tuple[Value, ...] = ()
    verify: Verify = field(default_factory=Verify)
    requires_dist: tuple[str, ...] | None = None
    """The installed package's static Requires-Dist for this version; None when only a build can tell."""
    conflicts: tuple[Conflict, ...] = ()
    """Those that match (or could match, for torch steering) this context."""
    notes: tuple[str, ...] = ()
    explanation: tuple[Explained, ...] = ()
    """Every value with its clause, in the order of the schema."""
    summary: str = ""

    @property
    def refusals(self) -> tuple[Conflict, ...]:
        """The conflicts that forbid building this, here, with this torch."""
        return tuple(conflict for conflict in self.conflicts if conflict.certain)
