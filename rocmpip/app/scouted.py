"""The resolver's source where scouts go ahead: their words are taken, and what they leave open is found here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from rocmpip.app.resolve import IndexSource, key_of
from rocmpip.app.scout import Scouts
from rocmpip.app.scout_errand import Channel, Gone, share_of
from rocmpip.app.scout_rows import Unpacker, unpack_problem
from rocmpip.index.fast import FastPages
from rocmpip.model.errors import NetworkError
from rocmpip.plan.listing import Candidate, Listing, Metadata, Row
from rocmpip.plan.versions import plain_key, release

Ahead = tuple[Scouts, Sequence[Channel]]
"""Scouts with their errand, and the ways to each of them."""


class ScoutedSource(IndexSource):
    """An IndexSource that has scouts. For the names of a scout that is gone it is a plain one.

    At its end the scouts have all been told and write their cache: whoever sent them waits for that.
    """

    def __init__(self, ahead: Ahead, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._scouts, channels = ahead
        self._sides = [_Side(channel) for channel in channels]
        self.unpacker = Unpacker(FastPages(self.client))
        self._left: set[str] = set()
        """Names and metadata keys that the scouts leave to us."""
        self._shelves: dict[str, PackedShelf] = {}

    def __exit__(self, kind: type[BaseException] | None, *more: object) -> None:
        super().__exit__(kind, *more)
        for side in self._sides:
            if kind is None:
                side.say("end")
                side.flush()
            side.close()
        if kind is not None:
            self._scouts.dismiss()

    # The resolver's questions ----------------------------------------------------------------------------------------

    def candidates(self, name: str) -> Listing:
        if name not in self._listings and name not in self._left:
            side = self.side(name)
            side.say("listing", name)
            self.wait_for(side, lambda: name in self._listings or name in self._left)
        return super().candidates(name)

    def metadata(self, candidate: Candidate) -> Metadata:
        name = candidate.name
        if candidate.metadata is None and name in self._shelves and not candidate.url:
            key = key_of(candidate)
            if key not in self._metadata and key not in self._left and self._published(candidate):
                side = self.side(name)
                side.say("metadata", name, candidate.version.text)
                self.wait_for(side, lambda: key in self._metadata or key in self._left)
        return super().metadata(candidate)

    @staticmethod
    def _published(candidate: Candidate) -> bool:
        file = candidate.file
        return not candidate.from_source or (file is not None and file.core_metadata is not None)

    def prefetch(self, name: str, text: str = "", extras: frozenset[str] = frozenset()) -> None:
        side = self.side(name)
        if side.gone:
            super().prefetch(name, text, extras)
        elif name not in self._listings or text.startswith("=="):
            # One version of a listing that is here is a hint at its metadata.
            side.say("hint", name, text, list(extras))

    def ask_files(self, candidates: Iterable[Candidate]) -> None:
        for candidate in candidates:
            shelf = self._shelves.get(candidate.name)
            if shelf is not None and not candidate.url:
                shelf.ask_files(candidate.version.text)
        for side in self._sides:
            side.flush()

    def until(self) -> float:
        known = super().until()
        for side in self._sides:
            side.say("until")
            self.wait_for(side, lambda side=side: side.until is not None)  # type: ignore[misc]
            known = min(known, side.until or 0.0)
        return known

    def fetch_again(self, name: str) -> Listing:
        """The listing of ``name`` from its index, without the scout."""
        del self._listings[name]
        self._left.add(name)
        return super().candidates(name)

    # Talking with the scout ------------------------------------------------------------------------------------------

    def side(self, name: str) -> _Side:
        """The scout that sees to ``name``."""
        return self._sides[share_of(name, len(self._sides))]

    def wait_for(self, side: _Side, come: Callable[[], bool]) -> None:
        """Take what a scout sends until ``come()``, or until it is gone."""
        while not come() and (message := side.read()) is not None:
            self._take(side, message)

    def _take(self, side: _Side, message: Sequence[Any]) -> None:
        kind, *words = message
        if kind == "listing":
            name, places, pages, texts, best = words
            if name not in self._listings:
                shelf = self._shelves[name] = PackedShelf(self, name, pages, texts, best)
                self._listings[name] = Listing(name, shelf=shelf, places=places)
        elif kind == "metadata":
            key, requires, python, extras = words
            self._metadata.setdefault(key, Metadata(tuple(requires), python, frozenset(extras)))
        elif kind in ("no listing", "no metadata"):
            key, values = words
            known: dict[str, Any] = self._listings if kind == "no listing" else self._metadata
            if values is None:
                self._left.add(key)
            else:
                known.setdefault(key, unpack_problem(values))
        elif kind == "until":
            side.until = words[0]
        else:
            self._shelves[words[0]].take(kind, *words[1:])


class _Side:
    """One scout, as we talk with it: words go together, and at the latest before we wait for an answer."""

    def __init__(self, channel: Channel) -> None:
        self._channel: Channel | None = channel
        self._words: list[tuple[object, ...]] = []
        self.until: float | None = None
        """Until when its pages are fresh, once it was asked."""

    @property
    def gone(self) -> bool:
        return self._channel is None

    def say(self, *message: object) -> None:
        if self._channel is not None:
            self._words.append(message)

    def flush(self) -> None:
        words, self._words = self._words, []
        if words and self._channel is not None:
            try:
                self._channel.send(*words)
            except Gone:
                self.close()

    def read(self) -> Sequence[Any] | None:
        """Its next message; None when it is gone."""
        self.flush()
        if self._channel is not None:
            try:
                return self._channel.read()
            except Gone:
                self.close()
        return None

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None


class PackedShelf:
    """The versions of a project as the scout sent them; what it kept back is asked for when it is wanted.

    Where the scout is gone by then, the page is fetched here.
    """

    def __init__(
        self, source: ScoutedSource, name: str, pages: list[list[str]], texts: Sequence[str], best: Sequence[bytes]
    ) -> None:
        self._source = source
        self._side = source.side(name)
        self._name = name
        self._pages = pages
        self._texts = texts
        self._best = list(best)
        self._files: dict[str, Sequence[Row]] = {}
        self._asked: set[str] = set()
        self._dropped: Mapping[str, Sequence[str]] | None = None

    @property
    def count(self) -> int:
        return len(self._texts)

    @cached_property
    def keys(self) -> Sequence[tuple[Any, ...]]:
        return [plain_key(text) or release(text).key for text in self._texts]

    def text(self, place: int) -> str:
        return self._texts[place]

    @cached_property
    def _ours(self) -> Listing:
        return self._source.fetch_again(self._name)

    def make(self, place: int) -> Candidate:
        source, text = self._source, self._texts[place]
        if place >= len(self._best):
            self._side.say("older", self._name)
            source.wait_for(self._side, lambda: len(self._best) == self.count)
        if place >= len(self._best):
            found = self._ours.exact(release(text))
            if found is None:
                raise NetworkError(f"{self._name} {text} is gone from its index", hint="try again")
            return found
        best = source.unpacker.best(self._best[place], self._pages)
        made = Candidate(
            self._name,
            release(text),
            best.row,
            rows=lambda: self._rows(text),
            from_source=best.from_source,
            yanked=best.yanked,
        )
        made.stretched = best.stretched
        return made

    def ask_files(self, text: str) -> None:
        """Have the files of version ``text`` sent."""
        if text not in self._asked:
            self._asked.add(text)
            self._side.say("files", self._name, text)

    def _rows(self, text: str) -> Sequence[Row]:
        self.ask_files(text)
        self._source.wait_for(self._side, lambda: text in self._files)
        rows = self._files.get(text)
        if rows is None:
            found = self._ours.exact(release(text))
            rows = () if found is None else found.rows
        return rows

    def set_aside(self) -> Mapping[str, Sequence[str]]:
        if self._dropped is None:
            self._side.say("dropped", self._name)
            self._source.wait_for(self._side, lambda: self._dropped is not None)
        return self._ours.dropped if self._dropped is None else self._dropped

    def take(self, kind: str, *words: Any) -> None:
        """What the scout answers."""
        if kind == "dropped":
            self._dropped = words[0]
            return
        self._pages = words[0]
        if kind == "older":
            self._best += words[1]
        else:
            _, text, rows = words
            self._files[text] = [self._source.unpacker.row(number, values, self._pages) for number, values in rows]
