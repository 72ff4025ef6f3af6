"""What the client asks of a cache on disk."""

from __future__ import annotations

import hashlib
from typing import Protocol


class BlobCache(Protocol):
    """A cache on disk of small blobs; ``rocmpip.store.cache.PageCache`` is one. It must never raise."""

    def get(self, kind: str, key: str) -> bytes | None: ...

    def put(self, kind: str, key: str, data: bytes) -> None: ...


def key(*parts: str) -> str:
    """The key of what ``parts`` name."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
