"""The environment variables that say something about the machine. Nothing else of the environment is kept."""

from __future__ import annotations

from collections.abc import Mapping

VISIBLE = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
"""The HSA runtime applies the first; HIP counts what that left, by the second, else by the third."""

EXPORTED = ("PYTORCH_ROCM_ARCH", "GPU_ARCHS", "HIP_ARCHS", "HIP_ARCHITECTURES")
"""What people export for builds, in the order in which one counts."""

OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
"""Also with _N behind it for the GPU of that number."""


_PLAIN = frozenset(VISIBLE + EXPORTED)


def relevant(env: Mapping[str, str]) -> dict[str, str]:
    """The part of ``env`` that ``judge`` reads."""
    return {name: value for name, value in env.items() if name in _PLAIN or name.startswith(OVERRIDE)}


def for_programs(env: Mapping[str, str]) -> dict[str, str]:
    """``env`` for helper programs, which must tell what is there, not what is let through or renamed, and write nothing."""
    kept = {name: value for name, value in env.items() if name not in VISIBLE and not name.startswith(OVERRIDE)}
    # amd-smi is a Python program.
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1"}
