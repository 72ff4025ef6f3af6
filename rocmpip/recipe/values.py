"""What a value, a path, a source address and a build requirement may look like. Each function returns "" or the fault."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement

from rocmpip.recipe.placeholders import MEANINGS, faults_of

LONGEST = 4096
"""Characters of one string."""

_SHELL = re.compile(r"[$`|&<>]|;\s|\s;|^;|;$")
_ABSOLUTE = re.compile(r"(?:^|[\s=:;,'\"]|(?:^|\s)-[A-Za-z]+)/")
_PARENT = re.compile(r"(?:^|[\s=:;,'\"/\\}]|-[A-Za-z])\.\.(?:[/\\\s:;,'\"]|$)")
_COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?", re.ASCII)
_URL_PATH = re.compile(r"/[A-Za-z0-9._~/+%-]+", re.ASCII)
_PATH = re.compile(r"[A-Za-z0-9._+@ -]+(?:/[A-Za-z0-9._+@ -]+)*", re.ASCII)


def control_fault(text: str) -> str:
    """Control characters and over-long strings are wrong wherever they stand."""
    if len(text) > LONGEST:
        return f"is longer than {LONGEST} characters"
    if any(not char.isprintable() for char in text):
        return "has a control character"
    return ""


def placeholder_fault(text: str) -> str:
    """Braces that are no placeholder."""
    problems = faults_of(text)
    return f"{problems[0]} (allowed: {', '.join('{' + name + '}' for name in MEANINGS)})" if problems else ""


def template_fault(text: str) -> str:
    """A value that becomes a variable, a config setting or an argument."""
    problem = placeholder_fault(text)
    if problem:
        return problem
    if _SHELL.search(text):
        return "has shell text: values are handed over as they are, no shell reads them"
    if _PARENT.search(text):
        return "goes out of its folder with .."
    if _ABSOLUTE.search(text):
        return "has an absolute path: say {rocm_path}/… or a path inside the source"
    return ""


def relative_path_fault(text: str) -> str:
    """A path inside the unpacked source."""
    if text.startswith(("/", "\\", "~")) or re.match(r"[A-Za-z]:", text):
        return "is an absolute path: only paths inside the source are allowed"
    if ".." in re.split(r"[/\\]", text):
        return "goes out of the source with .."
    if not _PATH.fullmatch(text):
        return "is not a plain path inside the source"
    return ""


def https_fault(url: str) -> str:
    """An address: https, a plain host and path, no credentials, no query."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is not an address"
    if parts.scheme != "https" or "::" in url:
        return "is not an https address (git:, ssh:, ext::, file: and plain http are refused)"
    if parts.username is not None or parts.password is not None:
        return "has credentials in it: they belong in netrc or a keyring"
    if not _HOST.fullmatch(parts.hostname or "") or (port is not None and not 0 < port < 65536):
        return "has no proper host"
    if parts.query or parts.fragment or not _URL_PATH.fullmatch(parts.path or "/x") or ".." in parts.path:
        return "has more than a host and a plain path"
    return ""


def commit_fault(text: str) -> str:
    """A git source is pinned by the whole commit id: a branch, a tag or a short id can move."""
    return "" if _COMMIT.fullmatch(text) else "is not a full commit id (40 hex digits, lower case)"


def requirement_fault(text: str) -> str:
    """A requirement by name; where it comes from is for the user's indexes to say."""
    try:
        requirement = Requirement(text)
    except (InvalidRequirement, RecursionError):
        return "is not a requirement such as cmake>=3.26,<4"
    if requirement.url:
        return "names an address: a recipe's requirements come from the user's indexes"
    return ""


def prepare_fault(arguments: list[str], programs: tuple[str, ...]) -> str:
    """One ``prepare`` step: an allowed program, a script inside the source, then plain arguments."""
    if not arguments:
        return "is empty"
    if arguments[0] not in programs:
        return f"runs {arguments[0][:60]!a} (allowed: {', '.join(programs)})"
    if len(arguments) < 2 or arguments[1].startswith("-") or not arguments[1].endswith(".py"):
        return "does not start with a script inside the source: python SCRIPT.py ARGUMENT…"
    problem = relative_path_fault(arguments[1])
    if problem:
        return f"script {problem}"
    for argument in arguments[2:]:
        problem = template_fault(argument)
        if problem:
            return f"argument {argument[:60]!a} {problem}"
    return ""
