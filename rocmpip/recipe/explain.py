"""Each value of a resolved recipe with the clause it came from, as rows and as text."""

from __future__ import annotations

from rocmpip.model.recipe import Explained, ResolvedRecipe


def explain(resolved: ResolvedRecipe) -> tuple[Explained, ...]:
    """Rows in the order of the schema; conflicts and notes last."""
    rows = list(resolved.explanation)
    for conflict in resolved.conflicts:
        word = conflict.kind if conflict.certain else f"{conflict.kind} if torch {conflict.torch}"
        rows.append(Explained("conflict", word, f"{conflict.message}; way out: {conflict.hint}", conflict.clause))
    rows += [Explained("note", "", note, "") for note in resolved.notes]
    return tuple(rows)
