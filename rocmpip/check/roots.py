"""Several ROCm roots: which one wins for the shell, for the loader and for CMake, and is it the same?"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator

from rocmpip.check.look import Look, below
from rocmpip.check.result import BROKEN, OK, SKIPPED, WARN, Check
from rocmpip.check.variables import rocm_path

_HIP = ("libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7")


def links(look: Look) -> Check:
    """/opt/rocm: a link that leads somewhere, to a ROCm with a version."""
    name, title = "rocm-root", "a ROCm with a readable version"
    broken = [note for note in look.platform.notes if "no readable ROCm version" in note]
    versions = [root for root in look.platform.roots if root.path.startswith("/opt/")]
    if look.tree.leads_nowhere("/opt/rocm"):
        evidence: tuple[str, ...] = (
            "/opt/rocm is a link that leads nowhere",
            *(f"ROCm {root.version} in {root.path}" for root in versions),
        )
        if versions:
            command = f"ln -sfn {versions[0].path.removeprefix('/opt/')} /opt/rocm"
            return Check(name, title, BROKEN, evidence, "scripts and CMake look for ROCm at /opt/rocm", (command,))
        return Check(name, title, BROKEN, evidence, "the ROCm it named is gone", ("rm /opt/rocm",))
    here = [note for note in broken if note.startswith("/opt/")]
    if here:
        path = here[0].split(" ", 1)[0]
        why = "a part of a removed ROCm, or one that was unpacked by halves: it does not count, but takes part in searches"
        fix = (f"rm -rf {path}",) if path != "/opt/rocm" else (look.install("--reinstall rocm-core", "rocm-core"),)
        return Check(name, title, WARN, tuple(here), why, fix)
    if not look.platform.roots:
        return Check(name, title, SKIPPED, why="no ROCm is installed: wheels bring their own, builds need one")
    rows = tuple(
        f"ROCm {root.version} in {root.path} ({root.source})" if root.path else f"ROCm {root.version}, named by {root.source}"
        for root in look.platform.roots
    )
    if look.rocm is not None and not look.root and len(rows) > 1:
        # Without any ROCm here a name only says which wheels to take; beside another one it may be a slip.
        why = "the ROCm that was named is not installed: wheels are chosen for it, but its compiler is not here"
        return Check(name, title, WARN, rows, why, ("rocmpip detect",))
    return Check(name, title, OK, rows)


def winner(look: Look) -> Check:
    """Do PATH, the loader and CMake find the ROCm that builds are aimed at?"""
    name, title = "rocm-agree", "shell, loader and CMake take the same ROCm"
    if not look.root or look.kind not in ("root", "distribution"):
        return Check(name, title, SKIPPED, why="there is no ROCm installation that could differ")
    if rocm_path(look).verdict == BROKEN:
        return Check(name, title, SKIPPED, why="ROCM_PATH and HIP_PATH must agree first")
    chosen = look.real(look.root)
    rows = {"PATH": _by_path(look), "loader": _by_loader(look), "CMake": _by_cmake(look)}
    evidence = [f"builds take {look.root} (ROCm {look.rocm})"]
    evidence += [f"{what} takes {where[0]} ({where[1]})" for what, where in rows.items() if where]
    wrong = {what: where for what, where in rows.items() if where and not _same(look, where[0], chosen)}
    if not wrong:
        return Check(name, title, OK, tuple(evidence))
    fix = tuple(command for what, where in wrong.items() for command in _mend(look, what, where[1], where[0]))
    why = f"{', '.join(wrong)} and the build would mix two ROCm versions, which ends in link errors or crashes"
    return Check(name, title, BROKEN, tuple(evidence), why, fix)


def _same(look: Look, path: str, chosen: str) -> bool:
    real = look.real(path)
    return below(real, chosen) or below(chosen, real)


def _rocm_root(look: Look, path: str) -> str:
    """The ROCm root that a file or folder lies in, "" for none."""
    real = look.real(path)
    found = [root.path for root in look.platform.roots if root.kind == "root" and below(real, look.real(root.path))]
    if found:
        return max(found, key=len)
    parts = real.split("/")
    return "/".join(parts[:3]) if len(parts) > 3 and parts[1] == "opt" and parts[2].startswith("rocm") else ""


def _by_path(look: Look) -> tuple[str, str] | None:
    """The first hipcc in PATH, else the first folder in PATH that is a ROCm's."""
    for folder in look.folders("PATH"):
        if look.executable(f"{folder}/hipcc"):
            root = _rocm_root(look, f"{folder}/hipcc")
            return (root, f"{folder}/hipcc") if root else None
    for folder in look.folders("PATH"):
        root = _rocm_root(look, folder) if look.is_folder(folder) else ""
        if root:
            return root, folder
    return None


def _by_loader(look: Look) -> tuple[str, str] | None:
    """The first place with a HIP runtime that a program without a path of its own would load, or with ROCm's libraries."""
    places = [(folder, "LD_LIBRARY_PATH") for folder in look.folders("LD_LIBRARY_PATH")]
    places += list(look.loader_lines)
    for folder, source in places:
        root = _rocm_root(look, folder) if look.is_folder(folder) else ""
        if root or any(look.exists(f"{folder}/{library}") for library in _HIP):
            return (root, source) if root else None
    return None


def _cmake_prefixes(look: Look) -> Iterator[tuple[str, str]]:
    for key in ("hip_DIR", "HIP_DIR"):
        if look.env.get(key):
            yield look.env[key], key
    for folder in look.env.get("CMAKE_PREFIX_PATH", "").replace(";", ":").split(":"):
        if folder:
            yield folder, "CMAKE_PREFIX_PATH"


def _by_cmake(look: Look) -> tuple[str, str] | None:
    for folder, source in _cmake_prefixes(look):
        root = _rocm_root(look, folder)
        if root and look.is_folder(folder):
            return root, source
    return None


def _mend(look: Look, what: str, source: str, other: str) -> tuple[str, ...]:
    """The commands that make one of them take the chosen root."""
    root = look.root
    if what == "PATH":
        kept = [folder for folder in look.folders("PATH") if not _rocm_root(look, folder) or _inside(look, folder, root)]
        return (f"export PATH={shlex.quote(':'.join([f'{root}/bin', *(one for one in kept if one != f'{root}/bin')]))}",)
    if source in ("LD_LIBRARY_PATH", "CMAKE_PREFIX_PATH"):
        separator = ";" if ";" in look.env[source] else ":"
        entries = [one for one in look.env[source].replace(";", ":").split(":") if one]
        kept = [one for one in entries if not _rocm_root(look, one) or _inside(look, one, root)]
        return (f"export {source}={shlex.quote(separator.join(kept))}",) if kept else (f"unset {source}",)
    if source.endswith("_DIR"):
        return (f"unset {source}",)
    return _drop_lines(look, source, lambda folder: bool(_rocm_root(look, folder)) and not _inside(look, folder, root))


def _inside(look: Look, path: str, root: str) -> bool:
    return _same(look, _rocm_root(look, path) or path, look.real(root))


def _drop_lines(look: Look, file: str, bad: Callable[[str], bool]) -> tuple[str, ...]:
    """Remove a loader file all of whose folders are bad, else those lines alone."""
    folders = [folder for folder, source in look.loader_lines if source == file]
    wrong = [folder for folder in folders if bad(folder)]
    if len(wrong) == len(folders):
        return (f"rm {file}", "ldconfig")
    return (*(f"sed -i '\\|{folder.removeprefix('/opt/')}[/ ]*$|d' {file}" for folder in wrong), "ldconfig")


def loader(look: Look) -> Check:
    """Folders of a removed ROCm that the loader is still told to search."""
    name, title = "loader", "the loader's ROCm folders exist"
    # What lies below a broken /opt/rocm is that link's matter.
    aside = "/opt/rocm" if look.tree.leads_nowhere("/opt/rocm") else ""
    gone = [
        (folder, file)
        for folder, file in look.loader_lines
        if "rocm" in folder and not look.is_folder(folder) and not (aside and below(folder, aside))
    ]
    listed = [
        folder
        for folder in look.folders("LD_LIBRARY_PATH")
        if "rocm" in folder.lower() and not look.is_folder(folder) and not (aside and below(folder, aside))
    ]
    evidence = [f"{file} names {folder}, which is not there" for folder, file in gone]
    evidence += [f"LD_LIBRARY_PATH names {folder}, which is not there" for folder in listed]
    if not evidence:
        rows = [f"{file} names {folder}" for folder, file in look.loader_lines if "rocm" in folder]
        return Check(name, title, OK, tuple(rows) or ("no ROCm folder is configured for the loader",))
    fix: list[str] = []
    for file in dict.fromkeys(file for _, file in gone):
        missing = {folder for folder, source in gone if source == file}
        fix += _drop_lines(look, file, missing.__contains__)
    if listed:
        kept = [folder for folder in look.folders("LD_LIBRARY_PATH") if folder not in listed]
        fix.append(f"export LD_LIBRARY_PATH={shlex.quote(':'.join(kept))}" if kept else "unset LD_LIBRARY_PATH")
    why = "a removed or moved ROCm left its path behind: libraries are then found elsewhere, or not at all"
    return Check(name, title, WARN, tuple(evidence), why, tuple(fix))
