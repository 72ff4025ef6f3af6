"""The server: one user, one secret path, small bounds, and a record of what was asked."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocmpip.model.errors import NetworkError, NoPlan, UsageError
from rocmpip.model.packages import File
from rocmpip.model.routing import Route
from rocmpip.router.alias import alias_wheel
from rocmpip.router.server import Router
from tests.router.router_upstream import Memory, ask

JSON = "application/vnd.pypi.simple.v1+json"
WHEEL = File("six-1-py3-none-any.whl", "https://h.example/six-1-py3-none-any.whl", {"sha256": "ab" * 32}, core_metadata="")
BARE = File("six-2-py3-none-any.whl", "https://h.example/six-2-py3-none-any.whl")
SDIST = File("six-3.tar.gz", "https://h.example/six-3.tar.gz")
LOCAL = File("six-4-py3-none-any.whl", "file:///wheels/six-4-py3-none-any.whl")
GUARDED = File("six-5-py3-none-any.whl", "https://private.example/six-5-py3-none-any.whl", core_metadata="sha256=" + "cd" * 32)
ALIAS = alias_wheel("triton", "3.5.1", "triton-rocm==3.5.1")
CALLS: list[str] = []


def route(name: str) -> Route:
    CALLS.append(name)
    if name == "six":
        return Route(name, "plain", ("a",))
    if name == "triton":
        return Route(name, "family", synthetic=(ALIAS,), because="one import, three names")
    if name == "nvidia-cublas-cu12":
        return Route(name, "forbidden", because="it is a CUDA package")
    if name == "down":
        return Route(name, "plain", ("down",))
    if name == "torch":
        raise NoPlan("no torch fits", hint="--gfx")
    if name == "bug":
        raise RuntimeError("a fault")
    return Route(name, "plain", ("a",))


@pytest.fixture
def memory() -> Memory:
    CALLS.clear()
    return Memory(
        pages={("a", "six"): (WHEEL, BARE, SDIST, LOCAL, GUARDED), ("down", "down"): NetworkError("down is down")},
        texts={BARE.url: b"Metadata-Version: 2.1\nName: six\n", GUARDED.url: b"Metadata-Version: 2.1\n"},
        bodies={GUARDED.url: bytes(range(256)) * 40},
        guarded=("https://private.example/",),
    )


@pytest.fixture
def router(memory: Memory) -> Iterator[Router]:
    with Router(route, memory) as router:
        yield router


def links(router: Router, name: str = "six") -> dict[str, dict[str, object]]:
    page = json.loads(ask(f"{router.url}{name}/", Accept=JSON).body)
    return {row["filename"]: row for row in page["files"]}


def test_a_page_as_json_and_html(router: Router) -> None:
    answer = ask(f"{router.url}six/", Accept=JSON)
    assert (answer.status, answer.headers["content-type"], answer.headers["cache-control"]) == (200, JSON, "no-store")
    answer = ask(f"{router.url}six/", Accept="text/html")
    assert answer.headers["content-type"].startswith("application/vnd.pypi.simple.v1+html")
    assert b'href="https://h.example/six-1-py3-none-any.whl#sha256=abab' in answer.body


def test_which_links_go_where(router: Router) -> None:
    rows = links(router)
    root = router.url.removesuffix("simple/") + "files/"
    assert (rows[WHEEL.filename]["url"], rows[WHEEL.filename]["core-metadata"]) == (WHEEL.url, True)
    assert rows[SDIST.filename]["url"] == SDIST.url
    assert rows[LOCAL.filename]["url"] == LOCAL.url
    # A wheel whose metadata must be dug out goes by us for that alone.
    assert str(rows[BARE.filename]["url"]).startswith(root)
    assert rows[BARE.filename]["core-metadata"] is True
    assert str(rows[GUARDED.filename]["url"]).startswith(root)
    assert rows[GUARDED.filename]["core-metadata"] == {"sha256": "cd" * 32}
    assert "core-metadata" not in rows[SDIST.filename]


def test_metadata_is_dug_out_and_the_file_comes_from_its_host(router: Router) -> None:
    link = str(links(router)[BARE.filename]["url"])
    assert ask(link + ".metadata").body == b"Metadata-Version: 2.1\nName: six\n"
    answer = ask(link)
    assert (answer.status, answer.headers["location"], answer.body) == (302, BARE.url, b"")


def test_what_an_index_does_not_advertise_is_left_to_pip_for_plain_names(memory: Memory) -> None:
    with Router(route, memory, direct=True) as router:
        row = links(router)[BARE.filename]
        assert row["url"] == BARE.url
        assert "core-metadata" not in row
        assert router.file_of(BARE.url) == BARE


def test_a_wheel_that_pip_would_not_trust_keeps_its_own_link(memory: Memory) -> None:
    memory.insecure = ("https://h.example/",)
    with Router(route, memory) as router:
        assert links(router)[BARE.filename]["url"] == BARE.url


def test_files_with_credentials_are_handed_on_with_ranges(router: Router, memory: Memory) -> None:
    link = str(links(router)[GUARDED.filename]["url"])
    data = memory.bodies[GUARDED.url]
    assert isinstance(data, bytes)
    whole = ask(link)
    assert (whole.status, whole.body, whole.headers["etag"]) == (200, data, '"e"')
    part = ask(link, Range="bytes=10000-")
    assert (part.status, part.body) == (206, data[10000:])
    assert part.headers["content-range"] == f"bytes 10000-{len(data) - 1}/{len(data)}"
    head = ask(link, "HEAD")
    assert (head.body, head.headers["content-length"]) == (b"", str(len(data)))


def test_files_with_credentials_are_linked_when_a_netrc_serves(memory: Memory) -> None:
    with Router(route, memory, stream=False) as router:
        assert links(router)[GUARDED.filename]["url"] == GUARDED.url


def test_an_upstream_that_breaks_off_is_a_short_answer(memory: Memory) -> None:
    memory.cut_after = 5000
    with Router(route, memory) as router:
        with pytest.raises(Exception, match="IncompleteRead"):
            ask(str(links(router)[GUARDED.filename]["url"]))
        assert ask(f"{router.url}six/").status == 200


def test_an_upstream_that_fails_is_recorded(memory: Memory) -> None:
    memory.bodies[GUARDED.url] = NetworkError("no file")
    memory.texts[BARE.url] = NetworkError("no metadata")
    with Router(route, memory) as router:
        rows = links(router)
        assert ask(str(rows[GUARDED.filename]["url"])).status == 404
        assert ask(str(rows[BARE.filename]["url"]) + ".metadata").status == 404
        assert [str(problem) for problem in router.errors] == ["no file", "no metadata"]


def test_alias_wheels_are_served(router: Router) -> None:
    row = links(router, "triton")[ALIAS.filename]
    assert ask(str(row["url"])).body == ALIAS.content
    assert ask(f"{row['url']}.metadata").body == ALIAS.metadata
    assert router.real_url(str(row["url"])) == ""
    assert router.file_of(str(row["url"])) is None


def test_links_lead_back_to_files(router: Router) -> None:
    rows = links(router)
    for file in (WHEEL, BARE, SDIST, LOCAL, GUARDED):
        link = str(rows[file.filename]["url"])
        assert router.real_url(link) == file.url
        assert router.real_url(f"{link}#sha256=1") == f"{file.url}#sha256=1"
        assert router.file_of(f"{link}#sha256=1") == file
    assert router.real_url("https://else.example/x") == "https://else.example/x"
    assert router.file_of("https://else.example/x") is None


def test_the_record_tells_apart_what_pip_cannot(router: Router) -> None:
    for name in ("six", "Torch", "nvidia-cublas-cu12", "down", "nothing", "bug", "six"):
        status = ask(f"{router.url}{name}/").status
        assert status == (200 if name == "six" else 404)
    found = {record.name: record for record in router.asked}
    assert [record.name for record in router.asked] == ["six", "torch", "nvidia-cublas-cu12", "down", "nothing", "bug"]
    assert (found["six"].kind, found["six"].status, found["six"].candidates) == ("plain", 200, 5)
    assert isinstance(found["torch"].error, NoPlan)
    assert isinstance(found["down"].error, NetworkError)
    assert found["nothing"].absent == ("a: HTTP 404",)
    assert [record.name for record in router.forbidden] == ["nvidia-cublas-cu12"]
    assert [type(problem).__name__ for problem in router.errors] == ["NoPlan", "NetworkError", "InternalError"]


def test_a_route_is_asked_for_once(router: Router) -> None:
    threads = [threading.Thread(target=ask, args=(f"{router.url}{name}/",)) for name in ("six", "SIX", "s.i-x", "six") * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(CALLS) == ["s-i-x", "six"]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/simple/six/",
        "/{token}x/simple/six/",
        "/{token}/",
        "/{token}/other/six/",
        "/{token}/simple/../six/",
        "/{token}/simple/six/six-1-py3-none-any.whl",
        "/{token}/simple/%2e%2e/",
        "/{token}/simple/a%0d%0ab/",
        "/{token}/simple/" + "x" * 300 + "/",
        "/{token}/files/",
        "/{token}/files/0000/x.whl",
        "/{token}/files/https://h.example/six-1-py3-none-any.whl",
        "//{token}/simple/six/",
        "http://h.example/{token}/simple/six/",
    ],
)
def test_other_paths_are_not_found(router: Router, path: str) -> None:
    token = router.url.split("/")[3]
    target = path.format(token=token)
    with socket.create_connection(("127.0.0.1", router.port)) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\r\nConnection: close\r\n\r\n".encode())
        assert connection.makefile("rb").readline().startswith(b"HTTP/1.1 404")


@pytest.mark.parametrize(
    "data",
    [
        b"GET\r\n\r\n",
        b"\x00\xff\x16\x03\x01\r\n\r\n",
        b"GET / HTTP/2.0\r\n\r\n",
        b"GET / HTTP/1.1\r\nnocolon\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"GET /" + b"x" * 20000,
        b"POST / HTTP/1.1\r\n\r\n",
        b"DELETE / HTTP/1.1\r\n\r\n",
    ],
)
def test_abuse_is_answered_and_closed(router: Router, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", router.port), timeout=10) as connection:
        connection.sendall(data)
        answer = connection.makefile("rb").read()
    assert answer.split(b" ")[1] in (b"400", b"405")
    assert ask(f"{router.url}six/").status == 200


def test_connections_are_kept_and_requests_may_come_in_one_packet(router: Router) -> None:
    path = "/" + router.url.split("/", 3)[3]
    with socket.create_connection(("127.0.0.1", router.port), timeout=10) as connection:
        connection.sendall((f"HEAD {path}six/ HTTP/1.1\r\n\r\n" * 3).encode() + b"GET / HTTP/1.0\r\n\r\n")
        assert connection.makefile("rb").read().count(b"HTTP/1.1 ") == 4


def test_more_connections_than_allowed_wait_for_their_turn(router: Router, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocmpip.router.loopback._CONNECTIONS", 2)
    held = [socket.create_connection(("127.0.0.1", router.port)) for _ in range(2)]
    answers: list[int] = []
    late = threading.Thread(target=lambda: answers.append(ask(f"{router.url}six/").status))
    late.start()
    late.join(0.1)
    assert answers == []
    for connection in held:
        connection.close()
    late.join(10)
    assert answers == [200]


def test_the_root_page_lists_what_was_asked(router: Router) -> None:
    ask(f"{router.url}six/")
    assert json.loads(ask(router.url, Accept=JSON).body)["projects"] == [{"name": "six"}]
    assert b'href="six/"' in ask(router.url).body


def test_another_user_is_closed_out_and_so_is_root_unless_it_is_ours(router: Router) -> None:
    code = (
        "import os, socket\n"
        "'a'.encode('idna')  # loaded now: the other user may not read our Python's folder\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        f"peer = socket.create_connection(('127.0.0.1', {router.port}))\n"
        "try:\n"
        "    peer.sendall(b'GET / HTTP/1.1\\r\\n\\r\\n')\n"
        "    print(len(peer.recv(100)))\n"
        "except ConnectionError:\n"
        "    print(0)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True).stdout
    if os.getuid() == 0:
        assert told == "0\n"
        assert router.refused == 1
    else:
        assert int(told) > 0
    assert ask(f"{router.url}six/").status == 200


def test_a_peer_of_another_uid_is_refused_whoever_we_are(router: Router, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocmpip.router.loopback.peer_uid", lambda connection: os.geteuid() + 1)
    with pytest.raises(OSError, match=r".*"):
        ask(f"{router.url}six/")
    monkeypatch.setattr("rocmpip.router.loopback.peer_uid", lambda connection: None)
    with pytest.raises(OSError, match=r".*"):
        ask(f"{router.url}six/")
    assert router.refused == 2


def test_a_client_over_ipv6_mapped_addresses_is_known_too(router: Router) -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(("::ffff:127.0.0.1", router.port))
        except OSError:
            assert not Path("/proc/net/if_inet6").exists()  # a machine without IPv6 has no such clients
            return
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 404")


def test_where_the_kernel_does_not_tell_the_path_alone_guards(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Router(route, memory) as router:
        assert router.uid_checked
    (tmp_path / "tcp").write_text("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n")
    for tables in ((tmp_path / "tcp", tmp_path / "none"), (tmp_path / "none", tmp_path / "none")):
        monkeypatch.setattr("rocmpip.router.peer._TABLES", tables)
        with Router(route, memory) as router:
            assert not router.uid_checked
            assert ask(f"{router.url}six/").status == 200


def test_only_loopback_listens(router: Router) -> None:
    with open("/proc/net/tcp", encoding="ascii") as table:
        rows = [
            line.split()[1] for line in table if line.split()[1].endswith(f":{router.port:04X}") and line.split()[3] == "0A"
        ]
    assert rows == [f"0100007F:{router.port:04X}"]


def test_nothing_is_open_after_close(memory: Memory) -> None:
    with pytest.raises(KeyError), Router(route, memory) as router:
        kept = socket.create_connection(("127.0.0.1", router.port))
        raise KeyError("an exception in the block")
    with kept:
        kept.settimeout(10)
        with contextlib.suppress(ConnectionResetError):  # it may still have been waiting to be accepted
            assert kept.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", router.port))
    router.close()
    Router(route, memory, port=router.port).start().close()


def test_a_port_that_is_taken_is_told(router: Router, memory: Memory) -> None:
    for port in (router.port, 99999):
        with pytest.raises(UsageError, match=f"127.0.0.1:{port}"):
            Router(route, memory, port=port).start()


def test_the_path_is_a_secret_of_its_own_each_time(memory: Memory) -> None:
    with Router(route, memory) as one, Router(route, memory) as two:
        assert one.url.split("/")[3] != two.url.split("/")[3]
        assert len(one.url.split("/")[3]) >= 32
    with Router(route, memory, token="a-token-of-the-user") as named:
        assert "/a-token-of-the-user/simple/" in named.url
    for bad in ("short", "sl/ash/sl/ash/sl/ash", "x" * 16 + "\n"):
        with pytest.raises(UsageError, match="token"):
            Router(route, memory, token=bad)


def test_what_is_expected_is_ready_before_it_is_asked_for(memory: Memory) -> None:
    names = ("six", "triton", "torch", "nothing")
    with Router(route, memory) as asked:
        words = {name: ask(f"{asked.url}{name}/", Accept=JSON) for name in names}
        there = asked.url.removesuffix("simple/").encode()
    CALLS.clear()
    with Router(route, memory) as router:
        router.expect(["Six", "torch", "triton", "bug", "nothing"])
        end = threading.Event()
        while len(CALLS) < 5:
            assert not end.wait(0.01)
        for name, before in words.items():
            now = ask(f"{router.url}{name}/", Accept=JSON)
            assert now.status == before.status
            assert now.body == before.body.replace(there, router.url.removesuffix("simple/").encode())
        assert links(router).keys() == {WHEEL.filename, BARE.filename, SDIST.filename, LOCAL.filename, GUARDED.filename}
        assert CALLS == ["six", "torch", "triton", "bug", "nothing"], "each was worked out once, in this order"


def test_expecting_ends_with_the_router(memory: Memory) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow(name: str) -> Route:
        CALLS.append(name)
        begun.set()
        assert go.wait(20)
        return route("six")

    with Router(slow, memory) as router:
        router.expect(["one", "two", "three"])
        assert begun.wait(20)
    go.set()
    for thread in threading.enumerate():
        if thread.name == "rocmpip-expect":
            thread.join(20)
    assert CALLS == ["one", "six"]
