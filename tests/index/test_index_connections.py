"""Connections: kept where that is safe, never shared with a child, and no HTTP library where none is needed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmpip.index.client import Client
from rocmpip.model.errors import NetworkError
from rocmpip.model.packages import Absent, File, Page
from tests.index.index_server import JSON, Raw, json_page

Make = Callable[..., Client]
BODY = json_page("torch", [{"filename": "torch-1-py3-none-any.whl", "url": "x"}]).body
OK = b"HTTP/1.1 200 OK\r\nContent-Type: " + JSON.encode() + b"\r\n"
WHOLE = OK + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)


def requests(connection: socket.socket, answer: Callable[[bytes], None]) -> None:
    """Call ``answer`` with the head of each request; the first was read by the server already."""
    answer(b"")
    while True:
        data = b""
        while b"\r\n\r\n" not in data:
            more = connection.recv(4096)
            if not more:
                return
            data += more
        answer(data)


def serving(data: bytes) -> Raw:
    """A server that keeps its connections and answers every request with the same bytes."""
    return Raw(lambda connection, number: requests(connection, lambda head: connection.sendall(data)))


def ask(client: Client, server: Raw, times: int) -> None:
    for number in range(times):
        assert isinstance(client.page(f"{server.url}/{number}", "torch"), Page | Absent)


@pytest.mark.parametrize(
    "answer",
    [
        WHOLE,
        CHUNKED,
        OK + b"Transfer-Encoding: chunked\r\n\r\n%x;ext=1\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY),
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_a_connection_is_used_again(make_client: Make, answer: bytes) -> None:
    with serving(answer) as server:
        ask(make_client(), server, 4)
        assert server.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY,
        WHOLE.replace(b"HTTP/1.1", b"HTTP/1.0"),
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 70000\r\n\r\n" + b"x" * 70000,
        WHOLE + b"x",
        WHOLE + WHOLE,
        CHUNKED + b"HTTP/1.1 404 No\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\nbody all the same",
    ],
)
def test_a_connection_is_not_used_again(make_client: Make, answer: bytes) -> None:
    with serving(answer) as server:
        ask(make_client(), server, 3)
        assert server.connections == 3


def test_an_answer_in_small_pieces_and_left_over_bytes_in_the_last(make_client: Make) -> None:
    def answer(connection: socket.socket, number: int) -> None:
        for data in (*(WHOLE[place : place + 1] for place in range(len(WHOLE) - 1)), WHOLE[-1:] + CHUNKED):
            connection.sendall(data)
        server.over.wait(5)

    with Raw(answer) as server:
        ask(make_client(), server, 2)
        assert server.connections == 2


def test_after_a_hint_of_what_is_to_come_the_answer_counts(make_client: Make) -> None:
    with serving(b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" + WHOLE) as server:
        ask(make_client(), server, 2)


def test_another_protocol_is_no_answer(make_client: Make) -> None:
    with serving(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n") as server:
        with pytest.raises(NetworkError, match="torch") as caught:
            make_client().page(server.url, "torch")
        assert "does not speak HTTP/1.1" in caught.value.why
        assert server.connections == 1


def test_the_head_of_a_file_leaves_its_connection_in_order(make_client: Make) -> None:
    with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n") as server:
        client = make_client()
        for _ in range(3):
            with client.open(File("x.whl", f"{server.url}/x.whl"), method="HEAD") as response:
                assert response.headers["content-length"] == "1000000"
                assert list(response.chunks()) == []
        assert server.connections == 1


def test_a_body_left_half_way_costs_its_connection(make_client: Make) -> None:
    with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + bytes(1000000)) as server:
        client = make_client()
        for _ in range(2):
            with client.open(File("x.whl", f"{server.url}/x.whl")) as response:
                assert next(response.chunks())
        assert server.connections == 2


def test_a_child_does_not_speak_on_its_makers_connections(make_client: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(WHOLE) as server:
        client = make_client()
        ask(client, server, 1)
        monkeypatch.setattr(os, "getpid", lambda: -1)
        assert isinstance(client.page(f"{server.url}/child", "torch"), Page)
        assert server.connections == 2


def test_kept_connections_that_all_died_are_replaced(make_client: Make) -> None:
    """The server reads the second request of a connection and hangs up: only then can a client know that it was too late."""

    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(WHOLE)
        connection.recv(1)

    with Raw(answer) as server:
        ask(make_client(retries=0), server, 4)
        assert server.connections == 4


def test_a_request_that_http_cannot_say_is_not_sent(make_client: Make) -> None:
    with serving(WHOLE) as server:
        client = make_client()
        with (
            pytest.raises(NetworkError, match=r"x\.whl") as caught,
            client.open(File("x.whl", f"{server.url}/x.whl"), headers={"Range": "a\r\nX: y"}),
        ):
            pass
        assert "cannot be sent" in caught.value.why
        with client.open(File("x.whl", f"{server.url}/x.whl"), headers={"If-Range": '"é€"'}) as response:
            assert response.status == 200


LIBRARIES = ("httpcore", "httpx", "h11", "certifi", "anyio", "ssl", "http.client")


def test_what_is_in_the_cache_needs_no_http_library(make_client: Make, tmp_path: Path) -> None:
    code = textwrap.dedent(f"""
        import pathlib, sys
        from rocmpip.index.client import Client
        from rocmpip.index.fast import FastPages
        from rocmpip.model.packages import File, Page
        from rocmpip.model.request import IndexOptions

        class Cache:
            def get(self, kind, key):
                path = pathlib.Path({str(tmp_path)!r}) / f"{{kind}}-{{key}}"
                return path.read_bytes() if path.exists() else None
            def put(self, kind, key, data):
                (pathlib.Path({str(tmp_path)!r}) / f"{{kind}}-{{key}}").write_bytes(data)

        client = Client(IndexOptions(), cache=Cache(), env={{}})
        page = client.page(sys.argv[1], "torch")
        assert isinstance(page, Page)
        assert client.metadata(File("torch-1-py3-none-any.whl", sys.argv[1] + "/torch-1-py3-none-any.whl", core_metadata=""))
        print(*[name for name in {LIBRARIES!r} if name in sys.modules])
    """)

    def run(url: str) -> str:
        done = subprocess.run([sys.executable, "-c", code, url], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    fresh = WHOLE.replace(b"\r\n", b"\r\nCache-Control: max-age=600\r\n", 1)
    metadata = b"Metadata-Version: 2.1\nName: torch\nVersion: 1\n"

    def answer(connection: socket.socket, number: int) -> None:
        # The page first, then the metadata, on one connection.
        connection.sendall(fresh)
        requests(
            connection,
            lambda head: (
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(metadata), metadata))
                if head
                else None
            ),
        )

    with Raw(answer) as server:
        assert "httpcore" in run(server.url)
        url = server.url
    assert run(url) == ""
