"""URLs taken apart: origin, credentials, what is safe without TLS, what a redirect may do."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from rocmpip.model.record import Struct
from rocmpip.model.redact import bare_url

PORTS = {"http": 80, "https": 443}


class Address(Struct, frozen=True):
    """One http(s) URL, ready to be asked: no fragment, no user, a path that is plain ASCII."""

    scheme: str
    host: str
    """Without brackets."""
    port: int
    target: str
    """Path and query as they go into the request line."""

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """``host`` or ``host:port``, as the Host header wants it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


@lru_cache(maxsize=4096)
def parse_address(url: str) -> Address:
    """Raises ValueError with a sentence that names what is wrong, never the credentials."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as problem:
        raise ValueError(f"the URL is broken ({problem})") from None
    scheme = parts.scheme.lower()
    if scheme not in PORTS:
        raise ValueError(f"the scheme {scheme!r} is not http or https" if scheme else "the URL has no scheme")
    host = (parts.hostname or "").rstrip(".")
    if not host:
        raise ValueError("the URL has no host")
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            raise ValueError("the host is no valid name") from None
    if any(char <= " " or char == "\x7f" for char in host):
        raise ValueError("the host is no valid name")
    target = quote(parts.path or "/", safe="%/:=&~+!$,;'@()*[]")
    if parts.query:
        target += "?" + quote(parts.query, safe="%/:=&?~+!$,;'@()*[]")
    return Address(scheme, host, port or PORTS[scheme], target)


def split_userinfo(url: str) -> tuple[str, tuple[str, str] | None]:
    """``https://me:pw@host/x`` → (``https://host/x``, ("me", "pw")). A user alone has the password ""."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return bare_url(url), None  # broken: whoever asks for it says so
    info, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    user, _, password = info.partition(":")
    bare = urlunsplit((parts.scheme, host, parts.path, parts.query, parts.fragment))
    return bare, (unquote(user), unquote(password))


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or (host.startswith("127.") and host.count(".") == 3)


def trusts(trusted_hosts: tuple[str, ...], host: str, port: int) -> bool:
    """True when ``--trusted-host`` names this host, or host and port."""
    for entry in trusted_hosts:
        name, _, wanted = entry.rpartition(":") if not entry.endswith("]") else (entry, "", "")
        if not name or not wanted.isdigit():
            name, wanted = entry, ""
        if name.strip("[]").lower() == host and (not wanted or int(wanted) == port):
            return True
    return False
