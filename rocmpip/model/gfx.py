"""gfx targets: names, KFD numbers, target features.

A gfx name is ``gfx`` + major (decimal) + minor (one hex digit) + step (one hex digit): gfx90a, gfx1151. KFD's
``gfx_target_version`` is ``major * 10000 + minor * 100 + step`` (AMD kernel driver, kfd_topology.c).
"""

from __future__ import annotations

from rocmpip.model.record import Struct

_HEX = frozenset("0123456789abcdef")


class Gfx(Struct, frozen=True):
    """One offload arch: ``name`` (``gfx90a``) and target features in their written order (``("sramecc+", "xnack-")``)."""

    name: str
    features: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ":".join((self.name, *self.features))

    @property
    def number(self) -> int:
        """KFD's gfx_target_version for this name (0 for a generic target)."""
        digits = self.name[3:]
        if not is_gfx_name(self.name):
            return 0
        return int(digits[:-2]) * 10000 + int(digits[-2], 16) * 100 + int(digits[-1], 16)


def is_gfx_name(text: str) -> bool:
    """True for ``gfx`` + decimal major + two hex digits, without features; gfx000 (the CPU) is not one."""
    body = text[3:]
    return text.startswith("gfx") and len(body) >= 3 and body[:-2].isdigit() and set(body[-2:]) <= _HEX and body != "000"


def parse_gfx(text: str) -> Gfx:
    """Read ``gfx90a:sramecc+:xnack-`` (any case, spaces around). Raises ValueError naming the text."""
    name, *features = text.strip().lower().split(":")
    if not is_gfx_name(name) and not (name.startswith("gfx") and name.endswith("-generic")):
        raise ValueError(f"{text!r} is not a gfx target (expected gfx + digits, such as gfx942 or gfx90a:xnack-)")
    for feature in features:
        if feature[:-1] not in ("xnack", "sramecc") or feature[-1:] not in ("+", "-"):
            raise ValueError(f"{text!r} has an unknown target feature {feature!r} (known: xnack+/-, sramecc+/-)")
    return Gfx(name, tuple(features))


def decode_kfd(number: int) -> str:
    """KFD's gfx_target_version → name: 90010 → gfx90a, 110501 → gfx1151. Raises ValueError for what is no GPU."""
    major, minor, step = number // 10000, number // 100 % 100, number % 100
    if number <= 0 or major > 99 or minor > 15 or step > 15:
        raise ValueError(f"gfx_target_version {number} does not decode to a gfx target")
    return f"gfx{major}{minor:x}{step:x}"
