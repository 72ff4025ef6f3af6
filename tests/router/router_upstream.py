"""An upstream in memory for the router's tests, and a way to ask the router."""

from __future__ import annotations

import http.client
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from rocmpip.model.errors import RocmpipError
from rocmpip.model.packages import Absent, File, Page


@dataclass
class Body:
    status: int
    headers: dict[str, str]
    data: bytes
    fail_after: int = -1

    def chunks(self) -> Iterator[bytes]:
        for place in range(0, len(self.data), 1000):
            if 0 <= self.fail_after <= place:
                raise RuntimeError("cut")
            yield self.data[place : place + 1000]


@dataclass
class Memory:
    """``pages``: (index, name) → files or an error; ``guarded``: hosts that need credentials; ``bodies``: URL → bytes."""

    pages: dict[tuple[str, str], tuple[File, ...] | RocmpipError] = field(default_factory=dict)
    links: dict[str, tuple[File, ...]] = field(default_factory=dict)
    texts: dict[str, bytes | RocmpipError] = field(default_factory=dict)
    bodies: dict[str, bytes | RocmpipError] = field(default_factory=dict)
    guarded: tuple[str, ...] = ()
    insecure: tuple[str, ...] = ()
    cut_after: int = -1
    asked: list[tuple[str, str]] = field(default_factory=list)

    def page(self, index_url: str, name: str) -> Page | Absent:
        self.asked.append((index_url, name))
        found = self.pages.get((index_url, name))
        if isinstance(found, RocmpipError):
            raise found
        return Absent(name, index_url, "HTTP 404") if found is None else Page(name, index_url, found)

    def find_links(self, place: str) -> tuple[File, ...]:
        return self.links[place]

    def metadata(self, file: File) -> bytes:
        found = self.texts[file.url]
        if isinstance(found, RocmpipError):
            raise found
        return found

    @contextmanager
    def _open(self, file: File, headers: Mapping[str, str], method: str) -> Iterator[Body]:
        data = self.bodies[file.url]
        if isinstance(data, RocmpipError):
            raise data
        wanted = headers.get("Range", "")
        if wanted:
            start = int(wanted.removeprefix("bytes=").partition("-")[0])
            span = {"content-range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
            yield Body(206, {"content-length": str(len(data) - start), **span}, data[start:])
        else:
            yield Body(200, {"content-length": str(len(data)), "etag": '"e"'}, data, self.cut_after)

    def open(
        self, file: File, *, headers: Mapping[str, str] | None = None, method: str = "GET"
    ) -> AbstractContextManager[Body]:
        return self._open(file, headers or {}, method)

    def needs_credentials(self, file: File) -> bool:
        return file.url.startswith(self.guarded) if self.guarded else False

    def secure(self, url: str) -> bool:
        return not (self.insecure and url.startswith(self.insecure))


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


def ask(url: str, method: str = "GET", **headers: str) -> Answer:
    """One request with Python's own client; header names with _ for -."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    try:
        connection.request(method, parts.path, headers={key.replace("_", "-"): value for key, value in headers.items()})
        response = connection.getresponse()
        return Answer(response.status, {key.lower(): value for key, value in response.getheaders()}, response.read())
    finally:
        connection.close()
