"""Compilers and build tools: are they there, do they work, does this ROCm take them?

Installs of ready wheels need none of them. A machine counts as one that builds when it has at least two of hipcc, a C++
compiler, CMake and ninja; only there is a missing one a fault. ``--for NAME`` asks for what that recipe needs in any case.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from pathlib import Path

from rocmpip.check.look import Look
from rocmpip.check.result import BROKEN, OK, SKIPPED, WARN, Check

_KERNEL = """#include <hip/hip_runtime.h>
__global__ void twice(float* values) { values[threadIdx.x] *= 2; }
int main() { twice<<<1, 64>>>(nullptr); return 0; }
"""

CXX_FROM = (9, 0)
"""torch's headers refuse older GCC (c10: "We need GCC 9 or later")."""
CXX20_FROM = (11, 0)
"""torch 2.14's headers are C++20."""
TOO_NEW = (
    ((12,), (5, 3), "its headers use a name that HIP defines as a macro"),
    ((15,), (7, 0), "its array checks are host code only"),
)
"""(libstdc++ from, ROCm below, why). Sources: rocm-arch#780, pytorch#145608."""
CMAKE_FROM = (3, 21)
"""The first with HIP as a language."""
CMAKE_BELOW = (4, 0)
"""CMake 4 has dropped what older projects ask for; vllm's ROCm build demands less than 4."""

_GCC_FOLDERS = ("x86_64-linux-gnu", "aarch64-linux-gnu", "x86_64-redhat-linux", "aarch64-redhat-linux", "x86_64-pc-linux-gnu", "x86_64-suse-linux")  # fmt: skip


def builds(look: Look) -> bool:
    """True when this machine is set up to build."""
    there = (hipcc_of(look), cxx_of(look), look.program("cmake"), look.program("ninja"))
    return sum(map(bool, there)) >= 2


def hipcc_of(look: Look) -> str:
    return look.program("hipcc", [*(f"{root}/bin" for root in look.roots), *look.own_programs])


def cxx_of(look: Look) -> str:
    """The host's C++ compiler: CXX, else c++, g++, clang++."""
    named = look.env.get("CXX", "").split()[:1]
    if named and named[0].startswith("/"):
        return named[0] if look.executable(named[0]) else ""
    return next((path for name in (*named, "c++", "g++", "clang++") if (path := look.program(name))), "")


def version_of(look: Look, program: str) -> tuple[int, ...]:
    """The first dotted number that ``program --version`` prints, () when it has none."""
    return first_number(look.run([program, "--version"])[1])


def first_number(text: str) -> tuple[int, ...]:
    match = re.search(r"(?<![\w.])(\d+(?:\.\d+)+)", text)
    return tuple(int(part) for part in match.group(1).split(".")) if match else ()


def dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def hipcc(look: Look) -> Check:
    """Is hipcc there, and does it compile three lines for the target?"""
    name, title = "hipcc", "hipcc compiles for the GPU"
    program = hipcc_of(look)
    if not program:
        return _no_hipcc(look, name, title)
    code, said = look.run([program, "--version"])
    if code != 0:
        evidence = (f"{program} --version: exit code {code}", *_last(said))
        return Check(name, title, BROKEN, evidence, "hipcc does not start, so nothing can be compiled", (_reinstall(look),))
    version = next((line.strip() for line in said.splitlines() if "HIP version" in line), dotted(first_number(said)))
    targets = look.platform.gfx_targets
    evidence = (f"{program}: {version or 'no version'}",)
    if not targets:
        return Check(name, title, OK, evidence, "not tried: no target GPU is known (--gfx names one)")
    code, said, made = _compile(look, program, targets)
    what = f"a kernel for {', '.join(targets)}"
    if code == 0 and made:
        return Check(name, title, OK, (*evidence, f"{what}: compiled"))
    if code == 0 and look.simulated:
        return Check(name, title, OK, evidence, "under ROCMPIP_SYSROOT this hipcc is a stand-in that writes no file")
    evidence += (f"{what}: exit code {code}" if code else f"{what}: no file was written", *_last(said))
    why, fix = _explain(look, said)
    return Check(name, title, BROKEN, evidence, why, fix)


def _no_hipcc(look: Look, name: str, title: str) -> Check:
    dev = [f"{root}/{part}" for root in look.roots for part in ("include/hip/hip_runtime.h", "lib/cmake/hip", "lib/llvm/bin", "llvm/bin", "bin") if look.exists(f"{root}/{part}")]  # fmt: skip
    told = (f"no hipcc in {', '.join(f'{root}/bin' for root in look.roots) or 'PATH'} or PATH",)
    if dev and look.kind in ("root", "distribution") and (look.kind == "root" or builds(look)):
        evidence = (*told, f"{dev[0]} is there")
        fix = look.install("hipcc" if look.kind == "distribution" else "hipcc rocm-llvm-dev", "hipcc")
        return Check(name, title, WARN, evidence, "packages without a ROCm wheel cannot be compiled here", (fix,))
    if look.kind in ("pip", "") and not builds(look):
        return Check(name, title, SKIPPED, told, "no ROCm with a compiler is installed; ready wheels need none")
    if look.root and builds(look):
        fix = look.install("hipcc rocm-llvm-dev", "hipcc") if look.kind != "pip" else "python3 -m pip install 'rocm[devel]'"
        return Check(
            name, title, WARN, told, "the other build tools are here, but packages for the GPU cannot be compiled", (fix,)
        )
    return Check(name, title, SKIPPED, told, "ready wheels need no compiler; --for NAME asks for what a build needs")


def _compile(look: Look, program: str, targets: tuple[str, ...]) -> tuple[int, str, bool]:
    with tempfile.TemporaryDirectory(prefix="rocmpip-doctor-") as folder:
        source, output = Path(folder, "twice.hip"), Path(folder, "twice.o")
        source.write_text(_KERNEL)
        arches = [f"--offload-arch={gfx}" for gfx in targets]
        # The compiler itself is asked: what an nvcc on the disk makes of it is another check's matter.
        env = {**look.quiet, "HIP_PLATFORM": "amd", "TMPDIR": folder}
        code, said = look.run([program, *arches, "-c", str(source), "-o", str(output)], env=env, limit=look.time_limit)
        return code, said, output.is_file() and output.stat().st_size > 0


def _last(said: str, count: int = 3) -> tuple[str, ...]:
    """The lines worth reading: errors first, else the last ones."""
    lines = [line.strip()[:300] for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() or "not found" in line.lower()]
    return tuple((errors or lines[-count:])[:count])


def _reinstall(look: Look) -> str:
    if look.distribution == "apt":
        return "apt-get install -y --reinstall hipcc" + (" rocm-llvm" if look.kind == "root" else "")
    return look.install("hipcc", "hipcc rocm-llvm")


def _explain(look: Look, said: str) -> tuple[str, tuple[str, ...]]:
    text = said.lower()
    if "file not found" in text and any(header in text for header in ("'cmath'", "'cstdlib'", "'utility'", "'algorithm'")):
        newest = _newest_gcc(look)
        number = newest[0] if newest else 0
        return "the C++ headers of the newest GCC are not installed", (look.install(f"libstdc++-{number}-dev", "gcc-c++"),)
    if "unsupported hip gpu architecture" in text or "invalid target id" in text or "unknown target cpu" in text:
        return "this hipcc does not know the GPU: a newer ROCm is needed to compile for it", (
            look.install("rocm-hip-sdk", "rocm-hip-sdk"),
        )
    if "device library" in text or "amdgcn/bitcode" in text:
        return "the GPU's device libraries are missing or are not where hipcc looks", (
            look.install("rocm-device-libs", "rocm-device-libs"),
        )
    if "hip_runtime.h" in text or "hip runtime" in text:
        return "HIP's headers are missing", (
            look.install("hip-dev" if look.kind == "root" else "libamdhip64-dev", "hip-devel"),
        )
    return "packages for the GPU cannot be compiled here; the lines above are the compiler's", (_reinstall(look),)


# -- host compiler -------------------------------------------------------------------------------------------------


def _gcc_folders(look: Look) -> list[tuple[int, str]]:
    """(major, folder) of every GCC installation that clang may pick, newest first."""
    found: list[tuple[int, str]] = []
    for base in ("/usr/lib/gcc", "/usr/lib64/gcc"):
        for arch in look.names(base):
            for name in look.names(f"{base}/{arch}"):
                number = name.split(".")[0]
                if arch in _GCC_FOLDERS and number.isdigit() and not any(number == str(row[0]) for row in found):
                    found.append((int(number), f"{base}/{arch}/{name}"))
    return sorted(found, reverse=True)


def _newest_gcc(look: Look) -> tuple[int, str] | None:
    found = _gcc_folders(look)
    return found[0] if found else None


def _has_headers(look: Look, number: int, folder: str) -> bool:
    places = [f"/usr/include/c++/{number}", f"/usr/include/c++/{Path(folder).name}", f"{folder}/include/c++"]
    return any(look.exists(f"{place}/cmath") or look.names(place) for place in places)


def host_compiler(look: Look) -> Check:
    """GCC or Clang, and the libstdc++ headers that ROCm's clang takes: the newest GCC's, whether complete or not."""
    name, title = "host-compiler", "host compiler and C++ headers"
    program = cxx_of(look)
    gccs = _gcc_folders(look)
    steered = re.search(r"--gcc-(?:install-dir|toolchain)=(\S+)", look.env.get("HIPCC_COMPILE_FLAGS_APPEND", ""))
    evidence = [
        f"GCC {number} in {folder}" + ("" if _has_headers(look, number, folder) else ", without C++ headers")
        for number, folder in gccs
    ]
    evidence += [f"HIPCC_COMPILE_FLAGS_APPEND chooses {steered.group(1)}"] if steered else []
    named = look.env.get("CXX", "").split()[:1]
    if named and not (look.executable(named[0]) if named[0].startswith("/") else look.program(named[0])):
        return Check(
            name,
            title,
            BROKEN,
            (f"CXX={look.env['CXX']}", *evidence),
            "builds call this compiler, and it is not there",
            ("unset CXX",),
        )
    if gccs and hipcc_of(look) and not steered:
        number, folder = gccs[0]
        if not _has_headers(look, number, folder):
            why = f"ROCm's clang takes the newest GCC it finds, and GCC {number} has no C++ headers: 'cmath' file not found"
            package = f"libstdc++-{number}-dev"
            return Check(name, title, BROKEN, tuple(evidence), why, (look.install(package, "gcc-c++"),))
        strange = _too_new(look, number)
        if strange:
            usable = [row for row in gccs if not _too_new(look, row[0]) and _has_headers(look, *row)]
            flags = (
                f"{look.env.get('HIPCC_COMPILE_FLAGS_APPEND', '')} --gcc-install-dir={usable[0][1]}".strip() if usable else ""
            )
            fix = (
                f"export HIPCC_COMPILE_FLAGS_APPEND={shlex.quote(flags)}" if flags else look.install("g++-14", "gcc-toolset-14")
            )
            return Check(
                name,
                title,
                WARN,
                tuple(evidence),
                f"ROCm {look.rocm} does not take the headers of GCC {number}: {strange}",
                (fix,),
            )
    if not program:
        if (look.program("cmake") and look.program("ninja")) or (
            (look.program("cmake") or look.program("ninja")) and hipcc_of(look)
        ):
            why = "builds compile their host part with it"
            return Check(
                name, title, WARN, ("no c++, g++ or clang++ in PATH", *evidence), why, (look.install("g++", "gcc-c++"),)
            )
        return Check(name, title, SKIPPED, tuple(evidence), "no C++ compiler here; ready wheels need none")
    said = look.run([program, "--version"])
    number_ = first_number(said[1])
    evidence.insert(0, f"{program}: {dotted(number_) or 'no version'}")
    if said[0] != 0:
        return Check(
            name, title, BROKEN, tuple(evidence), f"{program} does not start", (look.install("--reinstall g++", "gcc-c++"),)
        )
    clang = "clang" in said[1].lower()
    if number_ and not clang and number_ < CXX_FROM:
        why = f"torch's headers need GCC {CXX_FROM[0]} or newer (torch 2.14 and later: {CXX20_FROM[0]})"
        newer = next((row for row in gccs if row[0] >= CXX20_FROM[0] and look.program(f"g++-{row[0]}")), None)
        commands = (
            (f"export CC=gcc-{newer[0]} CXX=g++-{newer[0]}",)
            if newer
            else (look.install("g++-12", "gcc-toolset-14"), "export CC=gcc-12 CXX=g++-12")
        )
        return Check(name, title, BROKEN, tuple(evidence), why, commands)
    return Check(name, title, OK, tuple(evidence))


def _too_new(look: Look, number: int) -> str:
    # Distributions patch their own ROCm for their own GCC.
    if look.rocm is None or look.kind != "root":
        return ""
    return next((why for since, below, why in TOO_NEW if number >= since[0] and look.rocm.minor < below), "")


# -- CMake and ninja -----------------------------------------------------------------------------------------------


def _environment_tool(look: Look, tool: str) -> str:
    return look.program(tool, look.own_programs)


def cmake(look: Look) -> Check:
    """CMake within the bounds that ROCm's packages take."""
    name, title = "cmake", "CMake"
    program = _environment_tool(look, "cmake")
    if not program:
        if cxx_of(look) and _environment_tool(look, "ninja"):
            fix = look.install("cmake", "cmake")
            return Check(
                name,
                title,
                WARN,
                ("no cmake in PATH",),
                "a compiler and ninja are here, but CMake projects cannot be configured",
                (fix,),
            )
        return Check(name, title, SKIPPED, ("no cmake in PATH",), "builds that need it bring it themselves")
    code, said = look.run([program, "--version"])
    number = first_number(said)
    evidence = (f"{program}: {dotted(number) or 'no version'}",)
    if code != 0 or not number:
        return Check(
            name,
            title,
            BROKEN,
            (*evidence, *_last(said)),
            "cmake does not start",
            (look.install("--reinstall cmake", "cmake"),),
        )
    if number < CMAKE_FROM:
        why = f"ROCm's CMake packages need {dotted(CMAKE_FROM)} or newer (HIP as a language)"
        return Check(name, title, WARN, evidence, why, ("python3 -m pip install 'cmake>=3.26,<4'",))
    if number >= CMAKE_BELOW and hipcc_of(look):
        why = "projects for ROCm still refuse CMake 4 (vllm's asks for less than 4), or were written for what it has dropped"
        return Check(name, title, WARN, evidence, why, ("python3 -m pip install 'cmake>=3.26,<4'",))
    return Check(name, title, OK, evidence)


def ninja(look: Look) -> Check:
    """ninja, without which torch compiles one file after the other."""
    name, title = "ninja", "ninja"
    program = _environment_tool(look, "ninja") or _environment_tool(look, "ninja-build")
    if not program:
        if cxx_of(look) and _environment_tool(look, "cmake"):
            fix = look.install("ninja-build", "ninja-build")
            return Check(
                name, title, WARN, ("no ninja in PATH",), "torch's extensions then compile one file after the other", (fix,)
            )
        return Check(name, title, SKIPPED, ("no ninja in PATH",), "builds that need it bring it themselves")
    code, said = look.run([program, "--version"])
    if code != 0:
        return Check(name, title, BROKEN, (f"{program}: exit code {code}", *_last(said)), "ninja does not start", (look.install("--reinstall ninja-build", "ninja-build"),))  # fmt: skip
    return Check(name, title, OK, (f"{program}: {(said.split() or ['no version'])[0]}",))
