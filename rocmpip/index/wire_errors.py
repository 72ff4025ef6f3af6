"""What can go wrong between two sockets. ``fetch`` turns these into NetworkError with the URL and the package."""

from __future__ import annotations


class WireError(Exception):
    """One exchange failed. ``final`` means that trying again cannot help."""

    def __init__(self, message: str, *, final: bool = False, hint: str = "") -> None:
        super().__init__(message)
        self.final = final
        self.hint = hint


class Stalled(WireError):
    """The server sent nothing for the per-read timeout, or the whole took too long."""


class Cut(WireError):
    """The connection ended before the answer did. ``begun`` is False when not a byte of the answer had come."""

    def __init__(self, message: str, *, begun: bool = True) -> None:
        super().__init__(message)
        self.begun = begun


class Malformed(WireError):
    """What came is not HTTP, or breaks its own framing."""


class TooLarge(WireError):
    """The answer is larger than the limit for its kind."""


class ConnectFailed(WireError):
    """No connection: name, route, port or proxy."""


class TlsFailed(WireError):
    """The certificate or the handshake is not good."""
