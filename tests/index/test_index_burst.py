"""The short road: plain answers come whole, everything else ends in None, and nothing is left open or waiting."""

from __future__ import annotations

import gzip
import os
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rocmpip.index.address import parse_address
from rocmpip.index.burst import Burst, Plain
from rocmpip.index.proxies import Proxies
from rocmpip.index.tls import Tls
from tests.index.index_server import Raw, Reply, Site

MOST = 100_000
Get = Callable[..., "list[Plain | None]"]


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def make(*, size: int = 4, timeout: float = 5.0, cert: str = "", env: dict[str, str] | None = None) -> Burst:
    return Burst(Tls(cert, "", (), env or {}), Proxies("", env or {}), timeout, size)


def run(burst: Burst, *urls: str, most: int = MOST, within: float = 20.0) -> list[Plain | None]:
    """What each URL gives; a closed road counts as None."""
    found: dict[int, Plain | None] = {}
    for number, url in enumerate(urls):

        def done(plain: Plain | None, number: int = number) -> None:
            assert number not in found, "told twice"
            found[number] = plain

        if not burst.get(parse_address(url), {"Accept-Encoding": "gzip"}, most, done):
            found[number] = None
    end = time.monotonic() + within
    while len(found) < len(urls):
        assert time.monotonic() < end, f"no end: {len(found)} of {len(urls)}"
        burst.wait(1.0)
    return [found[number] for number in range(len(urls))]


@pytest.fixture
def get() -> Iterator[Get]:
    before = open_files()
    made: list[Burst] = []

    def ask(*urls: str, most: int = MOST, timeout: float = 5.0, **more: object) -> list[Plain | None]:
        burst = make(timeout=timeout, **more)  # type: ignore[arg-type]
        made.append(burst)
        return run(burst, *urls, most=most)

    yield ask
    for burst in made:
        burst.close()
    end = time.monotonic() + 10
    while open_files() > before:  # the server's own ends close in its threads
        assert time.monotonic() < end, "a connection was left open"
        time.sleep(0.01)


def body(plain: Plain | None) -> bytes | None:
    return None if plain is None else plain.body(MOST)


def serving(data: bytes, *, hold: bool = False) -> Raw:
    """A server that sends ``data`` to each request and hangs up, or (``hold``) sends nothing more."""

    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(data)
        if hold:
            server.over.wait(20)

    server = Raw(answer)
    return server


def test_hundreds_of_questions_on_few_connections(get: Get) -> None:
    paths = {f"/{number}": Reply(b"%d" % number * 50) for number in range(400)}
    with Site(paths) as site:
        answers = get(*(f"{site.url}/{number}" for number in range(400)), size=8)
    assert [body(one) for one in answers] == [b"%d" % number * 50 for number in range(400)]
    assert len(site.peers) <= 8


def test_a_server_that_wants_to_hang_up_is_connected_to_again(get: Get) -> None:
    with Site({"/x": Reply(b"ok", headers={"Connection": "close"})}) as site:
        answers = get(*[f"{site.url}/x"] * 20, size=2)
    assert [body(one) for one in answers] == [b"ok"] * 20
    assert len(site.peers) == 20


def test_a_missing_page_is_an_answer_and_other_statuses_are_not(get: Get) -> None:
    statuses = (200, 404, 204, 206, 301, 304, 401, 403, 407, 429, 500, 503)
    with Site({f"/{status}": Reply(b"x", status=status) for status in statuses}) as site:
        answers = get(*(f"{site.url}/{status}" for status in statuses))
    assert [one.status if one else None for one in answers] == [200, 404, *[None] * 10]


@pytest.mark.parametrize(
    ("head", "payload", "expected"),
    [
        ("Content-Length: 5", b"hello", b"hello"),
        ("Content-Length: 0", b"", b""),
        ("Transfer-Encoding: chunked", b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", b"hello"),
        ("content-encoding: gzip\r\nContent-Length: 25", gzip.compress(b"hello", mtime=0), b"hello"),
        ("Content-Length: 5\r\nX-Odd: \xe9\xff", b"hello", b"hello"),
    ],
)
def test_plain_answers_in_every_framing(get: Get, head: str, payload: bytes, expected: bytes) -> None:
    with serving(b"HTTP/1.1 200 OK\r\n" + head.encode("latin-1") + b"\r\n\r\n" + payload, hold=True) as server:
        assert body(get(server.url + "/x")[0]) == expected


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_the_end_of_the_connection_ends_an_answer_without_a_length(get: Get, version: str) -> None:
    served: list[int] = []

    def answer(connection: socket.socket, number: int) -> None:
        served.append(number)
        connection.sendall(f"HTTP/{version} 200 OK\r\nContent-Type: text/html\r\n\r\nhel".encode())
        connection.sendall(b"lo")

    with Raw(answer) as server:
        assert [body(one) for one in get(server.url + "/x", server.url + "/y", size=1)] == [b"hello"] * 2
    assert len(served) == 2


def test_a_head_without_end_is_left_soon(get: Get) -> None:
    sent: list[int] = []

    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        for count in range(100_000):
            connection.sendall(b"X-More: and more\r\n" * 100)
            sent.append(count)

    with Raw(answer) as server:
        assert get(server.url + "/x", most=10**9) == [None]
    assert len(sent) < 10_000


def test_headers_that_come_twice_are_joined(get: Get) -> None:
    with serving(b"HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 1\r\n\r\nx") as server:
        (plain,) = get(server.url + "/x")
    assert plain is not None
    assert plain.headers["x-a"] == "1, 2"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny",
        b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200_000,
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00" * 20,
        b"HTTP/1.1 99999 ?\r\n\r\n",
    ],
)
def test_what_is_broken_ends_in_none(get: Get, data: bytes) -> None:
    with serving(data) as server:
        assert get(server.url + "/x", server.url + "/y", timeout=2.0) == [None, None]


@pytest.mark.parametrize(
    ("packed", "encoding"),
    [
        (gzip.compress(b"x" * (MOST + 1), mtime=0), "gzip"),
        (gzip.compress(b"hello", mtime=0)[:-9], "gzip"),
        (gzip.compress(b"hello", mtime=0) + b"more", "gzip"),
        (b"no gzip at all", "gzip"),
        (b"hello", "br"),
        (b"x" * (MOST + 1), ""),
    ],
)
def test_a_body_that_cannot_be_had_is_none(packed: bytes, encoding: str) -> None:
    assert Plain(200, {"content-encoding": encoding}, [packed]).body(MOST) is None


def test_a_server_that_says_nothing_costs_its_time_limit_once(get: Get) -> None:
    with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhel", hold=True) as server:
        begin = time.monotonic()
        assert get(*[server.url + "/x"] * 9, timeout=0.5, size=2) == [None] * 9
        assert time.monotonic() - begin < 5


def test_nobody_there(get: Get) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert get(f"http://127.0.0.1:{port}/x", "http://no-such-host.invalid/x", timeout=5.0) == [None, None]


def test_a_kept_connection_that_died_is_replaced(get: Get) -> None:
    """Each connection takes one request and hangs up without saying so."""
    served: list[int] = []

    def answer(connection: socket.socket, number: int) -> None:
        served.append(number)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with Raw(answer) as server:
        answers = get(*[server.url + "/x"] * 20, size=2)
    assert [body(one) for one in answers] == [b"ok"] * 20
    assert len(served) == 20


def test_a_road_that_disappointed_stays_closed() -> None:
    burst = make(timeout=2)
    with serving(b"nonsense\r\n\r\n") as server:
        assert run(burst, server.url + "/x") == [None]
        asked = server.connections
        assert run(burst, server.url + "/y") == [None]
        assert server.connections == asked
    burst.close()


def test_behind_a_proxy_the_road_is_closed(get: Get) -> None:
    with Site({"/x": Reply(b"x")}) as site:
        assert get(site.url + "/x", env={"http_proxy": "http://127.0.0.1:9"}) == [None]
        assert body(get(site.url + "/x", env={"http_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1"})[0]) == b"x"
        assert site.asked("/x") == 1


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\0b", "caf\u00e9 \u4e2d"])
def test_a_request_that_http_cannot_say_is_not_sent(value: str) -> None:
    burst = make()
    with Site({"/x": Reply(b"x")}) as site:
        told: list[Plain | None] = []
        assert not burst.get(parse_address(site.url + "/x"), {"Accept": value}, MOST, told.append)
        burst.wait(0.0)
        assert told == []
        assert site.requests == []
        assert body(run(burst, site.url + "/x")[0]) == b"x", "the road stays open"
    burst.close()


def test_watched_descriptors_wake_the_one_that_waits() -> None:
    burst = make()
    reading, writing = os.pipe()
    heard: list[bytes] = []
    burst.watch(reading, lambda: heard.append(os.read(reading, 10)))
    burst.wait(0.0)
    assert heard == []
    os.write(writing, b"here")
    burst.wait(None)
    assert heard == [b"here"]
    burst.unwatch(reading)
    burst.close()
    os.close(reading)
    os.close(writing)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("burst-authority")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")),
        ],
        check=True,
        capture_output=True,
    )
    return folder


def test_tls_with_the_right_authority_and_without(get: Get, authority: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "cert.pem", authority / "key.pem")
    large = os.urandom(90_000)
    with Site({f"/{number}": Reply(large) for number in range(30)}, context=context) as site:
        urls = [f"{site.url}/{number}" for number in range(30)]
        assert [body(one) for one in get(*urls, cert=str(authority / "cert.pem"))] == [large] * 30
        assert get(urls[0]) == [None], "an unknown certificate"
        assert get(urls[0].replace("127.0.0.1", "localhost"), cert=str(authority / "cert.pem")) == [None], "another host's"
        plain = site.url.replace("https:", "http:")
        assert get(plain + "/0", timeout=2.0) == [None]


def test_ipv6(get: Get) -> None:
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        # A machine without IPv6: the road must end in None all the same.
        assert get("http://[::1]:9/x") == [None]
        return

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nv6")

    threading.Thread(target=serve, daemon=True).start()
    with listener:
        assert body(get(f"http://[::1]:{listener.getsockname()[1]}/x")[0]) == b"v6"
