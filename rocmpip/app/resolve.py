"""The conductor of resolving: indexes, routes and a crew of fetching threads behind the resolver's Source.

Latency is what resolving costs, so every listing that arrives starts the question that will come next: the metadata of
its best candidate, then the listings of what that needs. The resolver finds nearly everything there when it asks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from rocmpip.app.crew import Crew, NotThere
from rocmpip.index.client import Client
from rocmpip.model.errors import NetworkError, NoPlan
from rocmpip.model.filenames import ENDINGS, belongs
from rocmpip.model.packages import File, RequirementLine, normalise
from rocmpip.model.redact import bare_url, redact
from rocmpip.model.routing import Route
from rocmpip.plan.gather import make_listing
from rocmpip.plan.listing import Candidate, Listing, Metadata, Row, Rules, Unusable, as_file, with_hashes
from rocmpip.plan.markers import Markers
from rocmpip.plan.metadata import name_and_version, parse_metadata
from rocmpip.plan.requirements import Need, need
from rocmpip.plan.versions import Spec, release, spec

if TYPE_CHECKING:
    from typing_extensions import Self

CONNECTIONS = 24
SourceMetadata = Callable[[File], bytes]
"""The core metadata of a source archive (its PKG-INFO, or what its build back end says). May raise Unusable."""

_Hint = tuple[str, str, frozenset[str]]


class IndexSource:
    """The resolver's Source over a Client. For one thread; a context manager.

    ``route`` says for a name where its candidates come from; None means the plain way: all ``indexes`` and
    ``find_links`` merged, as pip merges them. ``bounds`` are the direct requirements and constraints: they only steer
    what is fetched ahead. The client stays open: it is its maker's.
    """

    def __init__(
        self,
        client: Client,
        *,
        rules: Rules,
        markers: Markers,
        indexes: Sequence[str] | None = None,
        find_links: Sequence[str] = (),
        route: Callable[[str], Route | None] | None = None,
        bounds: Iterable[RequirementLine] = (),
        source_metadata: SourceMetadata | None = None,
        connections: int = CONNECTIONS,
        pre: bool = False,
    ) -> None:
        self.client = client
        bounds = tuple(bounds)
        self.rules = with_hashes(rules, bounds)
        self.markers = markers
        self.indexes = tuple(client.indexes() if indexes is None else indexes)
        self.find_links = tuple(find_links)
        self._route = route
        self._source_metadata = source_metadata
        self._crew = Crew(client, connections)
        self._pre = pre
        self._elsewhere = any("://" in link for link in self.find_links) or source_metadata is None
        self._listings: dict[str, Listing | Exception] = {}
        self._arriving: dict[str, _Arriving] = {}
        self._metadata: dict[str, Metadata | Exception] = {}
        self._asked: set[str] = set()
        self._needed: set[str] = set()
        """Metadata that the resolver waits for or has waited for, by file: the rest is asked for on a guess."""
        self._not_there: set[str] = set()
        """Metadata that a guess did not find where its index says it is."""
        self._hinted: set[_Hint] = set()
        self._hints: deque[_Hint] = deque()
        self._waiting: dict[str, list[_Hint]] = {}
        """Hints that wait for a listing, by name, or for metadata, by file."""
        self._bounds: dict[str, list[Spec]] = {}
        for line in bounds:
            if line.name and line.specifier:
                self._bounds.setdefault(line.name, []).append(spec(line.specifier))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._crew.close()

    def until(self) -> float:
        """The moment (seconds since 1970) at which the answer may be another one: pages go stale, folders change at any time."""
        return 0.0 if self._elsewhere else self._crew.until()

    # The resolver's questions ----------------------------------------------------------------------------------------

    def candidates(self, name: str) -> Listing:
        self._catch_up()
        while (listing := self._listings.get(name)) is None:
            self._ask_listing(name)
            self._crew.run_one(wait=name not in self._listings)
            self._follow_hints()
        if isinstance(listing, Exception):
            raise listing
        return listing

    def metadata(self, candidate: Candidate) -> Metadata:
        if candidate.metadata is not None:
            return candidate.metadata
        key = key_of(candidate)
        while (known := self._metadata.get(key)) is None:
            self._need_metadata(candidate, key)
            self._crew.run_one(wait=True)
            self._follow_hints()
        if isinstance(known, Exception):
            raise known
        return known

    def prefetch(self, name: str, text: str = "", extras: frozenset[str] = frozenset()) -> None:
        hint = (name, text, extras)
        if hint not in self._hinted:
            self._hinted.add(hint)
            self._hints.append(hint)
            if name not in self._listings:
                self._ask_listing(name)

    def begin(
        self, lines: Iterable[RequirementLine], plain: Callable[[str], bool] = lambda name: True
    ) -> list[tuple[str, frozenset[str]]]:
        """Go ahead with the user's requirements; returns names and extras of those that an index answers for this target.

        ``plain``: whether a name's page may be fetched before the resolver asks for it.
        """
        wanted: list[tuple[str, frozenset[str]]] = []
        for line in lines:
            try:
                holds = self.markers.holds(line.marker)
            except ValueError:
                continue  # told by the resolver
            if holds and line.name and not (line.url or line.path):
                extras = frozenset(map(normalise, line.extras))
                wanted.append((line.name, extras))
                if plain(line.name):
                    self.prefetch(line.name, line.specifier, extras)
        return wanted

    def expect(self, names: Iterable[str]) -> None:
        """Hints at names that nothing has asked for yet, but probably will."""
        for name in names:
            self.prefetch(name)

    def ask_files(self, candidates: Iterable[Candidate]) -> None:
        """A hint that the ``rows`` of all these will be read. Never waits."""

    def direct(self, wanted: Need) -> Candidate:
        self._elsewhere = True
        line = wanted.line
        url = wanted.url if "://" in wanted.url else Path(wanted.url).absolute().as_uri()
        link, _, fragment = self.client.credentials.learn(url).partition("#")
        filename = unquote(urlsplit(link).path.rpartition("/")[2])
        if not filename.endswith(ENDINGS) or link.startswith(("git+", "hg+", "svn+", "bzr+")):
            raise NoPlan(
                f"{redact(wanted.text or wanted.url)} cannot be planned ahead",
                why="it is a folder or a repository, whose requirements only a build can tell",
                hint="build a wheel of it first, or leave it to pip",
            )
        algorithm, _, digest = fragment.partition("=")
        hashes = {algorithm: digest} if digest and algorithm in ("sha256", "sha384", "sha512") else {}
        hashes = hashes or {key: value for key, _, value in (h.partition(":") for h in (line.hashes if line else ()))}
        return self._direct_candidate(wanted, File(filename, link, hashes=hashes))

    # What arrives ----------------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Handle what has arrived meanwhile: it starts the next questions."""
        self._follow_hints()
        while self._crew.run_one(wait=False):
            self._follow_hints()

    def _ask_listing(self, name: str) -> None:
        if name in self._arriving or name in self._listings:
            return
        route = self._route(name) if self._route is not None else None
        arriving = self._arriving[name] = _Arriving(route)
        indexes, places = (self.indexes, self.find_links) if route is None else (route.indexes, route.find_links)
        arriving.places = [bare_url(place) for place in (*indexes, *places)]
        arriving.parts = [()] * (len(indexes) + len(places))
        arriving.missing = len(arriving.parts)
        for place, index in enumerate(indexes):
            self._crew.page(index, name, self._part_handler(name, place))
        for place, link in enumerate(places, len(indexes)):
            self._crew.put(self._links_job(link, name), self._part_handler(name, place))
        if not arriving.missing:
            self._complete(name)

    def _listing_came(self, name: str, listing: Listing | Exception) -> None:
        """For those who hand on what comes."""

    def _metadata_came(self, key: str, metadata: Metadata | Exception) -> None:
        """For those who hand on what comes."""

    def _links_job(self, link: str, name: str) -> Callable[[], object]:
        return lambda: [file for file in self.client.find_links(link) if belongs(file.filename, name)]

    def _part_handler(self, name: str, place: int) -> Callable[[Sequence[Row], Exception | None], None]:
        def handle(rows: Sequence[Row], problem: Exception | None) -> None:
            arriving = self._arriving[name]
            arriving.missing -= 1
            if problem is not None:
                arriving.problem = arriving.problem or problem
            else:
                arriving.parts[place] = rows
            if not arriving.missing:
                self._complete(name)

        return handle

    def _complete(self, name: str) -> None:
        arriving = self._arriving.pop(name)
        try:
            self._listings[name] = arriving.problem or self._listing(name, arriving)
        except NetworkError as problem:
            self._listings[name] = problem
        self._hints.extend(self._waiting.pop(name, ()))
        self._listing_came(name, self._listings[name])

    def _listing(self, name: str, arriving: _Arriving) -> Listing:
        route = arriving.route
        pages = [rows for rows in arriving.parts if rows]
        origins: dict[str, tuple[str, str, Metadata | None]] = {}
        if route is not None:
            if route.files:
                pages.append(route.files)
            if route.synthetic:
                pages.append([File(one.filename, f"synthetic:{one.filename}") for one in route.synthetic])
            for one in route.synthetic:
                recipe = name if route.kind == "recipe" else ""
                origins[one.filename] = (route.kind, recipe, parse_metadata(one.metadata))
            if route.keep is not None:
                keep = route.keep
                pages = [[row for row in rows if keep(as_file(row))] for rows in pages]
        listing = make_listing(
            name,
            pages[0] if len(pages) == 1 else [row for rows in pages for row in rows],
            self.rules,
            places=arriving.places,
            because=route.because if route is not None else "",
            origins=origins,
            unique=len(pages) == 1,
        )
        if pages and not len(listing):
            dropped = listing.dropped
            others = dropped.get("name", ())
            if others and len(dropped) == 1:
                raise NetworkError(
                    f"the page of {name} lists only files of other projects",
                    why=f"{len(others)} such files, {others[0]} for one, from {', '.join(listing.places)}",
                    hint="check the index URL: its server answers with another project's page",
                )
        return listing

    # Metadata --------------------------------------------------------------------------------------------------------

    def _need_metadata(self, candidate: Candidate, key: str) -> None:
        """Ask for what the resolver needs, and look further for what a guess did not find. ``key``: that of the candidate."""
        self._needed.add(key)
        if key in self._not_there:
            self._not_there.remove(key)
            self._asked.discard(key)
        self._ask_metadata(candidate)

    def _ask_metadata(self, candidate: Candidate) -> None:
        key = key_of(candidate)
        if key in self._asked:
            return
        self._asked.add(key)
        try:
            file = candidate.file
        except NetworkError as problem:
            self._metadata[key] = problem
            self._metadata_came(key, problem)
            return
        assert file is not None
        published = not candidate.from_source or file.core_metadata is not None
        source_metadata = self._source_metadata
        if not published and source_metadata is None:
            self._metadata[key] = Unusable("it is a source archive, and its requirements are not published")
            return

        def handle(data: bytes, problem: Exception | None) -> None:
            if isinstance(problem, NotThere):
                self._not_there.add(key)
                return
            found = self._metadata[key] = problem or _believed(parse_metadata(data), candidate, file)
            self._hints.extend(self._waiting.pop(key, ()))
            self._metadata_came(key, found)

        if published or source_metadata is None:
            self._crew.metadata(file, handle, lambda: key not in self._needed)
        else:
            ask = source_metadata
            # What a build back end says of a file holds as long as what its requirements were found on.
            self._elsewhere = self._elsewhere or not file.hashes
            self._crew.put(lambda: ask(file), handle)

    def _direct_candidate(self, wanted: Need, file: File) -> Candidate:
        wheel = file.filename.endswith(".whl")
        if wheel:
            data = self.client.metadata(file)
        elif self._source_metadata is not None:
            data = self._source_metadata(file)
        else:
            raise NoPlan(f"{redact(wanted.text)} cannot be planned ahead", why="it is a source archive")
        name, version = name_and_version(data)
        if wanted.name and name != wanted.name:
            raise NoPlan(
                f"{redact(wanted.text)} is not {wanted.name}", why=f"the file is {name} {version}", hint="check the URL"
            )
        if wheel and self.rules.rank(file.filename.split("-", 2)[-1]) is None:
            raise NoPlan(f"{file.filename} does not fit Python {self.rules.python} on this platform")
        return Candidate(
            name,
            release(version),
            file,
            rows=(file,),
            from_source=not wheel,
            origin="url",
            metadata=parse_metadata(data),
            url=wanted.url,
        )

    # Fetching ahead --------------------------------------------------------------------------------------------------

    def _follow_hints(self) -> None:
        hints = self._hints
        while hints:
            self._follow(hints.popleft())

    def _follow(self, hint: _Hint) -> None:
        """From a listing to its best candidate's metadata, from that to the listings of what it needs."""
        name, text, extras = hint
        listing = self._listings.get(name)
        if listing is None:
            self._waiting.setdefault(name, []).append(hint)
            return
        if isinstance(listing, Exception):
            return
        specs = self._bounds.get(name, [])
        candidate = self._likely(listing, [*specs, spec(text)] if text else specs)
        if candidate is None:
            return
        metadata: Metadata | Exception | None = candidate.metadata
        if metadata is None:
            key = key_of(candidate)
            metadata = self._metadata.get(key)
            if metadata is None:
                if not candidate.from_source:
                    self._ask_metadata(candidate)
                    self._waiting.setdefault(key, []).append(hint)
                return
        if isinstance(metadata, Exception):
            return
        for line in metadata.requires_dist:
            try:
                wanted = need(line)
                if not wanted.url and (not wanted.marker or self.markers.holds(wanted.marker, extras)):
                    self.prefetch(wanted.name, wanted.spec.text, wanted.extras)
            except ValueError:
                continue

    def _likely(self, listing: Listing, specs: Sequence[Spec]) -> Candidate | None:
        fallback = None
        for candidate in listing:
            if all(one.contains(candidate.version) for one in specs):
                if candidate.yanked is None and (self._pre or not candidate.version.pre):
                    return candidate
                fallback = fallback or candidate
        return fallback


def _believed(metadata: Metadata, candidate: Candidate, file: File) -> Metadata | NetworkError:
    """The metadata, or why it is not that of this wheel. A source archive may be another version once it is built."""
    name, version = metadata.name, metadata.version
    if candidate.from_source or (name == candidate.name and version == candidate.version.text):
        return metadata
    with suppress(ValueError):
        if name == candidate.name and release(version).key == candidate.version.key:
            return metadata
    return NetworkError(
        f"{file.filename} from {redact(file.url)} is not what it is called",
        why=f"its metadata is that of {name} {version}" if name and version else "its metadata names no project and version",
        hint="an index or a mirror mixes files up: do not install from it",
    )


class _Arriving:
    """A listing whose pages are under way."""

    __slots__ = ("missing", "parts", "places", "problem", "route")

    def __init__(self, route: Route | None) -> None:
        self.route = route
        self.places: list[str] = []
        self.parts: list[Sequence[Row]] = []
        self.missing = 0
        self.problem: Exception | None = None


def key_of(candidate: Candidate) -> str:
    row = candidate.row
    assert row is not None
    return f"{candidate.name}/{row.filename}"
