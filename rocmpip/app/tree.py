"""``rocmpip tree``: who requires whom."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rocmpip.app.graphs import graph_of
from rocmpip.model.errors import InputError
from rocmpip.model.packages import normalise
from rocmpip.plan.graph import tree_lines
from rocmpip.report import envelope


def tree(argv: Sequence[str], lock: str, depth: int, root: str, as_json: bool) -> int:
    """Print the tree of a lock, of requirements, or of the environment."""
    graph = graph_of(argv, lock)
    start = normalise(root) if root else ""
    if start and start not in graph.nodes:
        raise InputError(f"{start} is not there", hint="rocmpip tree without --root shows what is")
    if as_json:
        rows = [
            {
                "name": node.name,
                "version": node.version,
                "requires": [{"name": name, "requirement": text} for name, text in node.needs],
                "asked_for": list(node.origins),
            }
            for node in sorted(graph.nodes.values(), key=lambda one: one.name)
        ]
        envelope.write("tree", {"kind": graph.kind, "roots": list(graph.roots()), "packages": rows})
        return 0
    sys.stdout.write("".join(line + "\n" for line in tree_lines(graph, depth=depth, root=start)))
    return 0
