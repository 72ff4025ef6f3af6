"""What setup.py files ask of ``torch.utils.cpp_extension``: where ROCm is, whether torch is a HIP build, and its classes.

It becomes ``torch/utils/cpp_extension.py`` of the stand-in torch. The order in which ROCm is looked for is the original's.
"""

from __future__ import annotations

import os
import shutil
from typing import Any

import torch.version as built  # type: ignore[import-not-found]


def _find_rocm() -> str | None:
    if built.hip is None:
        return None
    named = os.environ.get("ROCM_HOME") or os.environ.get("ROCM_PATH")
    if named:
        return named
    hipcc = shutil.which("hipcc")
    if hipcc:
        return os.path.dirname(os.path.dirname(os.path.realpath(hipcc)))  # noqa: PTH120
    return "/opt/rocm" if os.path.exists("/opt/rocm") else None  # noqa: PTH110


ROCM_HOME = _find_rocm()
CUDA_HOME = os.environ.get("CUDA_HOME")
IS_HIP_EXTENSION = bool(ROCM_HOME is not None and built.hip is not None)


class BuildExtension:
    @classmethod
    def with_options(cls, **_: Any) -> type[BuildExtension]:
        return cls


def CUDAExtension(name: str, sources: list[str], **_: Any) -> tuple[str, list[str]]:
    if not IS_HIP_EXTENSION and CUDA_HOME is None:
        raise OSError("CUDA_HOME environment variable is not set. Please set it to your CUDA install root.")
    return name, sources


CppExtension = CUDAExtension
