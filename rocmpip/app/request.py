"""Read a pip command line with everything that adds to it: configuration files, environment, requirement files."""

from __future__ import annotations

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from rocmpip.app.context import Context
    from rocmpip.plan.asked import Asked


def sorted_request(context: Context) -> Asked:
    """The request sorted for planning, plus what local source folders declare statically."""
    from rocmpip.plan.asked import sort_request

    active = context.platform.state != "none"
    return sort_request(
        context.request,
        context.markers,
        is_family=lambda name: active and context.catalogue.is_family(name),
        has_recipe=lambda name: active and context.book.get(name) is not None,
        forbidden=lambda name: context.catalogue.forbidden(name) if active else None,
    )
