"""A recipe's "no", as the error that ends a command."""

from __future__ import annotations

from rocmpip.model.errors import Refused
from rocmpip.model.recipe import ResolvedRecipe


def refuse_conflicts(resolved: ResolvedRecipe, *, building: bool = True) -> None:
    """Raise Refused (44) when a conflict holds for certain. ``building`` False: a ready wheel is taken, so only those with
    scope ``any`` count."""
    held = [each for each in resolved.refusals if building or each.scope == "any"]
    if not held:
        return
    first = held[0]
    raise Refused(
        f"{resolved.name} {resolved.version}: {first.message}".replace("  ", " "),
        why=f"the recipe says so: {first.clause}",
        hint=first.hint,
        details=tuple(f"also: {each.message} ({each.clause})" for each in held[1:]),
    )
