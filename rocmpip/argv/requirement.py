"""One requirement's text → RequirementLine: names, URLs, ``name @ url``, local files and folders, editables."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Collection
from urllib.parse import parse_qs, unquote, urlsplit

from rocmpip.argv.labels import TORCH_FAMILY, without_cuda_label
from rocmpip.argv.pep508 import Parsed, check_marker, parse_requirement
from rocmpip.model.errors import InputError
from rocmpip.model.filenames import ENDINGS
from rocmpip.model.packages import RequirementLine, normalise
from rocmpip.model.record import Struct, field
from rocmpip.model.redact import redact

# Paths are text here: pathlib would change what the user wrote before pip's messages can show it.
# ruff: noqa: PTH112, PTH113, PTH118

_VCS = {
    "git": ("http", "https", "ssh", "git", "file"),
    "hg": ("file", "http", "https", "ssh", "static-http"),
    "svn": ("ssh", "http", "https", "svn", "file"),
    "bzr": ("http", "https", "ssh", "sftp", "ftp", "lp", "file"),
}
VCS_SCHEMES = tuple(f"{vcs}+{transport}" for vcs, transports in _VCS.items() for transport in transports)
_URL_SCHEMES = frozenset(("http", "https", "file", "ftp", *VCS_SCHEMES))
_OPERATORS = ("~=", "==", "!=", "<=", ">=", "<", ">")

Kind = Callable[[str], str]
"""Absolute path → "" (nothing there), "file", "folder", or "project" (a folder with pyproject.toml or setup.py)."""


def kind_on_disk(path: str) -> str:
    """What is at ``path``; the one look at the disk that pip's grammar needs (``./x`` is a path only if it is there)."""
    if os.path.isdir(path):
        is_project = any(os.path.isfile(os.path.join(path, name)) for name in ("pyproject.toml", "setup.py"))
        return "project" if is_project else "folder"
    return "file" if os.path.isfile(path) else ""


class Reading(Struct, frozen=True):
    """How requirement texts are read in one place."""

    cwd: str
    kind: Kind = kind_on_disk
    family: Collection[str] = TORCH_FAMILY
    notes: list[str] = field(default_factory=list)
    """What was changed while reading, for the user (appended to)."""


def is_url(text: str) -> bool:
    """True for what pip takes for a URL: http, https, file, ftp, and the version-control schemes."""
    try:
        return urlsplit(text).scheme in _URL_SCHEMES
    except ValueError:
        return False


def is_archive(path: str) -> bool:
    return path.lower().endswith(ENDINGS)


def read_requirement(
    text: str,
    origin: str,
    reading: Reading,
    *,
    place: str = "",
    constraint: bool = False,
    hashes: tuple[str, ...] = (),
    config_settings: tuple[str, ...] = (),
) -> RequirementLine:
    """Read one requirement. ``place`` is pip's name for its line ("line 3 of r.txt"). Raises InputError in pip's words."""
    original = text
    text, marker = _split_marker(text)
    line = RequirementLine(
        original, origin, marker=marker, constraint=constraint, hashes=hashes, config_settings=config_settings
    )
    if is_url(text):
        return _at_url(line, text, reading)
    bare, extras = _split_extras(os.path.normpath(os.path.join(reading.cwd, text)))
    try:
        found = _is_path(text, bare, reading)
    except InputError:
        if constraint and is_archive(bare):
            raise InputError("Unnamed requirements are not allowed as constraints") from None
        raise
    if found:
        return _at_path(line, bare, extras)
    requirement, written = _parse(text, place, reading)
    if written != text:
        line = _with(line, text=written + (f"; {marker}" if marker else ""))
    return _named(line, requirement, reading)


def read_editable(
    text: str, origin: str, reading: Reading, *, constraint: bool = False, config_settings: tuple[str, ...] = ()
) -> RequirementLine:
    """Read what stands after ``-e``: a project folder, or a version-control URL with a name. Raises InputError."""
    if constraint:
        raise InputError("Editable requirements are not allowed as constraints")
    line = RequirementLine(text, origin, editable=True, config_settings=config_settings)
    try:
        requirement: Parsed | None = parse_requirement(text)
    except ValueError:
        requirement = None
    if requirement is not None and requirement.url:
        return _named(line, requirement, reading)
    bare, extras = _split_extras(text)
    path = os.path.normpath(os.path.join(reading.cwd, bare))
    if not is_url(bare) and reading.kind(path) in ("folder", "project"):
        return _with(line, path=path, extras=extras)
    if bare.lower().startswith("file:"):
        url, _, fragment = bare.partition("#")
        return _with(line, path=_path_of(url, reading), extras=extras, name=_egg(fragment)[0])
    url = f"{text.split(':', 1)[0].lower()}+{text}" if text.lower().split(":", 1)[0] in _VCS else text
    if not is_url(url) or "+" not in urlsplit(url).scheme:
        schemes = ", ".join(VCS_SCHEMES)
        raise InputError(
            f"{redact(text)} is not a valid editable requirement. It should either be a path to a local project or a VCS URL "
            f"(beginning with {schemes})."
        )
    name, extras = _egg(urlsplit(url).fragment)
    if not name:
        raise InputError(
            f"Could not detect requirement name for '{redact(text)}', please specify one with your_package_name @ URL"
        )
    return _with(line, url=url, name=name, extras=extras)


def _with(line: RequirementLine, **changes: object) -> RequirementLine:
    from rocmpip.model.record import replace

    return replace(line, **changes)


def _split_marker(text: str) -> tuple[str, str]:
    """(text without marker, marker). URLs need a space after the semicolon, since they may hold one themselves."""
    separator = "; " if is_url(text) else ";"
    before, found, marker = text.partition(separator)
    marker = marker.strip()
    if not found or not marker:
        return before.strip(), ""
    try:
        check_marker(marker)
    except ValueError as problem:
        raise InputError(f"Invalid requirement: {redact(before.strip())!r}: {problem}") from None
    return before.strip(), marker


def _split_extras(path: str) -> tuple[str, tuple[str, ...]]:
    at = path.rfind("[")
    if at < 1 or not path.endswith("]") or len(path) - at < 3:
        return path, ()
    try:
        extras = parse_requirement("placeholder" + path[at:].lower()).extras
    except ValueError as problem:
        raise InputError(f"Invalid requirement: {path!r}: {problem}") from None
    return path[:at], tuple(sorted(extras))


def _looks_like_path(text: str) -> bool:
    return "/" in text or text.startswith(".") or (os.path.altsep is not None and os.path.altsep in text)


def _is_path(text: str, path: str, reading: Reading) -> bool:
    """pip's rule: an existing folder written like a path, or anything with an archive's ending that is no ``name @ …``."""
    if _looks_like_path(text):
        kind = reading.kind(path)
        if kind == "project":
            return True
        if kind == "folder":
            raise InputError(f"Directory {text!r} is not installable. Neither 'setup.py' nor 'pyproject.toml' found.")
    if not is_archive(path):
        return False
    if reading.kind(path) == "file":
        return True
    name, at, _ = text.partition("@")
    if at and not _looks_like_path(name):
        return False
    # pip warns that the file does not exist and fails when it opens it: say so at once, in the words of that failure.
    raise InputError(f"Could not install packages due to an OSError: [Errno 2] No such file or directory: {path!r}")


def _at_path(line: RequirementLine, path: str, extras: tuple[str, ...]) -> RequirementLine:
    name = ""
    filename = path.rpartition("/")[2]
    if filename.lower().endswith(".whl"):
        name = _wheel_name(filename)
    return _with(line, path=path, extras=extras, name=name)


def _wheel_name(filename: str) -> str:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        return normalise(parse_wheel_filename(filename)[0])
    except InvalidWheelFilename:
        raise InputError(f"Invalid wheel filename (wrong number of parts): {filename!r}") from None


def _at_url(line: RequirementLine, url: str, reading: Reading) -> RequirementLine:
    parts = urlsplit(url)
    name, extras = _egg(parts.fragment)
    if parts.scheme == "file":
        return _with(line, path=_path_of(url.partition("#")[0], reading), name=name or _name_of(parts.path), extras=extras)
    return _with(line, url=url, name=name or ("" if "+" in parts.scheme else _name_of(parts.path)), extras=extras)


def _name_of(path: str) -> str:
    """The project that an archive's file name tells, or ""."""
    filename = unquote(path.rpartition("/")[2])
    if filename.endswith(".whl"):
        return _wheel_name(filename)
    from packaging.utils import InvalidSdistFilename, parse_sdist_filename

    try:
        return normalise(parse_sdist_filename(filename)[0])
    except InvalidSdistFilename:
        return ""


def _egg(fragment: str) -> tuple[str, tuple[str, ...]]:
    """(normalised name, extras) of ``#egg=name[extra]``."""
    egg = parse_qs(fragment, keep_blank_values=True).get("egg", [""])[0]
    if not egg:
        return "", ()
    try:
        requirement = parse_requirement(egg)
    except ValueError as problem:
        raise InputError(f"Invalid egg fragment: {egg!r}: {problem}") from None
    return normalise(requirement.name), tuple(sorted(requirement.extras))


def _path_of(url: str, reading: Reading) -> str:
    """The absolute path of a file: URL; ``file:../folder`` is below the working directory, as pip has it."""
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise InputError(f"non-local file URIs are not supported on this platform: {url!r}")
    return os.path.normpath(os.path.join(reading.cwd, unquote(parts.path)))


def _parse(text: str, place: str, reading: Reading) -> tuple[Parsed, str]:
    """(the parsed requirement, its text with foreign labels dropped)."""
    text = without_cuda_label(text, reading.family, reading.notes)
    try:
        return parse_requirement(text), text
    except ValueError as problem:
        source = f" (from {place})" if place else ""
        message = f"Invalid requirement: {redact(text)!r}: {problem}{source}"
        raise InputError(message, hint=_advice(text, reading)) from None


def _advice(text: str, reading: Reading) -> str:
    if "/" in text:
        path = os.path.normpath(os.path.join(reading.cwd, text))
        kind = reading.kind(path)
        if not kind:
            return f"It looks like a path. File '{text}' does not exist."
        if kind == "file":
            return (
                "It looks like a path. The path does exist. If it is a requirements file, use the '-r' flag to install the "
                "packages specified within it."
            )
        return "It looks like a path. The path does exist."
    if "=" in text and not any(operator in text for operator in _OPERATORS):
        return "= is not a valid operator. Did you mean == ?"
    return ""


def _named(line: RequirementLine, requirement: Parsed, reading: Reading) -> RequirementLine:
    line = _with(
        line,
        name=normalise(requirement.name),
        extras=tuple(sorted(requirement.extras)),
        specifier=requirement.specifier,
        marker=line.marker or requirement.marker,
    )
    url = requirement.url
    if not url:
        return line
    if urlsplit(url).scheme == "file":
        return _with(line, path=_path_of(url.partition("#")[0], reading))
    if not is_url(url):
        # ``name @ ./folder`` is no URL; pip reads it as a local path without a scheme and refuses it.
        raise InputError(f"Invalid requirement: {redact(line.text)!r}: Invalid URL given")
    return _with(line, url=url)
