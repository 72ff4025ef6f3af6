# AMD's rocm source package in small: it asks the machine which GPU it has and will not guess.
import os
from pathlib import Path

from setuptools import setup

version = "@VERSION@"
family = os.environ.get("ROCM_SDK_TARGET_FAMILY", "")
if not family:
    nodes = sorted(Path("/sys/class/kfd/kfd/topology/nodes").glob("*/gpu_id"))
    found = [node for node in nodes if node.read_text().strip() not in ("", "0")]
    if not found:
        raise ValueError(
            "ROCM_SDK_TARGET_FAMILY is not set and no GPU was detected: could not determine the target family for rocm "
            + version
        )
    family = "gfx94X-dcgpu"

devices = "@DEVICES@".split()
setup(
    name="rocm",
    version=version,
    py_modules=[],
    install_requires=[f"rocm-sdk-core=={version}"],
    extras_require={
        "libraries": [f"rocm-sdk-libraries=={version}"],
        "devel": [f"rocm-sdk-devel=={version}"],
        "device-all": [f"rocm-sdk-device-{gfx}=={version}" for gfx in devices],
        **{f"device-{gfx}": [f"rocm-sdk-device-{gfx}=={version}"] for gfx in devices},
    },
)
