"""What verify found, and which steps it took."""

from __future__ import annotations

from rocmpip.model.record import Struct

FAULT, WARNING, NOTE = "fault", "warn", "note"
LEVELS = (FAULT, WARNING, NOTE)


class Finding(Struct, frozen=True):
    """One thing that is wrong, or worth knowing, about what is installed."""

    kind: str
    """Stable slug: cuda-only, wrong-gfx, missing-library …"""
    level: str
    """fault (exit code 43), warn, note."""
    name: str
    """The distribution."""
    what: str
    file: str = ""
    """Relative to site-packages, or ""."""
    evidence: tuple[str, ...] = ()
    why: str = ""
    fix: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "level": self.level,
            "name": self.name,
            "file": self.file,
            "what": self.what,
            "evidence": list(self.evidence),
            "why": self.why,
            "fix": list(self.fix),
        }


class Step(Struct, frozen=True):
    """One thing that was done: ``verdict`` is ok, fault or skipped; ``detail`` says what came out, or why not."""

    step: str
    verdict: str
    detail: str = ""

    def as_json(self) -> dict[str, object]:
        return {"step": self.step, "verdict": self.verdict, "detail": self.detail}
