"""The client of package indexes: one object for a run, asked by the router, the planner and the lock."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Protocol

from rocmpip.index.address import split_userinfo
from rocmpip.index.credentials import Credentials
from rocmpip.index.default import DEFAULT_INDEX
from rocmpip.index.download import Progress, download, local_path
from rocmpip.index.fetch import Answer, Fetcher
from rocmpip.index.limits import Limits
from rocmpip.index.listing import ACCEPT, NotAnIndex, Row, Stored, charset, pack, parse_links, parse_page, to_file, unpack
from rocmpip.index.pool import Pool
from rocmpip.index.proxies import Proxies
from rocmpip.index.tls import Tls
from rocmpip.index.wheelmeta import BadWheel, NoRanges, looks_like_metadata, metadata_of, remote_metadata
from rocmpip.index.wire import Response
from rocmpip.model.errors import NetworkError
from rocmpip.model.filenames import is_wheel
from rocmpip.model.once import Once
from rocmpip.model.packages import Absent, File, Page, normalise
from rocmpip.model.redact import redact
from rocmpip.model.request import IndexOptions

_ABSENT = {404: "HTTP 404", 403: "HTTP 403", 410: "HTTP 410"}


class BlobCache(Protocol):
    """A cache on disk of small blobs; ``rocmpip.store.cache.PageCache`` is one. It must never raise."""

    def get(self, kind: str, key: str) -> bytes | None: ...

    def put(self, kind: str, key: str, data: bytes) -> None: ...


class NoMetadata(NetworkError):
    """The file's metadata cannot be known without building it (an sdist), or the file is broken."""


class Client:
    """Safe for threads. What was asked once is kept for the client's life.

    Every error is a NetworkError (exit code 42) that names the URL and what it was for, and comes within ``limits``.
    """

    def __init__(
        self,
        options: IndexOptions,
        *,
        cache: BlobCache | None = None,
        env: Mapping[str, str] | None = None,
        offline: bool = False,
        limits: Limits | None = None,
        sources: tuple[str, ...] = (),
    ) -> None:
        """``sources``: further URLs that may hold credentials (mirrors of ours); ``env`` None means this process's."""
        environment = os.environ if env is None else env
        self.limits = limits or Limits()
        self.notes: list[str] = []
        """What was passed over, for people."""
        self.credentials = Credentials(options, environment, sources)
        self._options = options
        self._cache = cache
        tls = Tls(options.cert, options.client_cert, options.trusted_hosts, environment)
        self._pool = Pool(tls, Proxies(options.proxy, environment), options.timeout)
        self._fetcher = Fetcher(
            self._pool,
            self.credentials,
            self.limits,
            retries=options.retries,
            trusted_hosts=options.trusted_hosts,
            offline=offline,
        )
        self._pages: Once[tuple[str, str], Page | Absent] = Once()
        self._places: Once[str, tuple[File, ...]] = Once()
        self._metadata: Once[str, bytes] = Once()
        self._no_probe: dict[str, int] = {}

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection that is kept."""
        self._pool.close()

    # Pages

    def indexes(self) -> tuple[str, ...]:
        """The user's indexes in pip's order, without credentials; () with --no-index."""
        if self._options.no_index:
            return ()
        urls = (self._options.index_url or DEFAULT_INDEX, *self._options.extra_index_urls)
        return tuple(dict.fromkeys(split_userinfo(url)[0].rstrip("/") for url in urls))

    def page(self, index_url: str, name: str) -> Page | Absent:
        """What the index has for the project ``name``; asked once. Raises NetworkError."""
        index = self.credentials.learn(index_url).rstrip("/")
        name = normalise(name)
        return self._pages.get((index, name), lambda: self._page(index, name))

    def _page(self, index: str, name: str) -> Page | Absent:
        url = f"{index}/{name}/"
        if index.startswith("file:"):
            return self._local_page(index, name, url)
        if not self._fetcher.secure(index):
            return Absent(name, index, "plain http from a host that --trusted-host does not name: ignored, as pip does")
        key = _key("page", url)
        stored = self._stored(key)
        if stored is not None and not stored.absent and time.time() < stored.fresh_until:
            return self._to_page(stored, index, name)
        if self._fetcher.offline and stored is not None:
            return self._to_page(stored, index, name)
        headers = {"Accept": ACCEPT, "Accept-Encoding": "gzip"}
        if stored is not None and not stored.absent:
            if stored.etag:
                headers["If-None-Match"] = stored.etag
            if stored.modified:
                headers["If-Modified-Since"] = stored.modified
        answer = self._fetcher.read(url, subject=f"the page of {name}", most=self.limits.page_bytes, headers=headers)
        if answer.status == 304 and stored is not None:
            stored.fresh_until = _fresh_until(answer.headers, stored.fresh_until)
            if stored.fresh_until:
                self._store(key, stored)
            return self._to_page(stored, index, name)
        if answer.status in _ABSENT:
            fresh = Stored(url, "", "", 0.0, _ABSENT[answer.status], [])
        else:
            fresh = self._parsed(answer, url, name)
        if fresh.url:
            self._store(key, fresh)
        return self._to_page(fresh, index, name)

    def _parsed(self, answer: Answer, url: str, name: str) -> Stored:
        """The page as it is cached; its ``url`` is "" when it must not be (links with credentials, no-store)."""
        if answer.status != 200:
            raise NetworkError(
                f"the page of {name} could not be had from {redact(url)}",
                why=f"the server answers HTTP {answer.status}",
                hint="check the index URL",
            )
        try:
            rows, secret = parse_page(answer.body, answer.headers.get("content-type", ""), answer.url, name, self.credentials)
        except NotAnIndex as problem:
            raise NetworkError(
                f"{redact(url)} is no index page for {name}",
                why=str(problem),
                hint="an index URL ends where project names are added, often in /simple; a login page or proxy may answer for it",
            ) from None
        keep = not secret and "no-store" not in answer.headers.get("cache-control", "")
        return Stored(
            url if keep else "",
            answer.headers.get("etag", ""),
            answer.headers.get("last-modified", ""),
            _fresh_until(answer.headers, 0.0),
            "" if rows else "an empty page",
            rows,
        )

    def _local_page(self, index: str, name: str, url: str) -> Page | Absent:
        folder = local_path(url)
        try:
            if not folder.is_dir():
                return Absent(name, index, "no such folder")
            page = folder / "index.html"
            if page.is_file():
                rows, _ = parse_page(page.read_bytes(), "text/html", page.as_uri(), name)
            else:
                from rocmpip.index.findlinks import folder_rows
                from rocmpip.model.filenames import belongs

                rows = [row for row in folder_rows(folder) if belongs(row.filename, name)]
        except NotAnIndex as problem:
            raise NetworkError(f"{folder} is no index page for {name}", why=str(problem)) from None
        except OSError as problem:
            raise NetworkError(f"{folder} cannot be read", why=problem.strerror or str(problem)) from None
        return self._to_page(Stored("", "", "", 0.0, "" if rows else "an empty page", rows), index, name)

    def _to_page(self, stored: Stored, index: str, name: str) -> Page | Absent:
        if stored.absent:
            return Absent(name, index, stored.absent)
        return Page(name, index, self._files(stored.rows, index))

    def _files(self, rows: list[Row], index: str) -> tuple[File, ...]:
        if not self._options.trusted_hosts:
            return tuple(to_file(row, index, False) for row in rows)
        return tuple(to_file(row, index, self._fetcher.trusted(row.url)) for row in rows)

    # Find-links

    def find_links(self, place: str) -> tuple[File, ...]:
        """Every archive at a find-links place: a folder, a local HTML file, or a page of any shape on a server."""
        place = self.credentials.learn(place) if "://" in place else place
        return self._places.get(place, lambda: self._find_links(place))

    def _find_links(self, place: str) -> tuple[File, ...]:
        shown = redact(place)
        if not place.startswith(("http://", "https://")):
            path = local_path(place) if place.startswith("file:") else Path(place).expanduser()
            from rocmpip.index.findlinks import local_rows

            try:
                return self._files(local_rows(path), shown)
            except OSError as problem:
                self.notes.append(f"find-links place {shown} is passed over: {problem.strerror or problem}")
                return ()
        if not self._fetcher.secure(place):
            self.notes.append(f"find-links place {shown} is plain http from a host that --trusted-host does not name")
            return ()
        headers = {"Accept": "text/html", "Accept-Encoding": "gzip"}
        answer = self._fetcher.read(place, subject="the find-links page", most=self.limits.page_bytes, headers=headers)
        if answer.status != 200:
            self.notes.append(f"find-links place {shown} is passed over: HTTP {answer.status}")
            return ()
        try:
            rows = list(parse_links(answer.body, answer.headers.get("content-type", ""), answer.url))
        except NotAnIndex as problem:
            raise NetworkError(f"{shown} is no find-links page", why=str(problem)) from None
        for row in rows:
            row.url = self.credentials.learn(row.url)
        return self._files(rows, shown)

    # Metadata

    def metadata(self, file: File) -> bytes:
        """The core metadata of a file: advertised, by ``.metadata``, by range reads, at last from the whole wheel.

        Asked once, kept on disk. Raises NoMetadata for an sdist that does not advertise its metadata.
        """
        return self._metadata.get(file.url, lambda: self._metadata_of(file))

    def _metadata_of(self, file: File) -> bytes:
        if file.url.startswith("file:"):
            return self._local_metadata(file)
        key = _key("metadata", file.url, file.core_metadata or "", *sorted(file.hashes.values()), str(file.size))
        if self._cache is not None and (kept := self._cache.get("metadata", key)) is not None and looks_like_metadata(kept):
            return kept
        data = self._fetched_metadata(file)
        if self._cache is not None:
            self._cache.put("metadata", key, data)
        return data

    def _fetched_metadata(self, file: File) -> bytes:
        if file.core_metadata is not None:
            return self._advertised(file)
        return self._unadvertised(file)

    def _unadvertised(self, file: File) -> bytes:
        if not is_wheel(file.filename):
            raise NoMetadata(
                f"the metadata of {file.filename} is not published",
                why="it is a source archive, whose metadata only a build can tell",
            )
        host = "/".join(file.url.split("/", 3)[:3])
        if self._no_probe.get(host, 0) < 3:
            answer = self._fetcher.read(
                file.url + ".metadata", subject=f"the metadata of {file.filename}", most=self.limits.metadata_bytes
            )
            if answer.status == 200 and looks_like_metadata(answer.body):
                return answer.body
            self._no_probe[host] = self._no_probe.get(host, 0) + 1
        try:
            return remote_metadata(
                file.filename,
                lambda count: self._tail(file, count),
                lambda start, end: self._range(file, f"{start}-{end - 1}")[1],
                self.limits.metadata_bytes,
            )
        except NoRanges:
            return self._whole_metadata(file)
        except BadWheel as problem:
            raise _bad_wheel(file, problem) from None

    def _advertised(self, file: File) -> bytes:
        url = file.url + ".metadata"
        answer = self._fetcher.read(
            url,
            subject=f"the metadata of {file.filename}",
            most=self.limits.metadata_bytes,
            headers={"Accept-Encoding": "gzip"},
        )
        if answer.status == 200:
            data = answer.body
        elif is_wheel(file.filename):
            data = self._unadvertised(file)  # mirrors copy pages and forget the metadata files
        else:
            raise NetworkError(
                f"the metadata of {file.filename} could not be had from {redact(url)}",
                why=f"the index advertises it and its server answers HTTP {answer.status}",
            )
        algorithm, _, digest = (file.core_metadata or "").partition("=")
        if digest and hashlib.new(algorithm, data, usedforsecurity=False).hexdigest() != digest:
            raise NetworkError(
                f"the metadata of {file.filename} from {redact(url)} is not what the index lists",
                why=f"its {algorithm} is not {digest}",
                hint="a proxy or mirror changes files: do not install from it",
            )
        return data

    def _tail(self, file: File, count: int) -> tuple[int, bytes]:
        """The file's size and last bytes. Some servers know no suffix ranges: those are asked for the size first."""
        try:
            return self._range(file, f"-{count}")
        except NoRanges:
            if file.size is None:
                raise
            start = max(0, file.size - count)
            return self._range(file, f"{start}-{file.size - 1}")

    def _range(self, file: File, text: str) -> tuple[int, bytes]:
        headers = {"Range": f"bytes={text}", "Accept-Encoding": "identity"}
        with self._fetcher.opened(
            file.url, subject=f"the metadata of {file.filename}", seconds=self.limits.page_seconds, headers=headers
        ) as response:
            if response.status != 206:
                # The body (the whole file) is left unread: that costs the connection.
                if response.status in (200, 416, 501):
                    raise NoRanges("the server does not do ranges")
                raise NetworkError(
                    f"{file.filename} could not be read from {redact(file.url)}",
                    why=f"the server answers HTTP {response.status}",
                )
            size = response.headers.get("content-range", "").rpartition("/")[2].strip()
            if not size.isdigit():
                raise NoRanges("the server does not tell the file's size")
            return int(size), response.read(self.limits.metadata_bytes * 2)

    def _whole_metadata(self, file: File) -> bytes:
        with tempfile.TemporaryDirectory(prefix="rocmpip-") as folder:
            return self._open_metadata(file, self.download(file, Path(folder)))

    def _local_metadata(self, file: File) -> bytes:
        path = local_path(file.url)
        beside = path.with_name(path.name + ".metadata")
        if file.core_metadata is not None and beside.is_file():
            return beside.read_bytes()
        if not is_wheel(file.filename):
            raise NoMetadata(f"the metadata of {path} is not known", why="it is a source archive: only a build can tell")
        return self._open_metadata(file, path)

    def _open_metadata(self, file: File, path: Path) -> bytes:
        try:
            with path.open("rb") as stream:
                return metadata_of(stream, file.filename, self.limits.metadata_bytes)
        except BadWheel as problem:
            raise _bad_wheel(file, problem) from None
        except OSError as problem:
            raise NetworkError(f"{path} cannot be read", why=problem.strerror or str(problem)) from None

    # Files

    def download(self, file: File, destination: Path, *, progress: Progress | None = None) -> Path:
        """Put the file at ``destination`` (a path or a folder), checked against its hashes, in one step. See ``download``."""
        return download(self._fetcher, file, destination, retries=self._options.retries, progress=progress)

    def open(
        self, file: File, *, headers: Mapping[str, str] | None = None, method: str = "GET"
    ) -> AbstractContextManager[Response]:
        """The file's answer as it comes, for handing on. ``headers``: Range and If-Range of the one who asked."""
        wanted = {"Accept-Encoding": "identity", **(headers or {})}
        return self._fetcher.opened(file.url, subject=file.filename, seconds=30 * 86400, headers=wanted, method=method)

    def needs_credentials(self, file: File) -> bool:
        """True when credentials that only this client holds (index URL, keyring) go with the file's URL."""
        return self.credentials.written(file.url) is not None

    def secure(self, url: str) -> bool:
        """False for plain http from a host that is neither this machine nor named by --trusted-host: pip ignores those."""
        return self._fetcher.secure(url)

    def requirement_text(self, url: str) -> str:
        """The text of a requirement file at ``url``."""
        if url.startswith("file:"):
            try:
                return _decode(local_path(url).read_bytes(), "")
            except OSError as problem:
                raise NetworkError(f"{url} cannot be read", why=problem.strerror or str(problem)) from None
        answer = self._fetcher.read(url, subject="the requirement file", most=self.limits.text_bytes)
        if answer.status != 200:
            raise NetworkError(
                f"the requirement file could not be had from {redact(url)}", why=f"the server answers HTTP {answer.status}"
            )
        return _decode(answer.body, answer.headers.get("content-type", ""))

    # The cache on disk

    def _stored(self, key: str) -> Stored | None:
        data = self._cache.get("page", key) if self._cache is not None else None
        return unpack(data) if data is not None else None

    def _store(self, key: str, stored: Stored) -> None:
        if self._cache is not None:
            self._cache.put("page", key, pack(stored))


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _fresh_until(headers: Mapping[str, str], otherwise: float) -> float:
    """The moment until which a page needs no question, from Cache-Control (no heuristics)."""
    control = headers.get("cache-control", "").lower()
    if "no-cache" in control or "no-store" in control:
        return 0.0
    for part in control.split(","):
        key, _, value = part.strip().partition("=")
        if key == "max-age" and value.strip('"').isdigit():
            age = headers.get("age", "0").strip()
            return time.time() + min(int(value.strip('"')), 86400) - (int(age) if age.isdigit() else 0)
    return otherwise


def _decode(body: bytes, content_type: str) -> str:
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if body.startswith(mark):
            return body.decode(name, "replace")
    for name in (charset(content_type), "utf-8"):
        try:
            return body.decode(name)
        except (LookupError, UnicodeDecodeError):
            continue
    return body.decode("latin-1")


def _bad_wheel(file: File, problem: BadWheel) -> NoMetadata:
    return NoMetadata(f"{file.filename} from {redact(file.url)} cannot be used", why=str(problem))


__all__ = ["Client", "Limits", "NoMetadata", "BlobCache"]
