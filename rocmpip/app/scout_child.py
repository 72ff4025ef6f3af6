"""The scout's own process: it follows the hints of a resolution over the indexes and sends home what it finds.

Unasked it sends every listing and all metadata that it comes by; asked it sends older versions, the files of a version, or
why files were set aside. What it cannot tell (an error of a rare kind) it leaves to its maker to find out.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from rocmpip.app.lock_client import lock_client
from rocmpip.app.resolve import IndexSource, key_of
from rocmpip.app.scout_errand import Channel, Errand, Gone, share_of
from rocmpip.app.scout_rows import EAGER, Packer, pack_problem
from rocmpip.catalogue.companions import Companions, load_companions
from rocmpip.index.client import Client
from rocmpip.model.record import msgspec
from rocmpip.plan.gather import Shelf
from rocmpip.plan.listing import Listing, Metadata
from rocmpip.plan.markers import Markers

_PILE = 16
"""Answers that go home together at the most: what has come home is worked on while the next ones are made."""

_errand = msgspec.msgpack.Decoder(Errand).decode  # made while the errand is still being read by its maker


def serve(ends: Sequence[tuple[int, int]]) -> None:
    """Wait for an errand, then scout until home says goodbye or is gone. ``ends``: to read from and write to home, a pair for each scout.

    The first scout has loaded all that is needed, so the second is its copy; both tell each other what falls to the other.
    """
    # Ctrl-C is for the maker to tell of; the end of its pipe ends us too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    companions = load_companions()
    mine, theirs = os.pipe(), os.pipe()
    child = os.fork()
    share = 0 if child else 1
    reading, writing = (mine[0], theirs[1]) if child else (theirs[0], mine[1])
    for end in {*mine, *theirs, *ends[1 - share]} - {reading, writing}:
        os.close(end)
    home, other = Channel(*ends[share]), Channel(reading, writing)
    try:
        _scout(share, len(ends), home, other, companions)
    finally:
        # Whoever waits for a word of ours must see that there will be none, whatever has ended us.
        home.close()
        other.close()
        if child:
            os.waitpid(child, 0)
        else:
            os._exit(0)


def _scout(share: int, shares: int, home: Channel, other: Channel, companions: Companions) -> None:
    kind, data = home.read()
    assert kind == "errand"
    errand = _errand(data)
    subject = (*errand.subject, f"share {share} of {shares}")
    with (
        lock_client(errand.index, errand.cache, subject, os.environ) as client,
        Scout(errand, client, home, other, share, shares) as source,
    ):
        wanted = source.begin(errand.requirements)
        expected = companions if not errand.catalogue else load_companions(errand.catalogue)
        source.expect(expected.of(wanted))
        source.run()


class Scout(IndexSource):
    """An IndexSource that sends on what comes. It sees to names of its share; what falls to the other it tells the other."""

    def __init__(self, errand: Errand, client: Client, home: Channel, other: Channel, share: int, shares: int) -> None:
        super().__init__(
            client,
            rules=errand.rules,
            markers=Markers(errand.markers),
            find_links=errand.index.find_links,
            bounds=[*errand.requirements, *errand.constraints],
            pre=errand.pre,
        )
        self._home = home
        self._other = other
        self._share = share
        self._shares = shares
        self._passed: list[tuple[object, ...]] = []
        self._packers: dict[str, Packer] = {}
        self._told: list[tuple[object, ...]] = []
        self._open = True

    def expect(self, names: Iterable[str]) -> None:
        super().expect(name for name in names if share_of(name, self._shares) == self._share)  # the other has the table too

    def prefetch(self, name: str, text: str = "", extras: frozenset[str] = frozenset()) -> None:
        if share_of(name, self._shares) == self._share:
            super().prefetch(name, text, extras)
        elif (name, text, extras) not in self._hinted:
            self._hinted.add((name, text, extras))
            self._passed.append(("hint", name, text, list(extras)))

    def run(self) -> None:
        crew = self._crew
        crew.watch(self._home.reading, lambda: self._hear(self._home))
        crew.watch(self._other.reading, lambda: self._hear(self._other))
        for message in self._home.rest():
            # Its maker may have said more before the errand was read; no reading will bring that again.
            self._obey(message)
        while self._open:
            self._follow_hints()
            if self._passed:
                with suppress(Gone):
                    self._other.send(*self._passed)
                self._passed.clear()
            if crew.run_one(wait=False):
                continue
            # What comes together goes together.
            if self._told:
                self._send_home()
            else:
                crew.look(None)
        if self._told:
            with suppress(Gone):  # whoever said goodbye need not listen
                self._send_home()

    def _hear(self, channel: Channel) -> None:
        """One side has said something. The end of home is our end."""
        try:
            words = channel.take()
        except Gone:
            if channel is self._home:
                os._exit(0)
            self._crew.unwatch(channel.reading)
            return
        for message in words:
            self._obey(message)
            if len(self._told) >= _PILE:
                self._send_home()

    def _send_home(self) -> None:
        self._home.send(*self._told)
        self._told.clear()

    def _obey(self, message: Sequence[Any]) -> None:
        kind, *words = message
        if kind == "hint":
            name, text, extras = words
            self.prefetch(name, text, frozenset(extras))
        elif kind == "listing":
            self._ask_listing(*words)
        elif kind == "metadata":
            shelf = self._shelf_of(words[0])
            candidate = shelf.make(shelf.place(words[1]))
            self._need_metadata(candidate, key_of(candidate))
        elif kind == "older":
            self._send_versions(*words)
        elif kind == "files":
            self._send_files(*words)
        elif kind == "dropped":
            self._tell(("dropped", words[0], self._shelf_of(words[0]).set_aside()))
        elif kind == "until":
            self._tell(("until", self._crew.until()))
        elif kind == "end":
            self._open = False

    def _tell(self, message: tuple[object, ...]) -> None:
        self._told.append(message)

    # What is sent -----------------------------------------------------------------------------------------------------

    def _listing_came(self, name: str, listing: Listing | Exception) -> None:
        if isinstance(listing, Exception):
            self._tell(("no listing", name, pack_problem(listing)))
            return
        shelf = listing.shelf
        assert isinstance(shelf, Shelf)
        packer = self._packers[name] = Packer()
        texts = [shelf.texts(place)[0] for place in range(shelf.count)]
        best = [packer.best(shelf.best(place)) for place in range(min(EAGER, shelf.count))]
        self._tell(("listing", name, listing.places, packer.pages, texts, best))

    def _metadata_came(self, key: str, metadata: Metadata | Exception) -> None:
        if isinstance(metadata, Exception):
            self._tell(("no metadata", key, pack_problem(metadata)))
        else:
            extras = list(metadata.provides_extra)
            self._tell(("metadata", key, metadata.requires_dist, metadata.requires_python, extras))

    def _send_versions(self, name: str) -> None:
        shelf, packer = self._shelf_of(name), self._packers[name]
        best = [packer.best(shelf.best(place)) for place in range(EAGER, shelf.count)]
        self._tell(("older", name, packer.pages, best))

    def _send_files(self, name: str, text: str) -> None:
        packer = self._packers[name]
        shelf = self._shelf_of(name)
        rows = [packer.row(row) for row in shelf.files(shelf.place(text))]
        self._tell(("files", name, packer.pages, text, rows))

    def _shelf_of(self, name: str) -> Shelf:
        listing = self._listings[name]
        assert isinstance(listing, Listing)
        shelf = listing.shelf
        assert isinstance(shelf, Shelf)
        return shelf
