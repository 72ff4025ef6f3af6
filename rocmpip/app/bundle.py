"""One run's metadata as one file of the cache: writing two hundred small files costs more than resolving saves."""

from __future__ import annotations

import hashlib

from rocmpip.index.blobs import BlobCache
from rocmpip.model.record import msgspec

_LARGEST = 16 * 2**20
_decode = msgspec.msgpack.Decoder(dict[str, bytes]).decode


class Bundle:
    """A ``BlobCache`` that keeps metadata in memory until ``flush``, and hands everything else to the cache behind it."""

    def __init__(self, cache: BlobCache, *subject: str) -> None:
        """``subject``: what the runs that share a bundle have in common (indexes, Python, requirement files)."""
        self._cache = cache
        self._key = hashlib.sha256("\0".join(subject).encode()).hexdigest()
        self._known: dict[str, bytes] | None = None
        self._used: dict[str, bytes] = {}
        self._new = False

    def get(self, kind: str, key: str) -> bytes | None:
        if kind != "metadata":
            return self._cache.get(kind, key)
        if self._known is None:
            self._known = self._load()
        found = self._known.get(key)
        if found is not None:
            self._used[key] = found
        return found

    def put(self, kind: str, key: str, data: bytes) -> None:
        if kind != "metadata":
            self._cache.put(kind, key, data)
            return
        self._used[key] = data
        self._new = True

    def flush(self) -> None:
        """Write what this run used, if any of it is new."""
        if self._new and sum(map(len, self._used.values())) < _LARGEST:
            self._cache.put("bundle", self._key, msgspec.msgpack.encode(self._used))

    def _load(self) -> dict[str, bytes]:
        data = self._cache.get("bundle", self._key)
        if data is None:
            return {}
        try:
            return _decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return {}
