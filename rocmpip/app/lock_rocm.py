"""Locking for AMD GPUs: torch from one ROCm family, recipes' sources, and the next family where the first cannot do it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from rocmpip.app.context import Context
from rocmpip.app.lock_ground import Ground, Keep, resolve_on
from rocmpip.app.lock_wheelhouse import BuiltWheels, Preferred
from rocmpip.app.policy import Policy
from rocmpip.app.request import sorted_request
from rocmpip.app.sdists import SdistReader
from rocmpip.app.session import Session
from rocmpip.app.solve import ChosenExtras, ChosenVersions, family_constraints
from rocmpip.index.client import Client
from rocmpip.model.errors import NoPlan
from rocmpip.model.packages import File, RequirementLine
from rocmpip.model.record import replace
from rocmpip.plan.asked import Asked
from rocmpip.plan.resolve import Pin, Resolution
from rocmpip.report import say

_TRIES = 8


def resolve_rocm(
    context: Context, client: Client, keep: Keep, wheelhouse: Sequence[Path], stack: ExitStack
) -> tuple[Ground, Resolution, Callable[[], float]]:
    """The ground that can carry the whole set, the answer on it, and what tells until when its pages are fresh.

    Raises NoPlan with the first family's conflict.
    """
    asked = sorted_request(context)
    for note in asked.notes:
        say.note(note)
    session = Session(context, asked, client, Policy(context, asked, client))
    reader = stack.enter_context(SdistReader(session))
    if asked.family or asked.recipes:
        session.policy.family.get()
    first: NoPlan | None = None
    for _ in range(_TRIES):
        built = BuiltWheels(session.policy, wheelhouse)
        ground = _ground(session, reader, built)
        try:
            found, until = resolve_on(ground, context, client, keep, wheelhouse, stack)
        except NoPlan as problem:
            made = session.policy.family.made
            if made is None or not _about_family(session, problem):
                raise first or problem from None
            first = first or problem
            left_out = {**session.policy.left_out, made.index_url: problem.why or problem.message}
            session.again(held={}, left_out=left_out)
            try:
                session.policy.family.get()
            except NoPlan:
                raise first from None
            continue
        # What asks for torch only behind other packages has chosen the family on the way.
        # The pages of an attempt that failed have a say too, and how long they are fresh is not known here.
        return _ground(session, reader, built), found, until if first is None else lambda: 0.0
    raise first or NoPlan("no torch of any ROCm satisfies all packages of the request")


def _about_family(session: Session, problem: NoPlan) -> bool:
    is_family = session.context.catalogue.is_family
    alone = str(getattr(problem, "alone", ""))
    return any(is_family(name) for name in ((alone,) if alone else getattr(problem, "names", ())))


def _lines(asked: Asked) -> list[RequirementLine]:
    """The user's lines. Hashes beside a family name are those of CUDA files mostly; the lock has the ROCm ones."""
    lines = [replace(line, hashes=()) if line.name in asked.family else line for line in asked.plain]
    return [*lines, *(direct.line for direct in asked.direct)]


def _commit(session: Session, pin: Pin, source: File) -> File:
    """A source that is a commit of a repository: the commit stands for its hash."""
    context = session.context
    matched = context.recipe_context(torch=session.policy.torch_seen(), name=pin.name)
    git = context.book.resolve(pin.name, pin.version, matched).source
    return replace(source, url=f"git+{git.url}@{git.commit}")


def _ground(session: Session, reader: SdistReader, built: BuiltWheels) -> Ground:
    context, policy = session.context, session.policy
    catalogue, made = context.catalogue, policy.family.made

    def origin(pin: Pin) -> tuple[File | None, str]:
        file = pin.file
        ready = file is not None and file.filename.endswith(".whl") and not file.url.startswith("synthetic:")
        source = policy.sources.get(pin.name, {}).get(pin.version)
        if source is not None and not ready:
            return source if source.url else _commit(session, pin, source), pin.name
        if file is not None and file.url.startswith("synthetic:"):
            return policy.real_file(pin.name, pin.version), ""
        return file, ("_torch-extension" if not ready and pin.name in reader.need_torch else "")

    return Ground(
        lines=_lines(session.asked),
        constraints=[
            *(line for line in session.asked.constraints if not catalogue.is_family(line.name)),
            *family_constraints(session.asked, catalogue.is_family, {}),
        ],
        source_metadata=reader.metadata,
        route=built.route,
        forbidden=catalogue.forbidden,
        plain=lambda name: not (catalogue.is_family(name) or catalogue.forbidden(name) or context.book.get(name)),
        preferred=lambda pins: Preferred(ChosenVersions(pins, policy), built),
        extras=ChosenExtras(policy),
        origin=origin,
        family=made.family if made else "",
        rocm=str(made.rocm) if made else "",
    )
