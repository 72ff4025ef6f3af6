"""A client for each test, with short limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rocmpip.index.client import Client, Limits
from rocmpip.model.request import IndexOptions
from tests.index.index_server import Site

QUICK = Limits(page_seconds=5, backoff=0.001, trickle_window=0.2)


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture
def make_client() -> Iterator[Callable[..., Client]]:
    """``make_client(index_url=…, …)``: IndexOptions by name; cache, env, offline and limits go to the client."""
    made: list[Client] = []

    def make(**values: Any) -> Client:
        own = {key: values.pop(key) for key in ("cache", "offline", "limits", "sources", "guess") if key in values}
        env = values.pop("env", {})
        values.setdefault("timeout", 3.0)
        client = Client(IndexOptions(**values), env=env, **{"limits": QUICK, **own})
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()
