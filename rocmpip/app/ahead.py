"""What the builds of a plan will meet, looked at before anything is done: kept wheels that fit, and what the machine lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rocmpip.build.preflight import Missing, missing_needs, refuse_missing
from rocmpip.model.packages import File
from rocmpip.model.record import replace
from rocmpip.plan.assemble import Resolved

if TYPE_CHECKING:
    from rocmpip.app.context import Context
    from rocmpip.app.sdists import SdistReader
    from rocmpip.app.session import Session
    from rocmpip.model.plan import Plan, PlanItem
    from rocmpip.model.recipe import ResolvedRecipe


def kept_builds(
    session: Session, builds: Mapping[str, tuple[Resolved, str]], torch: str, reader: SdistReader
) -> dict[str, File]:
    """Name → the wheel that was built here before for exactly this, for the ``builds`` (name → what is resolved, its recipe).

    Without a download: a source counts by the hash that its index gives. Where that says nothing, the build itself will look.
    """
    if not builds:
        return {}
    from rocmpip.app.build_package import Package, kept_wheel, listed_digest
    from rocmpip.app.builds import toolbox
    from rocmpip.build.sources import source_digest

    context = session.context
    tools = toolbox(context, (), {}, torch)
    found: dict[str, File] = {}
    for name, (item, recipe_name) in builds.items():
        if name in tools.rebuild or not tools.wheelhouse.candidates(name):
            continue
        recipe = _recipe(context, recipe_name, item.version, torch)
        file = session.policy.sources.get(name, {}).get(item.version) or item.file
        if recipe.source.kind != "git" and name in reader.need_torch:
            digest = source_digest(reader.need_torch[name])
        else:
            digest = listed_digest(recipe, file)
        stored = kept_wheel(Package(name, item.version, recipe), tools, digest) if digest else None
        if stored is not None:
            found[name] = stored.as_file()
    return found


def refuse_unready(session: Session, plan: Plan) -> None:
    """Raise Refused (44) for the first build of the plan that lacks something on this machine: before torch is installed."""
    for recipe, missing in _unready(session, plan):
        refuse_missing(recipe, missing)


def unready_notes(session: Session, plan: Plan) -> tuple[str, ...]:
    """The same as words, for a plan that is only shown."""
    return tuple(
        f"building {recipe.name} {recipe.version} on this machine lacks: " + "; ".join(map(str, missing))
        for recipe, missing in _unready(session, plan)
    )


def _unready(session: Session, plan: Plan) -> Iterator[tuple[ResolvedRecipe, tuple[Missing, ...]]]:
    context = session.context
    root = context.platform.rocm_root
    for item in plan.items:
        if item.action == "build" and item.origin == "build":
            recipe = _recipe(context, item.recipe, item.version, planned_torch(context, plan.items))
            missing = missing_needs(
                recipe,
                rocm_root=root,
                hip_root=root,
                env=context.env,
                target_prefix=context.target.prefix,
                only_named=context.platform.only_named,
            )
            if missing:
                yield replace(recipe, name=item.name), missing


def planned_torch(context: Context, items: tuple[PlanItem, ...]) -> str:
    """The torch that this plan's builds will see."""
    return next((item.version for item in items if item.name == "torch"), context.installed_versions.get("torch", ""))


def _recipe(context: Context, name: str, version: str, torch: str) -> ResolvedRecipe:
    return context.book.resolve(name, version, context.recipe_context(torch=torch, name=name))
