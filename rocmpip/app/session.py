"""The doors of one run, opened together and closed together: client, policy, router."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rocmpip.app.context import Context
from rocmpip.app.devices import WithDevices
from rocmpip.app.policy import Policy
from rocmpip.model.record import Struct, field
from rocmpip.model.routing import Route
from rocmpip.plan.asked import Asked

if TYPE_CHECKING:
    from rocmpip.index.client import Client
    from rocmpip.router.server import Router
    from rocmpip.target.ready import ReadyPip


class Session(Struct):
    """``policy`` is replaced when a second choice of torch is tried; the client and its pages stay."""

    context: Context
    asked: Asked
    client: Client
    policy: Policy
    steering: dict[str, str] = field(default_factory=dict)
    """See ``Policy.steering``: what was learned stays for every later choice of this run."""
    ready: ReadyPip | None = None
    """A pip that loads itself while the plan is made."""
    expected: tuple[str, ...] = ()
    """Names that pip will ask the router for, once a plan says so."""

    def again(self, *, held: Mapping[str, str], left_out: Mapping[str, str] | None = None, virtual: bool = True) -> Policy:
        self.policy = Policy(
            self.context, self.asked, self.client, held=held, left_out=left_out, virtual=virtual, steering=self.steering
        )
        return self.policy

    @contextmanager
    def router(self, route: Callable[[str], Route] | None = None) -> Iterator[Router]:
        """A router for the life of the block; by default with this session's policy."""
        client = WithDevices(self.client, lambda: self.policy)
        from rocmpip.router.server import Router

        direct = not self.context.request.dry_run
        router = Router(route or self.policy.route, client, metadata=client.metadata_for, direct=direct)
        router.start()
        if self.expected and route is None:  # a plan's own pages grow while it is carried out
            router.expect(self.expected)
        try:
            yield router
        finally:
            router.close()


@contextmanager
def open_session(context: Context, asked: Asked, ready: ReadyPip | None = None) -> Iterator[Session]:
    from rocmpip.app.open_client import open_client

    client = open_client(context)
    try:
        yield Session(context, asked, client, Policy(context, asked, client), ready=ready)
    finally:
        client.close()
