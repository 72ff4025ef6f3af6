"""Who requires whom: one shape for an answer of the resolver, a lock and an installed environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from rocmpip.model.record import Struct


class Node(Struct, frozen=True):
    """One package. ``origins`` are the places where the user asked for it; empty for what others pull in."""

    name: str
    version: str
    needs: tuple[tuple[str, str], ...] = ()
    """(name, requirement as written) of what it requires here, sorted by name."""
    origins: tuple[str, ...] = ()
    because: tuple[str, ...] = ()


class Graph(Struct, frozen=True, dict=True):
    nodes: Mapping[str, Node]
    kind: str = "resolution"
    """resolution, lock, environment."""

    @cached_property
    def parents(self) -> Mapping[str, tuple[str, ...]]:
        """Name → who needs it, sorted."""
        found: dict[str, list[str]] = {}
        for node in self.nodes.values():
            for name, _ in node.needs:
                if name in self.nodes:
                    found.setdefault(name, []).append(node.name)
        return {name: tuple(sorted(set(by))) for name, by in found.items()}

    def roots(self) -> tuple[str, ...]:
        """What the user asked for; in an environment, what nothing else requires. Cycles without a way in count by their first name."""
        if self.kind == "environment" or not any(node.origins for node in self.nodes.values()):
            free = [name for name in sorted(self.nodes) if not self.parents.get(name)]
        else:
            free = [name for name in sorted(self.nodes) if self.nodes[name].origins]
        reached: set[str] = set()
        roots: list[str] = []
        for name in (*free, *sorted(self.nodes)):
            if name not in reached:
                if name not in free and self.kind != "environment":
                    continue
                roots.append(name)
                self._reach(name, reached)
        return tuple(dict.fromkeys((*free, *roots)))

    def _reach(self, name: str, reached: set[str]) -> None:
        queue = [name]
        while queue:
            current = queue.pop()
            if current not in reached:
                reached.add(current)
                queue.extend(one for one, _ in self.nodes[current].needs if one in self.nodes)

    def chains(self, name: str) -> tuple[tuple[str, ...], ...]:
        """Ways from a root down to ``name``: the shortest one through each of its parents, shortest first."""
        roots = set(self.roots())
        found: list[tuple[str, ...]] = [(name,)] if name in roots else []
        for parent in self.parents.get(name, ()):
            way = self._way(parent, roots, without=name)
            if way:
                found.append((*way, name))
        return tuple(sorted(dict.fromkeys(found), key=lambda way: (len(way), way)))

    def _way(self, name: str, roots: set[str], *, without: str) -> tuple[str, ...]:
        ways: dict[str, tuple[str, ...]] = {name: (name,)}
        queue = [name]
        for current in queue:
            if current in roots:
                return ways[current]
            for parent in self.parents.get(current, ()):
                if parent not in ways and parent != without:
                    ways[parent] = (parent, *ways[current])
                    queue.append(parent)
        return ()

    def requirement(self, parent: str, name: str) -> str:
        """What ``parent`` says about ``name``."""
        return next((text for one, text in self.nodes[parent].needs if one == name), name)


def tree_lines(graph: Graph, *, depth: int = 0, root: str = "") -> Iterator[str]:
    """The graph as an indented tree. A package that was shown already is marked and not opened again."""
    shown: set[str] = set()
    for name in (root,) if root else graph.roots():
        yield from _branch(graph, name, "", "", "", shown, depth or 1000)


def _branch(graph: Graph, name: str, said: str, first: str, rest: str, shown: set[str], depth: int) -> Iterator[str]:
    node = graph.nodes[name]
    needs = [one for one in node.needs if one[0] in graph.nodes]
    again = name in shown and bool(needs)
    yield f"{first}{name} {node.version}{f'  ({said})' if said else ''}{'  (see above)' if again else ''}"
    if again or depth <= 1:
        return
    shown.add(name)
    for number, (child, text) in enumerate(needs):
        last = number == len(needs) - 1
        bound = text[len(child) :].strip() if text.lower().replace("_", "-").startswith(child) else ""
        yield from _branch(
            graph, child, bound, rest + ("└── " if last else "├── "), rest + ("    " if last else "│   "), shown, depth - 1
        )
