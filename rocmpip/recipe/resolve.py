"""One recipe (with what it extends) for one version and machine: clauses matched, placeholders filled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence

from packaging.requirements import Requirement

from rocmpip.model.errors import Refused
from rocmpip.model.recipe import Explained, ReadyWheels, RecipeContext, ResolvedRecipe, Source, Value, Verify
from rocmpip.model.record import Struct, field, replace
from rocmpip.recipe.clashes import Chain, choose_backend, conflicts_of, refuse_backend, release_for, releases_of
from rocmpip.recipe.merge import Merge, clause_text
from rocmpip.recipe.placeholders import EmptyTargets, SeveralTargets, fill, table
from rocmpip.recipe.schema import Clause, Setting
from rocmpip.recipe.when import Match, match


def _clauses(chain: Chain, version: str | None, context: RecipeContext, backend: str) -> Iterator[tuple[Clause, str]]:
    for recipe in chain:
        for clause in recipe.clauses:
            if match(clause.when, version, context, backend) is Match.YES:
                yield clause, clause_text(recipe, clause.where, clause.when)


def _merged(chain: Chain, version: str | None, context: RecipeContext, backend: str) -> Merge:
    merge = Merge()
    for clause, text in _clauses(chain, version, context, backend):
        merge.lay(clause, text)
    return merge


def wheels_of(chain: Chain, version: str | None, context: RecipeContext) -> tuple[ReadyWheels, ...]:
    """Ready wheels, best first, addresses and labels filled; those that cannot be filled here are left out."""
    backend, _ = choose_backend(chain, version, context)
    merge = _merged(chain, version, context, backend)
    return _filled_wheels(merge, table(context, version or "", backend), context.gfx)


def _filled_wheels(merge: Merge, values: dict[str, str], gfx: tuple[str, ...]) -> tuple[ReadyWheels, ...]:
    found = []
    for ready in merge.wheels:
        try:
            index, label = fill(ready.index, values, gfx), fill(ready.local, values, gfx)
        except (EmptyTargets, SeveralTargets):
            continue
        if not index.missing and not label.missing:
            found.append(replace(ready, index=index.text, local=label.text))
    return tuple(found)


class _Filler(Struct):
    """Fills the templates of one resolution, and writes down what each value is and where it came from."""

    name: str
    values: dict[str, str]
    gfx: tuple[str, ...]
    notes: list[str]
    rows: list[Explained] = field(default_factory=list)

    def text(self, what: str, template: str) -> tuple[str, str] | None:
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

    def settings(self, section: str, pairs: Sequence[tuple[Setting, str]]) -> list[tuple[Value, str]]:
        """Values with their fingerprint texts; those that cannot be filled are left out."""
        found = []
        for setting, clause in pairs:
            texts = self.text(setting.key, setting.value)
            if texts:
                found.append((Value(setting.key, texts[0], clause, setting.force, setting.note), texts[1]))
                self.say(section, setting.key, texts[0], clause, setting.note)
        return found

    def steps(self, merge: Merge) -> list[tuple[str, ...]]:
        """The ``prepare`` steps; a step with a word that is not known is left out."""
        found = []
        for step, clause in merge.prepare:
            words = [self.text("prepare", word) for word in step]
            if all(words):
                found.append(tuple(word[0] for word in words if word))
                self.say("build.prepare", step[0], " ".join(found[-1]), clause)
        return found

    def say(self, section: str, key: str, value: str, clause: str, note: str = "") -> None:
        self.rows.append(Explained(section, key, value, clause, note))


def source_of(chain: Chain, version: str | None, context: RecipeContext) -> Source:
    """The source alone, its commit filled in when the version is known."""
    backend, _ = choose_backend(chain, version, context)
    return _source(_merged(chain, version, context, backend), chain, version)


def _source(merge: Merge, chain: Chain, version: str | None) -> Source:
    source = merge.get("source", Source())
    if source.kind == "git" and not source.commit and version is not None:
        row = release_for(releases_of(chain), version)
        return replace(source, commit=row.commit) if row else source
    return source


def resolve_chain(chain: Chain, name: str, version: str, context: RecipeContext) -> ResolvedRecipe:
    """See :meth:`RecipeBook.resolve`. ``name`` is what was asked for: a template serves many packages."""
    recipe = chain[-1]
    told = name if recipe.name.startswith("_") else recipe.name
    backend, backend_clause = choose_backend(chain, version, context)
    merge = _merged(chain, version, context, backend)
    bare_source = merge.get("source", Source())
    conflicts = conflicts_of(chain, version, context, backend, bare_source)
    if any(conflict.kind == "refuse" and conflict.certain for conflict in conflicts):
        # What never works has nothing to fill: its reason is the whole answer, also where no GPU is known.
        merge = merge.bare()
    else:
        refuse_backend(chain, told, context)
    values = table(context, version, backend)
    notes = list(dict.fromkeys(merge.notes))
    filler = _Filler(told, values, context.gfx, notes)
    if backend:
        filler.say("backend", "name", backend, backend_clause)
    source = _source(merge, chain, version)
    filler.say("source", source.kind, f"{source.url} {source.commit}".strip(), merge.whence("source"))
    wheels = _filled_wheels(merge, values, context.gfx)
    for ready in wheels:
        what = f"{ready.index} {ready.specifier} {'+' + ready.local if ready.local else ''}"
        filler.say("wheels", ready.name or told, " ".join(what.split()), ready.clause)
    for need in merge.system.values():
        filler.say("system", f"{need.kind} {need.name}", need.specifier, need.clause, need.reason)
    env = filler.settings("build.env", list(merge.env.values()))
    config = filler.settings("build.config_settings", [row for rows in merge.config.values() for row in rows])
    for key, (line, clause) in merge.requires.items():
        filler.say("build.requires", key, line, clause)
    prepare = filler.steps(merge)
    isolation = merge.get("isolation", False)
    filler.say("build", "isolation", str(isolation).lower(), merge.whence("isolation"))
    memory = merge.get("memory_per_job", 2.0)
    filler.say("build", "memory_per_job", f"{memory:g} GiB", merge.whence("memory_per_job"))
    for key, (limit, clause) in merge.ulimits.items():
        filler.say("build.ulimits", key, str(limit), clause)
    runtime = filler.settings("runtime", list(merge.runtime.values()))
    verify = Verify(
        import_name=merge.get("import_name", ""),
        device_code=merge.get("device_code", False),
        must_not_link=merge.get("must_not_link", Verify().must_not_link),
    )
    filler.say("verify", "import", verify.import_name, merge.whence("import_name"))
    filler.say("verify", "device_code", str(verify.device_code).lower(), merge.whence("device_code"))
    filler.say("verify", "must_not_link", " ".join(verify.must_not_link), merge.whence("must_not_link"))
    requires_dist: tuple[str, ...] | None = merge.get("requires_dist", None)
    for line in requires_dist or ():
        filler.say("metadata.requires", Requirement(line).name, line, merge.whence("requires_dist"))
    requires = tuple(line for line, _ in merge.requires.values())
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
        conflicts=tuple(conflicts),
        notes=tuple(notes),
        explanation=tuple(filler.rows),
        summary=next((each.summary for each in reversed(chain) if each.summary), ""),
    )
