"""Placeholders: the one way a value depends on the machine. There is no shell and no expression.

``{gfx:;}`` joins the targets with ``;`` (also ``,`` and a space); ``{gfx}`` stands for exactly one target.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rocmpip.model.recipe import RecipeContext
from rocmpip.model.record import Struct

SEPARATORS = (";", ",", " ")
MEANINGS: Mapping[str, str] = {
    "gfx": "the one target GPU (an error when there are several)",
    "gfx:;": "the target GPUs joined with ;",
    "gfx:,": "the target GPUs joined with ,",
    "gfx: ": "the target GPUs joined with a space",
    "rocm_path": "root of the ROCm that builds: /opt/rocm",
    "hip_path": "root of HIP, the same as rocm_path on today's ROCm",
    "rocm": "ROCm version: 7.2.1",
    "rocm_minor": "major.minor: 7.2",
    "rocm_nodot": "major and minor without a dot: 72, 714",
    "jobs": "build jobs",
    "python": "Python of the target, major.minor: 3.12",
    "python_nodot": "312",
    "torch": "torch without its local label: 2.9.1",
    "torch_minor": "2.9",
    "version": "version of the package that is built",
    "site_packages": "site-packages of the target",
    "backend": "the back end that was chosen",
}
"""Every placeholder and what it becomes. Anything else in braces is an error."""

OF_THE_MACHINE = frozenset({"jobs", "rocm_path", "hip_path", "site_packages"})
"""Those that change nothing in the binary by themselves: a wheel's fingerprint leaves them open."""

_BRACES = re.compile(r"\{([^{}]*)\}|([{}])")


def faults_of(text: str) -> list[str]:
    """What is wrong with the placeholders of ``text``; empty when nothing is."""
    found = []
    for match in _BRACES.finditer(text):
        name = match.group(1)
        if match.group(2):
            found.append(f"has a lone {match.group(2)}")
        elif name not in MEANINGS:
            found.append("has the unknown placeholder " + ascii(match.group(0)[:40]))
    return found


def names_in(text: str) -> frozenset[str]:
    """The placeholders in ``text`` (``gfx:;`` and its kin count as ``gfx``)."""
    return frozenset((match.group(1) or "").split(":")[0] for match in _BRACES.finditer(text))


class EmptyTargets(Exception):
    """A value needs the target GPUs and none is known."""


class SeveralTargets(Exception):
    """A value can take one target GPU and there are several."""


class Filled(Struct, frozen=True):
    """``text`` filled for this machine; ``stable`` with OF_THE_MACHINE left open; ``missing`` names what is not known."""

    text: str
    stable: str
    missing: tuple[str, ...] = ()


def table(context: RecipeContext, version: str, backend: str) -> dict[str, str]:
    """Placeholder → text for one resolution ("" means not known). The gfx ones are not in it."""
    rocm = context.rocm
    torch = context.torch.partition("+")[0]
    return {
        "rocm_path": context.rocm_path,
        "hip_path": context.hip_path or context.rocm_path,
        "rocm": str(rocm) if rocm else "",
        "rocm_minor": f"{rocm.minor[0]}.{rocm.minor[1]}" if rocm else "",
        "rocm_nodot": f"{rocm.minor[0]}{rocm.minor[1]}" if rocm else "",
        "jobs": str(max(1, context.jobs)),
        "python": context.python,
        "python_nodot": context.python.replace(".", ""),
        "torch": torch,
        "torch_minor": ".".join(torch.split(".")[:2]),
        "version": version,
        "site_packages": context.site_packages,
        "backend": backend,
    }


def fill(text: str, values: Mapping[str, str], gfx: tuple[str, ...]) -> Filled:
    """Fill ``text``. Raises EmptyTargets and SeveralTargets for the gfx placeholders."""
    missing: list[str] = []

    def one(name: str) -> str:
        if name == "gfx" or name.startswith("gfx:"):
            if not gfx:
                raise EmptyTargets
            if name == "gfx" and len(gfx) > 1:
                raise SeveralTargets
            return name[4:].join(gfx)
        if not values[name]:
            missing.append(name)
        return values[name]

    filled = _BRACES.sub(lambda match: one(match.group(1)), text)
    stable = _BRACES.sub(lambda match: match.group(0) if match.group(1) in OF_THE_MACHINE else one(match.group(1)), text)
    return Filled(filled, stable, tuple(dict.fromkeys(missing)))
