"""The candidates of one project: files of its pages grouped by version, unfit ones set aside with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, overload

from rocmpip.model.packages import File, normalise
from rocmpip.plan.versions import Release, release, spec

SDIST_ENDINGS = (".tar.gz", ".zip", ".tar.bz2", ".tgz", ".tar.xz", ".tbz", ".tar")


class Row(Protocol):
    """What the listing reads of a file; ``model.File`` is one, an index's own decoded row may be another."""

    @property
    def filename(self) -> str: ...
    @property
    def hashes(self) -> Mapping[str, str]: ...
    @property
    def requires_python(self) -> str | None: ...
    @property
    def yanked(self) -> str | bool | None: ...


@dataclass(frozen=True)
class Metadata:
    """What resolution reads of a distribution's core metadata."""

    requires_dist: tuple[str, ...] = ()
    requires_python: str = ""
    provides_extra: frozenset[str] = frozenset()
    """Normalised; empty when the metadata names none (or does not say)."""


class Unusable(Exception):
    """A candidate whose metadata cannot be had or is wrong; its text is told if nothing else fits."""


class Candidate:
    """One version of one project with the file that would be installed.

    ``origin`` is index, recipe (a source that a recipe builds), wheelhouse, installed or url.
    """

    __slots__ = (
        "_file",
        "from_source",
        "metadata",
        "name",
        "origin",
        "recipe",
        "row",
        "rows",
        "url",
        "version",
        "yanked",
    )

    def __init__(
        self,
        name: str,
        version: Release,
        row: Row | None = None,
        *,
        rows: Sequence[Row] = (),
        from_source: bool = False,
        yanked: str | None = None,
        origin: str = "index",
        metadata: Metadata | None = None,
        recipe: str = "",
        url: str = "",
    ) -> None:
        self.name = name
        self.version = version
        self.row = row
        self.rows = rows
        """Every file of this version, other platforms' too: a lock lists all their hashes."""
        self.from_source = from_source
        self.yanked = yanked
        self.origin = origin
        self.metadata = metadata
        """Static metadata, when it is known without asking."""
        self.recipe = recipe
        self.url = url
        """The URL or path of a direct reference, as written."""
        self._file: File | None = None

    @property
    def file(self) -> File | None:
        """The file to install; None for what is already installed or has no file (VCS, folder)."""
        if self._file is None and self.row is not None:
            self._file = as_file(self.row)
        return self._file

    @property
    def files(self) -> tuple[File, ...]:
        return tuple(as_file(row) for row in self.rows)

    def __repr__(self) -> str:
        return f"Candidate({self.name} {self.version})"


def as_file(row: Row) -> File:
    """``row`` as the model's File; an index's own rows know how to become one."""
    if isinstance(row, File):
        return row
    made = row.to_file()  # type: ignore[attr-defined]
    assert isinstance(made, File)
    return made


@dataclass(frozen=True)
class Rules:
    """What makes a file fit a target. All names are normalised.

    ``tags`` maps ``cp312-cp312-manylinux_2_28_x86_64`` to its rank, 0 the best.
    """

    tags: Mapping[str, int]
    python: str
    """Full version: 3.12.1."""
    no_binary: frozenset[str] = frozenset()
    only_binary: frozenset[str] = frozenset()
    """Normalised names or ``:all:``."""
    prefer_binary: bool = False
    ignore_requires_python: bool = False
    hashes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Name → the ``sha256:…`` texts that its files must have one of (hash mode)."""
    _ranks: dict[str, int | None] = field(default_factory=dict, compare=False, repr=False)
    _pythons: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def for_target(cls, tags: Iterable[str], python: str, **more: Any) -> Rules:
        """Rules of a target whose ``tags`` come best first (``plan.tags.Tags`` is such a sequence)."""
        ranks: dict[str, int] = {}
        for rank, tag in enumerate(tags):
            ranks.setdefault(str(tag), rank)
        return cls(ranks, python, **more)

    def wheels_allowed(self, name: str) -> bool:
        return name not in self.no_binary and (":all:" not in self.no_binary or name in self.only_binary)

    def sources_allowed(self, name: str) -> bool:
        return name not in self.only_binary and (":all:" not in self.only_binary or name in self.no_binary)

    def rank(self, tail: str) -> int | None:
        """The best rank of what stands behind a wheel's version (``cp39.cp310-abi3-linux_x86_64.whl``, perhaps with a
        build tag before it), None when it does not fit."""
        if tail in self._ranks:
            return self._ranks[tail]
        pieces = tail.removesuffix(".whl").lower().split("-")
        ranks: list[int] = []
        if len(pieces) == 3 or (len(pieces) == 4 and pieces[0][:1].isdigit()):
            ranks = [
                rank
                for python in pieces[-3].split(".")
                for abi in pieces[-2].split(".")
                for platform in pieces[-1].split(".")
                if (rank := self.tags.get(f"{python}-{abi}-{platform}")) is not None
            ]
        best = self._ranks[tail] = min(ranks, default=None)
        return best

    def python_fits(self, requires_python: str) -> bool:
        """Whether the target's Python lies in ``requires_python``; what cannot be read counts as fitting, as in pip."""
        if not requires_python or self.ignore_requires_python:
            return True
        known = self._pythons.get(requires_python)
        if known is None:
            try:
                known = spec(requires_python).contains(release(self.python))
            except ValueError:
                known = True
            self._pythons[requires_python] = known
        return known


class Listing(Sequence[Candidate]):
    """Candidates of one project, the most wanted first, and what was set aside (reason → versions or file names)."""

    def __init__(
        self,
        name: str,
        candidates: Sequence[Candidate] = (),
        *,
        dropped: Mapping[str, Sequence[str]] | None = None,
        stable: bool | None = None,
        places: Sequence[str] = (),
        because: str = "",
        wild: bool = True,
    ) -> None:
        self.name = name
        self.candidates = candidates
        self.dropped = dropped or {}
        self.stable = any(not one.version.pre for one in candidates) if stable is None else stable
        """True when the project has a final release at all, fitting or not."""
        self.places = places
        """Where was looked, without credentials: for people."""
        self.because = because
        """Why these candidates and no others ("torch comes from pytorch.org rocm6.4"), or ""."""
        self.wild = wild
        """False where yanked files and pre-releases were chosen by policy already (a family's own pages)."""
        self._by_key: dict[tuple[object, ...], Candidate] | None = None

    def exact(self, version: Release) -> Candidate | None:
        """The candidate whose version equals ``version``, local label included."""
        if self._by_key is None:
            self._by_key = {one.version.key: one for one in self.candidates}
        return self._by_key.get(version.key)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Candidate]: ...
    def __getitem__(self, index: int | slice) -> Candidate | Sequence[Candidate]:
        return self.candidates[index]

    def __len__(self) -> int:
        return len(self.candidates)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)


class _Version:
    """The files of one version while a listing is made. ``wheel`` and ``source`` hold (rank, row) and (row)."""

    __slots__ = ("best", "build", "rows", "source", "wheel", "yanked_best", "yanked_source", "yanked_wheel")

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.best: tuple[int, tuple[int, str]] | None = None
        self.wheel: Row | None = None
        self.source: Row | None = None
        self.yanked_best: tuple[int, tuple[int, str]] | None = None
        self.yanked_wheel: Row | None = None
        self.yanked_source: Row | None = None


def make_listing(
    name: str,
    rows: Iterable[Row],
    rules: Rules,
    *,
    places: Sequence[str] = (),
    because: str = "",
    origins: Mapping[str, tuple[str, str, Metadata | None]] | None = None,
    wild: bool = True,
    unique: bool = False,
) -> Listing:
    """Group ``rows`` by version, newest first.

    ``origins`` says for a file name (origin, recipe, static metadata) where that is not ("index", "", None).
    A file name that comes twice counts once (the first wins); ``unique`` says that none does. Files of another project
    are set aside.
    """
    gathered = _Gathered(name, rules)
    gathered.take(rows, unique)
    return _listing(name, gathered.versions, rules, gathered.dropped, places, because, origins or {}, wild)


class _Gathered:
    """The files of a project, sorted by version; what does not fit is in ``dropped``."""

    def __init__(self, name: str, rules: Rules) -> None:
        self.name = name
        self.rules = rules
        self.versions: dict[str, _Version] = {}
        self.dropped: dict[str, list[str]] = {}
        self._wheels = rules.wheels_allowed(name)
        self._sources = rules.sources_allowed(name)
        self._hashes = rules.hashes.get(name)

    def take(self, rows: Iterable[Row], unique: bool) -> None:
        """One pass over the files: most are wheels for other platforms, so those must cost least."""
        versions, ranks, projects = self.versions, self.rules._ranks, {}
        other_tags: list[str] = []
        seen: set[str] = set()
        for row in rows:
            filename = row.filename
            if not unique:
                if filename in seen:
                    continue
                seen.add(filename)
            if filename[-4:] == ".whl":
                try:
                    project, text, tail = filename.split("-", 2)
                except ValueError:
                    self._drop("name", filename)
                    continue
                ours = projects.get(project)
                if ours is None:
                    ours = projects[project] = normalise(project) == self.name
                if not ours:
                    self._drop("name", filename)
                    continue
                entry = versions.get(text)
                if entry is None:
                    entry = versions[text] = _Version()
                entry.rows.append(row)
                rank = ranks[tail] if tail in ranks else self.rules.rank(tail)
                if rank is None:
                    other_tags.append(filename)
                elif self._wheels:
                    self._wheel(entry, row, rank, text, tail)
                else:
                    self._drop("no-binary", filename)
            elif filename.endswith(SDIST_ENDINGS):
                self._source(row)
        if other_tags:
            self.dropped["tags"] = other_tags

    def _drop(self, reason: str, what: str) -> None:
        self.dropped.setdefault(reason, []).append(what)

    def _fits(self, row: Row, text: str) -> bool:
        wants = row.requires_python
        if wants and not self.rules.python_fits(wants):
            self._drop("python", f"{text} needs Python {wants}")
            return False
        if self._hashes is not None and row.hashes and not _hash_matches(row, self._hashes):
            self._drop("hash", row.filename)
            return False
        return True

    def _wheel(self, entry: _Version, row: Row, rank: int, text: str, tail: str) -> None:
        if not self._fits(row, text):
            return
        score = (rank, _build_tag(tail))
        if row.yanked is not None and row.yanked is not False:
            if entry.yanked_best is None or _better(score, entry.yanked_best):
                entry.yanked_best, entry.yanked_wheel = score, row
        elif entry.best is None or _better(score, entry.best):
            entry.best, entry.wheel = score, row

    def _source(self, row: Row) -> None:
        text = source_version(row.filename, self.name)
        if not text:
            self._drop("name", row.filename)
            return
        entry = self.versions.get(text)
        if entry is None:
            entry = self.versions[text] = _Version()
        entry.rows.append(row)
        if not self._sources:
            self._drop("only-binary", row.filename)
        elif self._fits(row, text):
            if row.yanked is not None and row.yanked is not False:
                entry.yanked_source = entry.yanked_source or row
            else:
                entry.source = entry.source or row


def _listing(
    name: str,
    versions: Mapping[str, _Version],
    rules: Rules,
    dropped: dict[str, list[str]],
    places: Sequence[str],
    because: str,
    origins: Mapping[str, tuple[str, str, Metadata | None]],
    wild: bool,
) -> Listing:
    merged: dict[Release, _Version] = {}
    stable = False
    for text, entry in versions.items():
        try:
            number = release(text)
        except ValueError:
            dropped.setdefault("version", []).extend(row.filename for row in entry.rows)
            continue
        stable = stable or not number.pre
        if number in merged:
            # The same version spelt twice (1.0 and 1.0.0): one candidate with the files of both.
            entry = _merge(merged[number], entry)
        merged[number] = entry
    candidates = []
    for number, entry in merged.items():
        row = entry.wheel or entry.source
        yanked: str | None = None
        from_source = entry.wheel is None
        if row is None:
            row = entry.yanked_wheel or entry.yanked_source
            if row is None:
                continue
            yanked = row.yanked if isinstance(row.yanked, str) else ""
            from_source = entry.yanked_wheel is None
        origin, recipe, metadata = origins.get(row.filename, ("index", "", None)) if origins else ("index", "", None)
        candidates.append(
            Candidate(
                name,
                number,
                row,
                rows=entry.rows,
                from_source=from_source,
                yanked=yanked,
                origin=origin,
                recipe=recipe,
                metadata=metadata,
            )
        )
    candidates.sort(key=_by_version, reverse=True)
    if rules.prefer_binary:
        candidates.sort(key=_sources_last)
    return Listing(name, candidates, dropped=dropped, stable=stable, places=places, because=because, wild=wild)


def _by_version(candidate: Candidate) -> tuple[object, ...]:
    return candidate.version.key


def _sources_last(candidate: Candidate) -> bool:
    return candidate.from_source


def _merge(first: _Version, second: _Version) -> _Version:
    first.rows.extend(second.rows)
    if second.best is not None and (first.best is None or _better(second.best, first.best)):
        first.best, first.wheel = second.best, second.wheel
    if second.yanked_best is not None and (first.yanked_best is None or _better(second.yanked_best, first.yanked_best)):
        first.yanked_best, first.yanked_wheel = second.yanked_best, second.yanked_wheel
    first.source = first.source or second.source
    first.yanked_source = first.yanked_source or second.yanked_source
    return first


def _better(one: tuple[int, tuple[int, str]], other: tuple[int, tuple[int, str]]) -> bool:
    """The lower tag rank, then the higher build tag."""
    return one[0] < other[0] or (one[0] == other[0] and one[1] > other[1])


def _build_tag(tail: str) -> tuple[int, str]:
    """The build tag that a wheel's tail starts with (``1local-py3-none-any.whl``), none below all others."""
    if not tail[:1].isdigit():
        return (-1, "")
    build = tail.split("-", 1)[0]
    digits = len(build) - len(build.lstrip("0123456789"))
    return int(build[:digits]), build[digits:]


def source_version(filename: str, name: str) -> str:
    """The version in an sdist's file name, or "" when it is not of the project ``name`` (normalised)."""
    for ending in SDIST_ENDINGS:
        if filename.endswith(ending):
            stem = filename[: -len(ending)]
            break
    else:
        return ""
    head, _, tail = stem.rpartition("-")
    if head and normalise(head) == name:
        return tail
    # "my-pkg-1.0-1.tar.gz": the name may hold dashes and so may a version of old.
    for position, char in enumerate(stem):
        if char == "-" and normalise(stem[:position]) == name:
            return stem[position + 1 :]
    return ""


def _hash_matches(row: Row, allowed: frozenset[str]) -> bool:
    return any(f"{algorithm}:{digest}" in allowed for algorithm, digest in row.hashes.items())
