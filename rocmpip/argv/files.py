"""Requirement and constraint files: nested, with their own options, read as pip reads them."""

from __future__ import annotations

import os.path
import re
import shlex
from collections.abc import Callable, Mapping
from urllib.parse import urljoin

from rocmpip.argv.requirement import Reading, read_editable, read_requirement
from rocmpip.argv.table import NEWEST, Version, file_grammar
from rocmpip.argv.text import check_size, decode, logical_lines
from rocmpip.argv.values import NameSets, Values
from rocmpip.argv.words import PLACES, Words, take_apart
from rocmpip.model.errors import InputError, UsageError
from rocmpip.model.packages import RequirementLine
from rocmpip.model.record import Struct, field
from rocmpip.model.redact import redact

# Paths are text here: pathlib would change what the user wrote before pip's messages can show it.
# ruff: noqa: PTH100, PTH118, PTH120

Read = Callable[[str], "str | bytes"]
"""Absolute path or URL → content. May raise OSError or a RocmpipError; bytes are decoded here as pip decodes them."""

_REMOTE = re.compile(r"^https?:", re.IGNORECASE)
_SCHEME = re.compile(r"^(http|https|file):", re.IGNORECASE)
STRONG_HASHES = ("sha256", "sha384", "sha512")
_DEEPEST = 100
_MOST_FILES = 10_000
_MOST_LINES = 100_000
"""Lines of one command: a lock of a thousand packages has five thousand."""
_LONGEST_LINE = 1024 * 1024
_LONGEST_REQUIREMENT = 16 * 1024
"""Characters. Real ones stay below two thousand; the grammar's parsers take quadratic time on hostile text."""


class Scope(Struct):
    """What option lines of files change for the whole command."""

    index_urls: list[str] = field(default_factory=list)
    """The main index first; empty under no_index."""
    find_links: list[str] = field(default_factory=list)
    no_index: bool = False
    trusted_hosts: list[str] = field(default_factory=list)
    binary: NameSets = field(default_factory=NameSets)
    releases: NameSets = field(default_factory=NameSets)
    prefer_binary: bool = False
    pre: bool = False
    require_hashes: bool = False
    no_require_hashes: bool = False
    features: list[str] = field(default_factory=list)
    changed: bool = False
    """A file says where packages come from."""


class FileReader(Struct):
    """Reads files into requirement lines and keeps what they change in ``scope``.

    ``files``: every file read (absolute path or URL), in reading order.
    """

    read: Read
    env: Mapping[str, str]
    reading: Reading
    scope: Scope
    version: Version = NEWEST
    files: list[str] = field(default_factory=list)
    fetch: Read | None = None
    """For http(s) places, instead of ``read``."""
    count: list[int] = field(default_factory=lambda: [0])
    """Lines read so far, over all files."""
    constraints_called: str = "constraint"
    """What a missing constraints file is called: pip looks for those of builds as for requirements files."""

    def lines(self, filename: str, *, constraint: bool) -> list[RequirementLine]:
        """All requirement lines of one file named on the command line, nested ones in their place. Raises InputError."""
        found: list[RequirementLine] = []
        self._file(filename, constraint, {os.path.abspath(self._absolute(filename)): None}, found)
        return found

    def _absolute(self, place: str) -> str:
        return place if _SCHEME.match(place) else os.path.join(self.reading.cwd, place)

    def content(self, place: str, *, kind: str = "requirements") -> str:
        """The text at a path or URL. ``kind``: of file, for pip's words. Raises InputError in those."""
        if len(self.files) >= _MOST_FILES:
            raise InputError(
                f"more than {_MOST_FILES} requirement files include each other", hint=f"the last was {redact(place)}"
            )
        where = self._absolute(place)
        self.files.append(where if _SCHEME.match(where) else os.path.normpath(where))
        read = self.fetch if self.fetch is not None and _REMOTE.match(where) else self.read
        try:
            content = read(where)
        except OSError as problem:
            if place.lower().startswith("file:"):
                # pip reads such a file as a server's answer.
                raise InputError(f"404 Client Error: {type(problem).__name__} for url: {redact(place)}") from None
            if _SCHEME.match(place):
                raise InputError(f"Could not open {kind} file: {redact(str(problem))}") from None
            # The path as the user wrote it, as pip shows it.
            reason = f"[Errno {problem.errno}] {problem.strerror}: {place!r}" if problem.errno else str(problem)
            raise InputError(f"Could not open {kind} file: {reason}") from None
        if isinstance(content, bytes):
            return decode(content, redact(place))
        check_size(len(content), redact(place))
        return content

    def _file(self, filename: str, constraint: bool, parents: dict[str, str | None], found: list[RequirementLine]) -> None:
        text = self.content(filename, kind=self.constraints_called if constraint else "requirements")
        for number, line in logical_lines(text, self.env):
            self._check_size(filename, number, line)
            arguments, words = self._words(line)
            values = Values()
            values.binary, values.releases = self.scope.binary, self.scope.releases
            try:
                values.take_all(words.given)
                _check_hashes(values)
            except UsageError as problem:
                raise _invalid(line, problem.message) from None
            editables = values.many("editables")
            place = f"line {number} of {redact(filename)}"
            origin = f"{redact(filename)}:{number}"
            if arguments:
                found.append(
                    read_requirement(
                        arguments,
                        origin,
                        self.reading,
                        place=place,
                        constraint=constraint,
                        hashes=values.many("hashes"),
                        config_settings=values.many("config_settings"),
                    )
                )
            elif editables:
                found.append(
                    read_editable(
                        editables[0],
                        origin,
                        self.reading,
                        constraint=constraint,
                        config_settings=values.many("config_settings"),
                    )
                )
            elif values.many("requirements") or values.many("constraints"):
                self._nested(filename, values, parents, found)
            else:
                self._options(filename, values)

    def _check_size(self, filename: str, number: int, line: str) -> None:
        self.count[0] += 1
        if self.count[0] > _MOST_LINES:
            raise InputError(f"the requirement files have more than {_MOST_LINES} lines", why=f"the last is {redact(filename)}")
        requirement = line.partition(" -")[0]
        if len(line) > _LONGEST_LINE or len(requirement) > _LONGEST_REQUIREMENT:
            raise InputError(
                f"line {number} of {redact(filename)} is too long: {len(line)} characters",
                hint="check that the path names a requirements file",
            )

    def _words(self, line: str) -> tuple[str, Words]:
        """(the requirement, the options): everything from the first word that begins with ``-`` is options."""
        tokens = line.split(" ")
        first = next((at for at, token in enumerate(tokens) if token.startswith("-")), len(tokens))
        arguments, options = " ".join(tokens[:first]), " ".join(tokens[first:])
        try:
            return arguments, take_apart(shlex.split(options), file_grammar(self.version))
        except ValueError:
            raise _invalid(line, f"Could not split options: {redact(options)}") from None
        except UsageError as problem:
            raise _invalid(line, problem.message) from None

    def _nested(self, filename: str, values: Values, parents: dict[str, str | None], found: list[RequirementLine]) -> None:
        requirements = values.many("requirements")
        place = requirements[0] if requirements else values.many("constraints")[0]
        if _SCHEME.match(filename):
            place = urljoin(filename, place)
        elif not _SCHEME.match(place):
            place = os.path.abspath(os.path.join(os.path.dirname(self._absolute(filename)), place))
        if place in parents:
            before = parents[place]
            tail = f" and again in {redact(before)}" if before is not None else ""
            raise InputError(f"{redact(place)} recursively references itself in {redact(filename)}{tail}")
        if len(parents) > _DEEPEST:
            raise InputError(f"requirement files are nested more than {_DEEPEST} deep", why=f"the last is {redact(place)}")
        self._file(place, not requirements, {**parents, place: filename}, found)

    def _options(self, filename: str, values: Values) -> None:
        """Apply a line that holds only options, as pip does: of several -f in one line the first counts."""
        scope = self.scope
        scope.changed = scope.changed or any(values.given(dest) for dest in PLACES)
        if values.flag("no_index"):
            scope.no_index = True
            scope.index_urls.clear()
        if not scope.no_index:
            if values.text("index_url"):
                scope.index_urls[:] = [values.text("index_url")]
            scope.index_urls.extend(values.many("extra_index_urls"))
        if values.many("find_links"):
            scope.find_links.append(self._find_links(filename, values.many("find_links")[0]))
        scope.trusted_hosts.extend(values.many("trusted_hosts"))
        scope.prefer_binary = scope.prefer_binary or values.flag("prefer_binary")
        scope.pre = scope.pre or values.flag("pre")
        scope.require_hashes = scope.require_hashes or values.flag("require_hashes")
        scope.no_require_hashes = scope.no_require_hashes or values.flag("no_require_hashes")
        scope.features.extend(name for name in values.many("use_feature") if name not in scope.features)

    def _find_links(self, filename: str, place: str) -> str:
        """A folder beside the file when there is one, else the place as written (relative to the working directory)."""
        if is_remote(place):
            return place
        beside = os.path.join(os.path.dirname(os.path.abspath(self._absolute(filename))), place)
        return beside if not _SCHEME.match(filename) and self.reading.kind(beside) else place


def is_remote(place: str) -> bool:
    return re.match(r"^[a-z][a-z0-9+.-]*://", place, re.IGNORECASE) is not None


def _check_hashes(values: Values) -> None:
    for value in values.many("hashes"):
        algorithm, colon, _ = value.partition(":")
        if not colon:
            raise UsageError("Arguments to --hash must be a hash name followed by a value, like --hash=sha256:abcde...")
        if algorithm not in STRONG_HASHES:
            raise UsageError(f"Allowed hash algorithms for --hash are {', '.join(STRONG_HASHES)}.")


def _invalid(line: str, reason: str) -> InputError:
    return InputError(f"Invalid requirement: {redact(line)}\n{reason}")
