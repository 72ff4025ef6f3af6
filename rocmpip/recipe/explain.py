"""Each value of a recipe with the clause it came from, as rows."""

from __future__ import annotations

from collections.abc import Iterator

from rocmpip.model.recipe import Explained, ResolvedRecipe
from rocmpip.recipe.clashes import Chain
from rocmpip.recipe.merge import clause_text
from rocmpip.recipe.schema import Clause


def explain(resolved: ResolvedRecipe) -> tuple[Explained, ...]:
    """Rows in the order of the schema; conflicts and notes last."""
    rows = list(resolved.explanation)
    for conflict in resolved.conflicts:
        word = conflict.kind if conflict.certain else f"{conflict.kind} if torch {conflict.torch}"
        rows.append(Explained("conflict", word, f"{conflict.message}; way out: {conflict.hint}", conflict.clause))
    rows += [Explained("note", "", note, "") for note in resolved.notes]
    return tuple(rows)


def explain_unfilled(chain: Chain) -> tuple[Explained, ...]:
    """Every clause of a recipe as it is written, nothing matched and nothing filled: for when no GPU is known."""
    rows: list[Explained] = []
    for recipe in chain:
        for backend in recipe.backends:
            where = clause_text(recipe, backend.where, backend.when)
            rows.append(Explained("backend", backend.name, backend.summary, where))
        for clause in recipe.clauses:
            rows += _clause_rows(clause, clause_text(recipe, clause.where, clause.when))
        for clash in recipe.clashes:
            where = clause_text(recipe, clash.where, clash.when)
            rows.append(Explained("conflict", clash.kind, f"{clash.message}; way out: {clash.way_out}", where))
    return tuple(rows)


def _clause_rows(clause: Clause, where: str) -> Iterator[Explained]:
    if clause.source is not None:
        yield Explained("source", clause.source.kind, f"{clause.source.url} {clause.source.commit}".strip(), where)
    for ready in clause.wheels:
        yield Explained("wheels", ready.name, " ".join(f"{ready.index} {ready.specifier} {ready.local}".split()), where)
    for need in clause.system:
        yield Explained("system", f"{need.kind} {need.name}", need.specifier, where, need.reason)
    for section, settings in (
        ("build.env", clause.env),
        ("build.config_settings", clause.config_settings),
        ("runtime", clause.runtime),
    ):
        for setting in settings:
            yield Explained(section, setting.key, setting.value, where, setting.note)
    for requirement in clause.requires:
        yield Explained("build.requires", "", requirement, where)
    for step in clause.prepare:
        yield Explained("build.prepare", step[0], " ".join(step), where)
    for requirement in clause.requires_dist or ():
        yield Explained("metadata.requires", "", requirement, where)
    for name in clause.drop:
        yield Explained("drop", name, "", where)
