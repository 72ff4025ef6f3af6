# A flash-attn of a few lines: it asks of its surroundings what the real 2.8.x setup.py asks, fails as that one fails, and
# puts what it saw into the wheel. fatbin.py lies beside it in the source archive.
import json
import os
import platform
import sys
from pathlib import Path

import torch
from packaging.version import parse
from setuptools import find_packages, setup
from torch.utils.cpp_extension import IS_HIP_EXTENSION, ROCM_HOME

import fatbin

ALLOWED = ["native", "gfx90a", "gfx942", "gfx950"]
READ = [
    "BUILD_TARGET", "FLASH_ATTENTION_TRITON_AMD_ENABLE", "FLASH_ATTENTION_SKIP_CK_BUILD", "FLASH_ATTENTION_FORCE_BUILD",
    "FLASH_ATTENTION_SKIP_CUDA_BUILD", "GPU_ARCHS", "HIP_ARCHS", "PYTORCH_ROCM_ARCH", "OPT_DIM", "MAX_JOBS", "ROCM_PATH",
    "ROCM_HOME", "HIP_PATH", "FLASH_ATTN_LOCAL_VERSION", "CK_TILE_FLOAT_TO_BFLOAT16_DEFAULT",
]  # fmt: skip

target = os.environ.get("BUILD_TARGET", "auto")
is_rocm = IS_HIP_EXTENSION if target == "auto" else target == "rocm"
triton = is_rocm and os.environ.get("FLASH_ATTENTION_TRITON_AMD_ENABLE") == "TRUE"
skip = os.environ.get("FLASH_ATTENTION_SKIP_CUDA_BUILD") == "TRUE" or triton

if not skip and not is_rocm:
    raise OSError("CUDA_HOME environment variable is not set. Please set it to your CUDA install root.")
archs = []
if not skip:
    archs = os.environ.get("GPU_ARCHS", "native").split(";")
    assert all(arch.split(":")[0] in ALLOWED for arch in archs), f"One of GPU archs of {archs} is invalid or not supported"
    if "native" in archs:
        archs = [torch.cuda.get_device_properties(0).gcnArchName]
if not os.environ.get("MAX_JOBS"):
    import psutil  # noqa: F401  (the real one counts memory with it)

seen = {key: os.environ[key] for key in READ if key in os.environ}
seen["ROCM_HOME found by torch"] = ROCM_HOME
seen["torch"] = torch.__version__
seen["torch.version.hip"] = torch.version.hip
parse(torch.__version__)


package = Path("flash_attn")
(package / "build_seen.json").write_text(json.dumps(seen, indent=1, sort_keys=True))
if archs and "bdist_wheel" in sys.argv:
    print(f"[1/1] hipcc --offload-arch={' --offload-arch='.join(archs)} flash_fwd.hip", flush=True)
    (package / f"flash_attn_2_cuda.cpython-{platform.machine()}-linux-gnu.so").write_bytes(fatbin.shared_object(archs))

local = os.environ.get("FLASH_ATTN_LOCAL_VERSION")
setup(
    name="flash_attn",
    version="@VERSION@" + (f"+{local}" if local else ""),
    packages=find_packages(),
    package_data={"flash_attn": ["*.json", "*.so"]},
    platform_specific=bool(archs),
    install_requires=["torch", "einops"],
    setup_requires=["packaging", "psutil", "ninja"],
    python_requires=">=3.9",
)
