"""What the router needs of an index client; ``rocmpip.index.client.Client`` is one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from rocmpip.model.packages import Absent, File, Page


class Body(Protocol):
    """A file's answer as it comes."""

    status: int
    headers: dict[str, str]

    def chunks(self) -> Iterator[bytes]: ...


class Upstream(Protocol):
    """All methods are safe for threads and raise RocmpipError."""

    def page(self, index_url: str, name: str) -> Page | Absent: ...

    def find_links(self, place: str) -> tuple[File, ...]: ...

    def metadata(self, file: File) -> bytes: ...

    def open(
        self, file: File, *, headers: Mapping[str, str] | None = None, method: str = "GET"
    ) -> AbstractContextManager[Body]: ...

    def needs_credentials(self, file: File) -> bool: ...

    def secure(self, url: str) -> bool: ...
