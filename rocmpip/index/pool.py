"""Connections kept open and handed out again; proxies and TLS are made here."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rocmpip import __version__
from rocmpip.index.address import Address, parse_address, split_userinfo
from rocmpip.index.limits import Deadline
from rocmpip.index.proxies import Proxies
from rocmpip.index.tls import Tls
from rocmpip.index.wire import Connection, Response
from rocmpip.index.wire_errors import ConnectFailed, Cut, Stalled, TlsFailed, WireError

_IDLE_PER_HOST = 32

_Key = tuple[str, str, int, str]


class Pool:
    """One exchange at a time per connection, any number of connections. Safe for threads."""

    def __init__(self, tls: Tls, proxies: Proxies, timeout: float) -> None:
        self._tls = tls
        self._proxies = proxies
        self._timeout = timeout
        self._lock = threading.Lock()
        self._idle: dict[_Key, list[Connection]] = {}
        self._closed = False

    @contextmanager
    def exchange(
        self, address: Address, headers: dict[str, str], deadline: Deadline, method: str = "GET"
    ) -> Iterator[Response]:
        """Ask and hand out the response; its connection goes back to the pool when the body was read to its end."""
        response = self.open(address, headers, deadline, method)
        try:
            yield response
        finally:
            self.release(address, response)

    def open(self, address: Address, headers: dict[str, str], deadline: Deadline, method: str = "GET") -> Response:
        """Ask; the caller releases the response. A kept connection that turns out dead is replaced once."""
        proxy = self._proxies.of(address)
        key = (*address.origin, proxy)
        connection = self._take(key)
        while True:
            if connection is None:
                connection = self._connect(address, proxy, deadline)
            try:
                connection.send(_request(method, address, headers, proxy), deadline)
                return Response(connection, method, deadline)
            except Cut as problem:
                connection.close()
                if problem.begun or not connection.used:
                    raise
                connection = None
            except WireError:
                connection.close()
                raise

    def release(self, address: Address, response: Response) -> None:
        connection = response.connection
        connection.used = True
        if not (response.finished and response.reusable):
            connection.close()
            return
        key = (*address.origin, self._proxies.of(address))
        with self._lock:
            kept = self._idle.setdefault(key, [])
            if not self._closed and len(kept) < _IDLE_PER_HOST:
                kept.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            kept = [connection for rows in self._idle.values() for connection in rows]
            self._idle.clear()
        for connection in kept:
            connection.close()

    def _take(self, key: _Key) -> Connection | None:
        while True:
            with self._lock:
                kept = self._idle.get(key)
                connection = kept.pop() if kept else None
            if connection is None or connection.clean():
                return connection
            connection.close()

    def _connect(self, address: Address, proxy: str, deadline: Deadline) -> Connection:
        if not proxy:
            sock = _dial(address.host, address.port, min(self._timeout, deadline.remaining()), "")
            return Connection(self._secure(sock, address), self._timeout)
        via, credentials = _proxy(proxy)
        sock = _dial(via.host, via.port, min(self._timeout, deadline.remaining()), "the proxy ")
        if via.scheme == "https":
            if address.scheme == "https":
                sock.close()
                raise ConnectFailed(
                    f"the proxy {via.authority} is reached by https, and https through it is not supported",
                    final=True,
                    hint="name the proxy by http:// (the connection to the index stays encrypted inside it)",
                )
            sock = self._secure(sock, via)
        if address.scheme == "https":
            sock = self._secure(self._tunnel(sock, address, via, credentials, deadline), address)
        return Connection(sock, self._timeout)

    def _tunnel(
        self, sock: socket.socket, address: Address, via: Address, credentials: str, deadline: Deadline
    ) -> socket.socket:
        connection = Connection(sock, self._timeout)
        host = f"[{address.host}]" if ":" in address.host else address.host
        lines = [f"CONNECT {host}:{address.port} HTTP/1.1", f"Host: {host}:{address.port}"]
        if credentials:
            lines.append(f"Proxy-Authorization: {credentials}")
        try:
            connection.send("\r\n".join((*lines, "", "")).encode("latin-1"), deadline)
            # Status 204 would mean "no body"; a tunnel's answer has none whatever its headers say.
            response = Response(connection, "HEAD", deadline)
        except WireError:
            connection.close()
            raise
        if response.status // 100 == 2:
            return sock
        connection.close()
        raise ConnectFailed(
            f"the proxy {via.authority} refuses the connection (HTTP {response.status})",
            final=response.status < 500,
            hint="the proxy wants credentials: http://user:password@host:port" if response.status == 407 else "",
        )

    def _secure(self, sock: socket.socket, address: Address) -> socket.socket:
        if address.scheme != "https":
            return sock
        import ssl

        try:
            return self._tls.context(address).wrap_socket(sock, server_hostname=address.host)
        except ssl.SSLCertVerificationError as problem:
            sock.close()
            raise TlsFailed(
                f"the certificate of {address.authority} is not trusted ({problem.verify_message})",
                final=True,
                hint="name your organisation's certificate with --cert or PIP_CERT, "
                f"or accept this host without check with --trusted-host {address.host}",
            ) from None
        except TimeoutError:
            sock.close()
            raise Stalled("the server does not finish the TLS handshake") from None
        except OSError as problem:
            sock.close()
            raise TlsFailed(f"no TLS connection with {address.authority} ({_reason(problem)})") from None
        except WireError:
            sock.close()
            raise


def _dial(host: str, port: int, timeout: float, what: str) -> socket.socket:
    try:
        sock = socket.create_connection((host, port), timeout=timeout)
    except TimeoutError:
        raise ConnectFailed(f"{what}{host}:{port} does not answer within {timeout:.3g} s") from None
    except socket.gaierror:
        raise ConnectFailed(f"the name of {what}{host} cannot be found", hint="check the spelling and the network") from None
    except (OSError, UnicodeError, OverflowError) as problem:
        raise ConnectFailed(f"no connection with {what}{host}:{port} ({_reason(problem)})") from None
    # Requests are one small packet: waiting to fill it would cost a round trip's delay.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _proxy(url: str) -> tuple[Address, str]:
    """The proxy's address and its Proxy-Authorization, or ""."""
    bare, userinfo = split_userinfo(url)
    try:
        address = parse_address(bare)
    except ValueError as problem:
        raise ConnectFailed(
            f"the proxy's URL cannot be used: {problem}", final=True, hint="proxies are http://[user:password@]host:port"
        ) from None
    return address, basic(userinfo) if userinfo else ""


def _request(method: str, address: Address, headers: dict[str, str], proxy: str) -> bytes:
    plain_proxy = bool(proxy) and address.scheme == "http"
    lines = [f"{method} {address.url if plain_proxy else address.target} HTTP/1.1", f"Host: {address.authority}"]
    if plain_proxy and (credentials := _proxy(proxy)[1]):
        lines.append(f"Proxy-Authorization: {credentials}")
    lines.append(f"User-Agent: rocmpip/{__version__}")
    lines += [f"{name}: {value}" for name, value in headers.items()]
    text = "\r\n".join((*lines, "", ""))
    return text.encode("latin-1", "replace")


def basic(userinfo: tuple[str, str]) -> str:
    """The value of an Authorization header."""
    return "Basic " + base64.b64encode(":".join(userinfo).encode()).decode("ascii")


def _reason(problem: Exception) -> str:
    return getattr(problem, "strerror", None) or getattr(problem, "reason", None) or type(problem).__name__
