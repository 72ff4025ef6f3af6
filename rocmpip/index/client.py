"""The client of package indexes: one object for a run, asked by the router, the planner and the lock."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rocmpip.index.address import Address, parse_address, split_userinfo
from rocmpip.index.blobs import BlobCache
from rocmpip.index.credentials import Ask, Credentials
from rocmpip.index.default import DEFAULT_INDEX
from rocmpip.index.download import Progress, download, local_path
from rocmpip.index.fetch import Answer, Fetcher
from rocmpip.index.limits import Limits
from rocmpip.index.listing import charset
from rocmpip.index.metadata import Metadata, NoMetadata
from rocmpip.index.pages import Pages
from rocmpip.index.pool import Pool
from rocmpip.index.proxies import Proxies
from rocmpip.index.response import Response
from rocmpip.index.tls import Tls
from rocmpip.model.errors import NetworkError
from rocmpip.model.once import Once
from rocmpip.model.packages import Absent, File, Page, normalise
from rocmpip.model.redact import redact
from rocmpip.model.request import IndexOptions

if TYPE_CHECKING:
    from rocmpip.index.burst import Burst
    from rocmpip.model.temporary import TemporaryFolder

_SIZE_SECONDS = 4.0
"""A size is a comfort: nobody waits longer for it."""


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
        ask: Ask | None = None,
        guess: bool = True,
    ) -> None:
        """``sources``: further URLs that may hold credentials (mirrors of ours); ``env`` None means this process's.

        ``ask``: puts the question for user and password to a person (host and port → an answer, or None).
        ``guess``: a ``.metadata`` file that no page advertises is tried before the wheel itself, and believed: pip would not.
        """
        environment = os.environ if env is None else env
        self.limits = limits or Limits()
        self.credentials = Credentials(options, environment, sources, ask)
        self._options = options
        tls = Tls(options.cert, options.client_cert, options.trusted_hosts, environment)
        proxies = Proxies(options.proxy, {} if options.no_proxy_env else environment)
        self._pool = Pool(tls, proxies, options.timeout)
        self._tls = tls
        self._proxies = proxies
        self.fetcher = Fetcher(
            self._pool,
            self.credentials,
            self.limits,
            retries=options.retries,
            trusted_hosts=options.trusted_hosts,
            offline=offline,
        )
        self._pages = Pages(self.fetcher, cache, marks_trust=bool(options.trusted_hosts), refresh=options.refresh)
        self._metadata = Metadata(self.fetcher, cache, lambda file, folder: self.download(file, folder), guess=guess)
        self._known: Once[tuple[str, str], Page | Absent] = Once()
        self._answers: dict[tuple[str, str], Answer] = {}
        self._known_places: Once[str, tuple[File, ...]] = Once()
        self._known_metadata: Once[str, bytes] = Once()
        self._whole: Once[str, Path] = Once()
        self._shelf: Once[None, TemporaryFolder] = Once()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection that is kept, and remove the files that were."""
        self._pool.close()
        for shelf in self._shelf.known().values():
            shelf.cleanup()

    # Pages

    def indexes(self) -> tuple[str, ...]:
        """The user's indexes in pip's order, without credentials; () with --no-index."""
        if self._options.no_index:
            return ()
        urls = (self._options.index_url or DEFAULT_INDEX, *self._options.extra_index_urls)
        return tuple(dict.fromkeys(split_userinfo(url)[0].rstrip("/") for url in urls))

    def page(self, index_url: str, name: str) -> Page | Absent:
        """What the index has for the project ``name``; asked once. Raises NetworkError."""
        index = self._index(index_url)
        name = normalise(name)
        try:
            return self._known.get((index, name), lambda: self._pages.page(index, name, self._answers.pop((index, name), None)))
        except NetworkError as problem:
            problem.about_page = True
            raise

    def page_headers(self, name: str) -> dict[str, str]:
        """Headers that belong to the question for the page of ``name`` on a road of one's own."""
        return self._pages.headers(name)

    @property
    def until(self) -> float:
        """The moment (seconds since 1970) at which the first of the pages given so far goes stale; 0: at any time, inf: never."""
        return self._pages.until

    def answered(self, index: str, name: str, answer: Answer) -> None:
        """Keep what the index said of ``name`` to one who asked on a road of his own, so that it is not asked again."""
        self._answers[index, name] = answer

    def _index(self, url: str) -> str:
        """Without credentials and last slash; a folder's path becomes its URL, as in pip."""
        if url.startswith("file:"):
            return url.rstrip("/")
        if "://" not in url and Path(url).is_dir():
            return Path(url).absolute().as_uri()
        bare = self.credentials.learn(url).rstrip("/")
        try:
            parse_address(bare)
        except ValueError as problem:
            raise NetworkError(
                f"{redact(url)!r} is no index", why=str(problem), hint="an index URL looks like https://host/simple"
            ) from None
        return bare

    # Find-links

    def find_links(self, place: str) -> tuple[File, ...]:
        """Every archive at a find-links place: a folder, a local HTML file, or a page of any shape on a server."""
        place = self.credentials.learn(place) if "://" in place else place
        return self._known_places.get(place, lambda: self._pages.find_links(place))

    # Metadata

    def metadata(self, file: File) -> bytes:
        """The core metadata of a file: advertised, by ``.metadata``, by range reads, at last from the whole wheel.

        Asked once, kept on disk. Raises NoMetadata for an sdist that does not advertise its metadata.
        """
        return self._known_metadata.get(file.url, lambda: self._metadata.of(file))

    def kept_metadata(self, file: File) -> bytes | None:
        """The file's metadata if it is known without asking."""
        return self._metadata.kept(file)

    def kept_source(self, file: File, facts: str) -> bytes | None:
        """What an earlier run was told by the source archive ``file``; ``facts``: what that may depend on besides the file."""
        return self._metadata.kept_source(file, facts)

    def keep_source(self, file: File, facts: str, data: bytes) -> None:
        """Keep what a source archive told for later runs."""
        self._metadata.keep_source(file, facts, data)

    def metadata_question(self, file: File) -> tuple[Address, dict[str, str]] | None:
        """How to ask for advertised metadata, for one who asks on a road of his own; None where ``metadata`` must do it."""
        return self._metadata.question(file)

    def metadata_answer(self, file: File, body: bytes) -> bytes:
        """The body that answered ``metadata_question``, checked and kept. Raises NetworkError when it is not what the index lists."""
        return self._metadata.answer(file, body)

    def burst(self, size: int) -> Burst:
        """A road for hundreds of small plain questions at once, ``size`` connections to one origin. For one thread, who closes it."""
        from rocmpip.index.burst import Burst

        return Burst(self._tls, self._proxies, self._options.timeout, size)

    # Files

    def download(self, file: File, destination: Path, *, progress: Progress | None = None) -> Path:
        """Put the file at ``destination`` (a path or a folder), checked against its hashes, in one step. See ``download``."""
        return download(self.fetcher, file, destination, retries=self._options.retries, progress=progress)

    def whole(self, file: File) -> Path:
        """The file itself, fetched once and kept until ``close``. Raises NetworkError."""
        return self._whole.get(file.url, lambda: self._shelved(file))

    def _shelved(self, file: File) -> Path:
        import tempfile  # 3 ms with all that it loads, and few requests need a whole file

        from rocmpip.model.temporary import TemporaryFolder

        shelf = self._shelf.get(None, lambda: TemporaryFolder(prefix="rocmpip-files-"))
        # Files of one name may come from several places.
        return self.download(file, Path(tempfile.mkdtemp(dir=shelf.name)))

    def open(
        self, file: File, *, headers: Mapping[str, str] | None = None, method: str = "GET"
    ) -> AbstractContextManager[Response]:
        """The file's answer as it comes, for handing on. ``headers``: Range and If-Range of the one who asked."""
        wanted = {"Accept-Encoding": "identity", **(headers or {})}
        return self.fetcher.opened(file.url, subject=file.filename, seconds=30 * 86400, headers=wanted, method=method)

    def size(self, file: File) -> int | None:
        """The file's size as its page or its server tells it, in bytes; None when neither does within a few seconds."""
        if file.size is not None or not file.url.startswith(("http:", "https:")):
            return file.size
        try:
            opened = self.fetcher.opened(file.url, subject=file.filename, seconds=_SIZE_SECONDS, method="HEAD", retries=0)
            with opened as response:
                told = response.headers.get("content-length", "")
                return int(told) if response.status == 200 and told.isdigit() and int(told) else None
        except NetworkError:
            return None

    def needs_credentials(self, file: File) -> bool:
        """True when credentials that only this client holds (index URL, keyring) go with the file's URL."""
        return self.credentials.written(file.url) is not None

    @property
    def notes(self) -> tuple[str, ...]:
        """What was passed over, for people."""
        return tuple(self._pages.notes)

    def trusted(self, url: str) -> bool:
        """True when --trusted-host names the URL's host."""
        return self.fetcher.trusted(url)

    def secure(self, url: str) -> bool:
        """False for plain http from a host that is neither this machine nor named by --trusted-host: pip ignores those."""
        return self.fetcher.secure(url)

    def requirement_text(self, url: str) -> str:
        """The text of a requirement file at ``url``."""
        if url.startswith("file:"):
            try:
                return _decode(local_path(url).read_bytes(), "")
            except OSError as problem:
                raise NetworkError(f"{url} cannot be read", why=problem.strerror or str(problem)) from None
        answer = self.fetcher.read(url, subject="the requirement file", most=self.limits.text_bytes)
        if answer.status != 200:
            raise NetworkError(
                f"the requirement file could not be had from {redact(url)}", why=f"the server answers HTTP {answer.status}"
            )
        return _decode(answer.body, answer.headers.get("content-type", ""))


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


__all__ = ["BlobCache", "Client", "Limits", "NoMetadata"]
