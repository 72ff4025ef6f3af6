"""``rocmpip why NAME``: the ways by which a package comes into the plan."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise

from rocmpip.app.graphs import graph_of
from rocmpip.model.errors import InputError
from rocmpip.model.packages import normalise
from rocmpip.plan.graph import Graph
from rocmpip.report import envelope


def why(name: str, argv: Sequence[str], lock: str, as_json: bool) -> int:
    """Print the chains from what the user asked for down to ``name``. Raises InputError when it is not there."""
    graph = graph_of(argv, lock)
    wanted = normalise(name)
    if wanted not in graph.nodes:
        where = {"lock": lock, "environment": "the environment", "resolution": "what would be installed"}[graph.kind]
        raise InputError(f"{wanted} is not in {where}", hint=_near(wanted, graph))
    if as_json:
        envelope.write("why", as_result(wanted, graph))
        return 0
    node = graph.nodes[wanted]
    print_lines = [f"{wanted} {node.version}", *(f"  {reason}" for reason in node.because)]
    for chain in graph.chains(wanted):
        origin = graph.nodes[chain[0]].origins
        start = origin[0] if origin else ("installed" if graph.kind == "environment" else "asked for")
        print_lines.append(f"  {start} → {' → '.join(_steps(chain, graph))}")
    sys.stdout.write("\n".join(print_lines) + "\n")
    return 0


def _steps(chain: Sequence[str], graph: Graph) -> list[str]:
    steps = [f"{chain[0]} {graph.nodes[chain[0]].version}"]
    for parent, child in pairwise(chain):
        version = graph.nodes[child].version
        said = graph.requirement(parent, child)
        steps.append(f"{child} {version}" + (f" ({said})" if said != child else ""))
    return steps


def as_result(name: str, graph: Graph) -> dict[str, object]:
    node = graph.nodes[name]
    return {
        "name": name,
        "version": node.version,
        "because": list(node.because),
        "chains": [list(chain) for chain in graph.chains(name)],
        "required_by": [
            {"name": parent, "requirement": graph.requirement(parent, name)} for parent in graph.parents.get(name, ())
        ],
        "asked_for": list(node.origins),
    }


def _near(name: str, graph: Graph) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, list(graph.nodes), n=3)
    return f"did you mean {' or '.join(near)}?" if near else "rocmpip tree shows what is there"
