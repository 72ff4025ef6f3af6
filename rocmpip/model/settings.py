"""One typed settings object. Order: flags > environment > trusted project > user > site > built-in."""

from __future__ import annotations

from collections.abc import Mapping

from rocmpip.model.record import Struct, field


class Settings(Struct, frozen=True):
    """Every value of ours. ``where`` tells for each field name where its value came from."""

    rocm: str = ""
    gfx: tuple[str, ...] = ()
    python: str = ""
    channel: str = "stable"
    """stable, test, nightly."""
    no_rocm_build: str = "fail"
    """What to do for a package without a ROCm build: fail, ask, cpu."""
    pytorch_url: str = ""
    """Root that holds whl/rocmX.Y; "" means the catalogue's."""
    amd_7_url: str = ""
    amd_10_url: str = ""
    cache_dir: str = ""
    state_dir: str = ""
    recipe_path: tuple[str, ...] = ()
    """Extra folders of recipes, lowest first."""
    catalogue_path: tuple[str, ...] = ()
    """Extra catalogue TOML files or folders, lowest first."""
    jobs: int = 0
    """Build jobs; 0 means from cores and memory."""
    hsa_override: bool = False
    """Accept wheels that run only under HSA_OVERRIDE_GFX_VERSION."""
    map_cuda_names: bool = False
    """Accept the ROCm package for a CUDA name (cupy-cuda12x → cupy-rocm-7-0)."""
    where: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What was left out and why (an untrusted project's keys)."""
