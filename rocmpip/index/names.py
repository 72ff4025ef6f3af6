"""The addresses of hosts, each looked up once at a time: dozens of threads that connect at once would ask for the same name.

Resolvers drop what comes in such bursts, and the system's own patience is 5 s for each question that got lost.
"""

from __future__ import annotations

import os
import socket
import time

from rocmpip.model.once import Once

_SECONDS = 60
"""How long an answer is used: long enough for a burst, short enough for a host that moves."""


class Names:
    """Safe for threads."""

    def __init__(self) -> None:
        self._known: Once[tuple[int, int, str, int], list[str]] = Once()

    def addresses(self, host: str, port: int) -> list[str]:
        """Numeric addresses (IPv6 with its zone) in the order in which they should be tried. Raises OSError (gaierror), UnicodeError."""
        key = os.getpid(), int(time.monotonic() // _SECONDS), host, port
        try:
            return self._known.get(key, lambda: _addresses(host, port))
        except BaseException:
            self._known.forget(key)
            raise


def _addresses(host: str, port: int) -> list[str]:
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    numeric = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV
    return list(dict.fromkeys(socket.getnameinfo(row[4], numeric)[0] for row in rows))
