"""The candidates of one project, and the rules that files must meet. ``gather`` makes listings from pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, overload

from rocmpip.model.packages import File, RequirementLine
from rocmpip.model.record import Struct, field, replace
from rocmpip.plan.versions import Release, release, spec


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


class Metadata(Struct, frozen=True):
    """What resolution reads of a distribution's core metadata."""

    requires_dist: tuple[str, ...] = ()
    requires_python: str = ""
    provides_extra: frozenset[str] = frozenset()
    """Normalised; empty when the metadata names none (or does not say)."""
    name: str = ""
    """Normalised; "" where nobody asks."""
    version: str = ""


class Unusable(Exception):
    """A candidate whose metadata cannot be had or is wrong; its text is told if nothing else fits."""


class Candidate:
    """One version of one project with the file that would be installed.

    ``origin`` is index, recipe (a source that a recipe builds), wheelhouse, installed or url.
    """

    __slots__ = (
        "_file",
        "_rows",
        "from_source",
        "metadata",
        "name",
        "origin",
        "recipe",
        "row",
        "stretched",
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
        rows: Sequence[Row] | Callable[[], Sequence[Row]] = (),
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
        self._rows = rows
        self.from_source = from_source
        self.yanked = yanked
        self.origin = origin
        self.metadata = metadata
        """Static metadata, when it is known without asking."""
        self.recipe = recipe
        self.url = url
        """The URL or path of a direct reference, as written."""
        self.stretched = False
        """Its Requires-Python has an upper bound that the target's Python is above."""
        self._file: File | None = None

    @property
    def file(self) -> File | None:
        """The file to install; None for what is already installed or has no file (VCS, folder)."""
        if self._file is None and self.row is not None:
            self._file = as_file(self.row)
        return self._file

    @property
    def rows(self) -> Sequence[Row]:
        """Every file of this version, other platforms' too: a lock lists all their hashes."""
        return self._rows() if callable(self._rows) else self._rows

    @property
    def files(self) -> tuple[File, ...]:
        """``rows`` as the model's files."""
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


class Rules(Struct, frozen=True, dict=True):
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
    stretch_python: bool = False
    """uv's reading of Requires-Python: a lower bound. Authors of old could not know a newer Python, and the older version that
    forgot to say ``<3.11`` fits it no better than the newer one that did. What cannot be read fits nothing."""
    hashes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Name → the ``sha256:…`` texts that its files must have one of (hash mode)."""

    @cached_property
    def ranks(self) -> dict[str, int | None]:
        """What ``rank`` has found so far."""
        return {}

    @cached_property
    def pythons(self) -> dict[str, bool]:
        return {}

    @cached_property
    def stretched(self) -> dict[str, bool]:
        return {}

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
        if tail in self.ranks:
            return self.ranks[tail]
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
        best = self.ranks[tail] = min(ranks, default=None)
        return best

    def python_fits(self, requires_python: str) -> bool:
        """Whether the target's Python lies in ``requires_python``; what cannot be read counts as fitting, as in pip."""
        if not requires_python or self.ignore_requires_python:
            return True
        known = self.pythons.get(requires_python)
        if known is None:
            try:
                known = spec(requires_python).contains(release(self.python))
            except ValueError:
                known = True
            self.pythons[requires_python] = known
        return known

    def python_reaches(self, requires_python: str) -> bool:
        """Whether the target's Python is at least as new as ``requires_python`` asks, its upper bounds left aside."""
        if not requires_python or self.ignore_requires_python:
            return True
        known = self.stretched.get(requires_python)
        if known is None:
            try:
                known = release(self.python).numbers >= _lowest(requires_python)
            except ValueError:
                known = False
            self.stretched[requires_python] = known
        return known

    def takes_python(self, requires_python: str) -> bool:
        """``python_reaches`` or ``python_fits``, as the rules want it."""
        return self.python_reaches(requires_python) if self.stretch_python else self.python_fits(requires_python)


_CLAUSE = re.compile(
    r"\s*(===|==|~=|!=|<=|>=|<|>)\s*['\"]?v?(\d+(?:\.\d+)*)(\.?\*|\.?(?:a|b|rc|alpha|beta|dev|post|c)\.?\d*)*['\"]?\s*\Z"
)


def _lowest(requires_python: str) -> tuple[int, ...]:
    """The lowest Python that a Requires-Python allows, as release numbers. Raises ValueError when it cannot be read.

    Common slips are read as they were meant: ``>=3.6.*``, ``>=3.6<4``, a comma too many.
    """
    lowest: tuple[int, ...] = ()
    for clause in re.split(r",|(?<=[\d*'\"])\s*(?=[<>=!~])", requires_python):
        if not clause.strip():
            continue
        match = _CLAUSE.match(clause)
        if match is None:
            raise ValueError(f"{clause.strip()!r} is no version clause")
        numbers = release(match[2]).numbers
        if match[1] in (">=", "==", "===", "~="):
            lowest = max(lowest, numbers)
        elif match[1] == ">":
            # Python's versions have three numbers: what comes after 3.12 is 3.12.1.
            lowest = max(lowest, (*(*numbers, 0, 0)[:3], 1) if len(numbers) > 2 else (*(*numbers, 0, 0)[:2], 1))
    return lowest


def with_hashes(rules: Rules, lines: Iterable[RequirementLine]) -> Rules:
    """``rules`` narrowed to the hashes that requirements and constraints give. A source's listings need these rules."""
    hashes: dict[str, frozenset[str]] = {}
    for line in lines:
        if line.hashes and line.name:
            given = frozenset(text.strip().lower() for text in line.hashes)
            # Said twice (requirement and constraint) a hash must be in both, as in pip.
            hashes[line.name] = hashes[line.name] & given if line.name in hashes else given
    return replace(rules, hashes=hashes) if hashes else rules


class Listing(Sequence[Candidate]):
    """Candidates of one project, the most wanted first; each is made when it is reached, which few ever are."""

    def __init__(
        self,
        name: str,
        candidates: Sequence[Candidate] = (),
        *,
        shelf: Shelf | None = None,
        places: Sequence[str] = (),
        because: str = "",
        wild: bool = True,
    ) -> None:
        self.name = name
        self.places = places
        """Where was looked, without credentials: for people."""
        self.because = because
        """Why these candidates and no others ("torch comes from pytorch.org rocm6.4"), or ""."""
        self.wild = wild
        """False where yanked files and pre-releases were chosen by policy already (a family's own pages)."""
        self.shelf = shelf
        """What the candidates are made from, None where they were given."""
        self._made: list[Candidate | None] = list(candidates) if shelf is None else [None] * shelf.count
        self._places: dict[tuple[object, ...], int] | None = None

    @property
    def dropped(self) -> Mapping[str, Sequence[str]]:
        """What was set aside: reason (tags, python, only-binary, no-binary, hash, name, version) → file names or texts."""
        return {} if self.shelf is None else self.shelf.set_aside()

    def exact(self, version: Release) -> Candidate | None:
        """The candidate whose version equals ``version``, local label included."""
        if self._places is None:
            keys = self.keys
            self._places = {keys[place]: place for place in range(len(keys) - 1, -1, -1)}
        place = self._places.get(version.key)
        return None if place is None else self._at(place)

    @property
    def keys(self) -> Sequence[tuple[Any, ...]]:
        """The sort keys of all versions (``Release.key``). No candidate is made for them."""
        return [self._at(place).version.key for place in range(len(self))] if self.shelf is None else self.shelf.keys

    def text(self, place: int) -> str:
        """A version as its files spell it, without a candidate being made."""
        return self._at(place).version.text if self.shelf is None else self.shelf.text(place)

    def _at(self, place: int) -> Candidate:
        made = self._made[place]
        if made is None:
            assert self.shelf is not None
            made = self._made[place] = self.shelf.make(place)
        return made

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Candidate]: ...
    def __getitem__(self, index: int | slice) -> Candidate | Sequence[Candidate]:
        if isinstance(index, slice):
            return [self._at(place) for place in range(*index.indices(len(self._made)))]
        return self._at(range(len(self._made))[index])

    def __len__(self) -> int:
        return len(self._made)

    def __iter__(self) -> Iterator[Candidate]:
        return map(self._at, range(len(self._made)))


class Shelf(Protocol):
    """What a listing makes its candidates from (``gather.Shelf``)."""

    @property
    def keys(self) -> Sequence[tuple[Any, ...]]: ...
    @property
    def count(self) -> int: ...
    def text(self, place: int) -> str: ...
    def make(self, place: int) -> Candidate: ...
    def set_aside(self) -> Mapping[str, Sequence[str]]: ...
