"""From a context to a plan: hold or choose torch, resolve, see what follows, and resolve again where torch moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from rocmpip.app import family, solve
from rocmpip.app.installed import installed_with_requirements
from rocmpip.app.session import Session
from rocmpip.model.errors import NoPlan, Refused
from rocmpip.model.packages import File
from rocmpip.model.plan import Plan
from rocmpip.plan import assemble as assembly
from rocmpip.plan.assemble import Facts, Installed, Resolved

_TRIES = 6


def make_plan(session: Session) -> Plan:
    """The whole plan. Raises NoPlan(40), NetworkError(42), Refused(44), InputError(1)."""
    context, asked = session.context, session.asked
    held = family.held_family(context, asked)
    if held and (asked.family or asked.recipes):
        held = family.confirm_held(context, asked, session.client, held)
    policy = session.again(extra={}, held=held)
    pins: dict[str, str] = dict(held)
    if context.platform.state != "none" and (asked.family or (asked.recipes and context.platform.state == "gpu")):
        pins = _pins(session, held)
    resolved = _resolve(session, pins, held)
    needed = _needs_other_torch(session, resolved, held)
    if needed and not policy.family.made:
        # Something in the answer stands on an installed torch that is the wrong build: choose the right one and ask again.
        pins = _pins(session, held)
        resolved = _resolve(session, pins, held)
    return _assemble(session, resolved, held)


def _pins(session: Session, held: Mapping[str, str]) -> dict[str, str]:
    """Exact versions of the torch family: of what is asked for, of what is installed and wrong, and torch itself."""
    context, asked = session.context, session.asked
    choice = session.policy.family.get()
    wanted = {"torch", *asked.family, *family.installed_family(context)}
    pins = {name: version for name, version in choice.pins.items() if name in wanted}
    return {**pins, **held}


def _resolve(session: Session, pins: Mapping[str, str], held: Mapping[str, str]) -> list[Resolved]:
    """Resolve; where a package needs another torch than the first choice and none is held, choose again with that need."""
    extra: dict[str, SpecifierSet] = {}
    current = dict(pins)
    for _ in range(_TRIES):
        with session.router() as router:
            answer = solve.dry_run(
                session.context, session.asked, session.policy, router, current, extra_lines=_replacements(session, current)
            )
            forbidden = [record.name for record in router.asked if record.kind == "forbidden"]
            if forbidden:
                text = answer.text if isinstance(answer, solve.Failure) else ""
                raise solve.forbidden_error(forbidden, text, session.policy)
            if not isinstance(answer, solve.Failure):
                return answer
            more = {} if held else _new_needs(session, answer, extra)
            if not more or session.context.platform.state != "gpu":
                raise solve.explain(answer, session.context, session.asked, session.policy, router)
        extra = {name: extra.get(name, SpecifierSet()) & specifier for name, specifier in more.items()} | {
            name: specifier for name, specifier in extra.items() if name not in more
        }
        session.again(extra=extra, held=held)
        try:
            current = _pins(session, held)
        except NoPlan as problem:
            wants = "; ".join(f"{who} needs {name}{spec}" for who, name, spec in answer.needs)
            problem.why = f"{wants}; {problem.why}" if wants else problem.why
            raise
    raise NoPlan("no torch of this ROCm satisfies all packages of the request", hint="relax a requirement and try again")


def _new_needs(session: Session, failure: solve.Failure, extra: Mapping[str, SpecifierSet]) -> dict[str, SpecifierSet]:
    """Torch needs that pip named and that were not yet given to the choice."""
    more: dict[str, SpecifierSet] = {}
    for _, name, text in failure.needs:
        if not text or not session.context.catalogue.is_family(name) or name not in ("torch", "torchvision", "torchaudio"):
            continue
        try:
            specifier = SpecifierSet(text)
        except InvalidSpecifier:
            continue
        if not set(map(str, specifier)) <= set(map(str, extra.get(name, SpecifierSet()))):
            more[name] = more.get(name, SpecifierSet()) & specifier
    made = session.policy.family.made
    if made and all(
        name in made.pins and family.satisfied(made.pins[name], specifier) for name, specifier in more.items()
    ):
        return {}
    return more


def _replacements(session: Session, pins: Mapping[str, str]) -> list[str]:
    """Installed family members that go with a replaced torch: a CUDA torchvision must not stay beside a ROCm torch."""
    context = session.context
    installed = family.installed_family(context)
    torch = installed.get("torch", "")
    if not session.policy.family.made or not pins.get("torch") or not torch or pins["torch"] == torch:
        return []
    return [
        f"{name}=={pins[name]}"
        for name in installed
        if name in pins and name not in session.asked.family and name in ("torch", "torchvision", "torchaudio")
    ]


def _needs_other_torch(session: Session, resolved: list[Resolved], held: Mapping[str, str]) -> bool:
    """True when the answer, with what stays installed, stands on a torch that is installed and not held (the wrong build)."""
    context = session.context
    if context.platform.state != "gpu" or "torch" in held or "torch" not in context.installed_versions:
        return False
    installed = installed_with_requirements(context)
    packages = {name: dist.requires_dist for name, dist in installed.items()}
    packages.update({item.name: item.requires_dist for item in resolved})
    roots = {line.name: line.extras for line in session.asked.plain if line.name}
    roots.update({item.name: item.extras for item in resolved if item.requested})
    return "torch" in assembly.closure(roots, packages, context.markers)


def _assemble(session: Session, resolved: list[Resolved], held: Mapping[str, str]) -> Plan:
    context, asked, policy = session.context, session.asked, session.policy
    built = {item.name: item.name for item in resolved if item.name in policy.sources}
    surprise = sorted(set(built) - set(asked.recipes)) if context.platform.state != "none" else []
    installed = installed_with_requirements(context)
    roots = {line.name: (line.extras, line.origin) for line in asked.plain if line.name}
    roots.update({direct.name: (direct.line.extras, direct.line.origin) for direct in asked.direct if direct.name})
    if surprise:
        parents = assembly.closure(
            {name: extras for name, (extras, _) in roots.items()},
            {item.name: item.requires_dist for item in resolved},
            context.markers,
        )
        who = ", ".join(parents.get(surprise[0], [])) or "another package"
        raise NoPlan(
            f"{surprise[0]} must be built from source, and only {who} asks for it",
            why="a build can take long and needs your word",
            hint=f"name it in the same command: rocmpip install {' '.join(surprise)} …",
        )
    facts = Facts(
        installed=installed,
        roots=roots,
        environment=context.markers,
        is_family=context.catalogue.is_family,
        recipes=built,
        choice=policy.family.made,
        held=held,
        force=context.request.force_reinstall,
    )
    plan = assembly.assemble([_with_file(session, item) for item in resolved], facts)
    names = {item.name for item in plan.items if item.action != "keep"}
    torch = next((item for item in plan.items if item.name == "torch"), None)
    _check_builds(session, plan, torch.version if torch else "")
    if torch is None or torch.action == "keep":
        return replace(plan, notes=_held_notes(session, held))
    kept = assembly.closure(
        {name: extras for name, (extras, _) in roots.items()} | {name: () for name in names},
        {name: dist.requires_dist for name, dist in installed.items()} | {item.name: item.requires_dist for item in resolved},
        context.markers,
    )
    return replace(plan, leftovers=assembly.leftovers(installed, kept, context.catalogue.forbidden))


def _held_notes(session: Session, held: Mapping[str, str]) -> tuple[str, ...]:
    return session.context.platform.notes if held else ()


def _with_file(session: Session, item: Resolved) -> Resolved:
    """``rocm`` was resolved from our static metadata; what is installed is the real sdist of that version."""
    choice = session.policy.family.made
    if item.name != "rocm" or choice is None:
        return item
    from rocmpip.app.policy import version_of
    from rocmpip.model.packages import Absent

    page = session.client.page(choice.index_url, "rocm")
    files: tuple[File, ...] = () if isinstance(page, Absent) else page.files
    real = next((file for file in files if str(version_of(file.filename)) == item.version), item.file)
    return replace(item, file=real)


def _check_builds(session: Session, plan: Plan, torch: str) -> None:
    """Refuse what a recipe refuses, before anything is done."""
    context = session.context
    for item in plan.items:
        if not item.recipe:
            continue
        resolved = context.book.resolve(item.recipe, item.version, context.recipe_context(torch=torch))
        for conflict in resolved.conflicts:
            if conflict.torch and not family.satisfied(torch, SpecifierSet(conflict.torch)):
                continue
            raise Refused(f"{item.name} {item.version}: {conflict.message}", why=conflict.clause, hint=conflict.hint)
