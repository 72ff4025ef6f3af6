"""CUDA build labels in requirements of the torch family: ``torch==2.5.1+cu121`` asks for a build that AMD GPUs cannot run."""

from __future__ import annotations

import re
from collections.abc import Collection

from rocmpip.model.packages import normalise

TORCH_FAMILY = frozenset(
    (
        "torch",
        "torchvision",
        "torchaudio",
        "triton",
        "pytorch-triton-rocm",
        "triton-rocm",
    )
)
"""Names whose builds carry a platform label; the catalogue's list replaces it where it is at hand."""

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
# Any label after an ordered operator is illegal; after ``==`` only the CUDA and CPU ones are foreign.
_CLAUSE = re.compile(r"(?P<operator>===|==|!=|~=|<=|>=|<|>)(?P<space>\s*)(?P<version>[^\s,;()+]+)\+(?P<label>[A-Za-z0-9._-]+)")
_FOREIGN = re.compile(r"^(cu\d+|cpu|cuda)", re.IGNORECASE)


def without_cuda_label(text: str, family: Collection[str], notes: list[str]) -> str:
    """``text`` (no marker) with the labels dropped that cannot be met here; each change appends a note.

    Ordered operators (``>=``, ``~=``, ``<`` …) may not have a label at all (PEP 440): dropped for family names. ``==`` and
    ``===`` keep a ROCm label and lose a CUDA or CPU one. ``!=X+cu121`` excludes a build that is never offered: kept. Other
    names stay as written, so that the error is pip's.
    """
    found = _NAME.match(text)
    if found is None or "+" not in text or "@" in text or normalise(found[1]) not in family:
        return text

    def mended(clause: re.Match[str]) -> str:
        operator, label = clause["operator"], clause["label"]
        if operator == "!=" or (operator in ("==", "===") and not _FOREIGN.match(label)):
            return clause[0]
        return ("==" if operator == "===" else operator) + clause["space"] + clause["version"]

    result = found[0] + _CLAUSE.sub(mended, text[found.end() :])
    if result != text:
        notes.append(f"{text.strip()} is read as {result.strip()}: its local label names a build for other hardware")
    return result
