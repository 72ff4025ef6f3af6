"""All faults of recipe files, collected before anything is said."""

from __future__ import annotations

from collections.abc import Sequence

from rocmpip.model.errors import BadConfiguration
from rocmpip.model.record import Struct, field
from rocmpip.model.redact import redact

MOST_TOLD = 100
"""More faults than this in one go are counted, not listed."""


def shown(value: object, limit: int = 60) -> str:
    """``value`` as a person may see it: quoted, short, without control characters and credentials."""
    text = redact(ascii(value)) if not isinstance(value, dict) else "a table"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def key_path(*parts: str | int) -> str:
    """``("when", 2, "build", "env", "X Y")`` → ``when[2].build.env."X Y"``."""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            word = part if part.replace("-", "").replace("_", "").isalnum() and part.isascii() else shown(part)
            text += ("." if text else "") + word
    return text


class Faults(Struct):
    """A list that grows while files are read; ``raise_if_any`` ends it."""

    lines: list[str] = field(default_factory=list)
    file: str = ""

    def add(self, path: str, problem: str, allowed: str = "") -> None:
        """One fault: the key's path ("" for the file itself), what is wrong, what is allowed."""
        where = f"{self.file}: {path}: " if path else f"{self.file}: "
        self.lines.append(where + problem + (f" (allowed: {allowed})" if allowed else ""))

    def raise_if_any(self) -> None:
        """Raise BadConfiguration (exit 45) that tells every fault."""
        if not self.lines:
            return
        count = len(self.lines)
        details: Sequence[str] = self.lines[:MOST_TOLD]
        if count > MOST_TOLD:
            details = [*details, f"… and {count - MOST_TOLD} more"]
        raise BadConfiguration(
            f"{count} fault{'s' if count > 1 else ''} in the recipes",
            hint="rocmpip recipe check FILE tells the faults of one file; docs/reference/recipe-format.md has every key",
            details=tuple(details),
        )
