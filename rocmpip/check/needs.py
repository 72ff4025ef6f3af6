"""What a recipe's [system] asks for, and ROCm's development packages by their CMake files."""

from __future__ import annotations

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from rocmpip.check.look import MULTIARCH, Look
from rocmpip.check.result import BROKEN, OK, SKIPPED, WARN, Check
from rocmpip.check.tools import dotted, hipcc_of, version_of
from rocmpip.model.names import normalise
from rocmpip.model.recipe import SystemNeed
from rocmpip.recipe.allowed import groups, providers

_BASE = frozenset({"hip", "amd_comgr", "hsa-runtime64", "hiprtc", "AMDDeviceLibs", "hip-lang"})
"""Packages that come with the compiler: they alone make no development installation of the libraries."""


def has_package(look: Look, package: str) -> bool:
    """``find_package`` in config mode, under the roots, CMAKE_PREFIX_PATH, /usr and /usr/local."""
    wanted = {f"{package}-config.cmake".lower(), f"{package}config.cmake".lower()}
    prefixes = [*look.roots, *look.env.get("CMAKE_PREFIX_PATH", "").replace(";", ":").split(":"), "/usr", "/usr/local"]
    folders = [look.env[key] for key in (f"{package}_DIR",) if look.env.get(key)]
    for prefix in dict.fromkeys(prefix.rstrip("/") for prefix in prefixes if prefix.startswith("/")):
        for leaf in ("lib", "lib64", "share", *(f"lib/{arch}" for arch in MULTIARCH)):
            base = f"{prefix}/{leaf}/cmake"
            folders += [f"{base}/{one}" for one in look.names(base) if one.lower().startswith(package.lower())]
    return any(file.lower() in wanted for folder in folders for file in look.names(folder))


def packages(look: Look) -> Check:
    """Development packages that find_package(Torch) asks for on ROCm (torch's LoadHIP.cmake)."""
    name, title = "dev-packages", "ROCm's development packages"
    if look.kind not in ("root", "distribution") or not hipcc_of(look):
        return Check(name, title, SKIPPED, why="no ROCm with a compiler is installed; ready wheels need none")
    wanted = groups()["torch"]
    missing = [package for package in wanted if not has_package(look, package)]
    there = [package for package in wanted if package not in missing]
    if not set(there) - _BASE:
        return Check(name, title, SKIPPED, why="ROCm's libraries are not installed for development; ready wheels need none")
    evidence = (f"{len(there)} of {len(wanted)} are in {look.root}", *(f"no CMake file of {package}" for package in missing))
    if missing:
        why = "CMake projects that use torch or these libraries stop at find_package"
        return Check(name, title, WARN, evidence, why, (_install(look, [SystemNeed("cmake", package) for package in missing]),))
    return Check(name, title, OK, evidence)


def _install(look: Look, needs: list[SystemNeed]) -> str:
    """One command for all of them."""

    def words(kind: str) -> str:
        found: dict[str, None] = {}
        for need in needs:
            known = providers().get(need.kind, {}).get(need.name, {})
            text = getattr(need, kind) or known.get(kind, "") or (need.name if kind == "apt" else "")
            found |= dict.fromkeys(text.split())
        return " ".join(found)

    return look.install(words("apt"), words("dnf"))


def recipe(look: Look) -> tuple[Check, ...]:
    """The needs of --for's recipe: what is missing (one check each), and whether the recipe refuses."""
    resolved = look.recipe
    if resolved is None:
        return () if not look.refusal else (Check("recipe", "the recipe's conditions", BROKEN, (look.refusal,), "it cannot be built like this", ("rocmpip recipe list",)),)  # fmt: skip
    label = f"{resolved.name} {resolved.version}".strip()
    checks = [_conditions(look, label)]
    for need in resolved.system:
        checks.append(_need(look, need, label))
    return tuple(checks)


def _conditions(look: Look, label: str) -> Check:
    assert look.recipe is not None
    title = f"{label}: the recipe's conditions"
    refusals = look.recipe.refusals
    if refusals:
        rows = tuple(conflict.message for conflict in refusals)
        ways = "; ".join(dict.fromkeys(conflict.hint for conflict in refusals if conflict.hint))
        why = "it cannot be built here as it is" + (f": {ways}" if ways else "")
        return Check("recipe", title, BROKEN, rows, why, (f"rocmpip recipe show {look.recipe.name}",))
    return Check("recipe", title, OK, (f"{look.recipe.path}",))


def _need(look: Look, need: SystemNeed, label: str) -> Check:
    words = {"tool": "program", "header": "header", "cmake": "CMake package", "library": "library"}
    identity = f"needs-{need.kind}-{need.name}"
    title = f"{label}: {words.get(need.kind, need.kind)} {need.name} {need.specifier}".strip()
    found = _found(look, need)
    if need.kind == "tool" and normalise(need.name) in look.brought:
        if found and not _within(look, need, found):
            evidence = (f"{found}: {dotted(version_of(look, found))}",)
            why = f"rocmpip's build brings its own {need.name}; a build by hand would take this one. {need.reason}".strip()
            return Check(identity, title, WARN, evidence, why, (f"python3 -m pip install '{need.name}{need.specifier}'",))
        return Check(identity, title, OK, (f"{found} is there" if found else "the build's requirements bring it",))
    if not found:
        return Check(
            identity,
            title,
            BROKEN,
            ("not found",),
            need.reason or f"{label} cannot be built without it",
            (_install(look, [need]),),
        )
    if not _within(look, need, found):
        number = dotted(version_of(look, found))
        fix = (
            f"python3 -m pip install '{need.name}{need.specifier}'"
            if need.name in ("cmake", "ninja")
            else _install(look, [need])
        )
        return Check(
            identity,
            title,
            BROKEN,
            (f"{found}: {number or 'no version'}",),
            need.reason or f"out of bounds {need.specifier}",
            (fix,),
        )
    return Check(identity, title, OK, (found,))


def _within(look: Look, need: SystemNeed, program: str) -> bool:
    if need.kind != "tool" or not need.specifier:
        return True
    number = version_of(look, program)
    return bool(number) and SpecifierSet(need.specifier).contains(Version(dotted(number)), prereleases=True)


def _found(look: Look, need: SystemNeed) -> str:
    if need.kind == "tool":
        folders = [f"{root}/{place}" for root in look.roots for place in ("bin", "llvm/bin", "lib/llvm/bin")]
        folders += look.own_programs
        return look.program(need.name, folders)
    if need.kind == "cmake":
        return f"{need.name}'s CMake file" if has_package(look, need.name) else ""
    if need.kind == "header":
        listed = [folder for key in ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH") for folder in look.folders(key)]
        places = [*(f"{root}/include" for root in look.roots), *listed, "/usr/include", "/usr/local/include"]
        places += [f"/usr/include/{arch}" for arch in MULTIARCH]
    else:
        listed = [folder for key in ("LIBRARY_PATH", "LD_LIBRARY_PATH") for folder in look.folders(key)]
        places = [*(f"{root}/{leaf}" for root in look.roots for leaf in ("lib", "lib64")), *listed, *look.library_folders]
        places += ["/usr/local/lib", "/usr/local/lib64"]
    return next((f"{place}/{need.name}" for place in places if look.exists(f"{place}/{need.name}")), "")
