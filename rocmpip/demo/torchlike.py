"""The torch family as stand-in wheels: a torch that says which build it is, and what setup.py files ask of it."""

from __future__ import annotations

from collections.abc import Sequence

from rocmpip.demo.standins import source
from rocmpip.demo.wheels import Wheel

_PURE = ("filelock", "typing-extensions>=4.10.0", "sympy>=1.13.3", "networkx>=2.5.1", "jinja2", "fsspec>=0.8.5")

_INIT = '''\
"""A stand-in: it says which build it is and computes nothing."""

from torch import _C, cuda, version

__version__ = version.__version__
'''
_CUDA = """\
from torch import version


def is_available():
    return False


def device_count():
    return 0


def get_arch_list():
    return []  # as the real one where no GPU is seen


def _is_compiled():
    return version.cuda is not None or version.hip is not None


def get_device_properties(index=0):
    raise AssertionError("Torch not compiled with CUDA enabled")


get_device_name = current_device = get_device_properties
"""


_C = """\
def _cuda_getArchFlags():
    return {flags!r}
"""
ARCHS = ("gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1101")
"""What the stand-in for a ROCm build says it has kernels for: pytorch.org's list for ROCm 6.4, in short."""


def hip_version(rocm: str) -> str:
    """What torch.version.hip says in a build for ``rocm``: 6.4 → 6.4.43484. On ROCm 10 HIP's own number is another: 7.16."""
    if rocm.startswith("10."):
        return "7.16.60900"
    return ".".join(rocm.split(".")[:2]) + ".43484"


def torch_wheel(
    version: str, tag: str, *, requires: Sequence[str] = (), extras: Sequence[str] = (), rocm: str = "", cuda: str = ""
) -> Wheel:
    """One torch. ``rocm`` or ``cuda`` is what it was built for; neither is a CPU build."""
    hip = repr(hip_version(rocm)) if rocm else "None"
    told = f'__version__ = "{version}"\ndebug = False\ncuda = {cuda or None!r}\nhip = {hip}\ngit_version = "0" * 40\n'
    flags = " ".join(ARCHS if rocm else ("sm_80", "sm_90"))
    files = {
        "torch/__init__.py": _INIT,
        "torch/_C.py": _C.format(flags=flags if rocm or cuda else None),
        "torch/version.py": told,
        "torch/cuda.py": _CUDA,
        "torch/utils/__init__.py": "",
        "torch/utils/cpp_extension.py": source("torch_extension"),
    }
    return Wheel("torch", version, (*_PURE, *requires), ("opt-einsum", "optree", *extras), ">=3.8", files=files, tag=tag)


def triton_wheel(name: str, version: str, tag: str) -> Wheel:
    """``triton``, ``pytorch-triton-rocm`` or ``triton-rocm``: three names, one import."""
    files = {"triton/__init__.py": f'__version__ = "{version}"\nDISTRIBUTION = "{name}"\n', "triton/language.py": ""}
    return Wheel(name, version, files=files, tag=tag)


def setuptools_wheel(version: str) -> Wheel:
    """The build backend stand-in under setuptools' name."""
    init = "from setuptools.build_meta import find_packages, setup\n"
    build = source("setuptools_build")
    return Wheel("setuptools", version, files={"setuptools/__init__.py": init, "setuptools/build_meta.py": build})
