"""ROCm versions, compared as numbers.

``+rocm10.0`` sorts before ``+rocm6.4`` as PEP 440 text, so ROCm versions never go through packaging.version.
"""

from __future__ import annotations

import re

from rocmpip.model.record import Struct

_NUMBERS = re.compile(r"(?:rocm)?v?(\d+)(?:\.(\d+))?(?:\.(\d+))?")
_CUDA = re.compile(r"cu(?:da)?\d\d")
_LABEL = re.compile(r"(?:^|[.+])rocm(\d+(?:\.\d+)*)")


class RocmVersion(Struct, frozen=True, eq=False):
    """``release`` has two or three numbers; ``text`` is what was read (``6.4.0-47``). Equality ignores ``text``."""

    release: tuple[int, ...]
    text: str = ""

    @property
    def _key(self) -> tuple[int, int, int]:
        major, minor, patch = (*self.release, 0, 0, 0)[:3]
        return major, minor, patch

    @property
    def minor(self) -> tuple[int, int]:
        """(major, minor), which is what a wheel index is named after."""
        return self._key[:2]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RocmVersion) and self._key == other._key

    # All four: functools.total_ordering takes those of a struct for written ones.
    def __lt__(self, other: RocmVersion) -> bool:
        return self._key < other._key

    def __le__(self, other: RocmVersion) -> bool:
        return self._key <= other._key

    def __gt__(self, other: RocmVersion) -> bool:
        return self._key > other._key

    def __ge__(self, other: RocmVersion) -> bool:
        return self._key >= other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        return ".".join(str(number) for number in self.release)


def parse_rocm(text: str) -> RocmVersion:
    """Read ``6.4``, ``6.4.0-47``, ``rocm7.2.1``, ``10.1.0a20260828``. Raises ValueError naming the text."""
    stripped = text.strip()
    match = _NUMBERS.match(stripped.lower())
    if match is None or len(stripped) > 80:
        raise ValueError(f"{text[:80]!r} is not a ROCm version (expected numbers, such as 6.4 or 7.2.1)")
    return RocmVersion(tuple(int(part) for part in match.groups() if part is not None), stripped)


def rocm_of_label(version: str) -> RocmVersion | None:
    """The ROCm version in a local label: ``2.9.1+rocm6.4`` → 6.4, ``3.7.1+git0263a6a6.rocm7.14.0`` → 7.14.0, else None."""
    _, plus, local = version.partition("+")
    match = _LABEL.search(local) if plus else None
    return parse_rocm(match.group(1)) if match else None


def cuda_label(version: str) -> bool:
    """True for a local label that names a CUDA: ``2.9.1+cu128``, ``2.1.2+pt25cu124``, ``2.8.3+cu12torch2.8cxx11abitrue``."""
    return _CUDA.search(version.partition("+")[2].lower()) is not None
