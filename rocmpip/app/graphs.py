"""Graphs of what would be installed, of a lock, or of what is installed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rocmpip.app.context import Context, gather
from rocmpip.app.lock_target import OPTIONS, for_target
from rocmpip.lock import pylock, text
from rocmpip.model.errors import InputError
from rocmpip.plan.graph import Graph, Node
from rocmpip.plan.requirements import need


def graph_of(argv: Sequence[str], lock: str) -> Graph:
    """A lock's graph with ``lock``; else that of the requirements in ``argv``; else of the target environment."""
    if lock:
        return lock_graph(lock)
    context = gather("lock", argv, extra=OPTIONS)
    given = [(key, value) for key, value in context.ours.extra]
    python = next((value for key, value in reversed(given) if key == "python_version"), "")
    context = for_target(context, python, [value for key, value in given if key == "platforms"])
    return resolution_graph(context) if context.request.requirements else environment_graph(context)


def resolution_graph(context: Context) -> Graph:
    """Resolves the context's request as ``lock`` does, without looking at what is installed."""
    from contextlib import ExitStack

    from rocmpip.app.lock_ground import Keep, plain_ground, resolve_on
    from rocmpip.app.open_client import open_client

    with open_client(context) as client, ExitStack() as stack:
        because: dict[str, tuple[str, ...]] = {}
        if context.platform.state == "none":
            ground = stack.enter_context(plain_ground(context, client))
            found, _ = resolve_on(ground, context, client, Keep(), (), stack)
        else:
            from rocmpip.app.lock_rocm import resolve_rocm

            ground, found, _ = resolve_rocm(context, client, Keep(), (), stack)
        nodes: dict[str, Node] = {}
        for name, pin in found.pins.items():
            recipe = ground.origin(pin)[1]
            reasons = [f"built from source by the recipe {recipe}"] if recipe else []
            if ground.family and context.catalogue.is_family(name):
                reasons.append(f"from {ground.family}")
            because[name] = tuple(reasons)
            origins = tuple(dict.fromkeys(parent.origin or "the command line" for parent in pin.parents if not parent.name))
            nodes[name] = Node(name, pin.version, (), origins, because[name])
        needs: dict[str, list[tuple[str, str]]] = {}
        for name, pin in found.pins.items():
            for parent in pin.parents:
                if parent.name:
                    needs.setdefault(parent.name, []).append((name, parent.requirement.partition(";")[0].strip()))
    return Graph(
        {
            name: Node(name, node.version, tuple(sorted(needs.get(name, ()))), node.origins, node.because)
            for name, node in nodes.items()
        }
    )


def environment_graph(context: Context) -> Graph:
    """What is installed in the target; requirements of extras are left out, since nobody knows which were asked for."""
    from rocmpip.app.installed import installed_with_requirements
    from rocmpip.plan.markers import Markers

    markers = Markers(context.markers)
    nodes: dict[str, Node] = {}
    for name, dist in installed_with_requirements(context).items():
        needs: list[tuple[str, str]] = []
        for line in dist.requires_dist:
            try:
                wanted = need(line)
                if markers.holds(wanted.marker):
                    needs.append((wanted.name, str(wanted)))
            except ValueError:
                continue
        nodes[name] = Node(name, dist.version, tuple(sorted(set(needs))))
    return Graph(nodes, "environment")


def lock_graph(path: str) -> Graph:
    """The graph that a lock's ``# via`` comments (or pylock's dependencies) tell."""
    try:
        content = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path} cannot be read", why=getattr(problem, "strerror", "") or str(problem)) from None
    written = pylock.read(content, path) if pylock.is_pylock(path) else text.read(content)
    needs: dict[str, set[str]] = {}
    origins: dict[str, list[str]] = {}
    versions = {**{name: f"@ {url}" for name, url in written.urls.items()}, **written.pins}
    for name, parents in written.via.items():
        for parent in parents:
            if parent in versions:
                needs.setdefault(parent, set()).add(name)
            else:
                origins.setdefault(name, []).append(parent)
    return Graph(
        {
            name: Node(
                name,
                version,
                tuple((one, one) for one in sorted(needs.get(name, ()))),
                tuple(origins.get(name, ())),
                (f"built from source by the recipe {written.builds[name]}",) if name in written.builds else (),
            )
            for name, version in versions.items()
        },
        "lock",
    )
