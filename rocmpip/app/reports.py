"""pip's ``--report``: an install here is several runs of pip, and the user gets one report of them all, in pip's format."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmpip.model.errors import InputError
from rocmpip.model.packages import normalise
from rocmpip.model.redact import redact

if TYPE_CHECKING:
    from rocmpip.app.pip_child import Pip
    from rocmpip.app.session import Session
    from rocmpip.model.plan import Plan


def write_report(pip: Pip, plan: Plan) -> None:
    """Join the reports of all pips of this run and write them where ``--report`` says (``-`` is stdout). Raises InputError."""
    context = pip.session.context
    place = context.request.report
    direct = {item.name for item in plan.items if item.direct}
    # Files may have gone through the router: the report names where they really come from.
    urls = {item.name: item.file.url for item in plan.items if item.file is not None and "://" in item.file.url}
    text = json.dumps(joined(map(_read, pip.reports), direct, urls), indent=2, ensure_ascii=False)
    # The alias of a Triton comes from the router: its address says nothing to anyone.
    text = redact(text)
    if place == "-":
        stream = sys.stderr if pip.json else sys.stdout
        stream.write(text + "\n")
        return
    try:
        (Path(context.cwd) / place).write_text(text, encoding="utf-8")
    except OSError as problem:
        raise InputError(f"the report cannot be written to {place}", why=problem.strerror or str(problem)) from None


def _read(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def joined(reports: Iterable[Mapping[str, Any]], direct: set[str], urls: Mapping[str, str]) -> dict[str, Any]:
    """One report: the frame of the first, every package once (the last word on it counts), ``requested`` as the user named them,
    ``urls`` (name → where its file lies) in place of the router's."""
    frame: dict[str, Any] = {}
    rows: dict[str, dict[str, Any]] = {}
    for report in reports:
        if not frame:
            frame = {key: value for key, value in report.items() if key != "install"}
        for row in report.get("install", ()):
            name = normalise(str(row["metadata"]["name"]))
            origin = {**row.get("download_info", {}), "url": urls.get(name, row.get("download_info", {}).get("url", ""))}
            rows[name] = {**row, "requested": name in direct, "download_info": origin}
    frame = frame or {"version": "1"}
    return {**frame, "install": list(rows.values())}


def report_plan(session: Session, plan: Plan, *, json: bool) -> int:
    """``--dry-run --report``: pip itself says it, for what needs no build. Returns pip's exit code."""
    from rocmpip.app.pip_child import pinned_pip, plan_lines
    from rocmpip.report import say

    items = [item for item in plan.items if item.action in ("install", "replace")]
    builds = [item for item in plan.items if item.action == "build"]
    if builds:
        say.note("not in the report, since they are built first: " + ", ".join(f"{one.name} {one.version}" for one in builds))
    with pinned_pip(session, plan, json=True, metadata=True) as (pip, _):
        pip.json = json
        code = 0
        if items:
            code = pip.install(plan_lines(pip, items), flags=["--no-deps", "--dry-run", "--quiet"], silent=True)
        if not code:
            write_report(pip, plan)
    return code
