"""What the real hosts hold, as of November 2026: release matrices of pytorch.org, AMD's indexes and what PyPI has beside."""

from __future__ import annotations

# index → (torch, torchvision, torchaudio, triton package) versions; pytorch/test-infra generate_binary_build_matrix.py.
PYTORCH: dict[str, tuple[str, str, str]] = {
    "rocm5.3": ("2.0.0 2.0.1", "0.15.1 0.15.2", "2.0.1 2.0.2"),
    "rocm5.4.2": ("2.0.0 2.0.1", "0.15.1 0.15.2", "2.0.1 2.0.2"),
    "rocm5.5": ("2.1.0 2.1.1 2.1.2", "0.16.0 0.16.1 0.16.2", "2.1.0 2.1.1 2.1.2"),
    "rocm5.6": (
        "2.1.0 2.1.1 2.1.2 2.2.0 2.2.1 2.2.2",
        "0.16.0 0.16.1 0.16.2 0.17.0 0.17.1 0.17.2",
        "2.1.0 2.1.1 2.1.2 2.2.0 2.2.1 2.2.2",
    ),
    "rocm5.7": ("2.2.0 2.2.1 2.2.2 2.3.0 2.3.1", "0.17.0 0.17.1 0.17.2 0.18.0 0.18.1", "2.2.0 2.2.1 2.2.2 2.3.0 2.3.1"),
    "rocm6.0": ("2.3.0 2.3.1 2.4.0 2.4.1", "0.18.0 0.18.1 0.19.0 0.19.1", "2.3.0 2.3.1 2.4.0 2.4.1"),
    "rocm6.1": ("2.4.0 2.4.1 2.5.0 2.5.1 2.6.0", "0.19.0 0.19.1 0.20.0 0.20.1 0.21.0", "2.4.0 2.4.1 2.5.0 2.5.1 2.6.0"),
    "rocm6.2": ("2.5.0 2.5.1", "0.20.0 0.20.1", "2.5.0 2.5.1"),
    "rocm6.2.4": ("2.6.0 2.7.0 2.7.1", "0.21.0 0.22.0 0.22.1", "2.6.0 2.7.0 2.7.1"),
    "rocm6.3": ("2.7.0 2.7.1 2.8.0 2.9.0 2.9.1", "0.22.0 0.22.1 0.23.0 0.24.0 0.24.1", "2.7.0 2.7.1 2.8.0 2.9.0 2.9.1"),
    "rocm6.4": ("2.8.0 2.9.0 2.9.1", "0.23.0 0.24.0 0.24.1", "2.8.0 2.9.0 2.9.1"),
    "rocm7.0": ("2.10.0", "0.25.0", "2.10.0"),
    "rocm7.1": ("2.10.0 2.11.0 2.12.0 2.12.1 2.13.0", "0.25.0 0.26.0 0.27.0 0.27.1 0.28.0", "2.10.0 2.11.0"),
    "rocm7.2": ("2.11.0 2.12.0 2.12.1 2.13.0", "0.26.0 0.27.0 0.27.1 0.28.0", "2.11.0"),
    "rocm7.14": ("2.14.0 2.14.1", "0.29.0 0.29.1", "2.11.0 2.11.1"),
}
# torch → the Triton it requires on ROCm.
TRITON: dict[str, str] = {
    "2.0.0": "2.0.1", "2.0.1": "2.0.2", "2.1.0": "2.1.0", "2.1.1": "2.1.0", "2.1.2": "2.1.0", "2.2.0": "2.2.0",
    "2.2.1": "2.2.0", "2.2.2": "2.2.0", "2.3.0": "2.3.0", "2.3.1": "2.3.1", "2.4.0": "3.0.0", "2.4.1": "3.0.0",
    "2.5.0": "3.1.0", "2.5.1": "3.1.0", "2.6.0": "3.2.0", "2.7.0": "3.3.0", "2.7.1": "3.3.1", "2.8.0": "3.4.0",
    "2.9.0": "3.5.0", "2.9.1": "3.5.1", "2.10.0": "3.6.0", "2.11.0": "3.6.0", "2.12.0": "3.7.0", "2.12.1": "3.7.1",
    "2.13.0": "3.7.1", "2.14.0": "3.8.0", "2.14.1": "3.8.0",
}  # fmt: skip
# torch minor → interpreter tags of its wheels.
PYTHONS: tuple[tuple[tuple[int, int], str], ...] = (
    ((2, 12), "cp310 cp311 cp312 cp313 cp314 cp314t"),
    ((2, 9), "cp310 cp311 cp312 cp313 cp314 cp313t cp314t"),
    ((2, 7), "cp39 cp310 cp311 cp312 cp313 cp313t"),
    ((2, 5), "cp39 cp310 cp311 cp312"),
    ((2, 2), "cp38 cp39 cp310 cp311 cp312"),
    ((2, 0), "cp38 cp39 cp310 cp311"),
)
# Device packages of AMD's multi-arch indexes.
DEVICES = (
    "gfx908 gfx90a gfx942 gfx950 gfx1010 gfx1011 gfx1012 gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 "
    "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 gfx1200 gfx1201 gfx1250"
).split()
# AMD index → rocm versions, then (torch, torchvision, torchaudio, triton, rocm it needs).
AMD: dict[str, tuple[str, tuple[tuple[str, str, str, str, str], ...]]] = {
    "/rocm/whl-multi-arch/": (
        "7.14.0 7.14.0.post1 7.14.1",
        (
            ("2.11.0", "0.26.0", "2.11.0", "3.6.0+git4a7b2c11", "7.14.0"),
            ("2.12.0", "0.27.0", "2.11.0", "3.7.1+git0263a6a6", "7.14.0"),
        ),
    ),
    "/rocm/whl-next/": (
        "10.0.0 10.1.0",
        (
            ("2.12.0", "0.27.0", "2.11.0.1", "3.7.1+git0263a6a6", "10.0.0"),
            ("2.13.0", "0.28.0", "2.11.0.2", "3.8.0+git5b11d0a2", "10.0.0"),
            ("2.14.0", "0.29.0", "2.11.0.3", "3.8.0+gitc2e1f0aa", "10.1.0"),
        ),
    ),
}
# What torch on PyPI (CUDA) requires, by version.
CUDA12 = (
    "cublas cuda-cupti cuda-nvrtc cuda-runtime cudnn cufft curand cusolver cusparse cusparselt nccl nvjitlink nvtx"
).split()
CUDA_TORCH: dict[str, tuple[str, str, str]] = {  # version → (triton requirement, torchvision, torchaudio)
    "2.4.0": ("triton==3.0.0", "0.19.0", "2.4.0"),
    "2.5.1": ("triton==3.1.0", "0.20.1", "2.5.1"),
    "2.6.0": ("triton==3.2.0", "0.21.0", "2.6.0"),
    "2.7.1": ("triton==3.3.1", "0.22.1", "2.7.1"),
    "2.8.0": ("triton==3.4.0", "0.23.0", "2.8.0"),
    "2.9.1": ("triton==3.5.1", "0.24.1", "2.9.1"),
    "2.10.0": ("triton==3.6.0", "0.25.0", "2.10.0"),
    "2.11.0": ("triton==3.6.0", "0.26.0", "2.11.0"),
    "2.13.0": ("triton~=3.7.1", "0.28.0", ""),
    "2.14.0": ("triton~=3.8.0", "0.29.0", ""),
    "2.14.1": ("triton~=3.8.0", "0.29.1", "2.11.1"),
}
# Pure packages of PyPI: name → (versions, requirements).
PURE: dict[str, tuple[str, tuple[str, ...]]] = {
    "filelock": ("3.16.0 3.20.0", ()),
    "typing-extensions": ("4.12.2 4.15.0", ()),
    "sympy": ("1.13.3 1.14.0", ("mpmath<1.4,>=1.1.0",)),
    "mpmath": ("1.3.0", ()),
    "networkx": ("3.3 3.4.2", ()),
    "jinja2": ("3.1.4 3.1.6", ("MarkupSafe>=2.0",)),
    "MarkupSafe": ("2.1.5 3.0.3", ()),
    "fsspec": ("2024.6.1 2025.9.0", ()),
    "numpy": ("1.26.4 2.2.6 2.3.4", ()),
    "pillow": ("11.0.0 12.0.0", ()),
    "packaging": ("24.2 25.0 26.2", ()),
    "psutil": ("6.1.0 7.1.0", ()),
    "ninja": ("1.11.1.4 1.13.0", ()),
    "wheel": ("0.45.1", ()),
    "einops": ("0.7.0 0.8.1", ()),
    "hjson": ("3.1.0", ()),
    "tqdm": ("4.67.1", ()),
    "pyyaml": ("6.0.2", ()),
    "regex": ("2025.9.18", ()),
    "safetensors": ("0.6.2", ()),
    "huggingface-hub": ("0.35.3", ("filelock", "fsspec>=2023.5.0", "requests", "tqdm>=4.42.1", "pyyaml>=5.1")),
    "requests": ("2.31.0 2.32.5", ("idna<4,>=2.5", "certifi>=2017.4.17", 'PySocks>=1.5.6 ; extra == "socks"')),
    "idna": ("3.10", ()),
    "certifi": ("2025.8.3", ()),
    "PySocks": ("1.7.1", ()),
    "accelerate": (
        "1.10.1 1.11.0",
        ("numpy<3,>=1.17", "packaging>=20.0", "psutil", "pyyaml", "torch>=2.0.0", "safetensors>=0.4.3"),
    ),
    "transformers": (
        "4.56.2 4.57.1",
        ("filelock", "huggingface-hub<1.0,>=0.34.0", "numpy>=1.17", "regex!=2019.12.17", 'torch>=2.2 ; extra == "torch"'),
    ),
    "needs-torch-210": ("1.0", ("torch>=2.10",)),
    "needs-old-torch": ("1.0", ("torch<2.9",)),
    "needs-triton": ("1.0", ("triton>=3.0",)),
    "needs-torch-and-triton": ("1.0", ("torch", "triton")),
    "needs-cuda-library": ("1.0", ("nvidia-cublas-cu12",)),
    "needs-flash-attn": ("1.0", ("flash-attn", "torch")),
    "nvidia-ml-py": ("13.580.82", ()),
    "sageattention": ("1.0.6", ()),
    "hip-python": ("10.0.0.0.1.2", ()),
}
# Placeholders on PyPI under names that are real elsewhere.
PLACEHOLDERS: dict[str, str] = {
    "rocm": "0.1.0",
    "rocm-sdk-core": "0.1.0",
    "rocm-sdk-libraries": "0.1.0",
    "rocm-sdk-devel": "0.1.0",
    "rocm-sdk-device-gfx942": "0.1.0",
    "amd-torch-device-gfx942": "0.0.1.dev0",
    "pytorch-triton-rocm": "2.1.0",
    "triton-rocm": "0.0.1",
}
