# A deepspeed of a few lines: reads what the real 0.19 setup.py reads and keeps it in the wheel.
import json
import os
from pathlib import Path

from setuptools import find_packages, setup

try:
    import torch
    from torch.utils.cpp_extension import ROCM_HOME

    hip = torch.version.hip
except ImportError:
    torch, ROCM_HOME, hip = None, None, None

ops = int(os.environ.get("DS_BUILD_OPS", "0"))
switches = {key: int(value) for key, value in os.environ.items() if key.startswith("DS_BUILD_") and key != "DS_BUILD_STRING"}
if ops and hip and switches.get("DS_BUILD_CUTLASS_OPS", 1):
    raise ModuleNotFoundError("No module named 'dskernels'")

requires = ["einops", "hjson", "packaging>=20.0", "torch>=2.0.0", "tqdm"]
rocm_torch = hip is not None and ROCM_HOME is not None
if torch is not None and not rocm_torch and os.environ.get("DS_ACCELERATOR", "cuda") == "cuda":
    requires.append("nvidia-ml-py")

seen = {key: value for key, value in os.environ.items() if key.startswith("DS_") or key in ("PYTORCH_ROCM_ARCH", "MAX_JOBS")}
seen["torch"] = torch and torch.__version__
seen["ROCM_HOME found by torch"] = ROCM_HOME
Path("deepspeed/build_seen.json").write_text(json.dumps(seen, indent=1, sort_keys=True))

setup(
    name="deepspeed",
    version="@VERSION@",
    packages=find_packages(),
    package_data={"deepspeed": ["*.json"]},
    install_requires=requires,
)
