"""Credentials, certificates and proxies, found where pip finds them."""

from __future__ import annotations

import base64
import netrc
import select
import socket
import ssl
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from rocmpip.index.client import Client
from rocmpip.index.credentials import private_netrc, read_netrc
from rocmpip.model.errors import NetworkError
from rocmpip.model.packages import Absent, File, Page
from rocmpip.model.request import IndexOptions
from tests.index.index_server import Listener, Raw, Reply, Site, json_page

Make = Callable[..., Client]
PAGE = json_page("six", [{"filename": "six-1.zip", "url": "/files/six-1.zip"}])


def sign(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def guarded(user: str, password: str, reply: Reply = PAGE) -> Callable[[object], Reply]:
    def answer(handler: object) -> Reply:
        right = handler.headers.get("Authorization") == sign(user, password)  # type: ignore[attr-defined]
        return reply if right else Reply(status=401, headers={"WWW-Authenticate": "Basic"})

    return answer


def with_user(url: str, userinfo: str) -> str:
    return url.replace("://", f"://{userinfo}@")


def test_credentials_of_the_index_url_go_to_its_host_only(site: Site, make_client: Make) -> None:
    with Site({"/f": Reply(b"there")}) as other:
        rows = [{"filename": "six-1.zip", "url": "/f"}, {"filename": "six-2.zip", "url": f"{other.url}/f"}]
        site.paths["/simple/six/"] = guarded("me@corp", "p w/d", json_page("six", rows))
        site.paths["/f"] = guarded("me@corp", "p w/d", Reply(b"here"))
        client = make_client(index_url=with_user(f"{site.url}/simple", "me%40corp:p%20w%2Fd"))
        page = client.page(client.indexes()[0], "six")
        assert isinstance(page, Page)
        assert [client.needs_credentials(file) for file in page.files] == [True, False]
        for file in page.files:
            with client.open(file) as response:
                assert b"".join(response.chunks()) in (b"here", b"there")
        assert "authorization" not in other.requests[0][1]
        assert "me" not in str(page).replace("files", "").replace("name", "").replace("metadata", "").replace("upload_time", "")


def test_of_two_indexes_on_one_host_the_longer_path_decides(site: Site, make_client: Make) -> None:
    site.paths["/a/six/"] = guarded("a", "1")
    site.paths["/b/six/"] = guarded("b", "2")
    urls = (with_user(f"{site.url}/a", "a:1"), with_user(f"{site.url}/b", "b:2"))
    client = make_client(index_url=urls[0], extra_index_urls=(urls[1],))
    assert all(isinstance(client.page(index, "six"), Page) for index in client.indexes())


def test_missing_and_wrong_credentials_are_told(site: Site, make_client: Make) -> None:
    site.paths["/s/six/"] = guarded("me", "right")
    with pytest.raises(NetworkError, match="wants credentials") as caught:
        make_client().page(f"{site.url}/s", "six")
    assert "netrc" in caught.value.hint
    with pytest.raises(NetworkError, match="wants other credentials") as caught:
        make_client(index_url=with_user(f"{site.url}/s", "me:wrong")).page(f"{site.url}/s", "six")
    assert "wrong" not in str(caught.value.as_json()).replace("wrong credentials", "")
    assert site.asked("/s/six/") == 2


def test_netrc(site: Site, tmp_path: Path, make_client: Make) -> None:
    site.paths["/s/six/"] = guarded("net", "rc")
    (tmp_path / ".netrc").write_text("machine other login x password y\nmachine 127.0.0.1 login net password rc\n")
    (tmp_path / "named").write_text("default login net password rc\n")
    (tmp_path / "broken").write_text("machine 127.0.0.1 logon\n")
    assert isinstance(make_client(env={"HOME": str(tmp_path)}).page(f"{site.url}/s", "six"), Page)
    assert isinstance(make_client(env={"NETRC": str(tmp_path / "named")}).page(f"{site.url}/s", "six"), Page)
    with pytest.raises(NetworkError, match="wants credentials"):
        make_client(env={"NETRC": str(tmp_path / "broken")}).page(f"{site.url}/s", "six")


def test_the_index_url_beats_netrc(site: Site, tmp_path: Path, make_client: Make) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login net password rc\n")
    site.paths["/s/six/"] = guarded("url", "pw")
    client = make_client(index_url=with_user(f"{site.url}/s", "url:pw"), env={"HOME": str(tmp_path)})
    assert isinstance(client.page(f"{site.url}/s", "six"), Page)


def test_a_redirect_to_another_host_takes_no_credentials_along(site: Site, make_client: Make) -> None:
    with Site({"/six/": PAGE}) as other:
        site.paths["/s/six/"] = Reply(status=302, headers={"Location": f"{other.url}/six/"})
        make_client(index_url=with_user(f"{site.url}/s", "me:pw")).page(f"{site.url}/s", "six")
        assert "authorization" in site.requests[0][1]
        assert "authorization" not in other.requests[0][1]


def test_keyring_as_a_module_is_asked_after_a_401(site: Site, make_client: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def get_credential(service: str, user: str | None) -> object:
        asked.append(service)
        return SimpleNamespace(username="key", password="ring") if service.startswith("http") else None

    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_credential=get_credential))
    site.paths["/s/six/"] = guarded("key", "ring")
    site.paths["/open/six/"] = PAGE
    client = make_client()
    client.page(f"{site.url}/open", "six")
    assert asked == []
    assert isinstance(client.page(f"{site.url}/s", "six"), Page)
    assert asked == [f"{site.url}/"]
    assert client.needs_credentials(File("six-1.zip", f"{site.url}/files/six-1.zip"))
    for options in ({"no_input": True}, {"keyring_provider": "disabled"}):
        with pytest.raises(NetworkError, match="wants credentials"):
            make_client(**options).page(f"{site.url}/s", "six")
    assert len(asked) == 1
    assert isinstance(make_client(no_input=True, keyring_provider="import").page(f"{site.url}/s", "six"), Page)


def test_keyring_as_a_program(site: Site, tmp_path: Path, make_client: Make) -> None:
    program = tmp_path / "keyring"
    program.write_text('#!/bin/sh\n[ "$1 $3" = "get me" ] && echo s3cret\n')
    program.chmod(0o755)
    site.paths["/s/six/"] = guarded("me", "s3cret")
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    client = make_client(index_url=with_user(f"{site.url}/s", "me"), keyring_provider="subprocess", env=env)
    assert isinstance(client.page(f"{site.url}/s", "six"), Page)


def test_the_private_netrc(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.netrc").write_text(
        "machine mine login a password b\ndefault login d password e\nmachine h.example login old password old"
    )
    options = IndexOptions(
        index_url="https://me:p%23w%20d@h.example/simple",
        extra_index_urls=("https://token@t.example/x", "https://free.example/"),
        find_links=("https://f:l@links.example/",),
    )
    env = {"HOME": str(tmp_path / "home")}
    quotes = sys.version_info >= (3, 11)
    path = private_netrc(tmp_path / "run", options, env)
    assert path is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    hosts = netrc.netrc(str(path)).hosts
    # Before Python 3.11 a netrc cannot say a space or an empty word: those are left out and the rest stays good.
    assert hosts.get("h.example", ("", "", ""))[::2] == (("me", "p#w d") if quotes else ("", ""))
    assert ("t.example" in hosts) == quotes
    assert hosts["mine"][::2] == ("a", "b")
    assert hosts["links.example"][::2] == ("f", "l")
    assert hosts["default"][::2] == ("d", "e")
    assert "free.example" not in hosts
    only = private_netrc(tmp_path / "run", options, env, hosts=["links.example"])
    assert only is not None
    assert netrc.netrc(str(only)).hosts["h.example"][0] == "old"
    plain = private_netrc(tmp_path / "old", options, env, quotes=False)
    assert plain is not None
    assert "p#w d" not in plain.read_text()
    assert "login f password l" in plain.read_text()
    assert private_netrc(tmp_path / "none", IndexOptions(), env) is None
    assert read_netrc({"NETRC": str(tmp_path / "missing")}) == {}


# Certificates


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with cert.pem (self-signed, for 127.0.0.1) and both.pem (with its key)."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
            *("-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")),
        ],
        check=True,
        capture_output=True,
    )
    (folder / "both.pem").write_text((folder / "cert.pem").read_text() + (folder / "key.pem").read_text())
    return folder


def server_context(authority: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "both.pem")
    return context


@pytest.fixture
def secure_site(authority: Path) -> Iterator[Site]:
    with Site({"/s/six/": PAGE, "/s/two/": Reply(status=404)}, context=server_context(authority)) as site:
        yield site


def test_an_unknown_certificate_is_refused_at_once(secure_site: Site, make_client: Make) -> None:
    with pytest.raises(NetworkError) as caught:
        make_client().page(f"{secure_site.url}/s", "six")
    assert "not trusted" in caught.value.why
    assert "tries" not in caught.value.why
    assert "--cert" in caught.value.hint
    assert "--trusted-host 127.0.0.1" in caught.value.hint


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"])
def test_certificates_from_variables(secure_site: Site, authority: Path, make_client: Make, variable: str) -> None:
    client = make_client(env={variable: str(authority / "cert.pem")})
    assert isinstance(client.page(f"{secure_site.url}/s", "six"), Page)
    assert isinstance(client.page(f"{secure_site.url}/s", "two"), Absent)


def test_the_cert_option_beats_variables(secure_site: Site, authority: Path, make_client: Make) -> None:
    client = make_client(cert=str(authority / "cert.pem"), env={"REQUESTS_CA_BUNDLE": "/nowhere.pem"})
    assert isinstance(client.page(f"{secure_site.url}/s", "six"), Page)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:PORT"])
def test_a_trusted_host_is_not_verified(secure_site: Site, make_client: Make, host: str) -> None:
    client = make_client(trusted_hosts=(host.replace("PORT", str(secure_site.port)),))
    assert isinstance(client.page(f"{secure_site.url}/s", "six"), Page)
    with pytest.raises(NetworkError, match="six"):
        make_client(trusted_hosts=("127.0.0.1:1",)).page(f"{secure_site.url}/s", "six")


def test_a_client_certificate(authority: Path, make_client: Make) -> None:
    context = server_context(authority)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority / "cert.pem")
    with Site({"/s/six/": PAGE}, context=context) as site:
        cert = str(authority / "cert.pem")
        assert isinstance(make_client(cert=cert, client_cert=str(authority / "both.pem")).page(f"{site.url}/s", "six"), Page)
        with pytest.raises(NetworkError, match="six"):
            make_client(cert=cert, retries=0).page(f"{site.url}/s", "six")


def test_broken_certificate_files_are_told(secure_site: Site, tmp_path: Path, make_client: Make) -> None:
    (tmp_path / "bad.pem").write_text("no certificate")
    for options in ({"cert": str(tmp_path / "bad.pem")}, {"cert": "/nowhere.pem"}, {"client_cert": str(tmp_path / "bad.pem")}):
        with pytest.raises(NetworkError) as caught:
            make_client(**options).page(f"{secure_site.url}/s", "six")
        assert next(iter(options.values())) in caught.value.why


def test_a_server_that_does_not_speak_tls(make_client: Make) -> None:
    with Raw(lambda connection, number: None) as server:
        with pytest.raises(NetworkError) as caught:
            make_client(retries=0, timeout=0.3).page(server.url.replace("http", "https"), "six")
        assert "TLS" in caught.value.why


# Proxies


class Proxy(Listener):
    """A small HTTP proxy: absolute URLs and CONNECT; ``seen`` are the request lines, ``signed`` their Proxy-Authorization."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.signed: list[str] = []
        self.refuse = 0

    def talk(self, connection: socket.socket, number: int) -> None:
        with connection:
            data = b""
            while b"\r\n\r\n" not in data:
                data += connection.recv(4096)
            head = data.decode()
            first = head.split("\r\n")[0]
            self.seen.append(first)
            self.signed += [
                line.split(": ")[1] for line in head.split("\r\n") if line.lower().startswith("proxy-authorization")
            ]
            if self.refuse:
                connection.sendall(b"HTTP/1.1 %d No\r\nContent-Length: 2\r\n\r\nno" % self.refuse)
                return
            method, target, _ = first.split()
            host = target if method == "CONNECT" else target.split("/")[2]
            port = host.rpartition(":")[2]
            with socket.create_connection(("127.0.0.1", int(port))) as upstream:
                if method == "CONNECT":
                    connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                else:
                    path = "/" + target.split("/", 3)[3]
                    upstream.sendall(head.replace(target, path, 1).encode())
                pair = [connection, upstream]
                while True:
                    for each in select.select(pair, [], [], 5)[0]:
                        piece = each.recv(65536)
                        if not piece:
                            return
                        pair[1 - pair.index(each)].sendall(piece)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy() as proxy:
        yield proxy


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy"])
def test_plain_http_through_the_environments_proxy(site: Site, proxy: Proxy, make_client: Make, variable: str) -> None:
    site.paths["/s/six/"] = PAGE
    client = make_client(env={variable: proxy.url.replace("://", "://u:p%40w@")})
    assert isinstance(client.page(f"{site.url}/s", "six"), Page)
    assert proxy.seen == [f"GET {site.url}/s/six/ HTTP/1.1"]
    assert proxy.signed == [sign("u", "p@w")]
    assert "proxy-authorization" in site.requests[0][1]  # this simple proxy hands everything on


def test_https_through_a_tunnel(secure_site: Site, proxy: Proxy, authority: Path, make_client: Make) -> None:
    client = make_client(proxy=proxy.url.replace("http://", "u:p@"), cert=str(authority / "cert.pem"))
    assert isinstance(client.page(f"{secure_site.url}/s", "six"), Page)
    assert isinstance(client.page(f"{secure_site.url}/s", "two"), Absent)
    assert proxy.seen == [f"CONNECT 127.0.0.1:{secure_site.port} HTTP/1.1"]
    assert proxy.signed == [sign("u", "p")]
    assert "proxy-authorization" not in secure_site.requests[0][1]


@pytest.mark.parametrize("entry", ["127.0.0.1", "*", "x, .0.0.1 ", "127.0.0.0/8", "127.0.0.1:PORT"])
def test_no_proxy(site: Site, proxy: Proxy, make_client: Make, entry: str) -> None:
    site.paths["/s/six/"] = PAGE
    env = {"http_proxy": proxy.url, "no_proxy": entry.replace("PORT", str(site.port))}
    make_client(env=env).page(f"{site.url}/s", "six")
    assert proxy.seen == []


@pytest.mark.parametrize("entry", ["10.0.0.0/8", "0.0.1", "127.0.0.1:1", "example"])
def test_no_proxy_for_others(site: Site, proxy: Proxy, make_client: Make, entry: str) -> None:
    site.paths["/s/six/"] = PAGE
    make_client(env={"http_proxy": proxy.url, "NO_PROXY": entry}).page(f"{site.url}/s", "six")
    assert len(proxy.seen) == (0 if entry == "0.0.1" else 1)  # "0.0.1" ends the host name, as for pip


def test_the_option_ignores_no_proxy(site: Site, proxy: Proxy, make_client: Make) -> None:
    site.paths["/s/six/"] = PAGE
    make_client(proxy=proxy.url, env={"no_proxy": "*"}).page(f"{site.url}/s", "six")
    assert len(proxy.seen) == 1


def test_the_environments_proxy_can_be_left_out(site: Site, proxy: Proxy, make_client: Make) -> None:
    site.paths["/s/six/"] = PAGE
    make_client(no_proxy_env=True, env={"http_proxy": proxy.url}).page(f"{site.url}/s", "six")
    assert proxy.seen == []


def test_a_proxy_that_refuses(proxy: Proxy, make_client: Make) -> None:
    proxy.refuse = 407
    with pytest.raises(NetworkError) as caught:
        make_client(proxy=proxy.url).page("https://index.example/simple", "six")
    assert "HTTP 407" in caught.value.why
    assert "<user>:<password>@" in caught.value.hint
    assert len(proxy.seen) == 1


@pytest.mark.parametrize("url", ["socks5://127.0.0.1:1", "http://", "https://me:s3cret@127.0.0.1:1"])
def test_proxies_that_cannot_be_used_are_told_without_their_password(make_client: Make, url: str) -> None:
    with pytest.raises(NetworkError) as caught:
        make_client(proxy=url, retries=0).page("https://index.example/simple", "six")
    assert "prox" in caught.value.why
    assert "s3cret" not in str(caught.value.as_json())
