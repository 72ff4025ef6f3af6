"""`rocmpip build`: wheels by recipe, for this GPU or another, without installing anything."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from rocmpip.app.context import Context, gather
from rocmpip.model.errors import BuildFailed, InputError, NoPlan, RocmpipError, UsageError
from rocmpip.model.packages import RequirementLine, normalise
from rocmpip.model.provenance import UNKNOWN
from rocmpip.model.record import Struct
from rocmpip.model.temporary import TemporaryFolder
from rocmpip.report import envelope

if TYPE_CHECKING:
    from rocmpip.app.build_package import Made, Package, Toolbox
    from rocmpip.app.session import Session

COMMAND = "build"


class Wanted(Struct, frozen=True):
    """One package to build: a recipe's name (or the template's), and its source (None: the recipe's own git source)."""

    name: str
    version: str
    recipe: str
    source: Path | None


def main(argv: Sequence[str]) -> int:
    """Run ``rocmpip build ARGV`` and return the exit code."""
    from rocmpip.app.command import guarded

    return guarded(COMMAND, "--json" in argv, lambda: _build(argv))


def _build(argv: Sequence[str]) -> int:
    from rocmpip.app.command import terminated_as_interrupt
    from rocmpip.app.request import sorted_request
    from rocmpip.app.session import open_session

    context = gather("wheel", argv)
    if not context.platform.gfx_targets:
        raise NoPlan(
            "nothing says which GPU to build for",
            why="no AMD GPU is seen here and no gfx target was given",
            hint="say which GPU the wheels are for: rocmpip build --gfx gfx942 …",
        )
    with terminated_as_interrupt(), open_session(context, sorted_request(context)) as session:
        rows = _build_all(session, folder_of(context))
    if context.ours.json:
        envelope.write(COMMAND, {"wheels": rows})
    return 0


def folder_of(context: Context) -> Path:
    """``-w DIR``, else the current folder. Raises UsageError when it is no folder."""
    options = list(context.request.options)
    place = options[options.index("--wheel-dir") + 1] if "--wheel-dir" in options[:-1] else "."
    folder = Path(context.cwd, os.path.expanduser(place))  # noqa: PTH111 - pip's own meaning of ~
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", hint="give a folder for the wheels: -w DIR")
    return folder


def _build_all(session: Session, folder: Path) -> list[dict[str, object]]:
    """Build each package in the order named; what is done before an error stays."""
    from rocmpip.app.builds import run_build, toolbox
    from rocmpip.app.notebook import remember_failure, remember_success
    from rocmpip.app.pip_child import Pip
    from rocmpip.target.pip import pip_command

    context = session.context
    rows: list[dict[str, object]] = []
    torch = context.installed_versions.get("torch", "")
    command = pip_command(context.target)
    with session.router() as router, TemporaryFolder(prefix="rocmpip-build-") as work:
        pip = Pip(session, Path(work), router.url, json=context.ours.json)
        tools = toolbox(context, command.argv, {**pip.environment(), **command.env}, torch)
        try:
            for wanted in packages(session, Path(work)):
                try:
                    made = run_build(_package(session, wanted, tools), tools)
                except BuildFailed as problem:
                    remember_failure(
                        context, problem, command=COMMAND, package=wanted.name, version=wanted.version, torch=torch
                    )
                    raise
                remember_success(context, command=COMMAND, package=wanted.name, version=wanted.version, torch=torch)
                rows.append(_row(wanted, made, _keep(made, folder)))
                if not context.ours.json:
                    print(rows[-1]["path"])  # noqa: T201 - the paths are the output
        except RocmpipError as problem:
            problem.result = {"wheels": rows}  # type: ignore[attr-defined]
            raise
    return rows


def packages(session: Session, work: Path) -> Iterator[Wanted]:
    """What the command line names, in its order, each source downloaded when its turn comes. Raises UsageError, NoPlan."""
    context = session.context
    from rocmpip.plan.asked import marker_holds

    for line in context.request.requirements:
        if line.constraint or (line.marker and not marker_holds(line.marker, context.markers)):
            continue
        yield _local(session, line) if line.path else _named(session, line, work)


def _named(session: Session, line: RequirementLine, work: Path) -> Wanted:
    """A package by name: the newest source that its specifier allows."""
    from rocmpip.app.builds import TEMPLATE
    from rocmpip.app.sources import newest_version, source_files

    context = session.context
    if line.url or not line.name:
        raise UsageError(f"{line.text}: build takes names, folders and source archives", hint="rocmpip wheel takes URLs")
    if context.catalogue.is_family(line.name) and context.book.get(line.name) is None:
        raise UsageError(f"{line.name} comes as a ready ROCm wheel", hint=f"rocmpip download {line.name}")
    specifier = SpecifierSet(line.specifier)
    version = newest_version(session.policy, line.name, specifier)
    recipe = line.name if context.book.get(line.name) is not None else TEMPLATE
    if not version:
        if recipe != TEMPLATE:
            from rocmpip.recipe.refusal import refuse_conflicts

            # A package that never works on ROCm has no source either: its recipe says so better.
            never = context.book.resolve(recipe, "0", context.recipe_context(name=recipe))
            if any(conflict.kind == "refuse" for conflict in never.refusals):
                refuse_conflicts(never)
        raise NoPlan(f"there is no source of {line.text} to build", hint="name another version, or see: rocmpip recipe list")
    file = source_files(session.policy, line.name)[Version(version)]
    source = session.client.download(file, work / file.filename) if file.url else None
    return Wanted(line.name, version, recipe, source)


def _local(session: Session, line: RequirementLine) -> Wanted:
    """A folder or a source archive."""
    from rocmpip.app.builds import TEMPLATE
    from rocmpip.app.loose import read_project
    from rocmpip.plan.asked import read_filename

    path = Path(line.path)
    if path.suffix == ".whl":
        raise UsageError(f"{path.name} is a wheel already", hint="rocmpip examine prints what it holds")
    if not path.exists():
        raise InputError(f"there is no {path}")
    if path.is_dir():
        name, version = normalise(read_project(line.path).name or path.resolve().name), UNKNOWN
    else:
        name, version, _ = read_filename(path.name)
        if not name:
            raise InputError(f"{path.name} is not the name of a source archive (NAME-VERSION.tar.gz)")
    book = session.context.book
    return Wanted(name, version, name if path.is_file() and book.get(name) is not None else TEMPLATE, path)


def _package(session: Session, wanted: Wanted, tools: Toolbox) -> Package:
    """With its recipe, conflicts and the torch it needs looked at. Raises Refused, NoPlan."""
    from rocmpip.app.build_package import Package, resolve_for_build
    from rocmpip.recipe.refusal import refuse_conflicts

    context = session.context
    matched = context.recipe_context(torch=tools.torch, name=wanted.recipe)
    recipe = resolve_for_build(context.book, wanted.recipe, wanted.version, matched, jobs=tools.jobs, env=context.env)
    refuse_conflicts(recipe)
    if _needs_torch(context, wanted.recipe):
        _check_torch(context, wanted, tools.torch)
    return Package(wanted.name, wanted.version, recipe, wanted.source)


def _needs_torch(context: Context, name: str) -> bool:
    """True when the recipe stands on the template for torch extensions."""
    from rocmpip.app.builds import TEMPLATE

    recipe = context.book.get(name)
    return recipe is not None and any(one.name == TEMPLATE for one in context.book.chain(recipe))


def _check_torch(context: Context, wanted: Wanted, torch: str) -> None:
    from rocmpip.app.family import hip_of_source_build
    from rocmpip.model.rocm import rocm_of_label

    if torch and (rocm_of_label(torch) is not None or ("+" not in torch and hip_of_source_build(context))):
        return
    has = f"the torch {torch} there is not a ROCm build" if torch else "there is none"
    raise NoPlan(
        f"{wanted.name} is built against torch, and {context.target.prefix} has no ROCm torch",
        why=f"{has}; a build against another torch would not load",
        hint="rocmpip install torch, then build again (or name an environment that has it: --python PATH)",
    )


def _keep(made: Made, folder: Path) -> Path:
    """A copy of the wheel in ``folder``, in one step."""
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / made.stored.filename
    half = folder / f".{made.stored.filename}.{os.getpid()}.part"
    try:
        shutil.copyfile(made.stored.path, half)
        half.replace(final)
    finally:
        half.unlink(missing_ok=True)
    return final


def _row(wanted: Wanted, made: Made, path: Path) -> dict[str, object]:
    stored = made.stored
    return {
        "name": wanted.name,
        "version": wanted.version,
        "path": str(path),
        "sha256": stored.sha256,
        "size": stored.size,
        "gfx": list(stored.provenance.inputs.gfx),
        "code_objects": list(stored.provenance.code_objects),
        "fingerprint": stored.fingerprint,
        "origin": "build" if made.built else "wheelhouse",
        "seconds": round(made.seconds, 1),
        "log": str(made.log) if made.log else None,
        "because": made.because,
    }
