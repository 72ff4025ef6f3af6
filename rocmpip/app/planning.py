"""From a context to a plan: hold or choose torch, resolve, see what follows, and resolve again where torch must move."""

from __future__ import annotations

from collections.abc import Mapping

from packaging.specifiers import SpecifierSet

from rocmpip.app import family
from rocmpip.app.ahead import kept_builds
from rocmpip.app.installed import installed_with_requirements
from rocmpip.app.sdists import SdistReader
from rocmpip.app.session import Session
from rocmpip.app.solve import Solution, solve
from rocmpip.app.stale import stale
from rocmpip.model.errors import NoPlan
from rocmpip.model.packages import RequirementLine
from rocmpip.model.plan import Plan, PlanItem
from rocmpip.model.record import replace
from rocmpip.plan import assemble as assembly
from rocmpip.plan.assemble import Facts
from rocmpip.recipe.refusal import refuse_conflicts

_TRIES = 8
_TEMPLATE = "_torch-extension"


def make_plan(session: Session) -> Plan:
    """The whole plan. Raises NoPlan(40), NetworkError(42), Refused(44), InputError(1)."""
    context, asked = session.context, session.asked
    held = family.held_family(context, asked)
    if held and (asked.family or asked.recipes):
        held = family.confirm_held(context, asked, session.client, held)
    session.again(held=held)
    choose_first = bool(asked.family) or (bool(asked.recipes) and context.platform.state == "gpu")
    if context.platform.state != "none" and choose_first and not context.request.index.no_index:
        session.policy.family.get()
    with SdistReader(session) as reader:
        solution = _solve(session, held, reader)
        if _stands_on_wrong_torch(session, solution, held) and session.policy.family.made is None:
            # The answer stands on an installed torch of the wrong build: choose the right one, and ask again.
            session.policy.family.get()
            solution = _solve(session, held, reader)
        while steering := _steering(session, solution, held):
            session.steering.update(steering)
            session.again(held=held, left_out=session.policy.left_out)
            session.policy.family.get()
            solution = _solve(session, held, reader)
        old = _stale(session, solution)
        if old:
            solution = _solve(session, held, reader, rebuilt=old)
        return _assemble(session, solution, held, reader, old)


def _steering(session: Session, solution: Solution, held: Mapping[str, str]) -> dict[str, str]:
    """Builds that only come along and cannot be made against the answer's torch: recipe → version. Each is told once."""
    context, policy = session.context, session.policy
    if "torch" in held or policy.family.made is None:
        return {}
    torch = next((item.version for item in solution.resolved if item.name == "torch"), "")
    found: dict[str, str] = {}
    for item in solution.resolved:
        along = item.name not in session.asked.recipes and item.name not in session.steering
        if torch and along and item.version in policy.sources.get(item.name, {}):
            conflicts = context.book.torch_conflicts(item.name, item.version, context.recipe_context(name=item.name))
            if any(one.torch and family.satisfied(torch, SpecifierSet(one.torch)) for one in conflicts):
                found[item.name] = item.version
    return found


def _stale(session: Session, solution: Solution) -> Mapping[str, str]:
    """Installed builds that this plan makes stale or finds stale: what the answer stands on, and everything when torch moves."""
    context = session.context
    new = next((item.version for item in solution.resolved if item.name == "torch"), "")
    torch = new or context.installed_versions.get("torch", "")
    names = installed_with_requirements(context) if new else solution.parents
    return stale(context, torch, names, session.asked.names)


def _solve(
    session: Session, held: Mapping[str, str], reader: SdistReader, *, rebuilt: Mapping[str, str] | None = None
) -> Solution:
    """Resolve; where the chosen ROCm's torch cannot satisfy the set and none is held, go to the next family."""
    first: NoPlan | None = None
    rebuilt = rebuilt or {}
    versions = installed_with_requirements(session.context) if rebuilt else {}
    again = {name: versions[name].version for name in rebuilt}
    more = [
        RequirementLine(name, "an installed build that no longer fits", name=name)
        for name in rebuilt
        if name not in session.asked.names
    ]
    for _ in range(_TRIES):
        try:
            return solve(
                session.context,
                session.asked,
                session.policy,
                session.client,
                pins=held,
                prefer={**_preferred(session, held), **again},
                replaced=[*_replacements(session, held), *more],
                wrong=_wrong(session, held) | frozenset(rebuilt),
                source_metadata=reader.metadata,
            )
        except NoPlan as problem:
            made = session.policy.family.made
            if held and _about_family(session, problem):
                raise _held_conflict(problem, held) from None
            if made is None or not _about_family(session, problem):
                raise first or problem from None
            first = first or problem
            left_out = {**session.policy.left_out, made.index_url: problem.why or problem.message}
            session.again(held=held, left_out=left_out)
            try:
                session.policy.family.get()
            except NoPlan as ended:
                first.details = (*first.details, "other ROCm families:", *(f"  {line}" for line in ended.details))
                raise first from None
    raise first or NoPlan("no torch of any ROCm satisfies all packages of the request")


def _about_family(session: Session, problem: NoPlan) -> bool:
    """True when another torch could change the outcome: the conflict names a torch-family project."""
    is_family = session.context.catalogue.is_family
    alone = str(getattr(problem, "alone", ""))
    if alone:
        return is_family(alone)
    return any(is_family(name) for name in getattr(problem, "names", ()))


def _held_conflict(problem: NoPlan, held: Mapping[str, str]) -> NoPlan:
    torch = held.get("torch", "")
    return NoPlan(
        f"the request conflicts with the installed torch {torch}: {problem.message}",
        why=problem.why,
        hint="rocmpip keeps the ROCm torch that is installed; to let it change, name it: rocmpip install -U torch …",
        details=problem.details,
    )


def _preferred(session: Session, held: Mapping[str, str]) -> dict[str, str]:
    """The choice's versions, to be taken while they fit the whole set."""
    made = session.policy.family.made
    return {} if made is None else {name: version for name, version in made.pins.items() if name not in held}


def _wrong(session: Session, held: Mapping[str, str]) -> frozenset[str]:
    """Installed family members that are not to be kept, once a choice was made."""
    made = session.policy.family.made
    if made is None:
        return frozenset()
    installed = family.installed_family(session.context)
    return frozenset(
        name for name, version in installed.items() if name not in held and version != made.pins.get(name, version)
    )


def _replacements(session: Session, held: Mapping[str, str]) -> list[RequirementLine]:
    """Installed family members that go with a replaced torch: a CUDA torchvision must not stay beside a ROCm torch."""
    made = session.policy.family.made
    installed = family.installed_family(session.context)
    if made is None or "torch" in held or "torch" not in installed or installed["torch"] == made.pins.get("torch"):
        return []
    return [
        RequirementLine(name, "installed beside the torch that is replaced", name=name)
        for name in ("torch", "torchvision", "torchaudio")
        if name in installed and name in made.pins and name not in session.asked.family
    ]


def _stands_on_wrong_torch(session: Session, solution: Solution, held: Mapping[str, str]) -> bool:
    """True when the answer, with what stays installed, needs a torch that is installed and not held."""
    context = session.context
    return (
        context.platform.state == "gpu"
        and "torch" not in held
        and "torch" in context.installed_versions
        and "torch" in solution.parents
    )


def _assemble(
    session: Session,
    solution: Solution,
    held: Mapping[str, str],
    reader: SdistReader,
    rebuilt: Mapping[str, str],
) -> Plan:
    context, asked, policy = session.context, session.asked, session.policy
    recipes = {item.name: item.name for item in solution.resolved if item.version in policy.sources.get(item.name, {})}
    recipes.update({item.name: _TEMPLATE for item in solution.resolved if item.name in reader.need_torch})
    torch_seen = next((item.version for item in solution.resolved if item.name == "torch"), "")
    torch_seen = torch_seen or context.installed_versions.get("torch", "")
    by_name = {item.name: item for item in solution.resolved}
    kept = kept_builds(session, {name: (by_name[name], recipe) for name, recipe in recipes.items()}, torch_seen, reader)
    for name in kept:
        source = by_name[name].file
        if source is not None:
            policy.sources.setdefault(name, {}).setdefault(by_name[name].version, source)
    installed = installed_with_requirements(context)
    roots = {line.name: (line.extras, line.origin) for line in asked.plain if line.name}
    roots.update({direct.name: (direct.line.extras, direct.line.origin) for direct in asked.direct if direct.name})
    facts = Facts(
        installed=installed,
        roots=roots,
        environment=context.markers,
        is_family=context.catalogue.is_family,
        recipes=recipes,
        wheelhouse=kept,
        choice=policy.family.made,
        held=held,
        rebuilt=rebuilt,
        reasons={"torch": policy.family.made.because} if policy.family.made else {},
    )
    plan = assembly.assemble(solution.resolved, facts, kept=solution.kept)
    torch = next((item for item in plan.items if item.name == "torch"), None)
    _check_builds(session, plan, torch_seen)
    notes = (
        *context.platform.notes,
        *context.request.notes,
        *asked.notes,
        *plan.notes,
        *solution.notes,
        *context.settings.notes,
        *context.book.skipped,
    )
    plan = replace(plan, notes=tuple(dict.fromkeys(notes)), loose=_loose(session))
    if torch is None or torch.action == "keep":
        return plan
    needed = assembly.closure(
        {name: extras for name, (extras, _) in roots.items()} | {item.name: () for item in plan.items},
        {name: dist.requires_dist for name, dist in installed.items()}
        | {item.name: item.requires_dist for item in solution.resolved},
        context.markers,
    )
    return replace(plan, leftovers=assembly.leftovers(installed, needed, context.catalogue.forbidden))


def _loose(session: Session) -> tuple[PlanItem, ...]:
    if not session.asked.loose:
        return ()
    from rocmpip.app.loose import loose_items

    return loose_items(session.asked.loose, session.context.installed_versions)


def _check_builds(session: Session, plan: Plan, torch: str) -> None:
    """Refuse what a recipe refuses, before anything is done."""
    context = session.context
    for item in plan.items:
        if item.recipe:
            resolved = context.book.resolve(item.recipe, item.version, context.recipe_context(torch=torch, name=item.recipe))
            refuse_conflicts(resolved)
