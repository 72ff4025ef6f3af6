"""Servers for the index client's tests: one that speaks HTTP, one that does with a socket whatever a test wants."""

from __future__ import annotations

import base64
import hashlib
import http.server
import io
import json
import socket
import ssl
import threading
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from typing_extensions import Self

JSON = "application/vnd.pypi.simple.v1+json"


@dataclass(frozen=True)
class Reply:
    """What a path answers. ``ranges``: honour Range requests."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    ranges: bool = False
    suffix_ranges: bool = True


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        site: Site = self.server.site  # type: ignore[attr-defined]
        path = unquote(self.path.partition("?")[0])
        site.peers.add(self.client_address)
        site.requests.append((path, {key.lower(): value for key, value in self.headers.items()}))
        made = site.paths.get(path, Reply(status=404))
        reply = made(self) if callable(made) else made
        if reply is None:
            return
        body, status, headers = reply.body, reply.status, dict(reply.headers)
        wanted = self.headers.get("Range", "")
        if reply.ranges and wanted.startswith("bytes=") and (reply.suffix_ranges or not wanted.startswith("bytes=-")):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start = int(first) if first else max(0, len(body) - int(last))
            end = min(len(body), int(last) + 1) if first and last else len(body)
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(body)}"
            body, status = body[start:end], 206
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        if "Content-Length" not in headers and "Transfer-Encoding" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


Answer = Reply | Callable[[Any], "Reply | None"]


class Site:
    """An HTTP server on 127.0.0.1: ``paths`` maps a path to a Reply, or to a function of the handler that makes one."""

    def __init__(self, paths: Mapping[str, Answer] | None = None, *, context: ssl.SSLContext | None = None) -> None:
        self.paths: dict[str, Answer] = dict(paths or {})
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.peers: set[tuple[str, int]] = set()
        """The other end of each connection that something was asked on."""
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.site = self  # type: ignore[attr-defined]
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self.url = f"{'http' if context is None else 'https'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def asked(self, path: str) -> int:
        return sum(1 for each, _ in self.requests if each == path)

    def __enter__(self) -> Site:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()


class Listener:
    """A socket on 127.0.0.1; each connection to it is talked with in a thread of its own."""

    def __init__(self) -> None:
        self.connections = 0
        self.over = threading.Event()
        """Set at the end, for answers that wait."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.place = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.place}"

    def talk(self, connection: socket.socket, number: int) -> None:
        """What is done with the ``number``-th connection, the first being 1."""
        raise NotImplementedError

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.talk, args=(connection, self.connections), daemon=True).start()

    def __enter__(self) -> Self:
        threading.Thread(target=self._run, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


class Raw(Listener):
    """A server that reads a request's head and lets ``answer(connection, number)`` do what it wants with the socket."""

    def __init__(self, answer: Callable[[socket.socket, int], None]) -> None:
        super().__init__()
        self._answer = answer

    def talk(self, connection: socket.socket, number: int) -> None:
        with connection:
            data = b""
            try:
                while b"\r\n\r\n" not in data:
                    more = connection.recv(4096)
                    if not more:
                        return
                    data += more
                self._answer(connection, number)
            except OSError:
                return


def json_page(name: str, files: Sequence[Mapping[str, object]], **headers: str) -> Reply:
    """A PEP 691 page."""
    page = {"meta": {"api-version": "1.1"}, "name": name, "files": list(files)}
    return Reply(json.dumps(page).encode(), headers={"Content-Type": JSON, **headers})


def html_page(text: str, **headers: str) -> Reply:
    return Reply(text.encode(), headers={"Content-Type": "text/html; charset=utf-8", **headers})


def wheel(
    name: str, version: str, requires: Sequence[str] = (), *, padding: int = 0, requires_python: str = ""
) -> tuple[str, bytes, bytes]:
    """(file name, wheel, METADATA) of a small valid wheel; ``padding`` bytes of code that do not compress, in front."""
    import random

    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Python: {requires_python}"] if requires_python else []
    lines += [f"Requires-Dist: {each}" for each in requires]
    metadata = ("\n".join(lines) + "\n").encode()
    base = f"{name.replace('-', '_')}-{version}"
    members = {
        f"{name.replace('-', '_')}_data.bin": random.Random(7).randbytes(padding),
        f"{base}.dist-info/METADATA": metadata,
        f"{base}.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for path, data in members.items()
    )
    members[f"{base}.dist-info/RECORD"] = (record + f"{base}.dist-info/RECORD,,\n").encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, data in members.items():
            archive.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), data)
    return f"{base}-py3-none-any.whl", buffer.getvalue(), metadata


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
