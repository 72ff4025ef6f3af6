"""Core metadata of files, by the cheapest road that its server offers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from rocmpip.index.address import Address
from rocmpip.index.blobs import BlobCache, key
from rocmpip.index.download import local_path
from rocmpip.index.fetch import Fetcher
from rocmpip.index.wheelmeta import BadWheel, NoRanges, looks_like_metadata, metadata_of, remote_metadata
from rocmpip.model.errors import InputError, NetworkError
from rocmpip.model.filenames import is_wheel
from rocmpip.model.packages import File
from rocmpip.model.redact import redact

_MISSES = 3
"""A host that so often had no ``.metadata`` is not asked for any more."""


class NoMetadata(NetworkError):
    """The file's metadata cannot be known without building it (an sdist), or the file is broken."""


class Metadata:
    """Safe for threads; remembers only which hosts answer no ``.metadata``."""

    def __init__(
        self, fetcher: Fetcher, cache: BlobCache | None, download: Callable[[File, Path], Path], *, guess: bool = True
    ) -> None:
        """``download`` puts a file into a folder. ``guess``: a ``.metadata`` that no page advertises is tried, and believed."""
        self._fetcher = fetcher
        self._limits = fetcher.limits
        self._cache = cache
        self._download = download
        self._guess = guess
        self._probes = _Probes()

    def of(self, file: File) -> bytes:
        if file.url.startswith("file:"):
            return self._local_metadata(file)
        kept = self.kept(file)
        return kept if kept is not None else self._keep(file, self._fetched_metadata(file))

    def kept(self, file: File) -> bytes | None:
        """What an earlier run found."""
        kept = self._cache.get("metadata", self._place(file)) if self._cache is not None else None
        return kept if kept is not None and looks_like_metadata(kept) else None

    def kept_source(self, file: File, facts: str) -> bytes | None:
        """What ``keep_source`` has kept for the same file under the same ``facts``."""
        kept = self._cache.get("metadata", _source_place(file, facts)) if self._cache is not None and file.hashes else None
        return kept if kept is not None and looks_like_metadata(kept) else None

    def keep_source(self, file: File, facts: str, data: bytes) -> None:
        """Keep what a source archive told, for ``facts``; nothing of a file that has no hash, since it may be another one next time."""
        if self._cache is not None and file.hashes:
            self._cache.put("metadata", _source_place(file, facts), data)

    def question(self, file: File) -> tuple[Address, dict[str, str]] | None:
        """How to ask for advertised metadata; None where there is none, or where that takes more than one plain question."""
        if file.core_metadata is None or not file.url.startswith(("http:", "https:")):
            return None
        return self._fetcher.question(file.url + ".metadata", {"Accept-Encoding": "gzip"})

    def answer(self, file: File, data: bytes) -> bytes:
        """What came for ``question``, checked and kept. Raises NetworkError."""
        return self._keep(file, self._checked(file, data))

    def _keep(self, file: File, data: bytes) -> bytes:
        if self._cache is not None:
            self._cache.put("metadata", self._place(file), data)
        return data

    def _place(self, file: File) -> str:
        guessed = ["guessed"] if self._guess and file.core_metadata is None else []
        return key("metadata", file.url, file.core_metadata or "", *sorted(file.hashes.values()), str(file.size), *guessed)

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
        if self._guess and self._probes.begin(host):
            found = False
            try:
                answer = self._fetcher.read(
                    file.url + ".metadata", subject=f"the metadata of {file.filename}", most=self._limits.metadata_bytes
                )
                found = answer.status == 200 and looks_like_metadata(answer.body)
            finally:
                self._probes.end(host, found=found)
            if found:
                return answer.body
        try:
            return remote_metadata(
                file.filename,
                lambda count: self._tail(file, count),
                lambda start, end: self._range(file, f"{start}-{end - 1}")[1],
                self._limits.metadata_bytes,
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
            most=self._limits.metadata_bytes,
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
        return self._checked(file, data)

    def _checked(self, file: File, data: bytes) -> bytes:
        """``data`` where it is what the index lists. Raises NetworkError."""
        algorithm, _, digest = (file.core_metadata or "").partition("=")
        if digest and hashlib.new(algorithm, data, usedforsecurity=False).hexdigest() != digest:
            raise NetworkError(
                f"the metadata of {file.filename} from {redact(file.url)}.metadata is not what the index lists",
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
            file.url, subject=f"the metadata of {file.filename}", seconds=self._limits.page_seconds, headers=headers
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
            return int(size), response.read(self._limits.metadata_bytes * 2)

    def _whole_metadata(self, file: File) -> bytes:
        from rocmpip.model.temporary import TemporaryFolder  # rarely needed, and tempfile takes 3 ms

        with TemporaryFolder(prefix="rocmpip-") as folder:
            return self._open_metadata(file, self._download(file, Path(folder)))

    def _local_metadata(self, file: File) -> bytes:
        path = local_path(file.url)
        beside = path.with_name(path.name + ".metadata")
        if file.core_metadata is not None and beside.is_file():
            return beside.read_bytes()
        if not is_wheel(file.filename):
            raise NoMetadata(f"the metadata of {path} is not known", why="it is a source archive: only a build can tell")
        try:
            return self._open_metadata(file, path)
        except NetworkError as problem:  # no network has a part in it
            raise InputError(
                problem.message.replace(redact(file.url), str(path)),
                why=problem.why,
                hint="build or fetch the file again, or name another one",
            ) from None

    def _open_metadata(self, file: File, path: Path) -> bytes:
        try:
            with path.open("rb") as stream:
                return metadata_of(stream, file.filename, self._limits.metadata_bytes)
        except BadWheel as problem:
            raise _bad_wheel(file, problem) from None
        except OSError as problem:
            raise NetworkError(f"{path} cannot be read", why=problem.strerror or str(problem)) from None


class _Probes:
    """Which hosts have metadata that their index does not tell of. One question finds out, while others go on without."""

    def __init__(self) -> None:
        self._misses: dict[str, int] = {}
        self._good: set[str] = set()
        self._under_way: set[str] = set()

    def begin(self, host: str) -> bool:
        """Whether to ask ``host``; then ``end`` must follow."""
        if self._misses.get(host, 0) >= _MISSES or (host in self._under_way and host not in self._good):
            return False
        self._under_way.add(host)
        return True

    def end(self, host: str, *, found: bool) -> None:
        self._under_way.discard(host)
        if found:
            self._good.add(host)
        else:
            self._misses[host] = self._misses.get(host, 0) + 1


def _source_place(file: File, facts: str) -> str:
    return key("source", file.url, *sorted(file.hashes.values()), facts)


def _bad_wheel(file: File, problem: BadWheel) -> NoMetadata:
    return NoMetadata(f"{file.filename} from {redact(file.url)} cannot be used", why=str(problem))
