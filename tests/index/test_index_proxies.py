"""Proxies beyond plain http: TLS to the proxy, SOCKS, IPv6, and proxies that misbehave."""

from __future__ import annotations

import select
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rocmpip.index import transport
from rocmpip.index.client import Client, Limits
from rocmpip.index.proxies import parse_proxy
from rocmpip.index.wire_errors import ConnectFailed
from rocmpip.model.errors import NetworkError
from rocmpip.model.packages import Page
from tests.index.index_server import Listener, Raw, Site, json_page

Make = Callable[..., Client]
PAGE = json_page("six", [{"filename": "six-1.zip", "url": "/files/six-1.zip"}])


def pump(one: socket.socket, other: socket.socket) -> None:
    """Carry bytes both ways until one side ends."""
    pair = [one, other]
    while True:
        ready = [each for each in pair if isinstance(each, ssl.SSLSocket) and each.pending()]
        for each in ready or select.select(pair, [], [], 5)[0]:
            piece = each.recv(65536)
            if not piece:
                return
            pair[1 - pair.index(each)].sendall(piece)


class Relay(Listener):
    """A proxy: ``greet(connection)`` does the handshake and gives (upstream port, first bytes for the upstream)."""

    def __init__(self, greet: Callable[[socket.socket], tuple[int, bytes]], context: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self._greet = greet
        self._context = context

    def talk(self, plain: socket.socket, number: int) -> None:
        try:
            connection = self._context.wrap_socket(plain, server_side=True) if self._context is not None else plain
            with connection:
                port, first = self._greet(connection)
                with socket.create_connection(("127.0.0.1", port)) as upstream:
                    upstream.sendall(first)
                    pump(connection, upstream)
        except OSError:
            plain.close()


def http_greeting(seen: list[str]) -> Callable[[socket.socket], tuple[int, bytes]]:
    def greet(connection: socket.socket) -> tuple[int, bytes]:
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(4096)
        seen.append(data.split(b"\r\n")[0].decode())
        method, target, _ = seen[-1].split()
        if method == "CONNECT":
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            return int(target.rpartition(":")[2]), b""
        return int(target.split("/")[2].rpartition(":")[2]), data.replace(
            target.encode(), b"/" + target.split("/", 3)[3].encode(), 1
        )

    return greet


def socks_greeting(
    seen: list[object], login: tuple[bytes, bytes] | None = None
) -> Callable[[socket.socket], tuple[int, bytes]]:
    """SOCKS5 (RFC 1928, 1929)."""

    def greet(connection: socket.socket) -> tuple[int, bytes]:
        _, count = connection.recv(2)
        methods = connection.recv(count)
        wanted = 2 if login else 0
        if wanted not in methods:
            connection.sendall(b"\x05\xff")
            raise OSError
        connection.sendall(bytes((5, wanted)))
        if login:
            user = connection.recv(connection.recv(2)[1])
            password = connection.recv(connection.recv(1)[0])
            connection.sendall(b"\x01\x00" if (user, password) == login else b"\x01\x01")
            if (user, password) != login:
                raise OSError
        _, _, _, kind = connection.recv(4)
        host = connection.recv({1: 4, 4: 16}.get(kind) or connection.recv(1)[0])
        port = int.from_bytes(connection.recv(2), "big")
        seen.append((kind, host))
        connection.sendall(b"\x05\x00\x00\x01\x7f\x00\x00\x01" + port.to_bytes(2, "big"))
        return port, b""

    return greet


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1 with its key, in one file."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
            *("-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1,IP:::1"),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")),
        ],
        check=True,
        capture_output=True,
    )
    both = folder / "both.pem"
    both.write_text((folder / "cert.pem").read_text() + (folder / "key.pem").read_text())
    return both


@pytest.fixture
def context(authority: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority)
    return context


@pytest.fixture
def secure_site(context: ssl.SSLContext) -> Iterator[Site]:
    with Site({"/s/six/": PAGE, "/t/six/": PAGE}, context=context) as site:
        yield site


def test_a_proxy_reached_by_tls(
    site: Site, secure_site: Site, authority: Path, context: ssl.SSLContext, make_client: Make
) -> None:
    seen: list[str] = []
    site.paths["/s/six/"] = PAGE
    with Relay(http_greeting(seen), context) as relay:
        client = make_client(proxy=f"https://{relay.place}", cert=str(authority))
        assert isinstance(client.page(f"{site.url}/s", "six"), Page)
        assert isinstance(client.page(f"{secure_site.url}/s", "six"), Page)
        assert isinstance(client.page(f"{secure_site.url}/t", "six"), Page)
    assert seen == [f"GET {site.url}/s/six/ HTTP/1.1", f"CONNECT 127.0.0.1:{secure_site.port} HTTP/1.1"]


def test_the_certificate_of_a_proxy_counts(secure_site: Site, context: ssl.SSLContext, make_client: Make) -> None:
    with Relay(http_greeting([]), context) as relay, pytest.raises(NetworkError) as caught:
        make_client(proxy=f"https://{relay.place}").page(f"{secure_site.url}/s", "six")
    assert "not trusted" in caught.value.why


@pytest.mark.parametrize("scheme", ["socks5", "SOCKS5h"])
def test_socks(site: Site, secure_site: Site, authority: Path, make_client: Make, scheme: str) -> None:
    seen: list[object] = []
    site.paths["/s/six/"] = PAGE
    with Relay(socks_greeting(seen)) as relay:
        client = make_client(env={"ALL_PROXY": f"{scheme}://{relay.place}"}, cert=str(authority))
        assert isinstance(client.page(f"{site.url}/s", "six"), Page)
        assert isinstance(client.page(f"{secure_site.url}/s", "six"), Page)
        assert isinstance(client.page(f"{secure_site.url}/t", "six"), Page)
    assert seen == [(1, b"\x7f\x00\x00\x01")] * 2


def test_socks_with_a_password(site: Site, make_client: Make) -> None:
    site.paths["/s/six/"] = PAGE
    with Relay(socks_greeting([], (b"me", b"s3cret"))) as relay:
        client = make_client(proxy=f"socks5://me:s3cret@{relay.place}")
        assert isinstance(client.page(f"{site.url}/s", "six"), Page)
        for userinfo in ("me:wr0ng@", ""):
            with pytest.raises(NetworkError) as caught:
                make_client(proxy=f"socks5://{userinfo}{relay.place}", retries=0).page(f"{site.url}/s", "six")
            assert "the proxy 127.0.0.1" in caught.value.why
            assert "refuses" in caught.value.why
            assert "wr0ng" not in str(caught.value.as_json())


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("socks5://h", "h:1080"),
        ("socks5h://u:p@h:9", "h:9"),
        ("http://h", "h"),
        ("https://[::1]", "[::1]"),
        ("HTTP://h:3128", "h:3128"),
    ],
)
def test_the_place_of_a_proxy(url: str, place: str) -> None:
    proxy = parse_proxy(url)
    assert proxy.address.authority == place
    assert proxy.userinfo == (("u", "p") if "@" in url else None)
    assert proxy.socks == url.startswith("socks")


@pytest.mark.parametrize("url", ["socks4://h:1", "ftp://me:s3cret@h:1", "socks5://", "http://me:s3cret@h:port"])
def test_urls_that_are_no_proxy(url: str) -> None:
    with pytest.raises(ConnectFailed, match="the proxy's URL cannot be used") as caught:
        parse_proxy(url)
    assert "s3cret" not in str(caught.value) + caught.value.hint


def test_socks_without_its_package_is_told(make_client: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "find_spec", lambda name: None)
    with pytest.raises(NetworkError) as caught:
        make_client(proxy="socks5://u:s3cret@127.0.0.1:1").page("https://index.example/simple", "six")
    assert "socksio is not installed" in caught.value.why
    assert "rocmpip[socks]" in caught.value.hint
    assert "tries" not in caught.value.why
    assert "s3cret" not in str(caught.value.as_json())


@pytest.mark.parametrize("scheme", ["http", "https", "socks5"])
@pytest.mark.parametrize("answer", [b"", b"\x05", b"nonsense\r\n\r\n" * 9, b"\x05\x00\x05\x01\x00\x01" + bytes(6)])
def test_proxies_that_talk_nonsense(make_client: Make, scheme: str, answer: bytes) -> None:
    with Raw(lambda connection, number: connection.sendall(answer)) as server:
        with pytest.raises(NetworkError) as caught:
            make_client(proxy=server.url.replace("http", scheme), retries=0, timeout=0.5).page(
                "https://index.example/simple", "six"
            )
        assert "index.example/simple/six/" in caught.value.message


@pytest.mark.parametrize("scheme", ["http", "https", "socks5"])
def test_proxies_that_say_nothing(make_client: Make, scheme: str) -> None:
    with Raw(lambda connection, number: server.over.wait(20)) as server:
        client = make_client(
            proxy=server.url.replace("http", scheme), retries=0, timeout=0.1, limits=Limits(page_seconds=0.4, backoff=0.001)
        )
        with pytest.raises(NetworkError) as caught:
            client.page("https://index.example/simple", "six")
        assert "six" in caught.value.message


def test_an_ipv6_host_through_a_proxy_has_its_brackets(make_client: Make) -> None:
    seen: list[str] = []

    def greet(connection: socket.socket) -> tuple[int, bytes]:
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(4096)
        seen.extend(data.decode().split("\r\n")[:2])
        connection.sendall(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        raise OSError

    with Relay(greet) as relay:
        client = make_client(proxy=f"http://{relay.place}", retries=0, trusted_hosts=("[::1]",))
        with pytest.raises(NetworkError, match="six"):
            client.page("https://[::1]/simple", "six")
        client.page("http://[::1]:8080/simple", "six")
    assert seen[:2] == ["CONNECT [::1]:443 HTTP/1.1", "Host: [::1]:443"]
    assert seen[2] == "GET http://[::1]:8080/simple/six/ HTTP/1.1"
    assert seen[3] == "Host: [::1]:8080"
