"""Sort a request's lines by who must handle them: the family choice, a recipe, the resolver, or pip alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from rocmpip.model.errors import NoPlan
from rocmpip.model.filenames import ENDINGS
from rocmpip.model.packages import RequirementLine, normalise
from rocmpip.model.record import Struct, field, replace
from rocmpip.model.redact import redact
from rocmpip.model.request import Request
from rocmpip.model.rocm import cuda_label, rocm_of_label
from rocmpip.plan.markers import Markers

_VCS = ("git+", "hg+", "svn+", "bzr+")


class Direct(Struct, frozen=True):
    """A requirement that names one file by URL or path: ``name`` and ``version`` are read from the file's name."""

    line: RequirementLine
    name: str
    version: str
    wheel: bool


class Asked(Struct, frozen=True):
    """A request, sorted. Lines whose marker is false for the target are in ``off`` and nowhere else."""

    family: Mapping[str, SpecifierSet] = field(default_factory=dict)
    """Torch-family name → merged specifiers of requirements and constraints. Only names that are required."""
    family_constraints: Mapping[str, SpecifierSet] = field(default_factory=dict)
    """Torch-family names that only a constraint mentions."""
    constraints: tuple[RequirementLine, ...] = ()
    """Every constraint as a ROCm build can meet it: a file of the torch family, or of CUDA, has become its version."""
    extras: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    recipes: Mapping[str, SpecifierSet] = field(default_factory=dict)
    """Names that a recipe builds, required by the user → merged specifiers."""
    plain: tuple[RequirementLine, ...] = ()
    direct: tuple[Direct, ...] = ()
    """Wheels and sdists named by URL or path."""
    loose: tuple[RequirementLine, ...] = ()
    """What cannot be planned ahead: VCS, editable, local folders."""
    off: tuple[RequirementLine, ...] = ()
    notes: tuple[str, ...] = ()
    """What was changed in the user's words, and why."""
    said: Mapping[str, SpecifierSet] | None = None
    """The part of ``family`` that the user said; the rest comes from local projects. None: all of it."""

    @property
    def names(self) -> frozenset[str]:
        return frozenset(line.name for line in self.plain if line.name)


def marker_holds(marker: str, environment: Mapping[str, str]) -> bool:
    """True when ``marker`` is empty or true for the target. An unreadable marker counts as true: pip will complain."""
    if not marker:
        return True
    try:
        return Markers(environment).holds(marker)
    except ValueError:
        return True


def file_of(line: RequirementLine) -> str:
    """The archive's file name when the line names one by URL or path, else ""."""
    if line.url.startswith(_VCS):
        return ""
    name = unquote(urlsplit(line.url).path.rpartition("/")[2]) if line.url else PurePosixPath(line.path).name
    return name if name.endswith(ENDINGS) else ""


def read_filename(filename: str) -> tuple[str, str, bool]:
    """(normalised name, version, is wheel) of a distribution's file name; empty strings when it cannot be read."""
    from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename

    try:
        if filename.endswith(".whl"):
            name, version, _, _ = parse_wheel_filename(filename)
            return str(name), str(version), True
        name, version = parse_sdist_filename(filename)
        return str(name), str(version), False
    except (InvalidWheelFilename, InvalidSdistFilename):
        return "", "", filename.endswith(".whl")


def sort_request(
    request: Request,
    environment: Mapping[str, str],
    *,
    is_family: Callable[[str], bool],
    has_recipe: Callable[[str], bool],
    forbidden: Callable[[str], str | None],
    cuda: bool = False,
) -> Asked:
    """Sort ``request``. Raises NoPlan for a CUDA runtime package or a CUDA wheel that the user named; with ``cuda`` true CUDA
    wheels of any project are let through."""
    family: dict[str, SpecifierSet] = {}
    extras: dict[str, tuple[str, ...]] = {}
    recipes: dict[str, SpecifierSet] = {}
    plain: list[RequirementLine] = []
    direct: list[Direct] = []
    loose: list[RequirementLine] = []
    off: list[RequirementLine] = []
    for line in request.requirements:
        if not marker_holds(line.marker, environment):
            off.append(line)
            continue
        filename = file_of(line)
        if filename and not line.editable:
            name, version, wheel = read_filename(filename)
            if not name and line.name:
                name = line.name
            _refuse_foreign(line, name, version, is_family, forbidden)
            if not cuda:
                _refuse_cuda(line, name, version)
            direct.append(Direct(line, name, version, wheel))
            continue
        if line.url or line.path or line.editable:
            loose.append(line)
            continue
        _refuse_foreign(line, line.name, "", is_family, forbidden)
        if is_family(line.name):
            family[line.name] = family.get(line.name, SpecifierSet()) & _specifiers(line)
            extras[line.name] = tuple(dict.fromkeys((*extras.get(line.name, ()), *line.extras)))
        elif has_recipe(line.name):
            recipes[line.name] = recipes.get(line.name, SpecifierSet()) & _specifiers(line)
        plain.append(line)
    only_constrained: dict[str, SpecifierSet] = {}
    constraints: list[RequirementLine] = []
    notes: list[str] = []
    for written in request.constraints:
        line, told = _readable(written, is_family, cuda=cuda)
        if told and marker_holds(line.marker, environment):
            notes.append(told)
        if line.name or line.url or line.path:
            constraints.append(line)
        if not line.name or line.url or line.path or not marker_holds(line.marker, environment):
            continue
        for table in (family, recipes):
            if line.name in table:
                table[line.name] &= _specifiers(line)
        if is_family(line.name) and line.name not in family:
            only_constrained[line.name] = only_constrained.get(line.name, SpecifierSet()) & _specifiers(line)
    return Asked(
        family=family,
        family_constraints=only_constrained,
        constraints=tuple(constraints),
        extras=extras,
        recipes=recipes,
        plain=tuple(plain),
        direct=tuple(direct),
        loose=tuple(loose),
        off=tuple(off),
        notes=tuple(notes),
    )


def _readable(line: RequirementLine, is_family: Callable[[str], bool], *, cuda: bool) -> tuple[RequirementLine, str]:
    """A constraint that names a file of the torch family, or a CUDA wheel: its version instead, and what to say of it.

    The family comes from one ROCm index, so such a file itself can never be taken. Without a version nothing is left of it.
    """
    if not (line.url or line.path):
        return line, ""
    filename = file_of(line)
    name, version, _ = read_filename(filename) if filename else ("", "", False)
    name = line.name or name
    if not is_family(name) and (cuda or not cuda_label(version)):
        return line, ""
    told = f"the constraint {redact(line.text)} ({line.origin})"
    if not version:
        return replace(line, name="", url="", path=""), f"{told} is left out: {name} comes from a ROCm index, not from there"
    bound = f"=={version if rocm_of_label(version) is not None else version.partition('+')[0]}"
    read = replace(line, text=f"{name}{bound}", name=name, specifier=bound, url="", path="", hashes=())
    if is_family(name):
        return read, f"{told} is read as {name}{bound}: its file comes from a ROCm index"
    return read, f"{told} names a CUDA build: read as {name}{bound}"


def _specifiers(line: RequirementLine) -> SpecifierSet:
    try:
        return SpecifierSet(line.specifier)
    except InvalidSpecifier as problem:  # the reader of requirements lets none through; stay kind if one slips by
        raise NoPlan(f"{line.text!r} ({line.origin}) has a version specifier that cannot be read", why=str(problem)) from None


def _refuse_foreign(
    line: RequirementLine,
    name: str,
    version: str,
    is_family: Callable[[str], bool],
    forbidden: Callable[[str], str | None],
) -> None:
    reason = forbidden(name) if name else None
    if reason:
        raise NoPlan(
            f"{name} is a CUDA package ({line.origin} asks for it)",
            why=reason,
            hint=f"take {name} out of the request; the ROCm build of torch brings the libraries it needs",
        )
    if version and is_family(name) and name != "triton" and rocm_of_label(version) is None:
        raise NoPlan(
            f"{line.text.split(' ')[0]} ({line.origin}) is not a ROCm build of {name}",
            why=f"version {version} carries no +rocm label",
            hint=f"ask for {name}=={version.partition('+')[0]} by name, and the ROCm build of it is taken",
        )


def _refuse_cuda(line: RequirementLine, name: str, version: str) -> None:
    if cuda_label(version):
        raise NoPlan(
            f"{redact(line.text.split(' ')[0])} ({line.origin}) is a CUDA build of {name}",
            why=f"its version {version} says so",
            hint=f"ask for {name} by name: what is taken then works on AMD GPUs",
        )


def name_of_line(text: str) -> str:
    """Normalised project name at the start of a requirement text, or ""."""
    head = text.strip()
    for index, char in enumerate(head):
        if not (char.isalnum() or char in "-_."):
            head = head[:index]
            break
    return normalise(head) if head else ""
