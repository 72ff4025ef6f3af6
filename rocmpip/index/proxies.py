"""Which proxy a URL goes through: pip's ``--proxy`` for everything, else the environment with NO_PROXY."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from rocmpip.index.address import Address, parse_address, split_userinfo
from rocmpip.index.wire_errors import ConnectFailed
from rocmpip.model.record import Struct, replace
from rocmpip.model.redact import EXAMPLE

_SOCKS_PORT = 1080


class Proxy(Struct, frozen=True):
    """One proxy, taken apart. ``userinfo`` is (user, password), or None."""

    scheme: str
    """http, https, socks5 or socks5h."""
    address: Address
    userinfo: tuple[str, str] | None

    @property
    def socks(self) -> bool:
        return self.scheme.startswith("socks")


def parse_proxy(url: str) -> Proxy:
    """Raises ConnectFailed, without the credentials, for what is no proxy's URL."""
    bare, userinfo = split_userinfo(url)
    scheme, _, rest = bare.partition("://")
    scheme = scheme.lower()
    socks = scheme in ("socks5", "socks5h")
    try:
        address = parse_address(f"http://{rest}" if socks else bare)
        if socks and urlsplit(bare).port is None:
            address = replace(address, port=_SOCKS_PORT)
    except ValueError as problem:
        raise ConnectFailed(
            f"the proxy's URL cannot be used: {problem}",
            final=True,
            hint=f"proxies are http://, https:// or socks5://[{EXAMPLE}]host:port",
        ) from None
    return Proxy(scheme, address, userinfo)


class Proxies:
    """``option`` is ``--proxy``/PIP_PROXY/configuration: as in pip it counts for both schemes and NO_PROXY does not touch it."""

    def __init__(self, option: str, env: Mapping[str, str]) -> None:
        self._option = option
        self._env = env
        self._bypass = tuple(entry.strip().lower() for entry in self._variable("no_proxy").split(",") if entry.strip())

    def _variable(self, name: str) -> str:
        return self._env.get(name) or self._env.get(name.upper()) or ""

    def of(self, address: Address) -> str:
        """The proxy's URL for ``address``, or ""."""
        if self._option:
            return _with_scheme(self._option)
        proxy = self._variable(f"{address.scheme}_proxy") or self._variable("all_proxy")
        if not proxy or self._bypassed(address):
            return ""
        return _with_scheme(proxy)

    def _bypassed(self, address: Address) -> bool:
        for entry in self._bypass:
            if entry == "*":
                return True
            name, colon, port = entry.rpartition(":")
            if colon and port.isdigit() and "]" not in port and name.count(":") == 0:
                if int(port) != address.port:
                    continue
                entry = name
            entry = entry.strip("[]")
            if address.host == entry.lstrip(".") or address.host.endswith("." + entry.lstrip(".")):
                return True
            if "/" in entry and _in_network(address.host, entry):
                return True
        return False


def _with_scheme(proxy: str) -> str:
    return proxy if "://" in proxy else f"http://{proxy}"


def _in_network(host: str, network: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
