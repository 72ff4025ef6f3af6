"""AMD's ``rocm`` package without its guess at the GPU: static metadata for the target GPUs, and the environment its build needs.

``rocm`` is an sdist whose setup.py looks for a GPU when it is built. What it would declare is known (TheRock,
build_tools/packaging/python/templates/rocm): ``rocm-sdk-core`` always; the extras ``libraries``, ``devel``, ``profiler``, and in
multi-arch releases ``device`` (the GPU that was found), ``device-gfx…`` (one each) and ``device-all``; each at rocm's own version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from packaging.version import InvalidVersion, Version

from rocmpip.catalogue.gfx import GfxTable, load_gfx
from rocmpip.model.packages import normalise


def rocm_metadata(
    version: str,
    *,
    gfx: Sequence[str],
    style: str = "thin",
    has: Mapping[str, Iterable[str]] | None = None,
    table: GfxTable | None = None,
) -> bytes:
    """The METADATA of ``rocm`` at ``version`` for these target GPUs.

    ``device-all`` and ``device`` are narrowed to the targets, so that pytorch.org's thin torch, which asks for
    ``rocm[libraries,device-all]``, brings the kernels of these GPUs alone. ``style`` "family" gives the older form of AMD's
    per-family indexes (``rocm-sdk-libraries-gfx110x-all``, no device packages); every other style the multi-arch form.
    ``has`` tells which versions an index holds (normalised name → versions): where a part has no release of rocm's own version
    (``7.14.0.post1`` mends rocm alone), the newest of the same release is asked for. Raises ValueError for no version.
    """
    try:
        own = Version(version)
    except InvalidVersion as problem:
        raise ValueError(f"{version!r} is not a version of rocm") from problem
    known = has or {}
    families = table or load_gfx()

    def part(name: str) -> str:
        return f"{name}=={_nearest(own, known.get(normalise(name), ()))}"

    extras: dict[str, list[str]] = {"devel": [part("rocm-sdk-devel")], "profiler": [part("rocm-profiler")]}
    if style == "family":
        family = next((families.family(name) for name in gfx if families.family(name)), "")
        extras["libraries"] = [part(f"rocm-sdk-libraries-{family}" if family else "rocm-sdk-libraries")]
    else:
        devices = [part(f"rocm-sdk-device-{name}") for name in dict.fromkeys(gfx)]
        extras["libraries"] = [part("rocm-sdk-libraries")]
        extras.update({f"device-{name}": [part(f"rocm-sdk-device-{name}")] for name in dict.fromkeys(gfx)})
        extras["device"] = devices
        extras["device-all"] = devices
    lines = [
        "Metadata-Version: 2.1",
        "Name: rocm",
        f"Version: {own}",
        "Summary: ROCm as Python packages, for the GPUs of this machine",
        f"Requires-Dist: {part('rocm-sdk-core')}",
    ]
    for extra in sorted(extras):
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {need}; extra == "{extra}"' for need in extras[extra]]
    return ("\n".join(lines) + "\n\n").encode()


def rocm_build_env(gfx: Sequence[str], *, style: str = "thin", table: GfxTable | None = None) -> dict[str, str]:
    """What a build of the ``rocm`` sdist needs so that it does not look at the machine.

    ``ROCM_SDK_TARGET_FAMILY`` is a gfx name in multi-arch releases and a family (``gfx110X-all``) in per-family ones; with two
    GPUs the first is named, since ``device-all`` does not depend on it. Empty when no target is given.
    """
    if not gfx:
        return {}
    name = (table or load_gfx()).family(gfx[0]) or gfx[0] if style == "family" else gfx[0]
    return {"ROCM_SDK_TARGET_FAMILY": name}


def _nearest(own: Version, available: Iterable[str]) -> str:
    """``own`` if it is there or nothing is known, else the newest version of the same release."""
    same: list[Version] = []
    for text in available:
        try:
            version = Version(text)
        except InvalidVersion:
            continue
        if version == own:
            return str(own)
        if version.release == own.release and version.is_prerelease == own.is_prerelease:
            same.append(version)
    return str(max(same)) if same else str(own)
