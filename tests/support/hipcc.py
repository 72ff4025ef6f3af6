"""Debian's hipcc and LLVM tools, for tests marked ``hipcc``."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

KERNEL = """
#include <hip/hip_runtime.h>
__global__ void add(float* values) { values[threadIdx.x] += 1.0f; }
extern "C" void go(float* values) { hipLaunchKernelGGL(add, dim3(1), dim3(64), 0, 0, values); }
"""


def need_hipcc() -> str:
    """hipcc's path; skips the test with a reason when it is absent."""
    found = shutil.which("hipcc")
    if found is None:
        pytest.skip("hipcc is not installed (Debian: apt-get install hipcc libamdhip64-dev rocm-device-libs)")
    return found


def llvm(name: str) -> str:
    """An LLVM tool of the clang that hipcc runs (clang-offload-bundler-15 …)."""
    for version in range(25, 10, -1):
        found = shutil.which(f"{name}-{version}")
        if found:
            return found
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def environment() -> dict[str, str]:
    """HIP_PLATFORM=amd: where nvcc is on the disk hipcc would call that."""
    return {**os.environ, "HIP_PLATFORM": "amd"}


def compile_kernel(folder: Path, *options: str, name: str = "kernel.so") -> Path:
    """Compile KERNEL with ``options`` (a shared library unless they say otherwise)."""
    source = folder / "kernel.hip"
    source.write_text(KERNEL)
    output = folder / name
    flags = options if "--genco" in options else ("-fPIC", "-shared", *options)
    subprocess.run(
        [need_hipcc(), "-O2", *flags, str(source), "-o", str(output)], env=environment(), check=True, capture_output=True
    )
    return output
