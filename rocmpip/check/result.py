"""What one check says."""

from __future__ import annotations

from rocmpip.model.record import Struct

OK, WARN, BROKEN, SKIPPED = "ok", "warn", "broken", "skipped"
ORDER = (BROKEN, WARN, OK, SKIPPED)
"""Verdicts, worst first."""


class Check(Struct, frozen=True):
    """One question asked of the machine, with its answer."""

    id: str
    """Stable slug: gpu-devices, rocm-roots …"""
    title: str
    verdict: str
    """ok, warn (works, but will surprise), broken (does not work), skipped (nothing to look at here)."""
    evidence: tuple[str, ...] = ()
    """What was seen, each with the file, variable or program it was seen in."""
    why: str = ""
    """What it means for a person, and for skipped checks why there was nothing to do."""
    fix: tuple[str, ...] = ()
    """Shell commands that mend it, in this order; none is ever run by rocmpip."""

    def as_json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "title": self.title,
            "verdict": self.verdict,
            "evidence": list(self.evidence),
            "why": self.why,
            "fix": list(self.fix),
        }
