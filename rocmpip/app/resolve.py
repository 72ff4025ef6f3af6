"""The conductor of resolving: indexes, routes and a crew of prefetching threads behind the resolver's Source.

Latency is what resolving costs, so every listing that arrives starts the question that will come next: the metadata of
its best candidate, then the listings of what that needs. The resolver finds nearly everything there when it asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rocmpip.app.crew import Crew
from rocmpip.index.client import Client
from rocmpip.index.fast import FastPages
from rocmpip.model.errors import NetworkError, NoPlan
from rocmpip.model.filenames import SDIST_ENDINGS
from rocmpip.model.once import Once
from rocmpip.model.packages import Absent, File, RequirementLine, normalise
from rocmpip.model.redact import bare_url, redact
from rocmpip.model.routing import Route
from rocmpip.plan.gather import make_listing, source_version
from rocmpip.plan.listing import Candidate, Listing, Metadata, Row, Rules, Unusable, as_file
from rocmpip.plan.markers import Markers
from rocmpip.plan.metadata import name_and_version, parse_metadata
from rocmpip.plan.requirements import Need, need
from rocmpip.plan.versions import Spec, release, spec

CONNECTIONS = 24
SourceMetadata = Callable[[File], bytes]
"""The core metadata of a source archive (downloaded, its PKG-INFO read or its build back end asked). May raise Unusable."""


class IndexSource:
    """The resolver's Source over a Client.

    ``route`` says for a name where its candidates come from; None means the plain way: all ``indexes`` and
    ``find_links`` merged, as pip merges them. ``bounds`` are the direct requirements and constraints: they only steer
    what is fetched ahead. Use as a context manager, or ``close()`` it.
    """

    def __init__(
        self,
        client: Client,
        *,
        rules: Rules,
        environment: Mapping[str, str],
        indexes: Sequence[str] | None = None,
        find_links: Sequence[str] = (),
        route: Callable[[str], Route | None] | None = None,
        bounds: Iterable[RequirementLine] = (),
        source_metadata: SourceMetadata | None = None,
        connections: int = CONNECTIONS,
        pre: bool = False,
    ) -> None:
        self.client = client
        self.rules = rules
        self.indexes = tuple(client.indexes() if indexes is None else indexes)
        self.find_links = tuple(find_links)
        self._pages = FastPages(client)
        self._markers = Markers(environment)
        self._route = route
        self._source_metadata = source_metadata
        self._crew = Crew(connections)
        self._pre = pre
        self._listings: Once[str, Listing] = Once()
        self._metadata: Once[str, Metadata] = Once()
        self._bounds: dict[str, list[Spec]] = {}
        self._hinted: set[tuple[str, str, frozenset[str]]] = set()
        for line in bounds:
            if line.name and line.specifier:
                self._bounds.setdefault(line.name, []).append(spec(line.specifier))

    def __enter__(self) -> IndexSource:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop fetching ahead. The client stays open: it is its maker's."""
        self._crew.close()

    # The resolver's questions ----------------------------------------------------------------------------------------

    def candidates(self, name: str) -> Listing:
        return self._listings.get(name, lambda: self._list(name))

    def metadata(self, candidate: Candidate) -> Metadata:
        if candidate.metadata is not None:
            return candidate.metadata
        row = candidate.row
        assert row is not None
        key = f"{candidate.name}/{row.filename}"
        return self._metadata.get(key, lambda: self._read(candidate))

    def prefetch(self, name: str, text: str = "", extras: frozenset[str] = frozenset()) -> None:
        key = (name, text, extras)
        if key not in self._hinted:
            self._hinted.add(key)
            self._crew.put(lambda: self._ahead(name, text, extras))

    def direct(self, wanted: Need) -> Candidate:
        line = wanted.line
        url = wanted.url if "://" in wanted.url else Path(wanted.url).absolute().as_uri()
        link, _, fragment = self.client.credentials.learn(url).partition("#")
        filename = unquote(urlsplit(link).path.rpartition("/")[2])
        if not filename.endswith((".whl", *SDIST_ENDINGS)) or link.startswith(("git+", "hg+", "svn+", "bzr+")):
            raise NoPlan(
                f"{redact(wanted.text or wanted.url)} cannot be planned ahead",
                why="it is a folder or a repository, whose requirements only a build can tell",
                hint="build a wheel of it first, or leave it to pip",
            )
        algorithm, _, digest = fragment.partition("=")
        hashes = {algorithm: digest} if digest and algorithm in ("sha256", "sha384", "sha512") else {}
        hashes = hashes or {key: value for key, _, value in (h.partition(":") for h in (line.hashes if line else ()))}
        file = File(filename, link, hashes=hashes, index="")
        return self._direct_candidate(wanted, file)

    # Listings --------------------------------------------------------------------------------------------------------

    def _list(self, name: str) -> Listing:
        route = self._route(name) if self._route is not None else None
        if route is None:
            return self._make(name, self.indexes, self.find_links, None)
        return self._make(name, route.indexes, route.find_links, route)

    def _make(self, name: str, indexes: Sequence[str], places: Sequence[str], route: Route | None) -> Listing:
        pages: list[Sequence[Row]] = []
        for index in indexes:
            page = self._pages.page(index, name)
            if not isinstance(page, Absent):
                pages.append(page.rows)
        for place in places:
            rows = [file for file in self.client.find_links(place) if _belongs(file.filename, name)]
            if rows:
                pages.append(rows)
        origins: dict[str, tuple[str, str, Metadata | None]] = {}
        if route is not None:
            if route.files:
                pages.append(route.files)
            made = [File(one.filename, f"synthetic:{one.filename}") for one in route.synthetic]
            if made:
                pages.append(made)
            for one in route.synthetic:
                origins[one.filename] = (route.kind, name if route.kind == "recipe" else "", parse_metadata(one.metadata))
            if route.keep is not None:
                keep = route.keep
                pages = [[row for row in rows if keep(as_file(row))] for rows in pages]
        listing = make_listing(
            name,
            pages[0] if len(pages) == 1 else [row for rows in pages for row in rows],
            self.rules,
            places=[bare_url(place) for place in (*indexes, *places)],
            because=route.because if route is not None else "",
            origins=origins,
            unique=len(pages) == 1,
        )
        dropped = {} if len(listing) else listing.dropped
        others = dropped.get("name", ())
        if others and len(dropped) == 1:
            raise NetworkError(
                f"the page of {name} lists only files of other projects",
                why=f"{others[0]} and {len(others) - 1} more, from {', '.join(listing.places)}",
                hint="check the index URL: its server answers with another project's page",
            )
        return listing

    # Metadata --------------------------------------------------------------------------------------------------------

    def _read(self, candidate: Candidate) -> Metadata:
        file = candidate.file
        assert file is not None
        if not candidate.from_source or file.core_metadata is not None:
            return parse_metadata(self.client.metadata(file))
        if self._source_metadata is None:
            raise Unusable("it is a source archive, and its requirements are not published")
        return parse_metadata(self._source_metadata(file))

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
        metadata = parse_metadata(data)
        return Candidate(
            name, release(version), file, rows=(file,), from_source=not wheel, origin="url", metadata=metadata, url=wanted.url
        )

    # Fetching ahead --------------------------------------------------------------------------------------------------

    def _ahead(self, name: str, text: str, extras: frozenset[str]) -> None:
        """The listing of ``name``, its best candidate's metadata, and the same for what that needs."""
        listing = self.candidates(name)
        specs = [*self._bounds.get(name, ())]
        if text:
            specs.append(spec(text))
        candidate = self._likely(listing, specs)
        if candidate is None or (candidate.from_source and candidate.metadata is None):
            return
        metadata = self.metadata(candidate)
        for line in metadata.requires_dist:
            wanted = need(line)
            if wanted.url or (wanted.marker and not self._markers.holds(wanted.marker, extras)):
                continue
            self.prefetch(wanted.name, wanted.spec.text, wanted.extras)

    def _likely(self, listing: Listing, specs: Sequence[Spec]) -> Candidate | None:
        fallback = None
        for candidate in listing:
            if all(one.contains(candidate.version) for one in specs):
                if candidate.yanked is None and (self._pre or not candidate.version.pre):
                    return candidate
                fallback = fallback or candidate
        return fallback


def _belongs(filename: str, name: str) -> bool:
    if filename.endswith(".whl"):
        return normalise(filename.split("-", 1)[0]) == name
    return bool(source_version(filename, name))
