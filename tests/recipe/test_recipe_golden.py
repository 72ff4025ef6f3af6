"""Expected environment and flags of builds, written by hand from what each project's setup.py reads. Not made from the recipes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from packaging.requirements import Requirement

from rocmpip.model.recipe import RecipeContext, ResolvedRecipe
from rocmpip.model.rocm import parse_rocm
from rocmpip.recipe.book import RecipeBook, load_book, shipped_folder

ABSENT = None
"""The variable must not be set."""


@dataclass(frozen=True)
class Row:
    """One build: what it is for, and what its environment and flags must be."""

    name: str
    version: str
    gfx: str
    env: dict[str, str | None] = field(default_factory=dict)
    rocm: str = "7.2"
    torch: str = "2.12.0+rocm7.2"
    python: str = "3.12"
    backend: str = ""
    settings: tuple[str, ...] = ()
    isolation: bool = False
    requires: tuple[str, ...] = ()
    device_code: bool | None = None
    source: str = ""
    taken: str = ""
    """The back end that must come out."""

    def __str__(self) -> str:
        return f"{self.name}-{self.version}-{self.gfx.replace(' ', '+')}-{self.backend or 'auto'}-{self.rocm}"


FLASH = {"BUILD_TARGET": "rocm", "FLASH_ATTENTION_FORCE_BUILD": "TRUE", "MAX_JOBS": "6"}
NO_OFFLOAD = {"PYTORCH_ROCM_ARCH": ABSENT}

ROWS = [
    # flash-attn: GPU_ARCHS separated by ; with an allow list that depends on the version; TRITON_AMD_ENABLE exactly TRUE; FORCE_BUILD always.
    Row(
        "flash-attn",
        "2.8.3.post2",
        "gfx942",
        {**FLASH, **NO_OFFLOAD, "GPU_ARCHS": "gfx942", "HIP_ARCHS": "gfx942"},
        device_code=True,
        taken="ck",
    ),
    Row(
        "flash-attn",
        "2.8.3.post2",
        "gfx90a gfx942",
        {**FLASH, "GPU_ARCHS": "gfx90a;gfx942", "HIP_ARCHS": "gfx90a;gfx942"},
        device_code=True,
        taken="ck",
    ),
    Row("flash-attn", "2.8.3", "gfx950", {**FLASH, "GPU_ARCHS": "gfx950"}, device_code=True, taken="ck"),
    Row("flash-attn", "2.7.4.post1", "gfx90a", {**FLASH, "GPU_ARCHS": "gfx90a"}, device_code=True, taken="ck"),
    Row("flash-attn", "2.7.4.post1", "gfx940", {**FLASH, "GPU_ARCHS": "gfx940"}, taken="ck"),
    Row(
        "flash-attn",
        "2.7.4.post1",
        "gfx950",
        {**FLASH, "GPU_ARCHS": ABSENT, "FLASH_ATTENTION_TRITON_AMD_ENABLE": "TRUE"},
        taken="triton",
    ),
    Row(
        "flash-attn",
        "2.8.3.post2",
        "gfx1100",
        {**FLASH, "GPU_ARCHS": ABSENT, "FLASH_ATTENTION_TRITON_AMD_ENABLE": "TRUE"},
        device_code=False,
        taken="triton",
    ),
    Row(
        "flash-attn",
        "2.8.3.post2",
        "gfx1201",
        {**FLASH, "FLASH_ATTENTION_TRITON_AMD_ENABLE": "TRUE"},
        device_code=False,
        taken="triton",
    ),
    Row("flash-attn", "2.8.3.post2", "gfx942 gfx1100", {**FLASH, "FLASH_ATTENTION_TRITON_AMD_ENABLE": "TRUE"}, taken="triton"),
    Row(
        "flash-attn",
        "2.8.3.post2",
        "gfx942",
        {**FLASH, "FLASH_ATTENTION_TRITON_AMD_ENABLE": "TRUE"},
        backend="triton",
        device_code=False,
        taken="triton",
    ),
    Row("flash-attn", "2.8.3.post2", "gfx942", {}, requires=("setuptools", "wheel", "packaging", "psutil", "ninja")),
    Row("flash-attn", "2.9.0", "gfx1100", {**FLASH, "GPU_ARCHS": "gfx1100", "AITER_USE_SYSTEM_TRITON": "1"}, taken="ck"),
    # deepspeed: numbers, DS_ACCELERATOR=cuda, two ops off, jobs by build_ext.
    Row(
        "deepspeed",
        "0.19.8",
        "gfx90a",
        {"DS_ACCELERATOR": "cuda", "DS_BUILD_OPS": ABSENT, "MAX_JOBS": ABSENT},
        device_code=False,
        taken="jit",
    ),
    Row(
        "deepspeed",
        "0.19.8",
        "gfx90a",
        {
            "DS_ACCELERATOR": "cuda",
            "DS_BUILD_OPS": "1",
            "DS_BUILD_CUTLASS_OPS": "0",
            "DS_BUILD_RAGGED_DEVICE_OPS": "0",
            "PYTORCH_ROCM_ARCH": "gfx90a",
            "ROCM_HOME": "/opt/rocm",
        },
        backend="prebuilt",
        settings=("--build-option=build_ext", "--build-option=-j6"),
        device_code=True,
    ),
    Row("deepspeed", "0.16.9", "gfx1100", {"DS_ACCELERATOR": "cuda"}, taken="jit"),
    # xformers: HIP_ARCHITECTURES separated by space, which also opens the HIP path; git, as the sdist has no Composable Kernel.
    Row(
        "xformers",
        "0.0.35",
        "gfx942",
        {"HIP_ARCHITECTURES": "gfx942", "XFORMERS_CK_FLASH_ATTN": "1", **NO_OFFLOAD},
        device_code=True,
        source="git",
    ),
    Row(
        "xformers",
        "0.0.34",
        "gfx90a gfx942",
        {"HIP_ARCHITECTURES": "gfx90a gfx942", "FORCE_CUDA": "0", "TORCH_CUDA_ARCH_LIST": ""},
        source="git",
    ),
    # vllm: VLLM_TARGET_DEVICE, PYTORCH_ROCM_ARCH with ; only, CMake below 4.
    Row(
        "vllm",
        "0.33.0",
        "gfx942 gfx950",
        {"VLLM_TARGET_DEVICE": "rocm", "PYTORCH_ROCM_ARCH": "gfx942;gfx950", "ROCM_HOME": "/opt/rocm", "MAX_JOBS": "6"},
        device_code=True,
    ),
    Row("vllm", "0.11.2", "gfx1100", {"VLLM_TARGET_DEVICE": "rocm", "PYTORCH_ROCM_ARCH": "gfx1100"}, python="3.11"),
    Row(
        "vllm",
        "0.33.0",
        "gfx942",
        {},
        requires=("cmake", "ninja", "packaging", "setuptools", "setuptools-scm", "setuptools-rust", "wheel", "jinja2"),
    ),
    # bitsandbytes from source: the HIP back end and BNB_ROCM_ARCH with ; in CMAKE_ARGS.
    Row(
        "bitsandbytes",
        "0.50.1",
        "gfx90a gfx1100",
        {"CMAKE_ARGS": "-DCOMPUTE_BACKEND=hip -DBNB_ROCM_ARCH=gfx90a;gfx1100"},
        rocm="10.0",
        device_code=True,
        source="git",
    ),
    # torchvision and torchaudio: FORCE_CUDA is the switch on ROCm too; USE_ROCM.
    Row(
        "torchvision",
        "0.28.0",
        "gfx1100 gfx1101",
        {"FORCE_CUDA": "1", "PYTORCH_ROCM_ARCH": "gfx1100;gfx1101"},
        device_code=True,
    ),
    Row("torchaudio", "2.8.0", "gfx942", {"USE_ROCM": "1", "CMAKE_BUILD_PARALLEL_LEVEL": "6", "PYTORCH_ROCM_ARCH": "gfx942"}),
    # triton: its own default is twice the cores.
    Row("triton", "3.8.0", "gfx942", {"MAX_JOBS": "6"}, isolation=True),
    # apex: its switches, arch by cpp_extension.
    Row(
        "apex",
        "1.12.0",
        "gfx90a",
        {"APEX_BUILD_CPP_OPS": "1", "APEX_BUILD_CUDA_OPS": "1", "PYTORCH_ROCM_ARCH": "gfx90a"},
        device_code=True,
        source="git",
    ),
    Row("apex", "1.12.0", "gfx90a", {"APEX_BUILD_CPP_OPS": ABSENT, "APEX_BUILD_CUDA_OPS": ABSENT}, backend="jit"),
    # aiter: the system's triton, GPU_ARCHS with ;, kernels when used.
    Row(
        "aiter",
        "0.1.20.post1",
        "gfx942 gfx950",
        {"AITER_USE_SYSTEM_TRITON": "1", "GPU_ARCHS": "gfx942;gfx950", "PREBUILD_KERNELS": "0"},
        source="git",
    ),
    Row(
        "amd-aiter",
        "0.1.20.post1",
        "gfx942",
        {"AITER_USE_SYSTEM_TRITON": "1"},
        requires=("flydsl", "pybind11", "pandas", "ninja", "psutil", "setuptools-scm"),
    ),
    # causal-conv1d and mamba: one --offload-arch, so a comma list; ROCM_PATH; FORCE_BUILD.
    Row(
        "causal-conv1d",
        "1.7.0",
        "gfx90a gfx1100",
        {"CAUSAL_CONV1D_FORCE_BUILD": "TRUE", "HIP_ARCHITECTURES": "gfx90a,gfx1100", "ROCM_PATH": "/opt/rocm", **NO_OFFLOAD},
        device_code=True,
    ),
    Row(
        "mamba-ssm",
        "2.3.2.post1",
        "gfx942",
        {"MAMBA_FORCE_BUILD": "TRUE", "HIP_ARCHITECTURES": "gfx942", "ROCM_PATH": "/opt/rocm", "MAMBA_KEEP_CUDA_BUILD": ABSENT},
        device_code=True,
    ),
    Row("mamba-ssm", "2.4.0", "gfx942", {"MAMBA_KEEP_CUDA_BUILD": "TRUE", "MAMBA_FORCE_BUILD": "TRUE"}),
    # llama-cpp-python: three names of the same switch; isolation is right.
    Row(
        "llama-cpp-python",
        "0.3.36",
        "gfx1100 gfx1101",
        {"CMAKE_ARGS": "-DGGML_HIP=on -DGPU_TARGETS=gfx1100;gfx1101", "CMAKE_BUILD_PARALLEL_LEVEL": "6"},
        isolation=True,
        device_code=True,
    ),
    # GPU_TARGETS is read since 0.3.17 (ggml-hip/CMakeLists.txt).
    Row("llama-cpp-python", "0.3.17", "gfx1151", {"CMAKE_ARGS": "-DGGML_HIP=on -DGPU_TARGETS=gfx1151"}, isolation=True),
    Row("llama-cpp-python", "0.3.16", "gfx1151", {"CMAKE_ARGS": "-DGGML_HIP=on -DAMDGPU_TARGETS=gfx1151"}, isolation=True),
    Row("llama-cpp-python", "0.3.2", "gfx90a", {"CMAKE_ARGS": "-DGGML_HIP=on -DAMDGPU_TARGETS=gfx90a"}, isolation=True),
    Row("llama-cpp-python", "0.3.1", "gfx90a", {"CMAKE_ARGS": "-DGGML_HIPBLAS=on -DAMDGPU_TARGETS=gfx90a"}, isolation=True),
    Row("llama-cpp-python", "0.2.75", "gfx1100", {"CMAKE_ARGS": "-DLLAMA_HIPBLAS=on -DAMDGPU_TARGETS=gfx1100"}, isolation=True),
    # cupy
    Row(
        "cupy",
        "14.2.0",
        "gfx90a",
        {"CUPY_INSTALL_USE_HIP": "1", "ROCM_HOME": "/opt/rocm", "CUPY_NUM_BUILD_JOBS": "6"},
        rocm="10.0",
        requires=("Cython>=3.2,<3.3", "numpy>=2", "setuptools>=77"),
    ),
    Row(
        "cupy",
        "13.6.0",
        "gfx90a",
        {"CUPY_INSTALL_USE_HIP": "1"},
        requires=("Cython>=3,<3.2", "fastrlock>=0.5", "setuptools>=77"),
    ),
    Row("cupy", "13.3.0", "gfx90a", {"CUPY_INSTALL_USE_HIP": "1"}, requires=("Cython>=0.29.22,<3", "fastrlock>=0.5")),
    # PyG: FORCE_CUDA=1, else CPU-only without a word.
    Row("torch-scatter", "2.1.2", "gfx90a", {"FORCE_CUDA": "1", "PYTORCH_ROCM_ARCH": "gfx90a"}, device_code=True),
    Row("torch-sparse", "0.6.18", "gfx1100", {"FORCE_CUDA": "1", "PYTORCH_ROCM_ARCH": "gfx1100"}, device_code=True),
    Row("torch-cluster", "1.6.3", "gfx942 gfx90a", {"FORCE_CUDA": "1", "PYTORCH_ROCM_ARCH": "gfx942;gfx90a"}, device_code=True),
    Row("torch-spline-conv", "1.2.2", "gfx1201", {"FORCE_CUDA": "1", "PYTORCH_ROCM_ARCH": "gfx1201"}, device_code=True),
    # auto-gptq: ROCM_VERSION is mandatory. exllamav2: no compilation in the sdist.
    Row("auto-gptq", "0.7.1", "gfx1100", {"ROCM_VERSION": "7.2", "PYTORCH_ROCM_ARCH": "gfx1100"}),
    Row("exllamav2", "0.2.9", "gfx1100", {"EXLLAMA_NOCOMPILE": "1"}),
    # torchao: USE_CPP=0 leaves the extension out.
    Row("torchao", "0.18.0", "gfx942", {"PYTORCH_ROCM_ARCH": "gfx942", "ROCM_HOME": "/opt/rocm"}, source="git"),
    Row("torchao", "0.18.0", "gfx1100", {"USE_CPP": "0"}, source="git"),
    # ctranslate2, TransformerEngine, pytorch3d, detectron2
    Row(
        "ctranslate2",
        "4.8.0",
        "gfx1100 gfx1201",
        {"CMAKE_ARGS": "-DWITH_HIP=ON -DCMAKE_HIP_ARCHITECTURES=gfx1100;gfx1201", "ROCM_PATH": "/opt/rocm"},
    ),
    Row(
        "transformer-engine",
        "1.9.0",
        "gfx90a gfx942",
        {"NVTE_FRAMEWORK": "pytorch", "NVTE_USE_ROCM": "1", "NVTE_ROCM_ARCH": "gfx90a;gfx942", "ROCM_PATH": "/opt/rocm"},
        source="git",
    ),
    Row("pytorch3d", "0.7.9", "gfx90a", {"FORCE_CUDA": "1", "PYTORCH_ROCM_ARCH": "gfx90a"}, source="git", device_code=True),
    Row("detectron2", "0.6", "gfx90a", {"FORCE_CUDA": "1", "PYTORCH_ROCM_ARCH": "gfx90a"}, source="git", device_code=True),
    # Any sdist that needs torch.
    Row(
        "_torch-extension",
        "1.0",
        "gfx90a gfx1100",
        {"PYTORCH_ROCM_ARCH": "gfx90a;gfx1100", "ROCM_HOME": "/opt/rocm", "MAX_JOBS": "6"},
        requires=("setuptools", "wheel", "ninja", "packaging"),
    ),
]


@pytest.fixture(scope="module")
def book() -> RecipeBook:
    return load_book([("shipped", shipped_folder())])


def context(row: Row) -> RecipeContext:
    return RecipeContext(
        gfx=tuple(row.gfx.split()),
        rocm=parse_rocm(row.rocm),
        torch=row.torch,
        python=row.python,
        backend=row.backend,
        rocm_path="/opt/rocm",
        hip_path="/opt/rocm",
        jobs=6,
    )


def resolve(book: RecipeBook, row: Row) -> ResolvedRecipe:
    return book.resolve(row.name, row.version, context(row))


def test_there_are_forty_rows() -> None:
    assert len(ROWS) >= 40
    assert len({str(row) for row in ROWS if not row.requires}) >= 38


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_environment_and_flags(row: Row, book: RecipeBook) -> None:
    resolved = resolve(book, row)
    env = {value.key: value.value for value in resolved.env}
    assert {key: env.get(key) for key in row.env} == row.env
    assert resolved.isolation is row.isolation
    assert tuple(f"{value.key}={value.value}" for value in resolved.config_settings) == row.settings
    triton = {"FLASH_ATTENTION_TRITON_AMD_ENABLE": "TRUE"} if row.taken == "triton" else {}
    assert {value.key: value.value for value in resolved.runtime} == triton
    bounds = {Requirement(text).name.lower(): Requirement(text).specifier for text in resolved.requires}
    for wanted in map(Requirement, row.requires):
        assert wanted.name.lower() in bounds
        assert not wanted.specifier or bounds[wanted.name.lower()] == wanted.specifier
    if row.device_code is not None:
        assert resolved.verify.device_code is row.device_code
    if row.source:
        assert resolved.source.kind == row.source
        assert len(resolved.source.commit) == 40
    if row.taken:
        assert resolved.backend == row.taken
    assert not any(
        value.value == "" for value in resolved.env if value.key != "TORCH_CUDA_ARCH_LIST" and value.key != "VERSION_SUFFIX"
    )


# What cannot work, and is known before any work: (package, version, gfx, torch, python, rocm, backend, word in the reason).
REFUSED = [
    ("flash-attn", "2.5.9", "gfx942", "2.9.1", "3.12", "6.4", "", "no ROCm code"),
    ("flash-attn", "2.8.3.post2", "gfx942", "2.14.1", "3.12", "7.14", "", "C++20"),
    ("flash-attn", "2.8.3", "gfx90a", "2.14.0+rocm7.14", "3.12", "7.14", "", "C++20"),
    ("flash-attn", "2.8.3.post2", "gfx1100", "2.12.0", "3.12", "7.2", "ck", "gfx950"),
    ("flash-attn", "2.6.3", "gfx1100", "2.9.1", "3.12", "6.4", "", "no Triton"),
    ("flash-attn", "2.7.4.post1", "gfx950", "2.9.1", "3.12", "7.0", "ck", "gfx941"),
    ("deepspeed", "0.19.4", "gfx942", "2.14.1", "3.12", "7.14", "", "C++20"),
    ("deepspeed", "0.19.8", "gfx942", "2.14.1", "3.12", "7.14", "prebuilt", "C++20"),
    ("causal-conv1d", "1.7.0", "gfx942", "2.14.1", "3.12", "7.14", "", "C++20"),
    ("causal-conv1d", "1.5.0.post8", "gfx942", "2.9.1", "3.12", "7.0", "", "no C++ sources"),
    ("causal-conv1d", "1.7.0", "gfx90a", "2.3.1", "3.12", "5.7", "", "6.0"),
    ("mamba-ssm", "2.3.2.post1", "gfx942", "2.14.1", "3.12", "7.14", "", "C++20"),
    ("xformers", "0.0.35", "gfx942", "2.14.0", "3.12", "7.14", "", "C++20"),
    ("xformers", "0.0.35", "gfx1100", "2.10.0", "3.12", "7.1", "", "CDNA"),
    ("xformers", "0.0.20", "gfx942", "2.10.0", "3.12", "7.1", "", "no commit"),
    ("vllm", "0.33.0", "gfx942", "2.13.0", "3.10", "7.2", "", "3.11"),
    ("vllm", "0.33.0", "gfx1010", "2.13.0", "3.12", "7.2", "", "list of HIP targets"),
    ("vllm", "0.11.2", "gfx1103", "2.9.0", "3.12", "6.4", "", "does not know"),
    ("apex", "1.12.0", "gfx90a", "2.9.1", "3.12", "7.2", "", "made for torch 2.12"),
    ("gptqmodel", "7.7.0", "gfx942", "2.12.0", "3.12", "7.2", "", "2.14.1"),
    ("transformer-engine", "1.9.0", "gfx1100", "2.9.1", "3.12", "6.4", "", "gfx950"),
    ("sageattention", "2.2.0", "gfx1100", "2.9.1", "3.12", "6.4", "", "CUDA"),
    ("tensorflow-rocm", "2.14.0.600", "gfx90a", "", "3.12", "6.4", "", "3.9 to 3.11"),
    ("torch", "2.9.1", "gfx90a", "", "3.12", "6.4", "", "not built here"),
    ("grouped-gemm", "0.3.0", "gfx942", "2.9.1", "3.12", "6.4", "", "CUDA"),
    ("megablocks", "0.10.0", "gfx942", "2.9.1", "3.12", "6.4", "", "CUDA"),
    ("natten", "0.21.7", "gfx942", "2.9.1", "3.12", "6.4", "", "CUDA"),
    ("flash-attn-4", "4.0", "gfx942", "2.9.1", "3.12", "6.4", "", "CUDA"),
    ("sgl-kernel", "0.3.21", "gfx942", "2.9.1", "3.12", "6.4", "", "CUDA"),
    ("sglang-kernel", "0.4.10", "gfx942", "2.9.1", "3.12", "6.4", "", "CUDA"),
    ("exllamav3", "0.0.1", "gfx942", "2.9.1", "3.12", "6.4", "", "CUDA"),
    ("onnxruntime-gpu", "1.22", "gfx942", "", "3.12", "6.4", "", "CUDA"),
]


@pytest.mark.parametrize(("name", "version", "gfx", "torch", "python", "rocm", "backend", "word"), REFUSED)
def test_what_cannot_work_is_known_before_work(
    book: RecipeBook, name: str, version: str, gfx: str, torch: str, python: str, rocm: str, backend: str, word: str
) -> None:
    resolved = book.resolve(
        name,
        version,
        RecipeContext(gfx=(gfx,), rocm=parse_rocm(rocm), torch=torch, python=python, backend=backend, rocm_path="/opt/rocm"),
    )
    assert any(word in conflict.message for conflict in resolved.refusals), resolved.conflicts
    assert all(conflict.hint for conflict in resolved.refusals)


WORKS = [
    ("flash-attn", "2.8.3.post2", "gfx942", "2.13.0"),
    ("flash-attn", "2.8.3.post2", "gfx1100", "2.14.1"),
    ("deepspeed", "0.19.8", "gfx942", "2.14.1"),
    ("deepspeed", "0.19.4", "gfx942", "2.13.0"),
    ("causal-conv1d", "1.7.0", "gfx942", "2.13.0"),
    ("xformers", "0.0.35", "gfx942", "2.13.0"),
    ("apex", "1.12.0", "gfx90a", "2.12.1"),
    ("torch-scatter", "2.1.2", "gfx90a", "2.14.1"),
    ("vllm", "0.33.0", "gfx942", "2.13.0"),
    ("llama-cpp-python", "0.3.36", "gfx906", ""),
]


@pytest.mark.parametrize(("name", "version", "gfx", "torch"), WORKS)
def test_what_works_is_not_refused(book: RecipeBook, name: str, version: str, gfx: str, torch: str) -> None:
    resolved = book.resolve(
        name, version, RecipeContext(gfx=(gfx,), rocm=parse_rocm("7.2"), torch=torch, python="3.12", rocm_path="/opt/rocm")
    )
    assert resolved.refusals == ()


REQUIRES_DIST = [
    ("flash-attn", "2.8.3.post2", {"torch", "einops"}),
    ("flash-attn", "2.9.0", {"einops", "triton"}),
    (
        "deepspeed",
        "0.19.8",
        {"einops", "hjson", "msgpack", "ninja", "numpy", "packaging", "psutil", "py-cpuinfo", "pydantic", "torch", "tqdm"},
    ),
    ("deepspeed", "0.14.5", {"hjson", "ninja", "numpy", "packaging", "psutil", "py-cpuinfo", "pydantic", "torch", "tqdm"}),
    ("causal-conv1d", "1.7.0", {"torch", "packaging", "ninja"}),
    ("torch-scatter", "2.1.2", set()),
    ("torch-sparse", "0.6.18", {"scipy"}),
    ("xformers", "0.0.35", {"torch", "numpy"}),
    ("bitsandbytes", "0.50.1", {"torch", "numpy", "packaging"}),
]


@pytest.mark.parametrize(("name", "version", "names"), REQUIRES_DIST)
def test_static_requirements(book: RecipeBook, name: str, version: str, names: set[str]) -> None:
    resolved = book.resolve(
        name, version, RecipeContext(gfx=("gfx942",), rocm=parse_rocm("7.2"), torch="2.12.0", python="3.12")
    )
    assert resolved.requires_dist is not None
    assert {Requirement(text).name for text in resolved.requires_dist} == names
    assert not any("nvidia" in text or "cuda" in text for text in resolved.requires_dist)


READY = [
    # (package, version, gfx, rocm, python, indexes)
    ("xformers", "0.0.35", "gfx942", "7.1", "3.12", ["family"]),
    ("xformers", "0.0.35", "gfx950", "7.1", "3.12", []),
    ("vllm", "0.33.0", "gfx942", "10.0", "3.12", ["https://wheels.vllm.ai/rocm/"]),
    ("vllm", "0.33.0", "gfx942", "10.0", "3.11", []),
    ("vllm", "0.17.0", "gfx942", "7.0", "3.12", ["https://wheels.vllm.ai/rocm/0.17.0/rocm700"]),
    ("bitsandbytes", "0.50.2", "gfx1100", "6.4", "3.12", ["default"]),
    ("bitsandbytes", "0.50.2", "gfx908", "7.2", "3.12", []),
    ("bitsandbytes", "0.50.2", "gfx908", "7.14", "3.12", ["default"]),
    ("bitsandbytes", "0.50.2", "gfx950", "6.4", "3.12", []),
    ("bitsandbytes", "0.50.2", "gfx942", "10.0", "3.12", []),
    ("bitsandbytes", "0.48.0", "gfx942", "6.4", "3.12", []),
    ("cupy", "14.2.0", "gfx90a", "7.2", "3.12", ["default"]),
    ("cupy", "14.2.0", "gfx90a", "6.4", "3.12", []),
    ("flash-attn", "2.8.3.post2", "gfx942", "7.2", "3.12", []),
    ("torchvision", "0.28.0", "gfx942", "7.2", "3.12", ["family"]),
    ("triton-rocm", "3.8.0", "gfx942", "7.2", "3.12", ["family"]),
]


@pytest.mark.parametrize(("name", "version", "gfx", "rocm", "python", "indexes"), READY)
def test_ready_wheels(book: RecipeBook, name: str, version: str, gfx: str, rocm: str, python: str, indexes: list[str]) -> None:
    context = RecipeContext(gfx=(gfx,), rocm=parse_rocm(rocm), python=python)
    assert list(dict.fromkeys(ready.index for ready in book.ready_wheels(name, context, version))) == indexes


def test_ready_wheels_name_their_project_and_label(book: RecipeBook) -> None:
    cupy = book.ready_wheels("cupy", RecipeContext(gfx=("gfx90a",), rocm=parse_rocm("7.2")), "14.2.0")
    assert cupy[0].name == "cupy-rocm-7-0"
    vllm = book.ready_wheels("vllm", RecipeContext(gfx=("gfx942",), rocm=parse_rocm("10.1"), python="3.12"), "0.33.0")
    assert vllm[0].local == "rocm100"
