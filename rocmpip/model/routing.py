"""What the router answers for one name. Decided by ``app`` from the plan's policy, served by ``router``."""

from __future__ import annotations

from collections.abc import Callable

from rocmpip.model.packages import File
from rocmpip.model.record import Struct


class Synthetic(Struct, frozen=True):
    """A file that exists only in the router: an alias wheel, or the static metadata of a source that a recipe builds."""

    filename: str
    metadata: bytes
    """Its core metadata (METADATA), served as PEP 658."""
    content: bytes | None = None
    """The whole file; None when only its metadata is needed (planning)."""


class Route(Struct, frozen=True):
    """Where the candidates of one project come from.

    The page is the union of ``find_links`` places, ``indexes`` (each asked for the project), ``files`` and ``synthetic``, in that
    order (pip's own), without duplicates by file name (the first wins) and without what ``keep`` refuses.
    """

    name: str
    """Normalised."""
    kind: str
    """plain, family, recipe, pinned, forbidden."""
    indexes: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    files: tuple[File, ...] = ()
    synthetic: tuple[Synthetic, ...] = ()
    keep: Callable[[File], bool] | None = None
    because: str = ""
    """For people: why this route. For a forbidden name: the error's text."""
