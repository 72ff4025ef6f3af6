"""What a lock's resolution stands on, plain or with AMD's routes (``lock_rocm``), and one resolution on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rocmpip.app.context import Context
from rocmpip.app.lock_target import target_rules
from rocmpip.app.resolve import IndexSource
from rocmpip.index.client import Client
from rocmpip.model.packages import File, RequirementLine
from rocmpip.model.record import Struct, field
from rocmpip.model.routing import Route
from rocmpip.plan.markers import Markers

if TYPE_CHECKING:
    from rocmpip.app.scouted import Ahead
    from rocmpip.plan.resolve import Pin, Resolution


class Keep(Struct, frozen=True):
    """Pins of an existing lock that stay while they fit."""

    pins: Mapping[str, str] = field(default_factory=dict)


class Ground(Struct, frozen=True):
    """What a resolution stands on, beside the context: where names come from and what is held."""

    lines: Sequence[RequirementLine]
    constraints: Sequence[RequirementLine]
    source_metadata: Callable[[File], bytes]
    route: Callable[[str], Route | None] | None = None
    forbidden: Callable[[str], str | None] | None = None
    plain: Callable[[str], bool] = lambda name: True
    """Whether a name comes from the user's indexes alone: then its page may be fetched before anything has asked for it."""
    preferred: Callable[[Mapping[str, str]], Mapping[str, str]] = dict
    """From the pins of the existing lock to the versions that are taken while they fit."""
    extras: Mapping[str, Sequence[str]] = field(default_factory=dict)
    origin: Callable[[Pin], tuple[File | None, str]] = lambda pin: (pin.file, "")
    """The real file of a pin, and the recipe that builds it ("" for none)."""
    family: str = ""
    rocm: str = ""


@contextmanager
def plain_ground(context: Context, client: Client) -> Iterator[Ground]:
    """Without GPU and ROCm: what pip would take."""
    with ExitStack() as stack:
        readers: list[Callable[[File], bytes]] = []

        def source_metadata(file: File) -> bytes:
            # The road to a source's metadata is long to import, and most sets have wheels alone.
            if not readers:
                from rocmpip.app.policy import Policy
                from rocmpip.app.request import sorted_request
                from rocmpip.app.sdists import SdistReader
                from rocmpip.app.session import Session

                asked = sorted_request(context)
                session = Session(context, asked, client, Policy(context, asked, client))
                readers.append(stack.enter_context(SdistReader(session)).metadata)
            return readers[0](file)

        yield Ground(context.request.requirements, context.request.constraints, source_metadata)


def resolve_on(
    ground: Ground,
    context: Context,
    client: Client,
    keep: Keep,
    wheelhouse: Sequence[Path],
    stack: ExitStack,
    ahead: Ahead | None = None,
) -> tuple[Resolution, Callable[[], float]]:
    """One resolution on one ground, and what tells until when its pages are fresh. Until ``stack`` ends that can be asked,
    and the answer's files.

    ``ahead``: scouts that are under way for the same request.
    """
    request = context.request
    kind: Callable[..., IndexSource] = IndexSource
    if ahead is not None:
        from rocmpip.app.scouted import ScoutedSource

        kind = partial(ScoutedSource, ahead)
    source = stack.enter_context(
        kind(
            client,
            rules=target_rules(context),
            markers=Markers(context.markers),
            find_links=(*map(str, wheelhouse), *request.index.find_links),
            route=ground.route,
            bounds=[*ground.lines, *ground.constraints],
            source_metadata=ground.source_metadata,
            pre=request.pre,
        )
    )
    # Asked before the resolver is even imported: its import takes as long as a page.
    _go_ahead(source, ground, context.settings.catalogue_path, alone=ahead is None)
    from rocmpip.plan.resolve import Options, resolve

    found = resolve(
        ground.lines,
        ground.constraints,
        source=source,
        environment=source.markers,
        rules=source.rules,
        options=Options(
            pre=request.pre,
            preferred=ground.preferred(keep.pins),
            extras=ground.extras,
            no_deps=request.no_deps,
            require_hashes=request.require_hashes,
        ),
        forbidden=ground.forbidden,
    )
    source.ask_files([pin.candidate for pin in found.pins.values()])
    return found, source.until


def _go_ahead(source: IndexSource, ground: Ground, catalogue: Sequence[str], *, alone: bool) -> None:
    """Have the pages of the requirements fetched; without scouts, those of what they usually need too."""
    wanted = source.begin(ground.lines, ground.plain)
    if alone:
        from rocmpip.catalogue.companions import load_companions

        source.expect(filter(ground.plain, load_companions(catalogue).of(wanted)))
