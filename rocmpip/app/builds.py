"""The builds of a run: from a plan's items (or a local project) to wheels, with the session's pip, router and client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rocmpip.app.build_package import Made, Package, Toolbox, build_package, resolve_for_build, wheelhouse_of
from rocmpip.app.explain import CauseReader, explain
from rocmpip.build.environment import build_environment as compose_environment
from rocmpip.build.job import Progress
from rocmpip.build.jobs import decide_jobs, read_limits
from rocmpip.build.overlay import make_overlay, requirements_for
from rocmpip.build.run import Log
from rocmpip.build.surroundings import look_around
from rocmpip.model.errors import BuildFailed, InternalError
from rocmpip.model.packages import normalise
from rocmpip.model.provenance import UNKNOWN, subject
from rocmpip.model.record import replace
from rocmpip.model.temporary import TemporaryFolder
from rocmpip.report import say
from rocmpip.report.progress import ProgressLine, duration

if TYPE_CHECKING:
    from rocmpip.app.context import Context
    from rocmpip.app.pip_child import Pip
    from rocmpip.model.plan import Plan, PlanItem
    from rocmpip.model.recipe import ResolvedRecipe

__all__ = ["Made", "Package", "Toolbox", "build_environment", "build_item", "build_package", "overlay", "run_build", "toolbox"]

_REACH = frozenset(
    {"NETRC", *(name for one in ("http", "https", "all", "no") for name in (f"{one}_proxy", f"{one}_proxy".upper()))}
)
"""Beside PIP_*: how a pip reaches its servers. Nothing else of a pip's environment belongs into a build's."""

TEMPLATE = "_torch-extension"
"""The shipped recipe for any source that needs torch to build."""


def logs_of(context: Context) -> Path:
    """Where build logs are kept."""
    return Path(context.settings.state_dir).expanduser() / "logs"


def toolbox(context: Context, pip_argv: Sequence[str], pip_env: Mapping[str, str], torch: str) -> Toolbox:
    """What all builds of a run share. ``torch`` is the version they see, with its label."""
    ours, request = context.ours, context.request
    lines = {line.name: line.config_settings for line in request.requirements if line.name}
    return Toolbox(
        platform=context.platform,
        target=context.target,
        torch=torch,
        pip_argv=tuple(pip_argv),
        pip_env={key: value for key, value in pip_env.items() if key.startswith("PIP_") or key in _REACH},
        user_env=context.env,
        wheelhouse=wheelhouse_of(context.settings, say.warning),
        logs=logs_of(context),
        jobs=ours.jobs or context.settings.jobs,
        keep_build=ours.keep_build,
        rebuild=frozenset(normalise(name) for name in ours.rebuild),
        settings={name: (*request.config_settings, *own) for name, own in lines.items()},
        constraints=tuple(line.text for line in request.build_constraints),
    )


def run_build(package: Package, tools: Toolbox) -> Made:
    """Build (or find) one package and tell it: one line of progress, then where the wheel came from."""
    what = subject(package.name, package.version)
    line = ProgressLine(what)
    reader = CauseReader(tools.platform, tools.torch, package.name)

    def tell(moment: Progress) -> None:
        line.tell(moment.stage, moment.elapsed, moment.done, moment.total, moment.expected, moment.line)

    try:
        made = build_package(package, replace(tools, diagnose=reader), progress=tell)
    except BuildFailed as problem:
        # The template builds under its own name; people know the package.
        problem.message = problem.message.replace(package.recipe.name, package.name, 1)
        explain(problem, reader)
        raise
    finally:
        line.close()
    for note in made.notes:
        say.note(note)
    if made.built:
        say.step(f"{what}: built in {duration(made.seconds)}, since {made.because}; log {made.log}")
    else:
        say.step(f"{what}: from the wheelhouse, {made.because}")
    return made


def build_item(pip: Pip, plan: Plan, item: PlanItem) -> Made:
    """The wheel of one planned build, built or found. Raises Refused, BuildFailed, NetworkError."""
    from rocmpip.target.pip import pip_command

    session = pip.session
    context = session.context
    torch = next((one.version for one in plan.items if one.name == "torch"), context.installed_versions.get("torch", ""))
    command = pip_command(context.target)
    tools = toolbox(context, command.argv, {**pip.environment(), **command.env}, torch)
    name = item.recipe or TEMPLATE
    recipe = resolve_for_build(
        context.book, name, item.version, context.recipe_context(torch=torch, name=name), jobs=tools.jobs, env=context.env
    )
    source = None if recipe.source.kind == "git" else _source(pip, item)
    return run_build(Package(item.name, item.version, recipe, source), tools)


def _source(pip: Pip, item: PlanItem) -> Path:
    """The item's sdist, downloaded and checked against its hashes."""
    session = pip.session
    file = session.policy.sources.get(item.name, {}).get(item.version) or item.file
    if file is None or file.filename.endswith(".whl"):
        raise InternalError(f"the plan names no source for {item.name} {item.version}")
    return session.client.whole(file)


@contextmanager
def overlay(pip: Pip, requires: Sequence[str], *, folder: str = "") -> Iterator[Path]:
    """A temporary folder of build requirements for a project that pip builds itself (an editable, a local folder)."""
    from rocmpip.target.pip import pip_command

    context = pip.session.context
    command = pip_command(context.target)
    with TemporaryFolder(prefix="rocmpip-overlay-") as name:
        work = Path(name)
        log = Log(work / "overlay.log")
        try:
            wanted = requirements_for((), requires or ("setuptools", "wheel"), "setuptools", torch=True)
            constraints = tuple(line.text for line in context.request.build_constraints)
            env = {**pip.environment(), **command.env}
            make_overlay(
                wanted, folder=work / "overlay", pip_argv=command.argv, env=env, work=work, log=log, constraints=constraints
            )
        finally:
            log.close()
        yield work / "overlay"


def build_environment(pip: Pip, where: Path) -> dict[str, str]:
    """The variables of a build by pip itself, with the torch extension recipe's values; to be added to the pip's own."""
    context = pip.session.context
    torch = context.installed_versions.get("torch", "")
    asked = context.ours.jobs or context.settings.jobs
    recipe: ResolvedRecipe = resolve_for_build(
        context.book, TEMPLATE, UNKNOWN, context.recipe_context(torch=torch), jobs=asked, env=context.env
    )
    root = context.platform.rocm_root
    jobs = decide_jobs(read_limits(), recipe.memory_per_job, asked=asked, env=context.env)
    made = compose_environment(
        user=context.env,
        pip={},
        recipe=recipe,
        around=look_around(root, root, context.env),
        gfx=context.platform.gfx_targets,
        rocm_root=root,
        hip_root=root,
        torch=torch,
        jobs=jobs.count,
        python_bin=str(Path(context.target.python).parent),
        overlay=str(where),
    )
    for note in made.said:
        say.note(note)
    return dict(made.set_by_us)
