# An extension in the usual way: torch in build-system.requires, nothing said about ROCm.
import json
import os
from pathlib import Path

import torch
from setuptools import find_packages, setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension  # noqa: F401

CUDAExtension("tiny_torch_ext._C", ["ext.cu"])
seen = {key: os.environ.get(key) for key in ("PYTORCH_ROCM_ARCH", "ROCM_PATH", "ROCM_HOME", "HIP_PATH", "MAX_JOBS", "FORCE_CUDA")}
seen.update({"torch": torch.__version__, "hip": torch.version.hip})
Path("tiny_torch_ext/build_seen.json").write_text(json.dumps(seen, indent=1, sort_keys=True))
setup(
    name="tiny-torch-ext",
    version="@VERSION@",
    packages=find_packages(),
    package_data={"tiny_torch_ext": ["*.json"]},
    install_requires=["torch"],
)
