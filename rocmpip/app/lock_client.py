"""The client of indexes that a lock is made with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocmpip.app.bundle import Bundle
from rocmpip.index.client import Client
from rocmpip.model.request import IndexOptions
from rocmpip.store.cache import PageCache


@contextmanager
def lock_client(
    index: IndexOptions,
    cache: str,
    subject: Sequence[str],
    env: Mapping[str, str],
    *,
    keep: bool = True,
    warn: Callable[[str], None] | None = None,
) -> Iterator[Client]:
    """A client whose metadata is cached as one bundle for each ``subject``, in the folder ``cache`` ("" for no cache).

    ``keep`` False: what is new is not written, since another process that does the same work writes it. ``warn`` is told when
    the cache cannot be used.
    """
    bundle = Bundle(PageCache(Path(cache), warn=warn), *subject) if cache else None
    with Client(index, cache=bundle, env=env) as client:
        yield client
    if bundle is not None and keep:
        bundle.flush()
