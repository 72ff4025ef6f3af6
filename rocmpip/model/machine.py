"""What was seen of a machine (Evidence) and what it means (Platform).

Every fact carries ``source``: the file, variable or command it was read from, without the sysroot.
"""

from __future__ import annotations

from collections.abc import Mapping

from rocmpip.model.record import Struct, field
from rocmpip.model.rocm import RocmVersion


class Gpu(Struct, frozen=True):
    """One GPU (or one die or partition: KFD counts each as a node)."""

    gfx: str
    """Name without target features: gfx90a."""
    name: str = ""
    """Product name, or what the source calls it."""
    pci_id: str = ""
    """``vendor:device`` in hex: 1002:74a1."""
    node: int | None = None
    """KFD node number."""
    integrated: bool = False
    source: str = ""
    features: tuple[str, ...] = ()
    """Target features when known: ("sramecc+", "xnack-")."""
    location: str = ""
    """PCI address: 0000:c6:00.0."""
    render_minor: int | None = None
    """N of /dev/dri/renderDN."""
    known: bool = True
    """False when the gfx was decoded by number and the catalogue has no row for it."""
    uuid: str = ""
    """The runtime's name for it, ``GPU-`` and 16 hex digits, as *_VISIBLE_DEVICES accepts it."""
    visible: bool = True
    """False when a *_VISIBLE_DEVICES variable hides it."""


class RocmRoot(Struct, frozen=True):
    """One ROCm installation."""

    version: RocmVersion | None
    path: str
    source: str
    kind: str = "root"
    """root (/opt/rocm…), distribution (/usr), pip (_rocm_sdk_core), conda, override."""


class Evidence(Struct, frozen=True):
    """All that was seen, undigested. ``notes`` are things odd but harmless (a masked node, a broken file)."""

    gpus: tuple[Gpu, ...] = ()
    roots: tuple[RocmRoot, ...] = ()
    driver: str = ""
    """amdgpu module version (DKMS), or empty."""
    driver_source: str = ""
    kernel: str = ""
    kfd: str = ""
    """State of /dev/kfd: "", "ok", "denied", "missing"."""
    masked_nodes: int = 0
    wsl: bool = False
    container: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    """The variables that matter (see machine.judge), as they were."""
    notes: tuple[str, ...] = ()
    container_source: str = ""
    """The file or variable that gives the container away."""


class InstalledDist(Struct, frozen=True):
    """One distribution in an environment."""

    name: str
    """Normalised."""
    version: str
    path: str = ""
    """Its .dist-info folder."""


class TargetEnv(Struct, frozen=True):
    """The environment that installs go into."""

    python: str
    """Path of its interpreter."""
    version: str
    """Full version, 3.12.1."""
    kind: str
    """venv, conda, system, container."""
    prefix: str
    site_packages: tuple[str, ...]
    """purelib first, then platlib when it differs."""
    source: str
    """Why this one: "--python", "VIRTUAL_ENV", "CONDA_PREFIX", "the interpreter that runs rocmpip"."""
    has_pip: bool = False
    own: bool = False
    """True when it is the environment that runs rocmpip."""
    externally_managed: bool = False


class Platform(Struct, frozen=True):
    """The verdict on a machine: what installs aim at."""

    gpus: tuple[Gpu, ...]
    gfx_targets: tuple[str, ...]
    """gfx names that installs must cover, in order, without features and repeats."""
    gfx_source: str
    """"--gfx", "ROCMPIP_GFX", "detected", "PYTORCH_ROCM_ARCH", … or ""."""
    rocm: RocmVersion | None
    rocm_root: str
    """Path of the root that wins, or "" (an override without a root)."""
    rocm_source: str
    roots: tuple[RocmRoot, ...]
    driver: str = ""
    kernel: str = ""
    wsl: bool = False
    container: bool = False
    notes: tuple[str, ...] = ()
    driver_source: str = ""
    kfd: str = ""
    """State of /dev/kfd: "", "ok", "denied", "missing"."""
    container_source: str = ""
    """The file or variable that gives the container away."""

    @property
    def only_named(self) -> RocmVersion | None:
        """The ROCm, where the command line asks for one and another is what the machine has. ROCMPIP_ROCM overrides what is
        detected: it is the user's word for what the probe does not see, and so is --rocm where no ROCm is found."""
        asked = self.rocm_source.startswith("--") and not self.rocm_root
        return self.rocm if asked and any(root.path for root in self.roots) else None

    @property
    def state(self) -> str:
        """ "gpu" (targets known), "rocm" (ROCm but no GPU known), or "none"."""
        if self.gfx_targets:
            return "gpu"
        return "rocm" if self.rocm is not None else "none"


class TargetFacts(Struct, frozen=True):
    """PEP 508 marker variables (without ``extra``), and wheel tags, best first."""

    markers: dict[str, str]
    tags: tuple[str, ...]
