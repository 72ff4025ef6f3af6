"""What ``detect`` found, as text: one fact a line, its source behind it. Plain ASCII layout, no colour needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rocmpip.report.say import printable

# Type checkers take the name for typing's own; importing that would cost detection 2 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Row = Sequence[str]


def render(result: Mapping[str, Any]) -> str:
    """``result`` as ``detect --json`` has it → the text for stdout, ending in a newline."""
    sections = [
        ("GPUs", _gpus(result["gpus"]) or [("none seen",)]),
        ("Installs aim at", _targets(result)),
        ("ROCm (* wins)", _rocm(result["rocm"]) or [("none found",)]),
        ("Driver and kernel", _driver(result)),
        ("Python environment", _python(result["python"])),
        ("Torch family in it", _torch(result["torch"]) or [("nothing installed",)]),
    ]
    lines: list[str] = []
    for title, rows in sections:
        lines.append(title)
        lines.extend("  " + line for line in _aligned(rows))
    if result["notes"]:
        lines.append("Notes")
        lines.extend(f"  - {note}" for note in result["notes"])
    return printable("\n".join(lines)) + "\n"


def _aligned(rows: Iterable[Row]) -> list[str]:
    """Columns padded to their widest cell; the last one is left as it is."""
    table = [[cell or "-" for cell in row] for row in rows]
    widths: dict[int, int] = {}
    for row in table:
        for column, cell in enumerate(row[:-1]):
            widths[column] = max(widths.get(column, 0), len(cell))
    return ["  ".join((*(cell.ljust(widths[column]) for column, cell in enumerate(row[:-1])), row[-1])) for row in table]


def _gpus(gpus: Sequence[Mapping[str, Any]]) -> list[Row]:
    """One row for GPUs that are alike: a node of eight cards in eight partitions has 64."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for gpu in gpus:
        alike = (gpu["gfx"], gpu["name"], gpu["pci_id"], gpu["integrated"], gpu["visible"], gpu["known"])
        # A source without a node (a program) covers all rows that name it.
        groups.setdefault((*alike, gpu["source"] if gpu["node"] is None else ""), []).append(gpu)
    rows: list[Row] = []
    for members in groups.values():
        first = members[0]
        marks = [
            word
            for word, applies in (
                ("integrated", first["integrated"]),
                ("hidden", not first["visible"]),
                ("not in the table", not first["known"]),
            )
            if applies
        ]
        count = f"{len(members)} x " if len(members) > 1 else ""
        source = first["source"]
        if len(members) > 1 and first["node"] is not None:
            source = source.replace(f"/{first['node']}/", "/N/")
        rows.append(
            (
                f"{count}{first['gfx']}",
                first["name"] + (f" ({', '.join(marks)})" if marks else ""),
                first["pci_id"] or "",
                _places(members),
                source,
            )
        )
    return rows


def _places(members: Sequence[Mapping[str, Any]]) -> str:
    """``node 1``, ``nodes 1-4, 6``, or PCI addresses where there are no nodes."""
    nodes = sorted(gpu["node"] for gpu in members if gpu["node"] is not None)
    if not nodes:
        return ", ".join(gpu["location"] for gpu in members if gpu["location"])
    runs: list[list[int]] = []
    for node in nodes:
        if runs and node == runs[-1][1] + 1:
            runs[-1][1] = node
        else:
            runs.append([node, node])
    told = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
    return f"{'nodes' if len(nodes) > 1 else 'node'} {told}"


def _targets(result: Mapping[str, Any]) -> list[Row]:
    if result["gfx_targets"]:
        return [(", ".join(result["gfx_targets"]), result["gfx_source"])]
    if result["gfx_source"]:
        return [("no GPU", result["gfx_source"])]
    if result["state"] == "rocm":
        return [("no GPU is known: torch-family installs will ask for --gfx (or ROCMPIP_GFX)",)]
    return [("no AMD GPU and no ROCm: rocmpip works as pip does here",)]


def _rocm(roots: Sequence[Mapping[str, Any]]) -> list[Row]:
    return [
        (f"{'*' if root['chosen'] else ' '} {root['version']}", root["path"] or "no folder", root["source"]) for root in roots
    ]


def _driver(result: Mapping[str, Any]) -> list[Row]:
    device = {"ok": "usable", "denied": "permission denied", "missing": "missing"}.get(result["kfd"], "not looked at")
    rows: list[Row] = [
        ("amdgpu", result["driver"] or "not loaded", result["driver_source"] or "/sys/module/amdgpu"),
        ("kernel", result["kernel"] or "unknown", result["kernel_source"]),
        ("device", device, "/dev/kfd"),
    ]
    if result["wsl"]:
        rows.append(("WSL2", "yes", "/dev/dxg, kernel name"))
    if result["container"]:
        rows.append(("container", "yes", result["container_source"]))
    return rows


def _python(python: Mapping[str, Any] | None) -> list[Row]:
    if python is None:
        return [("none found",)]
    return [(python["version"], python["path"], f"{python['kind']}, {python['source']}")]


def _torch(dists: Sequence[Mapping[str, Any]]) -> list[Row]:
    return [(dist["name"], dist["version"], dist["build"], dist["path"]) for dist in dists]
