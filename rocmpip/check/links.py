"""Links as the loader would resolve them: CUDA, missing libraries, two ROCms, C++ runtime, undefined symbols."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from rocmpip.check.finding import FAULT, NOTE, WARNING, Finding
from rocmpip.check.inventory import ROCM_STEMS, TORCH_STEMS, Dist, GpuFile
from rocmpip.check.linker import Missing, Process
from rocmpip.check.packages import install_command, package_tool
from rocmpip.check.site import Site, rocm_of, words
from rocmpip.elf.links import CUDA_LIBRARIES, stem

_CUDA = frozenset(CUDA_LIBRARIES)
_ONE_ROCM = ("libamdhip64", "libhsa-runtime64", "libamd_comgr", "librocblas", "libhipblaslt", "libMIOpen", "librccl")
"""Two copies of any of these in one process crash it or see no GPU."""
_LIBSTDCXX = {"apt": "libstdc++6", "dnf": "libstdc++", "zypper": "libstdc++6", "pacman": "gcc-libs"}
"""The package that holds libstdc++.so.6."""
_RUNTIME = ("libstdc++.so.6", "libgcc_s.so.1", "libc.so.6", "libm.so.6", "libgomp.so.1")

_PREFIXES = (
    (("_ZN3c10", "_ZNK3c10", "_ZN2at", "_ZNK2at", "_ZN5torch", "_ZNK5torch", "_ZTIN3c10", "_ZTVN3c10"), "it was built against another torch"),
    (("hip", "__hip"), "it was built with another HIP"),
    (("roc", "miopen", "rccl", "nccl", "hsa_"), "it was built with another ROCm"),
    (("cuda", "__cuda", "cu", "cublas", "cudnn"), "it wants CUDA"),
    (("_Py", "Py"), "it was built for another Python"),
    (("_ZNSt", "_ZSt", "_ZNKSt"), "it was built with another C++ runtime"),
)  # fmt: skip


def check(site: Site) -> list[Finding]:
    """Every GPU distribution's files, loaded one after the other in a replayed process."""
    found: list[Finding] = []
    if site.inventory.gpu:
        found += _torch_itself(site)
    for dist in site.inventory.gpu:
        if site.catalogue.forbidden(dist.name):
            continue  # named as a whole already
        found += _cuda(site, dist)
        found += _resolved(site, dist)
    return found


def _torch_itself(site: Site) -> list[Finding]:
    """Libraries that ``import torch`` misses: everything that links torch misses them too, so they are told once."""
    if site.names and "torch" not in site.names:
        return []
    missing = [one for one in site.with_torch.missing if one not in site.python.missing]
    return [_missing(site, "torch", missing, site.torch_folder)] if missing else []


# -- CUDA ------------------------------------------------------------------------------------------------------------


def _cuda(site: Site, dist: Dist) -> list[Finding]:
    """CUDA-only distributions, CUDA halves of mixed ones, and files that link CUDA where they should not."""
    cuda = [file for file in dist.files if file.cuda]
    if not cuda:
        return []
    version = f"{dist.name} {dist.dist.version}"
    evidence = tuple(_said(file) for file in cuda[:6])
    if not dist.hip:
        level = FAULT if site.aimed else NOTE
        what = f"{version} is built for CUDA alone"
        why = "it never uses an AMD GPU; it runs on the CPU at best"
        fix = (f"rocmpip install --force-reinstall {dist.name}",) if site.aimed else ()
        return [Finding("cuda-only", level, dist.name, what, cuda[0].name, evidence, why, fix)]
    inner = [file for file in cuda if not file.cuda_variant]
    found = []
    if inner:
        both = [file for file in inner if file.hip]
        what = f"{version}: {words([file.name for file in both or inner])} links CUDA" + (" and ROCm at once" if both else "")
        why = "no CUDA library is on an AMD machine: the file does not load"
        fix = (f"rocmpip install --force-reinstall --no-deps {dist.name}",)
        found.append(
            Finding(
                "cuda-link",
                FAULT if site.aimed else NOTE,
                dist.name,
                what,
                inner[0].name,
                tuple(map(_said, inner[:6])),
                why,
                fix,
            )
        )
    if len(inner) < len(cuda):
        what = f"{version} holds CUDA and ROCm libraries side by side"
        why = "its own code chooses; the CUDA ones only take room"
        found.append(Finding("mixed", NOTE, dist.name, what, cuda[0].name, evidence, why))
    return found


def _said(file: GpuFile) -> str:
    parts = [f"links {words(file.report.cuda_links)}"] if file.report.cuda_links else []
    parts += ["holds CUDA device code"] if "cuda" in file.report.kinds else []
    return f"{file.name} {' and '.join(parts)}"


# -- resolution ------------------------------------------------------------------------------------------------------


def _resolved(site: Site, dist: Dist) -> list[Finding]:
    files = [
        file for file in dist.files if file.loadable and (file.hip or file.torch or dist.name == "torch") and not file.cuda
    ]
    outcome = [(file, *_load(site, dist, file)) for file in files]
    # A CPU library beside one for the GPU is no alternative to it.
    served = {file.variant for file, _, missing in outcome if file.variant and file.hip and not missing}
    found: list[Finding] = []
    lost: dict[str, tuple[GpuFile, list[Missing]]] = {}
    sound: list[tuple[GpuFile, Process]] = []
    for file, process, missing in outcome:
        if process is None:
            continue
        if not missing:
            sound.append((file, process))
        elif file.variant not in served:
            key = ",".join(sorted({one.library for one in missing}))
            lost.setdefault(key, (file, missing))
    by_library: dict[str, Missing] = {one.library: one for _, rows in lost.values() for one in rows}
    if by_library:
        found.append(_missing(site, dist.name, list(by_library.values()), None))
    found += _rocms(site, dist, sound)
    old = _versions(site, dist, sound)
    # Symbols that an older runtime lacks are the same matter.
    found += old or _symbols(site, dist, sound)
    return found


def _load(site: Site, dist: Dist, file: GpuFile) -> tuple[Process | None, list[Missing]]:
    process = site.process(dist)
    before = set(process.missing)
    if process.load(file.path) is None:
        return None, []
    return process, [one for one in process.missing if one not in before]


def _missing(site: Site, name: str, missing: Sequence[Missing], folder: object) -> Finding:
    libraries = list(dict.fromkeys(one.library for one in missing))
    evidence = tuple(f"{_short(site, one.by)} needs {one.library}: not found" for one in missing[:10])
    stems = {stem(library) for library in libraries}
    what = f"{name}: {words(libraries)} cannot be found by the loader"
    level = FAULT
    fix: tuple[str, ...]
    if stems & _CUDA:
        why, fix = "it is built for CUDA", (f"rocmpip install --force-reinstall {name}",)
        return Finding("cuda-link", FAULT if site.aimed else NOTE, name, what, _short(site, missing[0].by), evidence, why, fix)
    if stems & TORCH_STEMS:
        torch = site.installed.get("torch")
        why = (
            "torch is not installed"
            if torch is None
            else f"torch {torch.version} does not bring it: it was built against another torch"
        )
        fix = ("rocmpip install torch",) if torch is None else (f"rocmpip install --force-reinstall --no-deps {name}",)
        kind = "torch-missing" if torch is None else "wrong-torch-build"
        return Finding(kind, FAULT, name, what, _short(site, missing[0].by), evidence, why, fix)
    if stems & ROCM_STEMS:
        here = [f"ROCm {root.version} in {root.path}" for root in site.platform.roots if root.version is not None]
        why = f"no ROCm with {words(sorted(one for one in libraries if stem(one) in ROCM_STEMS))} is in reach" + (
            f"; here: {', '.join(here)}" if here else ""
        )
        # Where there is neither a GPU nor ROCm (a build machine, an image), the libraries may come with the machine it runs on.
        if site.simulated or not (here or site.platform.gpus):
            level = WARNING
        fix = _reach(site, [library for library in libraries if stem(library) in ROCM_STEMS], name)
        return Finding("missing-rocm-library", level, name, what, _short(site, missing[0].by), evidence, why, fix)
    return Finding(
        "missing-library",
        FAULT,
        name,
        what,
        _short(site, missing[0].by),
        evidence,
        "the file does not load",
        (f"rocmpip install --force-reinstall {name}",),
    )


def _reach(site: Site, libraries: Sequence[str], name: str) -> tuple[str, ...]:
    """A root that has all of them needs only to be named; ROCm 7 and later come from pip too; else another build is wanted."""
    for root in site.platform.roots:
        folder = f"{root.path}/lib"
        if root.path and all(os.path.exists(site.place(f"{folder}/{library}")) for library in libraries):  # noqa: PTH110
            return (f"export LD_LIBRARY_PATH={folder}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}",)
    if "libamdhip64.so.7" in libraries or "libhipblas.so.3" in libraries:
        return ("rocmpip install 'rocm[libraries]'",)
    return (f"rocmpip install --force-reinstall {name}",)


def _short(site: Site, path: str) -> str:
    for folder in site.folders:
        if path.startswith(f"{folder}{os.sep}"):
            return path[len(str(folder)) + 1 :]
    return path


def _rocms(site: Site, dist: Dist, sound: Iterable[tuple[GpuFile, Process]]) -> list[Finding]:
    """Two copies of a ROCm library in one process, or ROCm libraries of two origins."""
    for file, process in sound:
        copies: dict[str, list[str]] = {}
        for module in process.modules:
            name = stem(os.path.basename(module.path))  # noqa: PTH119
            if name in _ONE_ROCM and module.real not in copies.setdefault(name, []):
                copies[name].append(module.real)
        doubled = {name: paths for name, paths in copies.items() if len(paths) > 1}
        origins = {rocm_of(site, path): path for paths in copies.values() for path in paths}
        if not doubled and len(origins) < 2:
            continue
        evidence = tuple(f"{name}: {' and '.join(paths)}" for name, paths in (doubled or copies).items())
        what = f"{dist.name}: {file.name} brings {'a second ' + words(list(doubled)) if doubled else 'libraries of ' + ' and '.join(origins)} into the process"
        why = "two ROCm runtimes in one process crash, or one of them sees no GPU"
        fix = _one_rocm(site, dist)
        return [Finding("two-rocms", FAULT, dist.name, what, file.name, evidence, why, fix)]
    return []


def _one_rocm(site: Site, dist: Dist) -> tuple[str, ...]:
    if any("rocm" in folder for folder in site.search.ld_library_path):
        kept = ":".join(folder for folder in site.search.ld_library_path if "rocm" not in folder)
        return (f"export LD_LIBRARY_PATH={kept}",) if kept else ("unset LD_LIBRARY_PATH",)
    return (f"rocmpip install --force-reinstall --no-deps {dist.name}",)


def _versions(site: Site, dist: Dist, sound: Iterable[tuple[GpuFile, Process]]) -> list[Finding]:
    """Symbol versions (GLIBCXX_3.4.30, GLIBC_2.38) that the library in front does not provide."""
    lacking: dict[str, tuple[str, str, list[str]]] = {}
    for _, process in sound:
        for module in process.modules:
            for library, versions in module.links.wants.items():
                provider = process.by_name(library)
                if provider is None or not provider.links.provides:
                    continue
                absent = [version for version in versions if version not in provider.links.provides]
                if absent and library not in lacking and _of(site, module.path):
                    lacking[library] = (provider.path, _short(site, module.path), absent)
    return [_old(site, dist, library, *row) for library, row in lacking.items()]


def _of(site: Site, path: str) -> bool:
    return any(path.startswith(f"{folder}{os.sep}") for folder in site.folders)


def _old(site: Site, dist: Dist, library: str, path: str, file: str, absent: Sequence[str]) -> Finding:
    evidence = (f"{file} needs {words(absent)}", f"{path} does not provide {'it' if len(absent) == 1 else 'them'}")
    better = [one for one in site.search.cache.get(library, ()) if (links := site.search.files.links(one)) is not None
              and set(absent) <= links.provides and os.path.realpath(one) != os.path.realpath(path)]  # fmt: skip
    if library == "libstdc++.so.6" and better:
        what = f"{dist.name}: {path} stands in front of the system's newer {library}"
        why = f"the file does not load: version '{absent[-1]}' not found"
        if path in [f"{folder.rstrip('/')}/{library}" for folder in site.search.ld_library_path]:
            kept = ":".join(folder for folder in site.search.ld_library_path if f"{folder.rstrip('/')}/{library}" != path)
            fix = f"export LD_LIBRARY_PATH={kept}" if kept else "unset LD_LIBRARY_PATH"
        else:
            fix = f"export LD_PRELOAD={better[0]}"
        return Finding("libstdcxx-shadowed", FAULT, dist.name, what, file, evidence, why, (fix,))
    what = f"{dist.name}: {path} is too old for it"
    kind = "libstdcxx-old" if library == "libstdc++.so.6" else "glibc-old" if library == "libc.so.6" else "version-missing"
    fixes = {
        "libstdcxx-old": "conda install -c conda-forge libstdcxx-ng" if site.target.kind == "conda" else _newer_libstdcxx(site),
        "glibc-old": f"rocmpip install --force-reinstall --no-binary {dist.name} {dist.name}",
    }
    why = f"the file does not load: version '{absent[-1]}' not found"
    return Finding(
        kind, FAULT, dist.name, what, file, evidence, why, (fixes.get(kind, f"rocmpip install --force-reinstall {dist.name}"),)
    )


def _newer_libstdcxx(site: Site) -> str:
    tool = package_tool(site.tree.text("/etc/os-release") or "")
    return install_command(tool, _LIBSTDCXX[tool])


def _symbols(site: Site, dist: Dist, sound: Iterable[tuple[GpuFile, Process]]) -> list[Finding]:
    """Symbols that nothing in the process defines."""
    found: list[Finding] = []
    for file, process in sound:
        files = process.search.files
        scope = [files.symbols(module.path).defined for module in process.modules]
        absent = [name for name in files.symbols(file.path).undefined if not any(name in defined for defined in scope)]
        if not absent:
            continue
        reasons = [_reason(name) for name in absent]
        why = next((reason for reason in reasons if reason), "a library that defines them is not linked")
        torch = site.installed.get("torch")
        kind = "wrong-torch-build" if "torch" in why else "undefined-symbols"
        what = f"{dist.name}: {len(absent)} undefined symbol{'s' if len(absent) > 1 else ''} in {file.name}"
        evidence = (
            *absent[:6],
            *((f"torch here is {torch.version}",) if torch is not None and kind == "wrong-torch-build" else ()),
        )
        fix = (f"rocmpip install --force-reinstall --no-deps {dist.name}",)
        found.append(Finding(kind, FAULT, dist.name, what, file.name, evidence, why, fix))
    # One finding tells it: the other files of the same build miss the same things.
    return found[:1] if found else []


def _reason(name: str) -> str:
    for prefixes, reason in _PREFIXES:
        if name.startswith(prefixes):
            return reason
    return ""
