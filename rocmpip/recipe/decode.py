"""TOML data → Recipe. Every fault of the file is collected; nothing is run and nothing is looked up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rocmpip.model.packages import normalise
from rocmpip.model.recipe import Release
from rocmpip.recipe.clauses import decode_clause, decode_when
from rocmpip.recipe.faults import Faults, shown
from rocmpip.recipe.schema import SCHEMA, Backend, Clash, Clause, CudaName, Recipe
from rocmpip.recipe.tables import Table
from rocmpip.recipe.values import commit_fault
from rocmpip.recipe.when import version_fault

_NAME = re.compile(r"_?[a-z0-9](?:[a-z0-9-]{0,98}[a-z0-9])?", re.ASCII)
_WORD = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}", re.ASCII)
_MINOR = re.compile(r"\d{1,4}\.\d{1,4}", re.ASCII)
_ASKED = re.compile(r"[a-z0-9][a-z0-9-]*(?:\[[a-z0-9_-]+\])?", re.ASCII)


def recipe_name(text: str) -> str:
    """Normalised name of a package or template; a leading ``_`` (a template) stays."""
    mark = "_" if text.startswith("_") else ""
    return mark + normalise(text[len(mark) :])


def package_name_fault(text: str) -> str:
    """What is wrong with the name of a package or template, or ""."""
    return "" if _NAME.fullmatch(recipe_name(text)) else "is not a package name"


def _word_fault(text: str) -> str:
    return "" if _WORD.fullmatch(text) else "is not a plain lower-case word"


def _minor_fault(text: str) -> str:
    return "" if _MINOR.fullmatch(text) else "is not a major.minor version of torch such as 2.9"


def _asked_fault(text: str) -> str:
    return "" if _ASKED.fullmatch(text) else "is not a normalised name such as cupy-cuda12x or jax[cuda12]"


def _decode_package(top: Table, stem: str) -> Recipe:
    table = top.table("package")
    if table is None:
        if "package" not in top.data:
            top.fault("package", "is missing", "a [package] table with a name")
        return Recipe("")
    name = recipe_name(table.text("name", package_name_fault, needed=True))
    if name and stem and recipe_name(stem) != name:
        table.fault("name", f"is {shown(name)} in the file {shown(stem + '.toml')}", f"the file's own name, {name}.toml")
    aliases = table.texts("aliases", package_name_fault) or ()
    extends = table.text("extends", package_name_fault)
    if extends and recipe_name(extends) != name and not extends.startswith("_"):
        table.fault(
            "extends", f"is {shown(extends)}", f"a template (its name starts with _), or {name} for the lower layer's recipe"
        )
        extends = ""
    recipe = Recipe(
        name=name,
        summary=table.text("summary"),
        tested=table.text("tested", version_fault),
        aliases=tuple(recipe_name(alias) for alias in aliases),
        extends=recipe_name(extends),
    )
    table.finish()
    return recipe


def _decode_backends(top: Table) -> tuple[Backend, ...]:
    backends = []
    for place, table in enumerate(top.tables("backend"), 1):
        chosen_by = table.table("chosen_by")
        backends.append(
            Backend(
                name=table.text("name", _word_fault, needed=True),
                when=decode_when(table.table("when"), backends=()),
                summary=table.text("summary"),
                where=f"[[backend]] #{place}",
                chosen_by={key: chosen_by.text(key) for key in chosen_by.data} if chosen_by else {},
            )
        )
        table.finish()
    return tuple(backends)


def _decode_clashes(top: Table, backends: tuple[str, ...] | None) -> tuple[Clash, ...]:
    clashes = []
    refuse = top.table("refuse")
    if refuse is not None:
        clashes.append(
            Clash(
                message=refuse.text("message", needed=True),
                way_out=refuse.text("way_out", needed=True),
                scope=refuse.text("scope", choices=("build", "any")) or "any",
                kind="refuse",
                where="[refuse]",
            )
        )
        refuse.finish()
    for place, table in enumerate(top.tables("conflict"), 1):
        when = table.table("when")
        if when is None:
            table.fault("when", "is missing", "a table of conditions; [refuse] is for what never works")
        clashes.append(
            Clash(
                message=table.text("message", needed=True),
                way_out=table.text("way_out", needed=True),
                when=decode_when(when, backends),
                scope=table.text("scope", choices=("build", "any")) or "build",
                where=f"[[conflict]] #{place}",
            )
        )
        table.finish()
    return tuple(clashes)


def _decode_releases(top: Table) -> tuple[Release, ...]:
    releases = []
    for table in top.tables("release"):
        releases.append(
            Release(
                version=table.text("version", version_fault, needed=True),
                commit=table.text("commit", commit_fault, needed=True),
                torch=table.text("torch", _minor_fault),
            )
        )
        table.finish()
    return tuple(releases)


def _check_commits(top: Table, clauses: list[Clause], releases: tuple[Release, ...], extends: str) -> None:
    """A git source without a commit of its own needs ``[[release]]`` rows."""
    for clause in clauses:
        source = clause.source
        if source is not None and source.kind == "git" and not source.commit and not releases and not extends:
            path = "source.commit" if not clause.where else f"{clause.where}.source.commit"
            top.faults.add(path, "is missing", "a full commit id here, or [[release]] rows with version and commit")


def _decode_cuda_names(top: Table) -> tuple[CudaName, ...]:
    mapped = []
    for place, table in enumerate(top.tables("cuda_name"), 1):
        names = table.texts("names", _asked_fault)
        if not names:
            table.fault("names", "is missing or empty", "a list such as ['cupy-cuda12x']")
        mapped.append(
            CudaName(
                names=names or (),
                name=table.text("name", package_name_fault, needed=True),
                extras=table.texts("extras", _word_fault) or (),
                when=decode_when(table.table("when"), backends=()),
                because=table.text("because"),
                where=f"[[cuda_name]] #{place}",
            )
        )
        table.finish()
    return tuple(mapped)


def decode(data: Mapping[str, Any], faults: Faults, *, stem: str = "") -> Recipe:
    """Decode one file's data. ``stem`` is the file's name that ``package.name`` must agree with ("" to not ask).

    Faults go to ``faults``; the recipe that comes back is only to be used when there are none.
    """
    top = Table(data, (), faults)
    schema = top.take("schema")
    if isinstance(schema, bool) or not isinstance(schema, int) or not 1 <= schema <= SCHEMA:
        newer = isinstance(schema, int) and not isinstance(schema, bool) and schema > SCHEMA
        problem = "is for a newer rocmpip" if newer else "is missing" if schema is None else f"is {shown(schema)}"
        top.fault("schema", problem, f"schema = {SCHEMA}")
    head = _decode_package(top, stem)
    backends = _decode_backends(top)
    # A recipe that extends another may speak of that one's back ends.
    words = None if head.extends and not backends else tuple(backend.name for backend in backends)
    clashes = _decode_clashes(top, words)
    cuda_names = _decode_cuda_names(top)
    releases = _decode_releases(top)
    clauses: list[Clause] = []
    whens = top.tables("when")
    clauses.append(decode_clause(top, "", head.name, words))
    for place, table in enumerate(whens, 1):
        clauses.append(decode_clause(table, f"[[when]] #{place}", head.name, words))
        table.finish()
    _check_commits(top, clauses, releases, head.extends)
    top.finish()
    return Recipe(
        name=head.name,
        summary=head.summary,
        tested=head.tested,
        aliases=head.aliases,
        extends=head.extends,
        clauses=tuple(clauses),
        backends=backends,
        clashes=clashes,
        cuda_names=cuda_names,
        releases=releases,
        file=faults.file,
    )
