"""What cannot be planned ahead: editable installs, local folders, VCS. pip does it, under constraints that hold the torch family."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmpip.app.devices import complete
from rocmpip.app.lines import line_text
from rocmpip.model import toml
from rocmpip.model.errors import InputError
from rocmpip.model.packages import File, RequirementLine, normalise
from rocmpip.model.plan import Plan, PlanItem
from rocmpip.model.record import Struct, field
from rocmpip.plan.asked import name_of_line
from rocmpip.report import say

if TYPE_CHECKING:
    from rocmpip.app.context import Context
    from rocmpip.app.pip_child import Pip

_IMPORTS_TORCH = re.compile(r"^\s*(?:import|from)\s+torch\b", re.MULTILINE)
_LIMIT = 4 * 1024 * 1024


class Project(Struct, frozen=True):
    """A local source folder, as far as its files tell without running them."""

    folder: str
    name: str
    build_requires: tuple[str, ...]
    dependencies: tuple[str, ...] | None
    """Static [project] dependencies; None when they are dynamic or not declared."""
    needs_torch: bool
    """It cannot be built without torch: its build requires it, or its setup.py imports it."""
    optional: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Static [project.optional-dependencies] by normalised extra."""


def read_project(folder: str) -> Project:
    """Read pyproject.toml and setup.py. Raises InputError, in pip's words, for a folder that is no project."""
    root = Path(folder)
    pyproject, setup = root / "pyproject.toml", root / "setup.py"
    if not root.is_dir():
        raise InputError(f"Invalid requirement: {folder!r}: Expected package name at the start of dependency specifier")
    if not pyproject.is_file() and not setup.is_file():
        raise InputError(f"{folder} does not appear to be a Python project: neither 'setup.py' nor 'pyproject.toml' found.")
    data: dict[str, Any] = {}
    if pyproject.is_file():
        try:
            data = toml.loads(pyproject.read_bytes()[:_LIMIT].decode("utf-8"))
        except (OSError, ValueError) as problem:
            raise InputError(f"{pyproject} cannot be read", why=str(problem)) from None
    build = data.get("build-system", {})
    requires = tuple(str(one) for one in build.get("requires", ())) if isinstance(build, dict) else ()
    project = data.get("project", {})
    project = project if isinstance(project, dict) else {}
    dynamic = project.get("dynamic", ())
    static = "dependencies" not in dynamic and "name" in project
    dependencies = tuple(str(one) for one in project.get("dependencies", ())) if static else None
    text = ""
    if setup.is_file():
        text = setup.read_bytes()[:_LIMIT].decode("utf-8", "replace")
    needs = any(name_of_line(one) == "torch" for one in requires) or bool(_IMPORTS_TORCH.search(text))
    return Project(folder, str(project.get("name", "")), requires, dependencies, needs, _optional(project))


def _optional(project: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    table = project.get("optional-dependencies", {})
    if not isinstance(table, dict) or "optional-dependencies" in project.get("dynamic", ()):
        return {}
    return {normalise(name): tuple(map(str, rows)) for name, rows in table.items() if isinstance(rows, list)}


def torch_projects(lines: Sequence[RequirementLine]) -> dict[int, Project]:
    """Index of the line → project, for the local folders among ``lines`` that need torch to build."""
    found: dict[int, Project] = {}
    for number, line in enumerate(lines):
        if line.path and Path(line.path).is_dir():
            project = read_project(line.path)
            if project.needs_torch:
                found[number] = project
    return found


def loose_items(lines: Sequence[RequirementLine], installed: Mapping[str, str]) -> tuple[PlanItem, ...]:
    """The rows of a plan for what is left to pip. ``installed``: name → version. Raises InputError for a folder that is no project."""
    return tuple(_item(line, installed) for line in lines)


def _item(line: RequirementLine, installed: Mapping[str, str]) -> PlanItem:
    local = Path(line.path) if line.path else None
    name = line.name
    if not name and local is not None and local.is_dir():
        name = normalise(read_project(line.path).name)
    if not name:
        egg = re.search(r"[#&]egg=([\w.-]+)", line.url)
        name = normalise(egg[1]) if egg else ""
    where = local.as_uri() if local is not None else line.url.partition("#")[0]
    because = (
        f"asked for ({line.origin})",
        "pip builds it at the end, held to this plan's versions; its own, and what it needs beyond, are known then",
    )
    return PlanItem(
        name=name,
        version="",
        action="build",
        origin="url" if local is None else "build",
        file=File(filename="", url=where),
        installed_version=installed.get(name, ""),
        because=because,
        direct=True,
    )


def install_loose(pip: Pip, plan: Plan, lines: Sequence[RequirementLine]) -> int:
    """Install what was left to pip; returns pip's exit code. The torch family and all planned versions are constraints."""
    context = pip.session.context
    projects = torch_projects(lines)
    constraints = pip.folder / "held.txt"
    held = [f"{item.name}=={item.version}" for item in plan.items if item.origin != "url"]
    constraints.write_text("\n".join(held) + "\n", encoding="utf-8")
    usual = [line_text(line) for number, line in enumerate(lines) if number not in projects]
    code = 0
    if usual:
        code = pip.install(
            usual,
            flags=["-c", str(constraints)],
            env={"PIP_CONSTRAINT": str(constraints), "PIP_BUILD_CONSTRAINT": str(constraints)},
        )
    for number, project in projects.items():
        if code:
            break
        say.step(f"{lines[number].text}: built against the installed torch, without build isolation")
        code = _install_project(pip, context, lines[number], project)
    return code or complete(pip)


def _install_project(pip: Pip, context: Context, line: RequirementLine, project: Project) -> int:
    from rocmpip.app.builds import build_environment, overlay

    with overlay(pip, project.build_requires, folder=project.folder) as where:
        env = build_environment(pip, where)
        return pip.install([line_text(line)], flags=["--no-build-isolation", "--no-deps"], env=env)
