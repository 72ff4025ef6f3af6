"""Files of a project's pages → its candidates by version, unfit ones set aside with the reason.

The hot loop of resolving: a set of 184 projects has 156 000 files, of which one in a thousand is looked at twice. So one
pass keeps only what fits, and what a person would ask later (why did nothing fit, which hashes has this version) is
worked out from the rows again when someone does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rocmpip.model.filenames import ENDINGS, SDIST_ENDINGS
from rocmpip.model.packages import normalise
from rocmpip.plan.listing import Candidate, Listing, Metadata, Row, Rules
from rocmpip.plan.versions import Release, plain_key, release

Score = tuple[int, tuple[int, str]]
Origin = tuple[str, str, Metadata | None]
_UNKNOWN = -1
_DIGITS = frozenset("0123456789")
_NO_BUILD = (-1, "")


def make_listing(
    name: str,
    rows: Iterable[Row],
    rules: Rules,
    *,
    places: Sequence[str] = (),
    because: str = "",
    origins: Mapping[str, Origin] | None = None,
    wild: bool = True,
    unique: bool = False,
) -> Listing:
    """Group ``rows`` by version, newest first.

    ``origins`` says for a file name (origin, recipe, static metadata) where that is not ("index", "", None).
    A file name that comes twice counts once (the first wins); ``unique`` says that none does. Files of another project
    are set aside.
    """
    shelf = Shelf(name, rows if unique else _first(rows), rules, origins or {})
    return Listing(name, shelf=shelf, places=places, because=because, wild=wild)


def _first(rows: Iterable[Row]) -> Sequence[Row]:
    """One row for each file name, the first."""
    first: dict[str, Row] = {}
    for row in rows:
        first.setdefault(row.filename, row)
    return list(first.values())


class Best(NamedTuple):
    """The file that stands for a version."""

    row: Row
    from_source: bool
    yanked: str | None
    """None, or the reason (may be empty) when only yanked files are left."""
    stretched: bool


class Shelf:
    """The fitting files of a project, one place for each version, newest first."""

    def __init__(
        self,
        name: str,
        rows: Iterable[Row],
        rules: Rules,
        origins: Mapping[str, Origin],
    ) -> None:
        self._name = name
        self._rows = rows
        self._rules = rules
        self._origins = origins
        self._hashes = rules.hashes.get(name)
        self._wheels: dict[str, tuple[Score, Row]] = {}
        self._sources: dict[str, Row] = {}
        self._yanked_wheels: dict[str, tuple[Score, Row]] = {}
        self._yanked_sources: dict[str, Row] = {}
        self._projects: dict[str, bool] = {}
        self._pick()
        self.keys: list[tuple[Any, ...]] = []
        self._texts: list[tuple[str, ...]] = []
        self._sort()

    @property
    def count(self) -> int:
        return len(self.keys)

    def _pick(self) -> None:
        wheels_allowed = self._rules.wheels_allowed(self._name)
        sources_allowed = self._rules.sources_allowed(self._name)
        rank_of = self._rules.ranks
        pythons, fits = self._rules.pythons, self._rules.python_fits
        if self._rules.stretch_python:
            pythons, fits = self._rules.stretched, self._rules.python_reaches
        projects, wheels = self._projects, self._wheels
        for row in self._rows:
            filename = row.filename
            if filename[-4:] == ".whl":
                project, _, text = filename.partition("-")
                text, _, tail = text.partition("-")
                rank = rank_of.get(tail, _UNKNOWN)
                if rank is None:
                    continue
                if rank == _UNKNOWN:
                    rank = self._rules.rank(tail)
                    if rank is None:
                        continue
                if not wheels_allowed or not (projects[project] if project in projects else self._ours(project)):
                    continue
                wants = row.requires_python
                if wants and not (pythons[wants] if wants in pythons else fits(wants)):
                    continue
                if self._hashes is not None and not _hash_matches(row, self._hashes):
                    continue
                yanked = row.yanked
                shelf = wheels if yanked is None or yanked is False else self._yanked_wheels
                score = rank, _NO_BUILD if tail[0] not in _DIGITS else _build_tag(tail)
                known = shelf.get(text)
                if known is None or _better(score, known[0]):
                    shelf[text] = score, row
            elif sources_allowed and (text := self._source_version(filename)) and text not in wheels:
                wants = row.requires_python
                if wants and not (pythons[wants] if wants in pythons else fits(wants)):
                    continue
                if self._hashes is not None and not _hash_matches(row, self._hashes):
                    continue
                yanked = row.yanked
                (self._sources if yanked is None or yanked is False else self._yanked_sources).setdefault(text, row)

    def _ours(self, project: str) -> bool:
        known = self._projects.get(project)
        if known is None:
            known = self._projects[project] = normalise(project) == self._name
        return known

    def _source_version(self, filename: str) -> str:
        """The version in an sdist's name, "" for what is no sdist of this project."""
        if filename[-7:] == ".tar.gz":
            project, _, text = filename[:-7].rpartition("-")
            if project and self._ours(project):
                return text
        return source_version(filename, self._name)

    def _sort(self) -> None:
        spelled: dict[tuple[object, ...], tuple[str, ...]] = {}
        for shelf in (self._wheels, self._sources, self._yanked_wheels, self._yanked_sources):
            for text in shelf:
                try:
                    key = plain_key(text) or release(text).key
                except ValueError:
                    continue
                known = spelled.get(key)
                if known is None:
                    spelled[key] = (text,)
                elif text not in known:
                    spelled[key] = (*known, text)
        keys = sorted(spelled, reverse=True)
        if self._rules.prefer_binary:
            keys.sort(key=lambda key: not any(text in self._wheels for text in spelled[key]))
        self.keys = keys
        self._texts = [spelled[key] for key in keys]

    def make(self, place: int) -> Candidate:
        """The candidate at ``place``: its best wheel, else its source, else a yanked file."""
        texts = self._texts[place]
        best = self.best(place)
        origin, recipe, metadata = self._origins.get(best.row.filename, ("index", "", None))
        made = Candidate(
            self._name,
            release(texts[0]),
            best.row,
            rows=lambda: self.files(place),
            from_source=best.from_source,
            yanked=best.yanked,
            origin=origin,
            recipe=recipe,
            metadata=metadata,
        )
        made.stretched = best.stretched
        return made

    def place(self, text: str) -> int:
        """Where the version that its files spell ``text`` (first) stands."""
        return next(place for place, texts in enumerate(self._texts) if texts[0] == text)

    def text(self, place: int) -> str:
        return self._texts[place][0]

    def texts(self, place: int) -> Sequence[str]:
        """The version at ``place`` as its files spell it: ``1.0`` and ``1.0.0`` are one version."""
        return self._texts[place]

    def best(self, place: int) -> Best:
        """What stands for the version at ``place``."""
        row, from_source, yanked = self._best(self._texts[place])
        reason = (row.yanked if isinstance(row.yanked, str) else "") if yanked else None
        stretched = self._rules.stretch_python and not self._rules.python_fits(row.requires_python or "")
        return Best(row, from_source, reason, stretched)

    def _best(self, texts: Sequence[str]) -> tuple[Row, bool, bool]:
        for wheels, sources, yanked in (
            (self._wheels, self._sources, False),
            (self._yanked_wheels, self._yanked_sources, True),
        ):
            found: tuple[Score, Row] | None = None
            for text in texts:
                one = wheels.get(text)
                if one is not None and (found is None or _better(one[0], found[0])):
                    found = one
            if found is not None:
                return found[1], False, yanked
            for text in texts:
                if text in sources:
                    return sources[text], True, yanked
        raise AssertionError(texts)

    def files(self, place: int) -> list[Row]:
        """Every file of the version at ``place``, as far as it is spelled like one that fits."""
        texts = self._texts[place]
        version = release(texts[0])
        near: Sequence[Row] = ()
        for text in texts:
            mark = f"-{text}"
            near = [*near, *[row for row in self._rows if mark in row.filename]]
        if len(texts) > 1:
            near = _first(near)
        return [row for row in near if (text := self._version_in(row.filename)) and _same(text, version)]

    def _version_in(self, filename: str) -> str:
        if filename.endswith(".whl"):
            pieces = filename.split("-", 2)
            return pieces[1] if len(pieces) == 3 and self._ours(pieces[0]) else ""
        return self._source_version(filename)

    def set_aside(self) -> dict[str, list[str]]:
        """Reason → what did not fit for it."""
        dropped: dict[str, list[str]] = {}
        for row in self._rows:
            reason, what = self._reason(row)
            if reason:
                dropped.setdefault(reason, []).append(what)
        return dropped

    def _reason(self, row: Row) -> tuple[str, str]:
        filename = row.filename
        text = self._version_in(filename)
        if not text:
            return ("name", filename) if filename.endswith(ENDINGS) else ("", "")
        try:
            release(text)
        except ValueError:
            return "version", filename
        if filename.endswith(".whl"):
            if self._rules.rank(filename.split("-", 2)[2]) is None:
                return "tags", filename
            if not self._rules.wheels_allowed(self._name):
                return "no-binary", filename
        elif not self._rules.sources_allowed(self._name):
            return "only-binary", filename
        if row.requires_python and not self._rules.takes_python(row.requires_python):
            return "python", f"{text} needs Python {row.requires_python}"
        if self._hashes is not None and not _hash_matches(row, self._hashes):
            return "hash", filename
        return "", ""


def _same(text: str, version: Release) -> bool:
    if text == version.text:
        return True
    try:
        return release(text).key == version.key
    except ValueError:
        return False


def _better(one: Score, other: Score) -> bool:
    """The lower tag rank, then the higher build tag."""
    return one[0] < other[0] or (one[0] == other[0] and one[1] > other[1])


def _build_tag(tail: str) -> tuple[int, str]:
    """The build tag that a wheel's tail starts with (``1local-py3-none-any.whl``); none comes below all others."""
    if tail[:1] not in _DIGITS:
        return _NO_BUILD
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
    """True for a file with one of the hashes, and for one whose page has none (it is checked when it is downloaded)."""
    hashes = row.hashes
    return not hashes or any(f"{algorithm}:{digest}" in allowed for algorithm, digest in hashes.items())
