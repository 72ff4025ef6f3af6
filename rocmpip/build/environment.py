"""The environment a build runs in: a pure function of the user's, the recipe's, and what was seen of the machine."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from rocmpip.build.surroundings import CompileCache, Surroundings
from rocmpip.model.recipe import ResolvedRecipe
from rocmpip.model.record import Struct

# Variables that lead a build to CUDA. FORCE_CUDA is none: torch extensions use it for "the GPU code, please" on ROCm too.
_CUDA_VARIABLES = (
    "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_DIR", "CUDA_TOOLKIT_ROOT_DIR", "CUDAToolkit_ROOT", "CUDA_INC_PATH",
    "CUDA_BIN_PATH", "CUDACXX", "CUDAHOSTCXX", "CUDAARCHS", "NVCC", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS",
    "TORCH_CUDA_ARCH_LIST", "CUDNN_HOME", "CUDNN_PATH", "CUDNN_ROOT", "NCCL_HOME", "NCCL_ROOT",
)  # fmt: skip
# Lists of folders that a compiler or linker searches.
_SEARCH_LISTS = (
    "PATH",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "CMAKE_PREFIX_PATH",
)
_CUDA_FOLDER = re.compile(r"(?:^|/)cuda(?:-[\d.]+)?(?:/|$)|/nvidia/(?:cuda|cu\d)", re.IGNORECASE)
_SYSTEM_FOLDERS = frozenset({"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"})

_SECRET_NAME = re.compile(
    r"TOKEN|PASSW(?:OR)?D|SECRET|API_?KEY|ACCESS_?KEY|CREDENTIAL|PRIVATE|_AUTH|^AUTH|_PAT$", re.IGNORECASE
)
_USERINFO = re.compile(r"://([^/\s@]*)@")


class BuildEnvironment(Struct, frozen=True):
    """``variables`` for the child, what to tell a person, what was set by us (for the log), and what a log must hide."""

    variables: Mapping[str, str]
    said: tuple[str, ...]
    set_by_us: Mapping[str, str]
    secrets: tuple[str, ...]


def build_environment(
    *,
    user: Mapping[str, str],
    pip: Mapping[str, str],
    recipe: ResolvedRecipe,
    around: Surroundings,
    gfx: tuple[str, ...],
    rocm_root: str,
    hip_root: str,
    torch: str,
    jobs: int,
    python_bin: str = "",
    overlay: str = "",
    temporary: str = "",
) -> BuildEnvironment:
    """Compose it. ``python_bin`` is the folder of the target's interpreter, ``overlay`` the folder of build requirements.

    Order of strength, low to high: the machine's own values (the user's environment without CUDA), what the detected ROCm
    says, the recipe's values, the user's exported values of the recipe's keys, the recipe's forced values, the router's.
    """
    said: list[str] = []
    variables = {key: value for key, value in user.items() if not key.startswith("PIP_")}
    _drop_cuda(variables, around, said)
    ours: dict[str, str] = {}
    ours.update(_rocm(rocm_root, hip_root, around, said, variables))
    if gfx:
        ours["PYTORCH_ROCM_ARCH"] = ";".join(gfx)
    ours.update(_parallel(jobs))
    ours.update(_cache(around.cache, variables, overlay))
    if around.cache_refused:
        said.append(around.cache_refused)
    ours.update(_recipe(recipe, user, said))
    if temporary:
        ours["TMPDIR"] = temporary
    ours.update(_paths(variables, around, rocm_root, python_bin, overlay, torch))
    variables.update(ours)
    variables.update(pip)
    secrets = secrets_of({**user, **pip})
    return BuildEnvironment(variables, tuple(said), ours, secrets)


def _drop_cuda(variables: dict[str, str], around: Surroundings, said: list[str]) -> None:
    gone = [name for name in _CUDA_VARIABLES if variables.pop(name, None) is not None]
    if gone:
        said.append(f"left out of the build's environment, since they lead to CUDA: {', '.join(gone)}")
    for name in _SEARCH_LISTS:
        if name not in variables:
            continue
        kept: list[str] = []
        dropped: list[str] = []
        for folder in variables[name].split(os.pathsep):
            is_cuda = bool(_CUDA_FOLDER.search(folder)) or (name == "PATH" and folder in around.nvcc_folders)
            # A system folder stays, nvcc or not: the compilers are there too. HIP_PLATFORM=amd keeps hipcc off it.
            (dropped if is_cuda and folder.rstrip("/") not in _SYSTEM_FOLDERS else kept).append(folder)
        if dropped:
            variables[name] = os.pathsep.join(kept)
            said.append(f"CUDA folders taken out of {name}: {', '.join(dropped)}")
            if not variables[name]:
                del variables[name]


def _rocm(rocm_root: str, hip_root: str, around: Surroundings, said: list[str], user: Mapping[str, str]) -> dict[str, str]:
    values = {"HIP_PLATFORM": "amd"}
    if rocm_root:
        values |= {"ROCM_PATH": rocm_root, "ROCM_HOME": rocm_root}
    if hip_root or rocm_root:
        values["HIP_PATH"] = hip_root or rocm_root
    if around.device_libs:
        values["HIP_DEVICE_LIB_PATH"] = around.device_libs
    for key, value in values.items():
        if user.get(key) and user[key].rstrip("/") != value:
            said.append(f"{key}={value} (the ROCm that was chosen), not {user[key]}")
    return values


# Variables of the user's that change a binary although no recipe names them.
_STEERING = (
    "CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "HIPCC_COMPILE_FLAGS_APPEND", "CMAKE_ARGS", "CMAKE_BUILD_TYPE", "NVCC_FLAGS",
    # What gets compiled at all: flash-attn's head sizes and rounding, PyG's and apex' choices of extensions, aiter's kernels.
    "OPT_DIM", "CK_TILE_FLOAT_TO_BFLOAT16_DEFAULT", "FORCE_ONLY_CPU", "FORCE_ONLY_CUDA", "WITH_METIS", "ENABLE_CK", "PREBUILD_KERNELS",
)  # fmt: skip


def users_own(recipe: ResolvedRecipe, user: Mapping[str, str]) -> tuple[str, ...]:
    """``KEY=VAL`` of the user's exported variables that change what is built: those that win over the recipe's, and the
    compilers' own. They are part of the fingerprint."""
    set_by_recipe = {value.key: value for value in recipe.env}
    winning = {
        key: user[key] for key, value in set_by_recipe.items() if user.get(key) and user[key] != value.value and not value.force
    }
    steering = {key: user[key] for key in _STEERING if user.get(key) and key not in set_by_recipe}
    return tuple(f"{key}={value}" for key, value in sorted({**steering, **winning}.items()))


def _parallel(jobs: int) -> dict[str, str]:
    # torch's cpp_extension takes MAX_JOBS only as digits.
    count = str(max(1, jobs))
    return {
        "MAX_JOBS": count,
        "CMAKE_BUILD_PARALLEL_LEVEL": count,
        "MAKEFLAGS": f"-j{count}",
        "CARGO_BUILD_JOBS": count,
    }


def _cache(cache: CompileCache | None, user: Mapping[str, str], overlay: str) -> dict[str, str]:
    """Compilers behind a cache. CMake has launchers; torch's ninja files have PYTORCH_NVCC for hipcc, which torch does not
    put behind a cache by itself under HIP (it does so for nvcc)."""
    if cache is None:
        return {}
    # Where the compilers' names in PATH are the cache already, a launcher before them would call the cache twice.
    languages = ("HIP",) if cache.masquerade else ("C", "CXX", "HIP")
    values = {f"CMAKE_{language}_COMPILER_LAUNCHER": cache.program for language in languages}
    if cache.kind == "ccache":
        # Work folders have a new name each time: paths below them are written relative, so that they still hit.
        base = str(Path(overlay).parent) if overlay else ""
        values |= {"CCACHE_NOHASHDIR": "1", **({"CCACHE_BASEDIR": base} if base else {})}
    return {key: value for key, value in values.items() if not user.get(key)}


def _recipe(recipe: ResolvedRecipe, user: Mapping[str, str], said: list[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for value in recipe.env:
        exported = user.get(value.key, "")
        if exported and exported != value.value and not value.force:
            said.append(f"{value.key}={exported} is yours and wins over the recipe's {value.value}")
            values[value.key] = exported
            continue
        if exported and exported != value.value:
            said.append(f"{value.key}={value.value} is forced by the recipe over your {exported}")
        values[value.key] = value.value
    return values


def _paths(
    user: Mapping[str, str], around: Surroundings, rocm_root: str, python_bin: str, overlay: str, torch: str
) -> dict[str, str]:
    values: dict[str, str] = {}
    rocm_bin = str(Path(rocm_root) / "bin") if rocm_root not in ("", "/", "/usr") else ""
    masquerade = around.cache.masquerade if around.cache else ""
    first = [str(Path(overlay) / "bin") if overlay else "", python_bin, masquerade, rocm_bin]
    rest = [folder for folder in user.get("PATH", os.defpath).split(os.pathsep) if folder]
    values["PATH"] = os.pathsep.join(dict.fromkeys([*(folder for folder in first if folder), *rest]))
    if overlay:
        values["PYTHONPATH"] = _joined(overlay, user.get("PYTHONPATH", ""))
    if rocm_root not in ("", "/", "/usr"):
        values["CMAKE_PREFIX_PATH"] = _joined(rocm_root, user.get("CMAKE_PREFIX_PATH", ""))
    if around.include:
        values["CPLUS_INCLUDE_PATH"] = _joined(around.include, user.get("CPLUS_INCLUDE_PATH", ""))
    if around.library and not torch:
        # Never beside a torch: a ROCm wheel brings its own runtime, and LD_LIBRARY_PATH would put another in front of it.
        values["LD_LIBRARY_PATH"] = _joined(around.library, user.get("LD_LIBRARY_PATH", ""))
    if around.cache and around.hipcc and not user.get("PYTORCH_NVCC"):
        values["PYTORCH_NVCC"] = f"{around.cache.program} {around.hipcc}"
    return values


def _joined(first: str, rest: str) -> str:
    return os.pathsep.join(part for part in (first, rest) if part)


def secrets_of(env: Mapping[str, str]) -> tuple[str, ...]:
    """Values that must not be written anywhere: those of secret-looking names, and passwords in URLs. Longest first."""
    found: set[str] = set()
    for key, value in env.items():
        if _SECRET_NAME.search(key) and len(value) >= 6:
            found.add(value)
        for userinfo in _USERINFO.findall(value):
            found.update(part for part in (userinfo, *userinfo.split(":", 1)[1:]) if len(part) >= 4)
    return tuple(sorted(found, key=lambda text: (-len(text), text)))


def config_settings(recipe: ResolvedRecipe, user: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(``KEY=VAL`` to hand to the build, what to tell): the user's ``-C`` win over the recipe's of the same key, except forced."""
    said: list[str] = []
    own = {text.partition("=")[0] for text in user}
    forced = {value.key for value in recipe.config_settings if value.force}
    settings = []
    for value in recipe.config_settings:
        if value.key in own and not value.force:
            said.append(f"-C {value.key}: yours wins over the recipe's {value.value}")
        else:
            settings.append(f"{value.key}={value.value}")
    for text in user:
        key = text.partition("=")[0]
        if key in forced:
            said.append(f"-C {text}: the recipe's value of {key} is forced and stays")
        else:
            settings.append(text)
    return tuple(settings), tuple(dict.fromkeys(said))
