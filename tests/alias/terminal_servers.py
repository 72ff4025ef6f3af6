"""For tests in a terminal: a machine whose installs are routed, an index that asks for a password, one that stops half-way."""

from __future__ import annotations

import base64
import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from rocmpip.demo.wheels import Wheel


def routed_env(env: Mapping[str, str], folder: Path, python: Path) -> dict[str, str]:
    """``env`` on a machine with a GPU, with the environment of ``python`` active; what is kept goes into ``folder``."""
    (folder / "sysroot").mkdir()
    return {
        **env, "ROCMPIP_SYSROOT": str(folder / "sysroot"), "ROCMPIP_GFX": "gfx942", "ROCMPIP_ROCM": "6.4",
        "ROCMPIP_CACHE_DIR": str(folder / "cache"), "ROCMPIP_STATE_DIR": str(folder / "state"), "TERM": "xterm",
        "VIRTUAL_ENV": str(python.parent.parent),
    }  # fmt: skip


class Private(BaseHTTPRequestHandler):
    """An index with one wheel, for who knows the password."""

    wheel = Wheel("private-thing", "1.0")
    secret = "Basic " + base64.b64encode(b"me:tr0ub4dor").decode()

    def do_GET(self) -> None:
        if self.headers.get("Authorization") != self.secret:
            self._answer(401, b"", "text/plain")
        elif self.path == "/simple/private-thing/":
            page = f'<!DOCTYPE html><html><body><a href="/files/{self.wheel.filename}">{self.wheel.filename}</a></body></html>'
            self._answer(200, page.encode(), "text/html")
        elif self.path == f"/files/{self.wheel.filename}":
            self._answer(200, self.wheel.content, "application/octet-stream")
        else:
            self._answer(404, b"", "text/plain")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="private"')
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Slow(BaseHTTPRequestHandler):
    """An index with one large wheel, whose second half comes when the test says so."""

    wheel = Wheel("large-thing", "1.0", files={"large/data.bin": random.Random(1).randbytes(3_000_000)})
    rest = threading.Event()

    def do_GET(self) -> None:
        page = f'<!DOCTYPE html><html><body><a href="/files/{self.wheel.filename}">{self.wheel.filename}</a></body></html>'
        file = self.path.startswith("/files/") and not self.path.endswith(".metadata")
        body = self.wheel.content if file else page.encode()
        first, last = 0, len(body)
        wanted = self.headers.get("Range", "").removeprefix("bytes=")
        if wanted:
            start, _, end = wanted.partition("-")
            first, last = (int(start), int(end) + 1 if end else last) if start else (last - int(end), last)
        self.send_response(206 if wanted else 404 if self.path.endswith(".metadata") else 200)
        self.send_header("Content-Type", "application/octet-stream" if file else "text/html")
        self.send_header("Content-Length", str(last - first))
        self.send_header("Content-Range", f"bytes {first}-{last - 1}/{len(body)}")
        self.end_headers()
        half = first + (last - first) // 2
        self.wfile.write(body[first:half])
        if file and not wanted:
            self.rest.wait(60)
        self.wfile.write(body[half:last])

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def private_index() -> Iterator[str]:
    with _serving(Private) as index:
        yield index


@contextmanager
def slow_index() -> Iterator[tuple[str, threading.Event]]:
    """Its URL, and the event that lets the second half of its wheel come."""
    Slow.rest.clear()
    with _serving(Slow) as index:
        try:
            yield index, Slow.rest
        finally:
            Slow.rest.set()


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/simple"
        finally:
            server.shutdown()
            thread.join()
