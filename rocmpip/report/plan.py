"""A plan for people and for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from rocmpip.model.plan import Plan, PlanItem, Tried
from rocmpip.model.redact import bare_url


def size_words(size: int | None) -> str:
    """``1536`` → ``1.5 KB``; an unknown size is ``?``."""
    if size is None:
        return "?"
    amount = float(size)
    for unit in ("B", "KB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def item_json(item: PlanItem) -> dict[str, object]:
    """One row of ``result.plan[]`` (see the contract in docs/reference/json.md)."""
    file = item.file
    return {
        "name": item.name,
        "version": item.version,
        "installed_version": item.installed_version or None,
        "action": item.action,
        "origin": item.origin,
        "index": _public(file.index) if file else None,
        "url": _public(file.url) if file else None,
        "sha256": file.hashes.get("sha256") if file else None,
        "size": file.size if file else None,
        "because": list(item.because),
        "filename": (file.filename or None) if file else None,
        "recipe": item.recipe or None,
        "direct": item.direct,
    }


def _public(url: str) -> str | None:
    """An address of a server, without credentials; None for what lies on this machine."""
    return None if url.startswith("file:") else bare_url(url) or None


def tried_json(tried: Iterable[Tried]) -> list[dict[str, object]]:
    return [
        {
            "family": row.family,
            "url": row.url,
            "verdict": row.verdict,
            "because": row.because,
            "torch": row.torch or None,
        }
        for row in tried
    ]


def plan_json(plan: Plan) -> dict[str, object]:
    choice = plan.choice
    return {
        "plan": [item_json(item) for item in (*plan.items, *plan.loose)],
        "family": None
        if choice is None
        else {
            "name": choice.family,
            "index": bare_url(choice.index_url),
            "rocm": str(choice.rocm),
            "pins": dict(choice.pins),
            "extras": {name: list(extras) for name, extras in choice.extras.items()},
            "because": list(choice.because),
            "tried": tried_json(choice.tried),
        },
        "notes": list(plan.notes),
        "leftovers": list(plan.leftovers),
    }


def table(rows: Sequence[Sequence[str]], gap: str = "  ") -> list[str]:
    """Left-aligned columns; the last column is not padded."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        gap.join(cell if column == len(row) - 1 else cell.ljust(widths[column]) for column, cell in enumerate(row)).rstrip()
        for row in rows
    ]


def _where(item: PlanItem) -> str:
    if item.origin == "build":
        if item.file is None or item.file.filename:
            return f"source ({item.file.filename})" if item.file else "source"
        return "local folder"
    if item.origin == "wheelhouse":
        return "wheelhouse"
    if item.file is None:
        return "installed" if item.action == "keep" else "?"
    if item.file.url.startswith("file:"):
        return "local file"
    return bare_url(item.file.index) or bare_url(item.file.url)


def _name(item: PlanItem) -> str:
    """The name, or the place of what only its build names."""
    if item.name or item.file is None:
        return item.name
    return unquote(item.file.url.removeprefix("file://")) if item.file.url.startswith("file:") else bare_url(item.file.url)


def own_reasons(plan: Plan, item: PlanItem) -> list[str]:
    """The reasons of one package, without those of the choice of torch's build: these are told once, for the whole family."""
    shared = plan.choice.because if plan.choice is not None else ()
    return [reason for reason in item.because if reason not in shared]


def _total(items: Sequence[PlanItem]) -> list[str]:
    """One line about the download; sizes that nobody told are named as such."""
    files = [item.file for item in items if item.file is not None and not item.file.url.startswith("file:")]
    if not files:
        return []
    unknown = sum(file.size is None for file in files)
    known = size_words(sum(file.size or 0 for file in files))
    count = f"{len(files)} file{'s' if len(files) > 1 else ''}"
    return [f"To download: {known} in {count}" + (f" ({unknown} of unknown size not counted)" if unknown else ""), ""]


def plan_lines(plan: Plan, *, kept: bool = True) -> list[str]:
    """The readable plan: one row a package (action, version, from where, wheel or build, size), then the reasons."""
    planned = [item for item in plan.items if kept or item.action != "keep"]
    shown = [*planned, *plan.loose]
    if not shown:
        return ["Nothing to do: everything asked for is there."]
    rows = [("", "package", "version", "what", "size", "from")]
    marks = {"install": "+", "replace": "~", "build": "*", "keep": "="}
    for item in shown:
        kind = "build" if item.action == "build" else "wheel" if item.file and item.file.filename.endswith(".whl") else ""
        kind = kind or ("installed" if item.action == "keep" else "source")
        version = item.version
        if item.action in ("replace", "build") and item.installed_version:
            version = f"{item.installed_version} -> {item.version or '?'}"
        size = "" if item.action == "keep" else size_words(item.file.size if item.file else None)
        rows.append((marks[item.action], _name(item), version or "?", kind, size, _where(item)))
    lines = table(rows)
    lines.append("")
    lines.extend(_total(planned))
    lines.append("Why:")
    for item in shown:
        reasons = own_reasons(plan, item)
        if reasons:
            lines.append(f"  {_name(item)}: " + "; ".join(reasons))
    if plan.choice is not None and plan.choice.because:
        lines.append("")
        lines.append(f"Torch comes from {plan.choice.family} ({bare_url(plan.choice.index_url)}):")
        lines.extend(f"  - {reason}" for reason in plan.choice.because)
    if plan.leftovers:
        lines.append("")
        lines.append("CUDA packages that nothing needs any more stay installed: " + ", ".join(plan.leftovers))
        lines.append("  remove them with: pip uninstall " + " ".join(plan.leftovers))
    return lines


def tried_lines(tried: Sequence[Tried]) -> list[str]:
    """The table of what came into question and why each fell out."""
    return table([(row.family, row.torch or "-", row.verdict, row.because) for row in tried])
