"""How long and how much: every request ends within these."""

from __future__ import annotations

import time

from rocmpip.index.wire_errors import Stalled
from rocmpip.model.record import Struct


class Limits(Struct, frozen=True):
    """Seconds and bytes. The per-read timeout and the number of retries are pip's own options."""

    page_seconds: float = 120.0
    """For one page or metadata file in all: redirects, retries and waits included."""
    page_bytes: int = 64 * 2**20
    """Of a page after decompression. The largest page of the public index has about 30 MB."""
    metadata_bytes: int = 16 * 2**20
    text_bytes: int = 16 * 2**20
    """Of a requirement file read from a URL."""
    redirects: int = 10
    retry_after: float = 60.0
    """The longest Retry-After that is waited for."""
    backoff: float = 0.25
    """First wait between tries, doubled each time (pip's value)."""
    backoff_most: float = 8.0
    trickle_rate: int = 1024
    """Bytes a second: a download slower than this over ``trickle_window`` seconds counts as stalled."""
    trickle_window: float = 60.0


class Deadline:
    """A moment that a request must not outlive."""

    __slots__ = ("at", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.at = time.monotonic() + seconds

    def remaining(self) -> float:
        """Seconds left; raises Stalled when there are none."""
        left = self.at - time.monotonic()
        if left <= 0:
            raise Stalled(f"no complete answer within {self.seconds:g} s", final=True)
        return left
