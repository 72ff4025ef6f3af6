"""httpcore under our time limits and in our words. Imported at the first request: a run that needs none pays for no HTTP library.

httpcore (the layer below httpx) opens and keeps connections, speaks TLS, HTTP/1.1, CONNECT and SOCKS. Here stands what it
leaves to its user: a limit for a whole exchange beside the one for each read, the sentence that a person reads when something
fails, and a look for bytes that no request asked for. It uses httpcore's public seams alone: a network backend, and the
``timeout`` extension of a request, which httpcore hands to the backend as it is.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import httpcore

from rocmpip import __version__
from rocmpip.index.address import PORTS, Address
from rocmpip.index.limits import Deadline
from rocmpip.index.names import Names
from rocmpip.index.proxies import Proxy
from rocmpip.index.response import Response
from rocmpip.index.tls import Tls
from rocmpip.index.wire_errors import ConnectFailed, Cut, Malformed, Stalled, TlsFailed, WireError
from rocmpip.model.redact import EXAMPLE

_AGENT = f"rocmpip/{__version__}".encode()


class Clock:
    """The time limits of one exchange, and how far it came. It travels as httpcore's timeout of every kind."""

    __slots__ = ("begun", "deadline", "ended", "read")

    def __init__(self, deadline: Deadline, read: float) -> None:
        self.deadline = deadline
        self.read = read
        self.begun = False
        """A byte of the answer has come."""
        self.ended = False
        """The other side closed the connection."""

    def left(self) -> float:
        """Seconds that the next step may take; raises Stalled when the whole has used up its own."""
        return min(self.read, self.deadline.remaining())


class Lane:
    """Room for one connection to one origin; httpcore opens it, keeps it, looks at it before each use and replaces it.

    One exchange at a time. One ``ConnectionPool`` for all would look at each of its connections, under one lock, twice a
    request: 200 small pages on 24 threads then take twice as long (docs/explanation/architecture.md has the numbers).
    """

    def __init__(self, address: Address, proxy: Proxy | None, tls: Tls, timeout: float, names: Names) -> None:
        self._timeout = timeout
        self._proxy = proxy
        self._backend = _Backend(f"the proxy {proxy.address.host}" if proxy is not None else address.host, names)
        self._pool = httpcore.ConnectionPool(
            ssl_context=tls.context(address) if address.scheme == "https" else None,
            proxy=_httpcore_proxy(proxy, tls) if proxy is not None else None,
            max_connections=1,
            network_backend=self._backend,
        )

    def ask(
        self, method: str, address: Address, headers: dict[str, str], deadline: Deadline, keep: Callable[[Lane], None]
    ) -> Response:
        """Send a request without a body; the answer with its head read. Raises WireError.

        ``keep`` gets this lane when the answer was read to its end and closed.
        """
        clock = Clock(deadline, self._timeout)
        lines = [(b"Host", address.authority.encode()), (b"User-Agent", _AGENT)]
        lines += [(name.encode("latin-1", "replace"), text.encode("latin-1", "replace")) for name, text in headers.items()]
        try:
            request = httpcore.Request(
                method,
                httpcore.URL(
                    scheme=address.scheme.encode(),
                    host=self._host(address),
                    port=None if address.port == PORTS[address.scheme] else address.port,
                    target=address.target.encode(),
                ),
                headers=lines,
                extensions={"timeout": {"connect": clock, "read": clock, "write": clock}},
            )
            raw = self._pool.handle_request(request)
        except WireError:
            raise
        except Exception as problem:
            raise self._told(problem, clock) from None

        def close(finished: bool) -> None:
            raw.close()
            (keep if finished else Lane.close)(self)

        return Response(raw.status, _headers(raw.headers), _body(raw, clock), method=method, clock=clock, close=close)

    def close(self) -> None:
        self._pool.close()
        self._backend.close()

    def _host(self, address: Address) -> bytes:
        # httpcore writes the host of a URL as it is into CONNECT and absolute URLs: there an IPv6 address wants brackets.
        bracketed = ":" in address.host and not (self._proxy is not None and self._proxy.socks)
        return (f"[{address.host}]" if bracketed else address.host).encode("ascii")

    def _told(self, problem: Exception, clock: Clock) -> WireError:
        if self._proxy is not None and isinstance(problem, httpcore.ProxyError):
            return _refusal(self._proxy, str(problem))
        if isinstance(problem, httpcore.LocalProtocolError):
            return Malformed(f"the request cannot be sent ({_short(problem)})", final=True)
        if isinstance(problem, httpcore.RemoteProtocolError):
            if not clock.ended:
                return Malformed(f"the server does not speak HTTP/1.1 ({_short(problem)})", final=True)
            if clock.begun:
                return Cut("the server closed the connection in the middle of its answer")
            return Cut("the server closed the connection without an answer", begun=False)
        if self._proxy is not None and self._proxy.socks:
            # What socksio says about bytes that are no SOCKS comes in many types.
            return ConnectFailed(f"the proxy {self._proxy.address.authority} does not speak SOCKS5")
        raise problem


def _body(raw: httpcore.Response, clock: Clock) -> Iterator[bytes]:
    """The body as it stands on the wire. Raises WireError."""
    got = 0
    chunked = False
    length: int | None = None
    for name, value in raw.headers:
        if name.lower() == b"content-length":
            length = int(value)
        elif name.lower() == b"transfer-encoding":
            chunked = True
    try:
        for piece in raw.iter_stream():
            got += len(piece)
            yield piece
    except httpcore.RemoteProtocolError as problem:
        if not clock.ended:
            raise Malformed(f"the server's answer is broken ({_short(problem)})") from None
        if chunked or length is None:
            raise Cut("the connection ended in the middle of a chunk") from None
        raise Cut(f"the connection ended after {got} of {length} bytes") from None
    stream = raw.extensions["network_stream"]
    if isinstance(stream, _Stream):
        stream.check_end(None if chunked else got)


def _headers(rows: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Lower-case names; what comes twice is joined."""
    headers: dict[str, str] = {}
    for key, value in rows:
        name, text = key.lower().decode("latin-1"), value.decode("latin-1")
        headers[name] = f"{headers[name]}, {text}" if name in headers else text
    return headers


def _short(problem: Exception) -> str:
    return str(problem)[:200]


def _refusal(proxy: Proxy, text: str) -> ConnectFailed:
    """``text``: what httpcore tells of a proxy that said no; begins with the status of an HTTP proxy."""
    status = text[:3]
    if not status.isdigit():
        return ConnectFailed(f"the proxy {proxy.address.authority} refuses the connection ({text[:200]})")
    return ConnectFailed(
        f"the proxy {proxy.address.authority} refuses the connection (HTTP {status})",
        final=status < "500",
        hint=f"the proxy wants credentials: http://{EXAMPLE}host:port" if status == "407" else "",
    )


def _httpcore_proxy(proxy: Proxy, tls: Tls) -> httpcore.Proxy:
    address, userinfo = proxy.address, proxy.userinfo
    if proxy.socks and find_spec("socksio") is None:
        raise ConnectFailed(
            f"the proxy {address.authority} is a SOCKS proxy, and the package socksio is not installed",
            final=True,
            hint="install rocmpip[socks], or name an http:// proxy",
        )
    return httpcore.Proxy(
        httpcore.URL(scheme=proxy.scheme.encode(), host=address.host.encode("ascii"), port=address.port, target=b"/"),
        auth=(userinfo[0].encode(), userinfo[1].encode()) if userinfo is not None else None,
        ssl_context=tls.context(address) if proxy.scheme == "https" else None,
    )


class _Backend(httpcore.NetworkBackend):
    """Sockets by httpcore's own backend, under a Clock. ``what`` names the other side in an error."""

    def __init__(self, what: str, names: Names) -> None:
        self._plain = httpcore.SyncBackend()
        self._what = what
        self._names = names
        self._last: _Stream | None = None

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: Any = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        clock: Clock = timeout
        try:
            *others, last = self._names.addresses(host.strip("[]"), port)
        except (OSError, UnicodeError):
            raise ConnectFailed(
                f"the name of {self._what} cannot be found", hint="check the spelling and the network"
            ) from None
        for place in others:
            with suppress(ConnectFailed):
                return self._connected(place, port, clock, local_address, socket_options)
        return self._connected(last, port, clock, local_address, socket_options)

    def _connected(
        self,
        place: str,
        port: int,
        clock: Clock,
        local_address: str | None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None,
    ) -> httpcore.NetworkStream:
        seconds = clock.left()
        try:
            stream = self._plain.connect_tcp(place, port, seconds, local_address, socket_options)
        except httpcore.ConnectTimeout:
            raise ConnectFailed(f"{self._what}:{port} does not answer within {seconds:.3g} s") from None
        except (httpcore.ConnectError, OverflowError) as problem:
            raise ConnectFailed(f"no connection with {self._what}:{port} ({_reason(problem)})") from None
        self._last = _Stream(stream, clock)
        return self._last

    def close(self) -> None:
        """Close the socket even where httpcore gave up half-way and forgot it."""
        if self._last is not None:
            self._last.close()


class _Stream(httpcore.NetworkStream):
    """A connection whose every step is under the Clock of the exchange it serves.

    It keeps count of what comes: bytes beyond an answer would be taken for the next one, so they make it unfit for reuse.
    """

    def __init__(self, stream: httpcore.NetworkStream, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock
        self._head: bytes | None = b""
        self._body = 0
        self._tail = b""
        self._spoiled = False

    def read(self, max_bytes: int, timeout: Any = None) -> bytes:
        clock: Clock = timeout or self._clock  # httpcore's SOCKS handshake names no timeout: the one of connecting counts
        try:
            data = self._stream.read(max_bytes, clock.left())
        except httpcore.ReadTimeout:
            clock.deadline.remaining()  # says so when it was the whole that took too long
            raise Stalled(f"the server sent nothing for {clock.read:g} s") from None
        except httpcore.ReadError as problem:
            raise Cut(f"the connection broke ({_reason(problem)})", begun=clock.begun) from None
        if not data:
            clock.ended = True
            return data
        clock.begun = True
        if self._head is not None:
            data_and_head = self._head + data
            end = data_and_head.find(b"\r\n\r\n")
            self._head = data_and_head if end < 0 else None
            self._body = 0 if end < 0 else len(data_and_head) - end - 4
            self._tail = data_and_head[-5:]
        else:
            self._body += len(data)
            self._tail = data[-5:] if len(data) >= 5 else (self._tail + data)[-5:]
        return data

    def write(self, buffer: bytes, timeout: Any = None) -> None:
        if not buffer:
            return  # the end of a request without a body
        clock: Clock = timeout or self._clock
        self._head = b""
        try:
            self._stream.write(buffer, clock.left())
        except httpcore.WriteTimeout:
            clock.deadline.remaining()
            raise Stalled("the server does not take the request") from None
        # A WriteError is httpcore's to handle: the server may have answered before it hung up.

    def check_end(self, length: int | None) -> None:
        """Called at the end of an answer with ``length`` bytes of body (None: chunked)."""
        extra = self._head is not None or (self._tail != b"0\r\n\r\n" if length is None else self._body != length)
        self._spoiled = self._spoiled or extra

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: Any = None
    ) -> httpcore.NetworkStream:
        clock: Clock = timeout or self._clock
        host = (server_hostname or "").strip("[]")
        try:
            return _Stream(self._stream.start_tls(ssl_context, host, clock.left()), clock)
        except httpcore.ConnectTimeout:
            raise Stalled("the server does not finish the TLS handshake") from None
        except (httpcore.ConnectError, ValueError) as problem:
            cause = problem.__cause__
            if isinstance(cause, ssl.SSLCertVerificationError):
                raise TlsFailed(
                    f"the certificate of {host} is not trusted ({cause.verify_message})",
                    final=True,
                    hint="name your organisation's certificate with --cert or PIP_CERT, "
                    f"or accept this host without check with --trusted-host {host}",
                ) from None
            raise TlsFailed(f"no TLS connection with {host} ({_reason(problem)})") from None

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        # httpcore drops a kept connection that has something to read.
        if info == "is_readable" and self._spoiled:
            return True
        return self._stream.get_extra_info(info)


def _reason(problem: Exception) -> str:
    cause = problem.__cause__ or problem
    return getattr(cause, "strerror", None) or getattr(cause, "reason", None) or str(cause) or type(cause).__name__
