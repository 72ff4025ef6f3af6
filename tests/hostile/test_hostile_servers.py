"""Indexes in trouble or ill-meaning: exit 42 (or pip's own) with the package and the place, and nothing half installed."""

from __future__ import annotations

import gzip
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from rocmpip.demo.site import Site
from tests.hostile.target import Target

pytestmark = pytest.mark.pip

QUICK = ("--retries", "0", "--timeout", "2")
Answer = Callable[[Site, str], "tuple[int, str, bytes] | None"]


class Raw:
    """A server that answers every connection by a function of the socket."""

    def __init__(self, answer: Callable[[socket.socket, str], None]) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._answer = answer
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65536)
                self._answer(connection, self.url)
            except OSError:
                pass

    def close(self) -> None:
        self._socket.close()


def _head(text: str, body: bytes = b"") -> Callable[[socket.socket, str], None]:
    return lambda connection, url: connection.sendall(text.replace("\n", "\r\n").replace("URL", url).encode("latin-1") + body)


def _endless(head: bytes, piece: bytes) -> Callable[[socket.socket, str], None]:
    def answer(connection: socket.socket, url: str) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(piece)

    return answer


BOMB = gzip.compress(b"\0" * 200_000_000, mtime=0)
RAW = {
    "stalls": lambda connection, url: time.sleep(30),
    "closes": lambda connection, url: None,
    "garbage": lambda connection, url: connection.sendall(bytes(range(256))),
    "endless page": _endless(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", b'<a href="x">' * 10000),
    "endless head": _endless(b"HTTP/1.1 200 OK\r\n", b"X-A: " + b"a" * 5000 + b"\r\n"),
    "redirects": _head("HTTP/1.1 302 Found\nLocation: URL/again\nContent-Length: 0\n\n"),
    "redirects to a file": _head("HTTP/1.1 302 Found\nLocation: file:///etc/passwd\nContent-Length: 0\n\n"),
    "escapes": _head("HTTP/1.1 500 \x1b[31mEVIL\x1b]0;x\x07\nContent-Length: 0\n\n"),
    "claims": _head("HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 99999999999999\n\n"),
    "bomb": _head(f"HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Encoding: gzip\nContent-Length: {len(BOMB)}\n\n", BOMB),
    "login page": _head("HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 20\n\n", b"<html>log in</html>\n"),
    "wait": _head("HTTP/1.1 503 Busy\nRetry-After: 99999\nContent-Length: 0\n\n"),
}


@pytest.mark.parametrize("kind", RAW)
def test_what_is_no_index(target: Target, kind: str) -> None:
    server = Raw(RAW[kind])  # type: ignore[arg-type]
    try:
        for words, env in (
            (("torch",), {"ROCMPIP_PYTORCH_URL": server.url}),
            (("einops",), {"PIP_INDEX_URL": server.url + "/simple"}),
        ):
            error = target.json("--dry-run", *words, *QUICK, code=42, timeout=60, **env)["errors"][0]
            assert words[0] in error["message"] and server.url in error["message"] and error["hint"]
            done = target.run("install", "--dry-run", *words, *QUICK, timeout=60, **env)
            assert done.returncode == 42
    finally:
        server.close()


@pytest.mark.parametrize("status", [500, 503, 429])
@pytest.mark.parametrize("host", ["pytorch", "download", "pypi", "files"])
def test_hosts_in_trouble(target: Target, host: str, status: int) -> None:
    site: Site = getattr(target.replica, host)
    site.failures["/"] = status
    done = target.run("install", "torch", "einops", *QUICK)
    assert done.returncode == 42
    assert site.url in done.stdout + done.stderr
    assert target.torch() in ("", "2.9.1+rocm6.4")
    target.replica.forget()
    target.ok("install", "-q", "torch", "einops")
    assert target.torch() == "2.9.1+rocm6.4"


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Answer], None]]:
    """``answers(f)``: f(site, path) may answer in a site's place."""
    original = Site.answer

    def put(function: Answer) -> None:
        def answer(self: Site, path: str, accept: str) -> tuple[int, str, bytes]:
            return function(self, path) or original(self, path, accept)

        monkeypatch.setattr(Site, "answer", answer)

    yield put


def _torch_wheel(path: str) -> bool:
    return "/torch-" in path and path.endswith(".whl")


WHEELS: dict[str, bytes] = {
    "truncated": b"PK\x03\x04" + b"\0" * 100,
    "other bytes": bytes(3000),
    "login page": b"<html>log in</html>",
}


@pytest.mark.parametrize("kind", WHEELS)
@pytest.mark.parametrize("before", ["", "2.8.0+rocm6.4"])
def test_a_torch_wheel_that_is_another(target: Target, answers: Callable[[Answer], None], kind: str, before: str) -> None:
    """The hash decides, at install time; the torch that was there stays whole."""
    if before:
        target.ok("install", "-q", "torch==2.8.0")
    answers(lambda site, path: (200, "x/y", WHEELS[kind]) if site is target.replica.download and _torch_wheel(path) else None)
    done = target.run("install", "torch==2.9.1", *QUICK)
    assert done.returncode == 1
    assert "torch" in done.stderr and target.replica.download.url in done.stderr
    assert target.torch() == before and not target.half_done()


def test_a_server_that_ends_between_plan_and_act(target: Target, answers: Callable[[Answer], None]) -> None:
    answers(lambda site, path: (404, "text/html", b"") if site is target.replica.download and path.endswith(".whl") else None)
    done = target.run("install", "torch", *QUICK)
    assert done.returncode == 1 and "404" in done.stderr and "torch 2.9.1+rocm6.4" in done.stderr
    told = target.json("torch", *QUICK, code=1)
    assert "torch 2.9.1+rocm6.4" in told["errors"][0]["message"] and target.installed() == {}


def test_metadata_that_is_promised_and_missing(target: Target, answers: Callable[[Answer], None]) -> None:
    answers(lambda site, path: (404, "text/html", b"") if path.endswith(".metadata") else None)
    target.ok("install", "-q", "torch", "einops")
    assert target.torch() == "2.9.1+rocm6.4"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/html", os.urandom(50_000)),
        ("text/html", b'<a href="numpy-1.0-py3-none-any.whl">numpy-1.0-py3-none-any.whl</a>'),
        ("text/plain", b"log in first"),
        ("application/vnd.pypi.simple.v1+json", b'{"files": 5, "name": []'),
        ("application/vnd.pypi.simple.v1+json", b'{"meta":{"api-version":"2.0"},"name":"einops","files":[]}'),
        ("application/vnd.pypi.simple.v1+json", b"[" * 100_000),
        ("application/vnd.pypi.simple.v1+json", b'{"meta":{"api-version":"1.0"},"name":"einops","files":[7,null]}'),
    ],
    ids=lambda value: str(len(value)) if isinstance(value, bytes) else "",
)
def test_pages_that_are_none(target: Target, answers: Callable[[Answer], None], kind: str, body: bytes) -> None:
    answers(lambda site, path: (200, kind, body) if path.rstrip("/").endswith(("/einops", "/torch")) else None)
    for name in ("einops", "torch"):
        error = target.json("--dry-run", name, *QUICK, code=42)["errors"][0]
        assert name in error["message"]
