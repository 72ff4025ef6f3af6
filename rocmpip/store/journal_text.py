"""Texts of the journal: nothing private in them, and when two error lines say the same."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rocmpip.model.redact import redact

KEPT_VARIABLES = (
    "AITER_USE_SYSTEM_TRITON",
    "AMDGPU_TARGETS",
    "BUILD_TARGET",
    "CC",
    "CFLAGS",
    "CMAKE_ARGS",
    "CMAKE_PREFIX_PATH",
    "CPLUS_INCLUDE_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CXX",
    "CXXFLAGS",
    "DS_ACCELERATOR",
    "DS_BUILD_OPS",
    "FLASH_ATTENTION_TRITON_AMD_ENABLE",
    "GPU_ARCHS",
    "HIPCC_COMPILE_FLAGS_APPEND",
    "HIP_ARCHITECTURES",
    "HIP_ARCHS",
    "HIP_DEVICE_LIB_PATH",
    "HIP_PATH",
    "HIP_PLATFORM",
    "HIP_VISIBLE_DEVICES",
    "HSA_OVERRIDE_GFX_VERSION",
    "HSA_XNACK",
    "LDFLAGS",
    "LD_LIBRARY_PATH",
    "MAX_JOBS",
    "PIP_NO_BUILD_ISOLATION",
    "PYTORCH_ROCM_ARCH",
    "ROCM_HOME",
    "ROCM_PATH",
    "ROCR_VISIBLE_DEVICES",
    "TMPDIR",
    "USE_ROCM",
)
"""The variables that decide whether a build or an install for ROCm works; no other variable is ever written down."""

_SECRET = re.compile(
    r"(?:hf_|ghp_|gho_|ghs_|github_pat_|glpat-|pypi-|xox[abp]-|sk-)[A-Za-z0-9_-]{8,200}|AKIA[0-9A-Z]{16}"
    r"|eyJ[A-Za-z0-9_-]{10,400}\.[A-Za-z0-9_.-]{10,800}"
)
_NAMED_SECRET = re.compile(
    r"(?P<name>\b[\w-]{0,40}(?:token|passwd|password|secret|api[_-]?key|credential|authorization|cookie)[\w-]{0,20}['\"]?\s{0,3}[=:]\s{0,3}"
    r"['\"]?(?:bearer |basic )?)['\"]?[^\s'\",;&]{3,400}",
    re.IGNORECASE,
)
_FLAG_SECRET = re.compile(r"(?P<flag>--?(?:token|password|passwd|secret|api-?key)[ =])\S{3,400}", re.IGNORECASE)
# ``TWINE_PASSWORD x``, ``password x`` (.netrc) and curl's ``-u name:x``; a sentence about "the password" names none.
_LOOSE_SECRET = re.compile(
    r"(?P<before>\b[A-Z0-9]{1,40}_(?:TOKEN|PASSWORD|SECRET|API_KEY) |\blogin \S{1,64} password |(?:\s|^)(?:-u|--user)[ =][^\s:/]{1,64}:)\S{3,400}"
)
_HOMES = re.compile(r"(?:/home|/Users|/export/home|[A-Za-z]:\\Users)[/\\][^/\\\s:'\"()]{1,64}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def tidy(text: str, home: str = "", longest: int = 500) -> str:
    """``text`` in one line without credentials, home folders and control characters, cut to ``longest`` characters."""
    # A little more than what is kept, so that a secret is not cut in half before it is seen.
    text = _CONTROL.sub(" ", text[: 4 * longest])
    text = redact(text)
    text = _SECRET.sub("****", text)
    text = _NAMED_SECRET.sub(lambda match: match["name"] + "****", text)
    text = _FLAG_SECRET.sub(lambda match: match["flag"] + "****", text)
    text = _LOOSE_SECRET.sub(lambda match: match["before"] + "****", text)
    if len(home) > 2:
        text = re.sub(re.escape(home.rstrip("/")) + r"(?![\w.-])", "~", text)
    text = _HOMES.sub("~", text).strip()
    return text if len(text) <= longest else text[: longest - 1] + "…"


def kept_variables(env: Mapping[str, str], home: str = "") -> dict[str, str]:
    """Of ``env`` what the journal writes down."""
    return {name: tidy(env[name], home, 200) for name in KEPT_VARIABLES if env.get(name)}


_WORD = re.compile(r"[A-Za-z_\u4e00-\u9fff][A-Za-z_\u4e00-\u9fff]+")
_PATH = re.compile(r"(?:~|[A-Za-z]:)?[/\\][^\s:'\"`,;()]{1,300}[/\\]")
_FEWEST = 4
_ALIKE = 0.8


def words_of(line: str) -> frozenset[str]:
    """What an error line says, without folders, numbers and punctuation."""
    return frozenset(word.lower() for word in _WORD.findall(_PATH.sub(" ", line[:2000])))


def alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """True when two error lines (as ``words_of`` has them) say the same in other places and versions."""
    if len(one) < _FEWEST or len(other) < _FEWEST:
        return bool(one) and one == other
    return len(one & other) >= _ALIKE * len(one | other)
