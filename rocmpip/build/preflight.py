"""What a recipe needs on the machine, looked for before any work starts; everything missing is told at once."""

from __future__ import annotations

import os
import re
import shutil
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from rocmpip.build.surroundings import first_version, run_briefly
from rocmpip.model.errors import Refused
from rocmpip.model.packages import normalise
from rocmpip.model.provenance import subject
from rocmpip.model.recipe import ResolvedRecipe, SystemNeed
from rocmpip.model.record import Struct, replace
from rocmpip.model.rocm import RocmVersion

_DEVICE_COMPILER = "hipcc"
_ONLY_NAMED = "that ROCm was named and is not installed here; --rocm (ROCMPIP_ROCM) chooses the one to build with"


class Missing(Struct, frozen=True):
    """One need that is not met, and what is there instead."""

    need: SystemNeed
    found: str = ""
    """"cmake 3.18.4" when it is there but out of bounds."""

    def __str__(self) -> str:
        words = {"tool": "program", "header": "header", "cmake": "CMake package", "library": "library"}
        text = f"{words.get(self.need.kind, self.need.kind)} {self.need.name}"
        if self.need.specifier:
            text += f" {self.need.specifier}"
        text += f" (here: {self.found})" if self.found else ""
        return f"{text}: {self.need.reason}" if self.need.reason else text


def missing_needs(
    recipe: ResolvedRecipe,
    *,
    rocm_root: str,
    hip_root: str,
    env: Mapping[str, str],
    target_prefix: str = "",
    only_named: RocmVersion | None = None,
) -> tuple[Missing, ...]:
    """All needs of the recipe that are not met. A tool that the build requirements bring (cmake, ninja) is not looked for.

    ``only_named`` is a ROCm that was named where the machine has another (--rocm): a hipcc counts only when it is that ROCm's.
    """
    roots = tuple(dict.fromkeys(root for root in (hip_root, rocm_root) if root))
    brought = set() if recipe.isolation else {_project(text) for text in recipe.requires}
    found = []
    for need in recipe.system:
        if need.kind == "tool":
            if normalise(need.name) in brought:
                continue
            missing = _tool(need, roots, env, target_prefix)
            if missing is None and need.name == _DEVICE_COMPILER and only_named is not None:
                missing = _of_another_rocm(need, only_named, env, target_prefix)
        elif need.kind == "header":
            missing = _file(need, _include_folders(roots, env), (need.name,))
        elif need.kind == "cmake":
            missing = _cmake(need, roots, env)
        else:
            missing = _file(need, _library_folders(roots, env), (need.name,))
        if missing is not None:
            found.append(missing)
    return tuple(found)


def refuse_missing(recipe: ResolvedRecipe, missing: tuple[Missing, ...]) -> None:
    """Raise Refused naming all of them, with one line for apt, one for dnf, one for TheRock's pip packages."""
    if not missing:
        return
    lines = []
    for label, command in (("apt", "apt-get install"), ("dnf", "dnf install"), ("therock", "pip install")):
        packages = dict.fromkeys(word for one in missing for word in str(getattr(one.need, label)).split() if word)
        if packages:
            name = {"apt": "Debian, Ubuntu", "dnf": "Fedora, RHEL", "therock": "TheRock"}[label]
            lines.append(f"{name}: {command} {' '.join(packages)}")
    count = len(missing)
    raise Refused(
        f"building {subject(recipe.name, recipe.version)} needs {count} thing{'s' if count > 1 else ''} that "
        f"{'are' if count > 1 else 'is'} not on this machine",
        why="; ".join(str(one) for one in missing),
        hint=" | ".join(lines) or "install what is missing, then run the same command again",
        details=(*(f"missing: {one}" for one in missing), *lines),
    )


def _project(requirement: str) -> str:
    end = next((i for i, char in enumerate(requirement) if not (char.isalnum() or char in "-_.")), len(requirement))
    return normalise(requirement[:end])


def _tool_path(roots: tuple[str, ...], env: Mapping[str, str], prefix: str) -> str:
    folders = [str(Path(root, *place)) for root in roots for place in (("bin",), ("llvm", "bin"), ("lib", "llvm", "bin"))]
    folders += [str(Path(prefix) / "bin")] if prefix else []
    return os.pathsep.join([env.get("PATH", os.defpath), *folders])


def _tool(need: SystemNeed, roots: tuple[str, ...], env: Mapping[str, str], prefix: str) -> Missing | None:
    program = shutil.which(need.name, path=_tool_path(roots, env, prefix))
    if program is None:
        return Missing(need)
    if not need.specifier:
        return None
    text = run_briefly([program, "--version"], {**env, "HIP_PLATFORM": "amd"}) or run_briefly([program, "-version"], env)
    version = first_version(text)
    try:
        bounds = SpecifierSet(need.specifier)
    except InvalidSpecifier:
        return Missing(need, f"bounds {need.specifier!r} cannot be read")
    if not version:
        return Missing(need, f"{program} does not tell its version")
    shown = ".".join(map(str, version))
    return None if bounds.contains(Version(shown), prereleases=True) else Missing(need, f"{need.name} {shown}")


def _of_another_rocm(need: SystemNeed, rocm: RocmVersion, env: Mapping[str, str], prefix: str) -> Missing | None:
    """Nothing where the hipcc on PATH is of ``rocm``'s major.minor: its compiler's tag says so, else the version of HIP."""
    program = shutil.which(need.name, path=_tool_path((), env, prefix))
    text = run_briefly([program, "--version"], {**env, "HIP_PLATFORM": "amd"}) if program else ""
    says = re.search(r"\broc-(\d+\.\d+)", text) or re.search(r"HIP version: *(\d+\.\d+)", text)
    has = says.group(1) if says else "unknown"
    if has == ".".join(map(str, rocm.minor)):
        return None
    # No package is named: what a distribution has under that name may be the very hipcc that is here.
    wanted = replace(need, specifier=f"of ROCm {rocm}", reason=_ONLY_NAMED, apt="", dnf="", therock="")
    return Missing(wanted, f"that of ROCm {has}")


def _include_folders(roots: tuple[str, ...], env: Mapping[str, str]) -> list[str]:
    listed = [folder for name in ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH") for folder in env.get(name, "").split(":")]
    own = [str(Path(root) / "include") for root in roots]
    return [*own, *listed, "/usr/include", "/usr/local/include", *(f"/usr/include/{arch}" for arch in _multiarch())]


def _library_folders(roots: tuple[str, ...], env: Mapping[str, str]) -> list[str]:
    listed = [folder for name in ("LIBRARY_PATH", "LD_LIBRARY_PATH") for folder in env.get(name, "").split(":")]
    own = [str(Path(root) / leaf) for root in roots for leaf in ("lib", "lib64")]
    system = ["/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/usr/local/lib64"]
    arches = [f"{base}/{arch}" for base in ("/usr/lib", "/lib") for arch in _multiarch()]
    return [*own, *listed, *system, *arches]


def _multiarch() -> tuple[str, ...]:
    """Debian's folder name for this machine's libraries."""
    name = sysconfig.get_config_var("MULTIARCH")
    return (str(name),) if name else ()


def _file(need: SystemNeed, folders: list[str], names: tuple[str, ...]) -> Missing | None:
    there = any(folder and (Path(folder) / name).exists() for folder in folders for name in names)
    return None if there else Missing(need)


def _cmake(need: SystemNeed, roots: tuple[str, ...], env: Mapping[str, str]) -> Missing | None:
    """``find_package`` in config mode: PACKAGE-config.cmake or PackageConfig.cmake in a folder named like the package."""
    prefixes = [*roots, *env.get("CMAKE_PREFIX_PATH", "").replace(";", ":").split(":"), "/usr", "/usr/local"]
    wanted = {f"{need.name}-config.cmake".lower(), f"{need.name}config.cmake".lower()}
    direct = env.get(f"{need.name}_DIR", "")
    folders = [Path(direct)] if direct else []
    for prefix in dict.fromkeys(prefix for prefix in prefixes if prefix):
        for leaf in ("lib", "lib64", "share", *(f"lib/{arch}" for arch in _multiarch())):
            base = Path(prefix) / leaf / "cmake"
            try:
                folders += [entry for entry in base.iterdir() if entry.name.lower().startswith(need.name.lower())]
            except OSError:
                continue
    for folder in folders:
        try:
            if any(entry.name.lower() in wanted for entry in folder.iterdir()):
                return None
        except OSError:
            continue
    return Missing(need)
