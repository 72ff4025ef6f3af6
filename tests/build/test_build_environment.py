"""The environment of a build: ROCm in, CUDA out, the user's words kept, secrets named, nothing empty."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmpip.build.environment import build_environment, config_settings, secrets_of, users_own
from rocmpip.build.surroundings import CompileCache, Surroundings
from rocmpip.model.recipe import ResolvedRecipe, Value


def recipe(*env: Value, settings: tuple[Value, ...] = ()) -> ResolvedRecipe:
    return ResolvedRecipe("pkg", "1", "shipped", "pkg.toml", "d", env=env, config_settings=settings)


def compose(user: dict[str, str], *env: Value, around: Surroundings | None = None, **changes: object):  # type: ignore[no-untyped-def]
    values: dict[str, object] = {
        "user": user,
        "pip": {"PIP_INDEX_URL": "http://127.0.0.1:1/simple/"},
        "recipe": recipe(*env),
        "around": around or Surroundings(),
        "gfx": ("gfx90a", "gfx942"),
        "rocm_root": "/opt/rocm",
        "hip_root": "/opt/rocm",
        "torch": "2.9.1+rocm6.4",
        "jobs": 3,
    }
    return build_environment(**(values | changes))  # type: ignore[arg-type]


def test_the_detected_rocm_is_set() -> None:
    made = compose({}, around=Surroundings(device_libs="/opt/rocm/amdgcn/bitcode"))
    assert {
        key: made.variables[key] for key in ("ROCM_PATH", "ROCM_HOME", "HIP_PATH", "HIP_PLATFORM", "HIP_DEVICE_LIB_PATH")
    } == {
        "ROCM_PATH": "/opt/rocm",
        "ROCM_HOME": "/opt/rocm",
        "HIP_PATH": "/opt/rocm",
        "HIP_PLATFORM": "amd",
        "HIP_DEVICE_LIB_PATH": "/opt/rocm/amdgcn/bitcode",
    }
    assert "HIP_DEVICE_LIB_PATH" not in compose({}).variables


def test_another_rocm_that_is_exported_is_told() -> None:
    made = compose({"ROCM_PATH": "/opt/rocm-5.7", "HIP_PLATFORM": "nvidia"})
    assert made.variables["ROCM_PATH"] == "/opt/rocm" and made.variables["HIP_PLATFORM"] == "amd"
    assert any("/opt/rocm-5.7" in said for said in made.said) and any("HIP_PLATFORM=amd" in said for said in made.said)


def test_jobs_reach_every_tool() -> None:
    variables = compose({}).variables
    # torch takes MAX_JOBS only as digits (str.isdigit).
    assert variables["MAX_JOBS"] == variables["CMAKE_BUILD_PARALLEL_LEVEL"] == "3" and variables["MAKEFLAGS"] == "-j3"


def test_the_arch_list_is_never_empty() -> None:
    """With no card and no list torch's builder writes an empty --offload-arch."""
    assert compose({"PYTORCH_ROCM_ARCH": ""}).variables["PYTORCH_ROCM_ARCH"] == "gfx90a;gfx942"
    assert compose({"PYTORCH_ROCM_ARCH": "gfx1100"}).variables["PYTORCH_ROCM_ARCH"] == "gfx90a;gfx942"
    assert "PYTORCH_ROCM_ARCH" not in compose({}, gfx=()).variables


CUDA_PATHS = [
    "/usr/local/cuda/bin",
    "/usr/local/cuda-12.4/bin",
    "/opt/cuda/bin",
    "/home/me/venv/lib/python3.12/site-packages/nvidia/cuda_nvcc/bin",
    "/sw/CUDA-11.8/bin",
]


@pytest.mark.parametrize("folder", CUDA_PATHS)
def test_cuda_folders_leave_path_and_are_told(folder: str) -> None:
    made = compose({"PATH": f"/usr/bin:{folder}:/bin", "LD_LIBRARY_PATH": f"{folder}:/mine", "CPATH": folder})
    assert folder not in made.variables["PATH"].split(":") and "/usr/bin" in made.variables["PATH"].split(":")
    assert made.variables["LD_LIBRARY_PATH"] == "/mine"
    assert "CPATH" not in made.variables
    assert sum(folder in said for said in made.said) == 3


def test_a_folder_with_nvcc_leaves_but_system_folders_stay() -> None:
    around = Surroundings(nvcc_folders=frozenset({"/sw/nv/bin", "/usr/bin"}))
    made = compose({"PATH": "/sw/nv/bin:/usr/bin:/home/me/barracuda/bin"}, around=around)
    folders = made.variables["PATH"].split(":")
    assert "/sw/nv/bin" not in folders and "/usr/bin" in folders and "/home/me/barracuda/bin" in folders


@pytest.mark.parametrize("name", ["CUDA_HOME", "CUDA_PATH", "CUDACXX", "TORCH_CUDA_ARCH_LIST", "NVCC_APPEND_FLAGS"])
def test_cuda_variables_are_left_out_and_told(name: str) -> None:
    made = compose({name: "/usr/local/cuda", "FORCE_CUDA": "1"})
    assert name not in made.variables and any(name in said for said in made.said)
    assert made.variables["FORCE_CUDA"] == "1", "that one asks for GPU code on ROCm too"


def test_the_users_word_wins_unless_forced() -> None:
    made = compose(
        {"OPT_DIM": "128", "BUILD_TARGET": "cuda", "EMPTY": ""},
        Value("OPT_DIM", "32,64", "c"), Value("BUILD_TARGET", "rocm", "c", force=True), Value("EMPTY", "x", "c"),
    )  # fmt: skip
    assert (made.variables["OPT_DIM"], made.variables["BUILD_TARGET"], made.variables["EMPTY"]) == ("128", "rocm", "x")
    assert any("OPT_DIM=128 is yours" in said for said in made.said)
    assert any("BUILD_TARGET=rocm is forced" in said for said in made.said)


def test_the_users_values_that_count_for_the_fingerprint() -> None:
    made = recipe(Value("OPT_DIM", "32", "c"), Value("FORCE", "1", "c", force=True), Value("SAME", "1", "c"))
    user = {"OPT_DIM": "128", "FORCE": "2", "SAME": "1", "CXXFLAGS": "-O1", "UNRELATED": "1", "CC": ""}
    assert users_own(made, user) == ("CXXFLAGS=-O1", "OPT_DIM=128")


def test_the_users_pip_settings_give_way_to_the_routers() -> None:
    made = compose({"PIP_INDEX_URL": "https://me:secret@pypi.example/simple", "PIP_EXTRA_INDEX_URL": "https://x"})
    assert made.variables["PIP_INDEX_URL"] == "http://127.0.0.1:1/simple/" and "PIP_EXTRA_INDEX_URL" not in made.variables


def test_search_paths_only_where_needed() -> None:
    plain = compose({}).variables
    assert not {"CPLUS_INCLUDE_PATH", "LD_LIBRARY_PATH"} & set(plain)
    around = Surroundings(include="/opt/hip/include", library="/opt/rocm/lib")
    beside_torch = compose({}, around=around).variables
    assert beside_torch["CPLUS_INCLUDE_PATH"] == "/opt/hip/include"
    assert "LD_LIBRARY_PATH" not in beside_torch, "a ROCm torch brings its own runtime"
    alone = compose({"LD_LIBRARY_PATH": "/mine"}, around=around, torch="").variables
    assert alone["LD_LIBRARY_PATH"] == "/opt/rocm/lib:/mine"


def test_tools_of_the_overlay_come_first() -> None:
    made = compose({"PATH": "/usr/bin", "PYTHONPATH": "/mine"}, overlay="/w/overlay", python_bin="/venv/bin")
    assert made.variables["PATH"].split(":") == ["/w/overlay/bin", "/venv/bin", "/opt/rocm/bin", "/usr/bin"]
    assert made.variables["PYTHONPATH"] == "/w/overlay:/mine"
    system = compose({"PATH": "/usr/bin"}, rocm_root="/usr", hip_root="/usr").variables
    assert system["PATH"] == "/usr/bin" and "CMAKE_PREFIX_PATH" not in system


def test_ccache_for_torch_extensions_under_hip() -> None:
    """torch itself puts a cache before nvcc only: hipcc gets one by PYTORCH_NVCC."""
    cache = CompileCache("ccache", "/usr/bin/ccache", "/usr/lib/ccache")
    around = Surroundings(cache=cache, hipcc="/opt/rocm/bin/hipcc")
    made = compose({"PATH": "/usr/bin"}, around=around, overlay="/w/overlay").variables
    assert made["PYTORCH_NVCC"] == "/usr/bin/ccache /opt/rocm/bin/hipcc"
    assert made["PATH"].split(":").index("/usr/lib/ccache") < made["PATH"].split(":").index("/usr/bin")
    assert made["CMAKE_HIP_COMPILER_LAUNCHER"] == "/usr/bin/ccache" and made["CCACHE_BASEDIR"] == "/w"
    assert "CMAKE_CXX_COMPILER_LAUNCHER" not in made, "the compilers' names are the cache already"
    own = compose({"PYTORCH_NVCC": "mine"}, around=around).variables
    assert own["PYTORCH_NVCC"] == "mine"
    sccache = compose({}, around=Surroundings(cache=CompileCache("sccache", "/s/sccache"), hipcc="/h/hipcc")).variables
    assert sccache["CMAKE_CXX_COMPILER_LAUNCHER"] == "/s/sccache" and sccache["PYTORCH_NVCC"] == "/s/sccache /h/hipcc"


def test_why_no_cache_is_told() -> None:
    assert "too old" in " ".join(compose({}, around=Surroundings(cache_refused="sccache 0.4 is too old")).said)


def test_secrets_are_known_and_not_shown() -> None:
    user = {
        "HF_TOKEN": "hf_abcdef123",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI",
        "MY_PASSWORD": "hunter22",
        "PIP_EXTRA_INDEX_URL": "https://me:s3cret99@pypi.example/simple",
        "HTTPS_PROXY": "http://proxyuser:proxypass@proxy.example:3128",
        "SHORT_TOKEN": "1",
        "EDITOR": "vim",
    }
    made = compose(user)
    assert {"hf_abcdef123", "wJalrXUtnFEMI", "hunter22", "s3cret99", "proxypass"} <= set(made.secrets)
    assert "vim" not in made.secrets and "1" not in made.secrets
    shown = " ".join([*made.said, *(f"{key}={value}" for key, value in made.set_by_us.items())])
    assert not any(secret in shown for secret in made.secrets)


@given(st.dictionaries(st.sampled_from(["PATH", "LD_LIBRARY_PATH", "CPATH", "CUDA_HOME", "X", "MAX_JOBS"]), st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), max_size=60)))  # fmt: skip
def test_any_environment(user: dict[str, str]) -> None:
    made = compose(user)
    assert made.variables["HIP_PLATFORM"] == "amd" and made.variables["MAX_JOBS"] == "3"
    assert "CUDA_HOME" not in made.variables
    assert all(made.variables["PATH"].split(os.pathsep))
    assert made == compose(user), "pure"


def test_config_settings_of_both() -> None:
    mine = recipe(
        settings=(
            Value("--build-option", "build_ext", "c"),
            Value("--build-option", "-j8", "c"),
            Value("cmake.define.X", "1", "c", force=True),
        )
    )
    settings, said = config_settings(mine, ())
    assert settings == ("--build-option=build_ext", "--build-option=-j8", "cmake.define.X=1") and said == ()
    settings, said = config_settings(mine, ("--build-option=-j2", "cmake.define.X=2", "other=3"))
    assert settings == ("cmake.define.X=1", "--build-option=-j2", "other=3")
    assert any("yours wins" in text for text in said) and any("forced and stays" in text for text in said)


def test_secrets_longest_first() -> None:
    assert secrets_of({"A_TOKEN": "abcdef", "B_TOKEN": "abcdefgh"}) == ("abcdefgh", "abcdef")


def test_a_variable_that_no_recipe_names_and_that_chooses_what_is_compiled_is_the_users_own() -> None:
    """flash-attn compiles its kernels for the head sizes of OPT_DIM: a wheel of one size is not the wheel of all."""
    assert users_own(recipe(), {"OPT_DIM": "128", "PREBUILD_KERNELS": "1", "HOME": "/h"}) == (
        "OPT_DIM=128",
        "PREBUILD_KERNELS=1",
    )
