"""What a command's environment must not hold when it is to meet only what we set up."""

from __future__ import annotations

from collections.abc import Mapping

_PREFIXES = (
    "PIP_",
    "ROCMPIP_",
    "ROCM",
    "HIP_",
    "HSA_",
    "ROCR_",
    "PYTORCH_",
    "FLASH_ATT",
    "DS_",
    "XDG_",
    "CONDA_",
    "UV_",
    "CUDA",
)
_NAMES = frozenset(
    {
        "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "NETRC", "MAX_JOBS", "GPU_ARCHS", "HIP_ARCHS", "AMDGPU_TARGETS",
        "GPU_DEVICE_ORDINAL", "BUILD_TARGET", "CC", "CXX", "CPPFLAGS", "CFLAGS", "CXXFLAGS", "LDFLAGS",
    }
)  # fmt: skip
_NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE")


def clean_environment(base: Mapping[str, str]) -> dict[str, str]:
    """``base`` without anything that steers pip, rocmpip, ROCm tools or builds, and without proxies and certificates."""
    return {
        key: value
        for key, value in base.items()
        if not key.startswith(_PREFIXES) and key not in _NAMES and key.upper() not in _NETWORK
    }
