"""What ``rocmpip recipe`` prints without ``--json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rocmpip.model.redact import redact
from rocmpip.report.say import printable


def render_list(result: Mapping[str, Any]) -> str:
    """One line a package: name, what is done for it, summary."""
    rows = [(row["name"], row["way"], row["summary"] + _layer(row["layer"])) for row in result["recipes"]]
    return _lines(columns(rows))


def _layer(layer: str) -> str:
    return "" if layer == "shipped" else f" [{layer}]"


def render_shown(result: Mapping[str, Any]) -> str:
    """Each value with the clause it came from, then conflicts and what the user's own variables change."""
    context = result["context"]
    told = [f"{key} {_told(value)}" for key, value in context.items() if value and key != "rocm_path"]
    lines = [f"{result['name']} {result['version']}: {result['summary']}", f"  {result['layer']}: {result['path']}"]
    lines.append("  for " + (", ".join(told) or "a machine that nothing is known of"))
    if not result["resolved"]:
        lines += ["", f"{result['why']}: these are its clauses as they are written ({result['hint']})."]
    section = ""
    table: list[tuple[str, str, str]] = []
    for row in result["rows"]:
        if row["section"] != section:
            lines += columns(table)
            table = []
            section = row["section"]
            lines += ["", f"[{section}]"]
        note = f"; {row['note']}" if row["note"] else ""
        value = f"{row['key']} = {row['value']}" if row["key"] else row["value"]
        table.append(("  " + value, f"# {row['clause']}{note}" if row["clause"] else "", ""))
    lines += columns(table)
    if result.get("overridden"):
        lines += ["", "[your environment]", *("  " + text for text in result["overridden"])]
    return _lines(lines)


def _told(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else str(value)


def render_checked(result: Mapping[str, Any]) -> str:
    return _lines([f"{row['path']}: {row['name']} is in order" for row in result["recipes"]])


def render_trusted(result: Mapping[str, Any]) -> str:
    """What is trusted from now on, until it changes."""
    if "forgotten" in result:
        return _lines([f"{result['path']} is {'no longer' if result['forgotten'] else 'not'} trusted"])
    lines = []
    for row in result["recipes"]:
        lines.append(f"trusted: {row['file']} ({row['name']}), sha256 {row['sha256'][:16]}…")
        lines += [f"  sets {', '.join(row['sets'])}"] if row["sets"] else []
        lines += [f"  runs {step}" for step in row["runs"]]
        lines += [f"  builds from {url}" for url in row["sources"]]
    lines += [f"trusted: [tool.rocmpip] of {result['settings']}"] if result["settings"] else []
    return _lines([*lines, "Trust ends when a file changes, comes or goes."])


def columns(rows: Sequence[tuple[str, str, str]], widest: int = 46) -> list[str]:
    """Rows with aligned first and second columns; long cells only push their own row."""
    first = min(max((len(row[0]) for row in rows), default=0), widest)
    second = min(max((len(row[1]) for row in rows), default=0), widest)
    return [f"{row[0]:<{first}}  {row[1]:<{second}}  {row[2]}".rstrip() for row in rows]


def _lines(lines: Sequence[str]) -> str:
    return "".join(redact(printable(line)) + "\n" for line in lines)
