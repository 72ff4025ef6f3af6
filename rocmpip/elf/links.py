"""Names of the CUDA libraries a ROCm wheel must not link."""

from __future__ import annotations

import re

# The CUDA toolkit's and driver's libraries, and the CUDA halves of torch itself (a HIP torch has libc10_hip, libtorch_hip).
CUDA_LIBRARIES = (
    "libcuda", "libcudart", "libcublas", "libcublasLt", "libcudnn", "libcufft", "libcufile", "libcupti", "libcurand",
    "libcusolver", "libcusolverMg", "libcusparse", "libcusparseLt", "libnvJitLink", "libnvToolsExt", "libnvrtc",
    "libnvrtc-builtins", "libnvshmem_host", "libnvtx3interop", "libnccl", "libc10_cuda", "libtorch_cuda",
)  # fmt: skip

# auditwheel renames what it bundles: libcudart-9335f6a2.so.12.4.127
_MANGLED = re.compile(r"-[0-9a-f]{8}(?=\.so)")


def stem(library: str) -> str:
    """``libcudart-9335f6a2.so.12.4`` → ``libcudart``."""
    return _MANGLED.sub("", library).split(".so", 1)[0]


def links(needed: tuple[str, ...], forbidden: tuple[str, ...]) -> tuple[str, ...]:
    """Those of ``needed`` that are one of ``forbidden`` (``libcudart.so`` or ``libcudart``), whatever version and mangling."""
    stems = {stem(name) for name in forbidden}
    # cuDNN is split: libcudnn_ops, libcudnn_cnn_infer … count as libcudnn.
    return tuple(name for name in needed if {stem(name), stem(name).split("_")[0]} & stems)


def cuda_links(needed: tuple[str, ...]) -> tuple[str, ...]:
    """Those of ``needed`` that belong to CUDA."""
    return links(needed, CUDA_LIBRARIES)
