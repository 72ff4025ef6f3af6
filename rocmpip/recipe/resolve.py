"""One recipe (with what it extends) for one version and machine: clauses matched, placeholders filled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rocmpip.model.errors import Refused
from rocmpip.model.recipe import (
    Conflict,
    Explained,
    ReadyWheels,
    RecipeContext,
    ResolvedRecipe,
    Source,
    SystemNeed,
    Value,
    Verify,
)
from rocmpip.recipe.placeholders import EmptyTargets, SeveralTargets, fill, table
from rocmpip.recipe.schema import Backend, Clash, Clause, Recipe, Setting, When
from rocmpip.recipe.when import Match, match, without_torch

Chain = tuple[Recipe, ...]
T = TypeVar("T")


def _clause_text(recipe: Recipe, where: str, when: When) -> str:
    place = f"{recipe.file} {where}".strip() if where else recipe.file
    return f"{place} ({when})" if str(when) else place


@dataclass
class _Merge:
    """Clauses laid over each other; later ones win. Keys are in the order of their first mention."""

    env: dict[str, tuple[Setting, str]] = field(default_factory=dict)
    config: dict[str, list[tuple[Setting, str]]] = field(default_factory=dict)
    runtime: dict[str, tuple[Setting, str]] = field(default_factory=dict)
    requires: dict[str, tuple[str, str]] = field(default_factory=dict)
    system: dict[tuple[str, str], SystemNeed] = field(default_factory=dict)
    wheels: list[ReadyWheels] = field(default_factory=list)
    prepare: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    ulimits: dict[str, tuple[int, str]] = field(default_factory=dict)
    single: dict[str, tuple[Any, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def lay(self, clause: Clause, text: str) -> None:
        for name in clause.drop:
            self.env.pop(name, None)
            self.runtime.pop(name, None)
            self.config.pop(name, None)
            self.requires.pop(canonicalize_name(name), None)
            for need_key in [each for each in self.system if each[1] == name]:
                del self.system[need_key]
        for setting in clause.env:
            self.env[setting.key] = (setting, text)
        for setting in clause.runtime:
            self.runtime[setting.key] = (setting, text)
        for key in {setting.key: None for setting in clause.config_settings}:
            self.config[key] = [(setting, text) for setting in clause.config_settings if setting.key == key]
        for requirement in clause.requires:
            self.requires[canonicalize_name(Requirement(requirement).name)] = (requirement, text)
        for need in clause.system:
            self.system[need.kind, need.name] = replace(need, clause=text)
        # A later clause knows better, so its indexes are asked first; within one clause the order is the file's.
        self.wheels[:0] = [replace(ready, clause=text) for ready in clause.wheels]
        self.prepare += [(step, text) for step in clause.prepare]
        for name, limit in clause.ulimits.items():
            self.ulimits[name] = (limit, text)
        for field_name in (
            "source",
            "requires_dist",
            "isolation",
            "memory_per_job",
            "import_name",
            "device_code",
            "must_not_link",
        ):
            value = getattr(clause, field_name)
            if value is not None:
                self.single[field_name] = (value, text)
        self.notes += clause.notes


def _clauses(chain: Chain, version: str | None, context: RecipeContext, backend: str) -> Iterator[tuple[Clause, str]]:
    for recipe in chain:
        for clause in recipe.clauses:
            if match(clause.when, version, context, backend) is Match.YES:
                yield clause, _clause_text(recipe, clause.where, clause.when)


def _backends(chain: Chain) -> list[tuple[Recipe, Backend]]:
    """The highest recipe that has back ends says which there are."""
    for recipe in reversed(chain):
        if recipe.backends:
            return [(recipe, backend) for backend in recipe.backends]
    return []


def choose_backend(chain: Chain, version: str | None, context: RecipeContext) -> tuple[str, str]:
    """The back end and the clause it came from: the user's word, else the first whose ``when`` holds, else "".

    Raises Refused when the user names one that the recipe has not.
    """
    backends = _backends(chain)
    if context.backend and backends:
        known = ", ".join(backend.name for _, backend in backends)
        if context.backend not in {backend.name for _, backend in backends}:
            raise Refused(f"{chain[-1].name} has no back end {context.backend!r}", hint=f"its back ends: {known}")
        return context.backend, "asked for"
    for recipe, backend in backends:
        if match(backend.when, version, context, "") is Match.YES:
            return backend.name, _clause_text(recipe, backend.where, backend.when)
    return "", ""


def backend_asked(chain: Chain, env: Mapping[str, str]) -> str:
    """The back end that the user's exported variables ask for (``chosen_by``), or ""."""
    for _, backend in _backends(chain):
        if backend.chosen_by and all(env.get(key) == value for key, value in backend.chosen_by.items()):
            return backend.name
    return ""


def _asks_gfx(when: When) -> bool:
    return bool(when.gfx or when.gfx_any or when.gfx_outside)


def _conflict(recipe: Recipe, clash: Clash, certain: bool) -> Conflict:
    return Conflict(
        message=clash.message,
        hint=clash.way_out,
        clause=_clause_text(recipe, clash.where, clash.when),
        torch=clash.when.torch,
        kind=clash.kind,
        version=clash.when.version,
        scope=clash.scope,
        certain=certain,
    )


def conflicts_of(chain: Chain, version: str | None, context: RecipeContext, backend: str) -> tuple[Conflict, ...]:
    """Conflicts that hold, and (``certain`` False) those that wait for the torch version alone."""
    found = []
    for recipe in chain:
        for clash in recipe.clashes:
            verdict = match(clash.when, version, context, backend)
            if verdict is not Match.NO:
                found.append(_conflict(recipe, clash, verdict is Match.YES))
    return tuple(found)


def torch_conflicts_of(chain: Chain, version: str | None, context: RecipeContext) -> tuple[Conflict, ...]:
    """Conflicts with a torch specifier whose other conditions hold."""
    backend, _ = choose_backend(chain, version, context)
    return tuple(
        _conflict(recipe, clash, certain=True)
        for recipe in chain
        for clash in recipe.clashes
        if clash.when.torch and match(without_torch(clash.when), version, context, backend) is Match.YES
    )


def wheels_of(chain: Chain, version: str | None, context: RecipeContext) -> tuple[ReadyWheels, ...]:
    """Ready wheels, best first, their labels filled; those whose label cannot be filled here are left out."""
    backend, _ = choose_backend(chain, version, context)
    merge = _Merge()
    for clause, text in _clauses(chain, version, context, backend):
        merge.lay(clause, text)
    return _filled_wheels(merge, table(context, version or "", backend), context.gfx)


def _filled_wheels(merge: _Merge, values: dict[str, str], gfx: tuple[str, ...]) -> tuple[ReadyWheels, ...]:
    found = []
    for ready in merge.wheels:
        try:
            label = fill(ready.local, values, gfx)
        except (EmptyTargets, SeveralTargets):
            continue
        if not label.missing:
            found.append(replace(ready, local=label.text))
    return tuple(found)


@dataclass
class _Filler:
    """Fills templates of one resolution and gathers what could not be filled."""

    name: str
    values: dict[str, str]
    gfx: tuple[str, ...]
    notes: list[str]

    def __call__(self, what: str, template: str) -> tuple[str, str] | None:
        """(text, text for the fingerprint), or None and a note when something in it is not known here."""
        try:
            filled = fill(template, self.values, self.gfx)
        except EmptyTargets:
            raise Refused(
                f"{self.name} is built for the GPUs it will run on, and none is known",
                why=f"{what} lists the target GPUs, and an empty list builds nothing or for the wrong one",
                hint="say which: --gfx gfx942 (rocmpip detect shows what this machine has)",
            ) from None
        except SeveralTargets:
            raise Refused(
                f"{self.name} can be built for one GPU at a time, and {', '.join(self.gfx)} are asked for",
                why=f"{what} takes exactly one",
                hint=f"build once for each: --gfx {self.gfx[0]}",
            ) from None
        if filled.missing:
            unknown = ", ".join("{" + name + "}" for name in filled.missing)
            self.notes.append(f"{what} is left out: {unknown} is not known here")
            return None
        return filled.text, filled.stable


def resolve_chain(chain: Chain, name: str, version: str, context: RecipeContext) -> ResolvedRecipe:
    """See :meth:`RecipeBook.resolve`. ``name`` is what was asked for (a template serves many packages)."""
    recipe = chain[-1]
    told = name if recipe.name.startswith("_") else recipe.name
    backend, backend_clause = choose_backend(chain, version, context)
    conflicts = conflicts_of(chain, version, context, backend)
    summary = recipe.summary or next((each.summary for each in reversed(chain) if each.summary), "")
    refused = any(conflict.kind == "refuse" and conflict.certain for conflict in conflicts)
    if not (refused or context.gfx or context.backend) and any(_asks_gfx(each.when) for _, each in _backends(chain)):
        raise Refused(
            f"{told} has several back ends, and which one serves depends on the GPU",
            why="no target GPU is known",
            hint="say which GPU: --gfx gfx942 (rocmpip detect shows what this machine has)",
        )
    merge = _Merge()
    for clause, text in _clauses(chain, version, context, backend):
        merge.lay(clause, text)
    values = table(context, version, backend)
    notes = list(dict.fromkeys(merge.notes))
    filler = _Filler(told, values, context.gfx, notes)
    if refused:
        # What never works has nothing to fill: its reason is the whole answer, also where no GPU is known.
        merge = _Merge(wheels=merge.wheels, runtime={}, single=merge.single)

    def filled(section: str, pairs: Sequence[tuple[Setting, str]]) -> list[tuple[Value, str]]:
        rows = []
        for setting, clause in pairs:
            texts = filler(setting.key, setting.value)
            if texts:
                rows.append((Value(setting.key, texts[0], clause, setting.force, setting.note), texts[1]))
                explanation.append(Explained(section, setting.key, texts[0], clause, setting.note))
        return rows

    explanation: list[Explained] = []
    if backend:
        explanation.append(Explained("backend", "name", backend, backend_clause))
    source = _single(merge, "source", Source())
    explanation.append(
        Explained("source", source.kind, f"{source.url} {source.commit}".strip(), _from(merge, "source", recipe))
    )
    wheels = _filled_wheels(merge, values, context.gfx)
    explanation += [Explained("wheels", w.name or told, f"{w.index} {w.specifier} {w.local}".strip(), w.clause) for w in wheels]
    explanation += [Explained("system", f"{n.kind} {n.name}", n.specifier, n.clause, n.reason) for n in merge.system.values()]
    env = filled("build.env", list(merge.env.values()))
    config = filled("build.config_settings", [row for rows in merge.config.values() for row in rows])
    explanation += [Explained("build.requires", key, line, told_by) for key, (line, told_by) in merge.requires.items()]
    prepare = []
    for step, told_by in merge.prepare:
        words = [filler("prepare", word) for word in step]
        if all(words):
            prepare.append(tuple(word[0] for word in words if word))
            explanation.append(Explained("build.prepare", step[0], " ".join(prepare[-1]), told_by))
    isolation = _single(merge, "isolation", False)
    memory = _single(merge, "memory_per_job", 2.0)
    explanation.append(Explained("build", "isolation", str(isolation).lower(), _from(merge, "isolation", recipe)))
    explanation.append(Explained("build", "memory_per_job", f"{memory:g} GiB", _from(merge, "memory_per_job", recipe)))
    explanation += [Explained("build.ulimits", key, str(limit), clause) for key, (limit, clause) in merge.ulimits.items()]
    runtime = filled("runtime", list(merge.runtime.values()))
    verify = Verify(
        import_name=_single(merge, "import_name", ""),
        device_code=_single(merge, "device_code", False),
        must_not_link=_single(merge, "must_not_link", Verify().must_not_link),
    )
    explanation.append(Explained("verify", "import", verify.import_name, _from(merge, "import_name", recipe)))
    explanation.append(Explained("verify", "device_code", str(verify.device_code).lower(), _from(merge, "device_code", recipe)))
    requires_dist = merge.single.get("requires_dist", (None, ""))[0]
    for line in requires_dist or ():
        told_by = _from(merge, "requires_dist", recipe)
        explanation.append(Explained("metadata.requires", Requirement(line).name, line, told_by))
    requires = tuple(text for text, _ in merge.requires.values())
    fingerprint = {
        "source": [source.kind, source.url, source.commit, source.submodules, source.subdirectory],
        "backend": backend,
        "env": sorted([value.key, stable] for value, stable in env),
        "config_settings": [[value.key, stable] for value, stable in config],
        "requires": sorted(requires),
        "isolation": isolation,
        "prepare": [list(step) for step, _ in merge.prepare],
        "verify": [verify.import_name, verify.device_code, sorted(verify.must_not_link)],
    }
    return ResolvedRecipe(
        name=told,
        version=version,
        layer=recipe.layer,
        path=recipe.path,
        digest=hashlib.sha256(json.dumps(fingerprint, sort_keys=True).encode()).hexdigest(),
        source=source,
        backend=backend,
        env=tuple(value for value, _ in env),
        config_settings=tuple(value for value, _ in config),
        requires=requires,
        isolation=isolation,
        memory_per_job=memory,
        ulimits={key: limit for key, (limit, _) in merge.ulimits.items()},
        prepare=tuple(prepare),
        system=tuple(merge.system.values()),
        wheels=wheels,
        runtime=tuple(value for value, _ in runtime),
        verify=verify,
        requires_dist=requires_dist,
        conflicts=conflicts,
        notes=tuple(notes),
        explanation=tuple(explanation),
        summary=summary,
    )


def _single(merge: _Merge, key: str, default: T) -> T:
    value: T = merge.single[key][0] if key in merge.single else default
    return value


def _from(merge: _Merge, key: str, recipe: Recipe) -> str:
    return merge.single[key][1] if key in merge.single else "built-in"
