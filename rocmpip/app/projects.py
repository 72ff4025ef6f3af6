"""What the local projects of a request need, as far as their files tell: planned with everything else, before pip builds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from rocmpip.app.loose import Project, read_project
from rocmpip.model.packages import RequirementLine, normalise
from rocmpip.plan.asked import file_of, name_of_line


def project_lines(lines: Sequence[RequirementLine]) -> tuple[RequirementLine, ...]:
    """Requirement lines that the local folders among ``lines`` bring along.

    Static [project] dependencies with the extras asked for, and torch itself where a project cannot be built without it. What a
    project computes when it is built is left to pip. Raises InputError, in pip's words, for a folder that is no project.
    """
    found: list[RequirementLine] = []
    for line in lines:
        if line.path and not file_of(line) and Path(line.path).is_dir():
            project = read_project(line.path)
            found.extend(_lines(project, line))
    return tuple(dict.fromkeys(found))


def _lines(project: Project, line: RequirementLine) -> Iterator[RequirementLine]:
    origin = f"the project {project.name or Path(project.folder).name}"
    texts = [*(project.dependencies or ())]
    for extra in line.extras:
        texts.extend(project.optional.get(normalise(extra), ()))
    if project.needs_torch:
        texts.append(next((text for text in project.build_requires if name_of_line(text) == "torch"), "torch"))
    for text in texts:
        try:
            wanted = Requirement(text)
        except InvalidRequirement:
            continue  # pip will refuse it in its own words
        if wanted.url or normalise(wanted.name) == normalise(project.name or ""):
            continue
        marker = " and ".join(f"({one})" for one in (str(wanted.marker or ""), line.marker) if one)
        yield RequirementLine(
            text,
            origin,
            name=normalise(wanted.name),
            extras=tuple(sorted(wanted.extras)),
            specifier=str(wanted.specifier),
            marker=marker,
        )
