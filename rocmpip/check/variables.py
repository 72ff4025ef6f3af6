"""Exported variables: do they make sense on this machine, and do they agree with each other?"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rocmpip.check.look import Look
from rocmpip.check.result import BROKEN, OK, SKIPPED, WARN, Check
from rocmpip.machine.override import claimed_gfx
from rocmpip.machine.variables import OVERRIDE, VISIBLE
from rocmpip.machine.visible import let_through
from rocmpip.model.rocm import rocm_of_label

_UNSAFE = ("gfx101",)
"""Families whose override people use although the instruction sets differ."""


def override(look: Look) -> Check:
    """HSA_OVERRIDE_GFX_VERSION: does the hardware bear what it claims?"""
    name, title = "hsa-override", f"{OVERRIDE} makes sense"
    names = sorted(key for key, value in look.env.items() if key.startswith(OVERRIDE) and value.strip())
    if not names:
        return Check(name, title, OK, (f"{OVERRIDE} is not set",))
    actual = list(dict.fromkeys(gpu.gfx for gpu in look.platform.gpus if gpu.visible)) or list(look.platform.gfx_targets)
    evidence = [f"{key}={look.env[key]}" for key in names]
    evidence += [f"the hardware is {', '.join(actual)}"] if actual else []
    unset = (f"unset {' '.join(names)}",)
    worst, why = OK, ""
    for key in names:
        try:
            claimed = claimed_gfx(look.env[key])
        except ValueError as problem:
            return Check(name, title, BROKEN, tuple(evidence), f"{problem}: the runtime refuses it and finds no GPU", unset)
        for gfx in actual:
            verdict, reason = _bears(look, gfx, claimed)
            if (BROKEN, WARN, OK).index(verdict) < (BROKEN, WARN, OK).index(worst) or not why:
                worst, why = verdict, reason
    return Check(name, title, worst, tuple(evidence), why, unset if worst != OK else ())


def _bears(look: Look, gfx: str, claimed: str) -> tuple[str, str]:
    table = look.catalogue.gfx
    if gfx == claimed:
        return OK, f"{gfx} is what it claims anyway"
    family, other = gfx[:-1], claimed[:-1]
    if gfx == "gfx1103" and claimed == "gfx1100":
        return BROKEN, f"{gfx} is known to hang and fault under kernels for {claimed}"
    related = family == other or {family, other} <= {"gfx110", "gfx115"}
    if family in _UNSAFE and not related:
        return BROKEN, f"{gfx} has another instruction set than {claimed}: kernels crash or give wrong results"
    if not related:
        return BROKEN, f"{gfx} is of another family than {claimed}: kernels crash or give wrong results"
    torch = look.installed.get("torch")
    own = (
        torch is not None and rocm_of_label(torch.version) is not None and not look.catalogue.lacks_kernels(torch.version, gfx)
    )
    if own:
        return WARN, f"the installed torch has kernels for {gfx} itself, and the override hides them"
    note = table.override_note(gfx)
    told = f"kernels for {claimed} run on {gfx} as a workaround"
    return OK, f"{told} ({note})" if note else told


def visible(look: Look) -> Check:
    """*_VISIBLE_DEVICES: does a GPU remain?"""
    name, title = "visible-devices", "*_VISIBLE_DEVICES let a GPU through"
    given = {key: look.env[key] for key in VISIBLE if key in look.env}
    if not given:
        return Check(name, title, OK, ("none of them is set",))
    evidence = [f"{key}={value}" for key, value in given.items()]
    gpus = look.platform.gpus
    if not gpus:
        return Check(name, title, SKIPPED, tuple(evidence), "no GPU is seen here to choose from")
    left, notes = let_through(gpus, given)
    evidence = [row for row in evidence if not any(note.startswith(f"{row}: ") for note in notes)] + list(notes)
    rocr, hip, cuda = VISIBLE
    if not left:
        # The one that alone hides all is to blame; where each leaves some, HIP counts what ROCR has left.
        alone = [key for key in given if not let_through(gpus, {key: given[key]})[0]]
        blame = alone or [key for key in (hip, cuda) if key in given][:1]
        why = "no GPU is left for programs"
        if not alone:
            why += f": {blame[0]} counts among the GPUs that {rocr} has left, from 0"
        return Check(name, title, BROKEN, tuple(evidence), why, (f"unset {' '.join(blame)}",))
    if hip in given and cuda in given and given[hip] != given[cuda]:
        why = f"HIP reads {hip}, and programs that look at {cuda} see something else"
        return Check(name, title, WARN, tuple(evidence), why, (f"unset {cuda}",))
    stopped = [key for key in given if any("names no GPU" in note for note in let_through(gpus, {key: given[key]})[1])]
    if stopped and not all(key in given for key in (rocr, hip)):
        why = "the runtime stops reading at the first entry that names no GPU"
        return Check(name, title, WARN, tuple(evidence), why, (f"unset {' '.join(stopped)}",))
    return Check(name, title, OK, tuple(evidence))


def rocm_path(look: Look) -> Check:
    """ROCM_PATH, ROCM_HOME, HIP_PATH: are they there, and one ROCm?"""
    name, title = "rocm-variables", "ROCM_PATH, ROCM_HOME and HIP_PATH agree"
    given = {key: look.env[key].rstrip("/") or "/" for key in ("ROCM_PATH", "ROCM_HOME", "HIP_PATH") if look.env.get(key)}
    if not given:
        return Check(name, title, OK, ("none of them is set",))
    evidence = [f"{key}={value}" for key, value in given.items()]
    gone = [key for key, value in given.items() if not value.startswith("/") or not look.is_folder(value)]
    if gone:
        why = f"{' and '.join(gone)} names a folder that is not there; compilers and CMake trust it and stop"
        return Check(name, title, BROKEN, tuple(evidence), why, _instead(look, given, gone))
    real = {key: _root_of(look, value) for key, value in given.items()}
    evidence += [f"{key} is {where}" for key, where in real.items() if where != given[key]]
    if len(set(real.values())) > 1:
        # The one that agrees with where everything else looks stays.
        default = look.real("/opt/rocm")
        kept = default if default in real.values() else real[next(iter(given))]
        others = [key for key in given if real[key] != kept]
        why = "a build takes headers from one ROCm and libraries from another"
        return Check(name, title, BROKEN, tuple(evidence), why, (f"unset {' '.join(others)}",))
    return Check(name, title, OK, tuple(evidence))


def _root_of(look: Look, path: str) -> str:
    """The real root; ROCm before 6 kept HIP in a folder of its own below it."""
    return look.real(path[:-4] if path.endswith("/hip") and look.is_folder(path[:-4] + "/bin") else path)


def _instead(look: Look, given: dict[str, str], gone: Sequence[str]) -> tuple[str, ...]:
    """Unset them where the rest still finds ROCm, else point them at the root that is there."""
    if look.is_folder("/opt/rocm") or not look.root or look.kind == "distribution":
        return (f"unset {' '.join(gone)}",)
    return tuple(f"export {key}={shlex.quote(look.root)}" for key in gone)


_SEARCHED = ("LD_LIBRARY_PATH", "LIBRARY_PATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH", "CPATH", "CMAKE_PREFIX_PATH")
_MARKS = ("libcudart.so", "cuda_runtime.h", "cuda_runtime_api.h")


def cuda(look: Look) -> Check:
    """CUDA left in the variables that compilers, the loader and setup scripts read."""
    name, title = "cuda-left", "no CUDA left in the environment"
    evidence: list[str] = []
    fix: list[str] = []
    if look.platform.state == "none":
        return Check(name, title, SKIPPED, why="no AMD GPU and no ROCm are seen here")
    for key in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDACXX", "CUDA_TOOLKIT_ROOT_DIR"):
        if look.env.get(key):
            evidence.append(f"{key}={look.env[key]}")
            fix.append(f"unset {key}")
    folders = look.folders("PATH")
    bad = [folder for folder in folders if look.executable(f"{folder}/nvcc") or _cuda_name(folder)]
    if bad:
        evidence += [f"PATH holds {folder}" + (" with nvcc" if look.executable(f"{folder}/nvcc") else "") for folder in bad]
        kept = [folder for folder in folders if folder not in bad]
        # /usr/bin may hold a distribution's nvcc: it must stay, and HIP be told what to compile for.
        if any(folder.rstrip("/") in ("/usr/bin", "/bin", "/usr/local/bin") for folder in bad):
            if look.env.get("HIP_PLATFORM") == "amd":
                evidence = [row for row in evidence if not row.startswith("PATH holds")]
            else:
                fix.append("export HIP_PLATFORM=amd")
        else:
            fix.append(f"export PATH={shlex.quote(':'.join(kept))}")
    for key in _SEARCHED:
        folders = look.folders(key)
        bad = [folder for folder in folders if _cuda_folder(look, folder)]
        if bad:
            evidence += [f"{key} holds {folder}" for folder in bad]
            kept = [folder for folder in folders if folder not in bad]
            fix.append(f"export {key}={shlex.quote(':'.join(kept))}" if kept else f"unset {key}")
    if not evidence:
        return Check(name, title, OK, ("no CUDA in PATH, CUDA_HOME, LD_LIBRARY_PATH or the include paths",))
    why = (
        "builds may take CUDA for the platform and its headers and libraries for ROCm's; hipcc turns to nvcc where it finds one"
    )
    return Check(name, title, WARN, tuple(evidence), why, tuple(fix))


def _cuda_name(folder: str) -> bool:
    """/usr/local/cuda-12.4/bin and kin, there or not."""
    return any(
        part == "cuda" or (part.startswith(("cuda-", "cuda_")) and part[5:6].isdigit()) for part in folder.lower().split("/")
    )


def _cuda_folder(look: Look, folder: str) -> bool:
    return _cuda_name(folder) or any(look.exists(f"{folder}/{mark}") for mark in _MARKS)
