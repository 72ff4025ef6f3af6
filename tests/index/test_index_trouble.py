"""Servers that stall, cut, lie about lengths, are busy, or send in circles: an error in time, which names URL and package."""

from __future__ import annotations

import gzip
import socket
import time
from collections.abc import Callable

import pytest

from rocmpip.index.client import Client, Limits
from rocmpip.model.errors import NetworkError
from rocmpip.model.packages import Absent, Page
from tests.index.index_server import JSON, Raw, Reply, Site, json_page

Make = Callable[..., Client]
BODY = json_page("torch", [{"filename": "torch-1-py3-none-any.whl", "url": "x"}]).body
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: " + JSON.encode() + b"\r\n"


def failure(client: Client, index: str) -> NetworkError:
    with pytest.raises(NetworkError) as caught:
        client.page(index, "torch")
    assert "torch" in caught.value.message
    assert f"{index}/torch/" in caught.value.message
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_busy_then_well(site: Site, make_client: Make, status: int) -> None:
    answers = iter([Reply(status=status), Reply(b"x" * 100000, status), json_page("torch", [])])
    site.paths["/s/torch/"] = lambda handler: next(answers)
    assert isinstance(make_client().page(f"{site.url}/s", "torch"), Absent)
    assert site.asked("/s/torch/") == 3


def test_busy_for_ever_ends_after_the_retries(site: Site, make_client: Make) -> None:
    site.paths["/s/torch/"] = Reply(status=503)
    problem = failure(make_client(retries=2), f"{site.url}/s")
    assert "HTTP 503 (3 tries)" in problem.why
    assert site.asked("/s/torch/") == 3


def test_too_many_requests_waits_as_long_as_told(site: Site, make_client: Make) -> None:
    answers = iter([Reply(status=429, headers={"Retry-After": "2"}), json_page("torch", [])])
    site.paths["/s/torch/"] = lambda handler: next(answers)
    client = make_client()
    waits: list[float] = []
    client.fetcher._sleep = waits.append
    assert isinstance(client.page(f"{site.url}/s", "torch"), Absent)
    assert waits == [2.0]


def test_a_date_in_retry_after(site: Site, make_client: Make) -> None:
    from email.utils import formatdate

    answers = iter([Reply(status=503, headers={"Retry-After": formatdate(time.time() - 9)}), json_page("torch", [])])
    site.paths["/s/torch/"] = lambda handler: next(answers)
    assert isinstance(make_client().page(f"{site.url}/s", "torch"), Absent)


def test_a_wait_beyond_the_limit_is_told_at_once(site: Site, make_client: Make) -> None:
    site.paths["/s/torch/"] = Reply(status=429, headers={"Retry-After": "3600"})
    problem = failure(make_client(), f"{site.url}/s")
    assert "429" in problem.why
    assert "3600 s" in problem.hint
    assert site.asked("/s/torch/") == 1


def test_redirects_in_a_circle(site: Site, make_client: Make) -> None:
    site.paths["/s/torch/"] = Reply(status=302, headers={"Location": "/t"})
    site.paths["/t"] = Reply(status=302, headers={"Location": "/s/torch/"})
    assert "circle" in failure(make_client(), f"{site.url}/s").why
    assert site.asked("/s/torch/") == 1


def test_too_many_redirects(site: Site, make_client: Make) -> None:
    count = iter(range(1000))
    for path in ("/s/torch/", *(f"/{n}" for n in range(20))):
        site.paths[path] = lambda handler: Reply(status=302, headers={"Location": f"/{next(count)}"})
    assert "redirects more than" in failure(make_client(), f"{site.url}/s").why


@pytest.mark.parametrize("location", ["", "http://[", "ftp://h/", "http://a b/", "http://h:99999/", "\x01"])
def test_redirects_to_nowhere(site: Site, make_client: Make, location: str) -> None:
    site.paths["/s/torch/"] = Reply(status=302, headers={"Location": location})
    failure(make_client(retries=0), f"{site.url}/s")


def out_of_time(make_client: Make, server: Raw, **options: float) -> NetworkError:
    limits = Limits(page_seconds=0.4, backoff=0.001)
    return failure(make_client(limits=limits, **{"timeout": 0.1, "retries": 1, **options}), server.url)


def test_a_server_that_says_nothing(make_client: Make) -> None:
    with Raw(lambda connection, number: server.over.wait(20)) as server:
        problem = out_of_time(make_client, server)
        assert "nothing for 0.1 s" in problem.why
        assert server.connections == 2


def test_a_server_that_stalls_in_the_body(make_client: Make) -> None:
    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\n{")
        server.over.wait(20)

    with Raw(answer) as server:
        problem = out_of_time(make_client, server)
        assert "nothing for 0.1 s" in problem.why


@pytest.mark.parametrize(
    "head", [b"", HEAD + b"Content-Length: 100000\r\n\r\n", HEAD + b"Transfer-Encoding: chunked\r\n\r\nffff\r\n"]
)
def test_a_server_that_trickles(make_client: Make, head: bytes) -> None:
    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(head)
        while not server.over.wait(0.02):
            connection.sendall(b"H")

    with Raw(answer) as server:
        problem = out_of_time(make_client, server, timeout=5)
        assert "no complete answer within 0.4 s" in problem.why


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Len",
        HEAD + b"Content-Length: 1000\r\n\r\n" + BODY,
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabcde\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nabcde\r\n",
        HEAD + b"Content-Length: 10\r\n\r\n" + BODY,
        HEAD + b"Content-Length: many\r\n\r\n" + BODY,
        HEAD + b"Content-Length: 5\r\nContent-Length: 9\r\n\r\n" + BODY,
        HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(BODY, mtime=0)[:-12],
        HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(BODY, mtime=0)[:20] + b"garbage" * 9,
        HEAD + b"Content-Encoding: gzip\r\n\r\n" + BODY,
        HEAD + b"Content-Encoding: br\r\n\r\n" + BODY,
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50000 + b"\r\n",
        b"\x15\x03\x03\x00\x02\x02\x46" * 3 + b"\r\n\r\n",
    ],
)
def test_a_server_that_cuts_or_lies(make_client: Make, answer: bytes) -> None:
    with Raw(lambda connection, number: connection.sendall(answer)) as server:
        failure(make_client(retries=1), server.url)
        assert 1 <= server.connections <= 2


def test_a_cut_is_mended_by_the_next_try(make_client: Make) -> None:
    def answer(connection: socket.socket, number: int) -> None:
        length = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(BODY)
        connection.sendall(HEAD + length + (BODY[:20] if number == 1 else BODY))

    with Raw(answer) as server:
        assert isinstance(make_client().page(server.url, "torch"), Page)


def test_left_over_bytes_are_not_taken_for_the_next_answer(make_client: Make) -> None:
    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY + b"HTTP/1.1 404 No\r\n\r\n")
        server.over.wait(5)

    with Raw(answer) as server:
        client = make_client()
        assert isinstance(client.page(server.url, "torch"), Page)
        assert isinstance(client.page(server.url, "Torch".lower()), Page)
        assert isinstance(client.page(server.url + "/other", "torch"), Page)
        assert server.connections == 2


def test_a_kept_connection_that_died_is_replaced(make_client: Make) -> None:
    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)

    with Raw(answer) as server:
        client = make_client(retries=0)
        for number in range(5):
            assert isinstance(client.page(f"{server.url}/{number}", "torch"), Page)


def test_a_page_of_200_megabytes_is_left(make_client: Make) -> None:
    sent = 0

    def answer(connection: socket.socket, number: int) -> None:
        nonlocal sent
        connection.sendall(HEAD + b"\r\n" + b'{"files": [')
        while sent < 200 * 2**20:
            sent += connection.send(b" " * 2**16)

    with Raw(answer) as server:
        assert "more than 67108864 bytes" in failure(make_client(), server.url).why
        assert sent < 100 * 2**20


def test_a_page_that_says_it_has_200_megabytes_is_not_read(make_client: Make) -> None:
    with Raw(lambda connection, number: connection.sendall(HEAD + b"Content-Length: 209715200\r\n\r\n")) as server:
        assert "209715200 bytes" in failure(make_client(), server.url).why
        assert server.connections == 1


def test_a_small_answer_that_inflates_without_end(make_client: Make) -> None:
    import zlib

    engine = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(engine.compress(b" " * 2**20) for _ in range(200)) + engine.flush()
    head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    with Raw(lambda connection, number: connection.sendall(head + bomb)) as server:
        assert "more than" in failure(make_client(), server.url).why


def test_no_server(make_client: Make) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        problem = failure(make_client(retries=1), f"http://127.0.0.1:{unused.getsockname()[1]}")
    assert "refused" in problem.why
    assert "2 tries" in problem.why


def test_a_name_that_does_not_exist(make_client: Make) -> None:
    assert "cannot be found" in failure(make_client(retries=0), "https://index.invalid/simple").why


@pytest.mark.parametrize("url", ["https://", "https://h:port/x", "https://[::1/x", "https://exa mple/x"])
def test_urls_that_are_none(make_client: Make, url: str) -> None:
    with pytest.raises(NetworkError):
        make_client(retries=0).page(url, "torch")


def test_errors_hold_no_credentials(site: Site, make_client: Make) -> None:
    site.paths["/s/torch/"] = Reply(status=500)
    url = f"http://me:s3cret@127.0.0.1:{site.port}/s"
    with pytest.raises(NetworkError) as caught:
        make_client(index_url=url, retries=0).page(url, "torch")
    assert "s3cret" not in str(caught.value.as_json())
