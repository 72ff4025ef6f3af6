"""Loopback hosts that answer as real indexes do: PEP 503 HTML, PEP 691 JSON, PEP 658 metadata, ranges, 403 or 404."""

from __future__ import annotations

import html
import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from rocmpip.demo.wheels import Artifact, Wheel
from rocmpip.model.packages import normalise

JSON_TYPE = "application/vnd.pypi.simple.v1+json"
Link = Callable[[Artifact], str]
"""Where a page links an artifact to: an absolute URL or one relative to the page."""


@dataclass
class Shelf:
    """The projects of one index.

    ``hashes`` and ``core_metadata`` say what its pages tell of files; ``link`` is the default place of its files
    (a project may have its own, as the SDK pages on pytorch.org have).
    """

    link: Link
    hashes: bool = True
    core_metadata: bool = True
    projects: dict[str, list[tuple[Artifact, Link]]] = field(default_factory=dict)

    def add(self, artifacts: Iterable[Artifact], link: Link | None = None) -> None:
        for artifact in artifacts:
            self.projects.setdefault(artifact.project, []).append((artifact, link or self.link))

    def as_html(self, name: str) -> str:
        rows = []
        for artifact, link in self.projects[name]:
            href = link(artifact) + (f"#sha256={artifact.sha256}" if self.hashes else "")
            attributes = [f'href="{html.escape(href)}"']
            if artifact.requires_python:
                attributes.append(f'data-requires-python="{html.escape(artifact.requires_python)}"')
            if self.core_metadata and isinstance(artifact, Wheel):
                told = f"sha256={artifact.metadata_sha256}" if self.hashes else "true"
                attributes += [f'data-dist-info-metadata="{told}"', f'data-core-metadata="{told}"']
            if artifact.yanked is not None:
                attributes.append(f'data-yanked="{html.escape(artifact.yanked)}"')
            if self.hashes:
                attributes.append(f'data-upload-time="{artifact.upload_time}"')
            rows.append(f"    <a {' '.join(attributes)}>{html.escape(artifact.filename)}</a><br/>")
        body = "\n".join(rows)
        return f"<!DOCTYPE html>\n<html>\n  <body>\n    <h1>Links for {name}</h1>\n{body}\n  </body>\n</html>\n"

    def as_json(self, name: str) -> str:
        files = []
        for artifact, link in self.projects[name]:
            row: dict[str, object] = {
                "filename": artifact.filename,
                "url": link(artifact),
                "hashes": {"sha256": artifact.sha256} if self.hashes else {},
                "size": len(artifact.content),
                "upload-time": artifact.upload_time,
                "yanked": artifact.yanked if artifact.yanked is not None else False,
            }
            if artifact.requires_python:
                row["requires-python"] = artifact.requires_python
            if self.core_metadata and isinstance(artifact, Wheel):
                row["core-metadata"] = {"sha256": artifact.metadata_sha256}
            files.append(row)
        versions = sorted({artifact.version for artifact, _ in self.projects[name]})
        return json.dumps({"meta": {"api-version": "1.1"}, "name": name, "versions": versions, "files": files})

    def index_html(self) -> str:
        rows = "\n".join(f'    <a href="{name}/">{name}</a><br/>' for name in sorted(self.projects))
        return f"<!DOCTYPE html>\n<html>\n  <body>\n{rows}\n  </body>\n</html>\n"


@dataclass(frozen=True)
class Seen:
    """One request that a site answered."""

    method: str
    path: str
    status: int


class Site:
    """One host on 127.0.0.1. ``missing`` is the status for what it does not have (pytorch.org says 403)."""

    def __init__(self, *, missing: int = 404, offers_json: bool = False) -> None:
        self.missing = missing
        self.offers_json = offers_json
        self.requests: list[Seen] = []
        self.failures: dict[str, int] = {}
        """Path prefix → status to answer instead: a host in trouble."""
        self._shelves: dict[str, Shelf] = {}
        self._files: dict[str, Artifact] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> Site:
        self._thread.start()
        return self

    def stop(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def mount(self, prefix: str, shelf: Shelf) -> None:
        """Serve ``shelf`` under ``prefix`` (``/whl/rocm6.4/``)."""
        self._shelves[prefix] = shelf

    def put(self, path: str, artifact: Artifact) -> str:
        """Serve ``artifact`` under ``path`` (a folder, ending in a slash) and return its URL, ``+`` quoted as hosts do."""
        self._files[path + artifact.filename] = artifact
        return self.url + quote(path + artifact.filename)

    def paths(self) -> list[str]:
        """The paths asked for so far, in order."""
        return [seen.path for seen in self.requests]

    def answer(self, path: str, accept: str) -> tuple[int, str, bytes]:
        """(status, content type, body) for a GET of ``path``."""
        for prefix, status in self.failures.items():
            if path.startswith(prefix):
                return status, "text/plain", b"out of order\n"
        if path in self._files:
            return 200, "application/octet-stream", self._files[path].content
        if path.endswith(".metadata") and isinstance(self._files.get(path[:-9]), Wheel):
            return 200, "application/octet-stream", self._files[path[:-9]].metadata
        for prefix, shelf in self._shelves.items():
            if path in (prefix, prefix.rstrip("/")):
                return 200, "text/html", shelf.index_html().encode()
            name = normalise(path[len(prefix) :].strip("/"))
            if path.startswith(prefix) and name in shelf.projects:
                if self.offers_json and JSON_TYPE in accept:
                    return 200, JSON_TYPE, shelf.as_json(name).encode()
                return 200, "text/html", shelf.as_html(name).encode()
        return self.missing, "text/html", b"<html><body>Access Denied or not found</body></html>\n"


def _span(header: str, size: int) -> tuple[int, int] | None:
    """``bytes=0-99``, ``bytes=100-`` or ``bytes=-50`` → (first, last); None for what is no single range."""
    unit, _, spec = header.partition("=")
    first, dash, last = spec.partition("-")
    if unit != "bytes" or not dash or "," in spec or not (first + last).isdigit():
        return None
    if not first:
        return max(0, size - int(last)), size - 1
    return int(first), min(int(last), size - 1) if last else size - 1


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body leave in one packet: Nagle's delay would cost 40 ms a page.
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            status, kind, body = site.answer(path, self.headers.get("Accept", ""))
            headers = {"Content-Type": kind, "Accept-Ranges": "bytes"}
            asked = self.headers.get("Range")
            span = _span(asked, len(body)) if asked and status == 200 else None
            if span is not None:
                first, last = span
                if first >= len(body) or last < first:
                    status, headers["Content-Range"], body = 416, f"bytes */{len(body)}", b""
                else:
                    headers["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
                    status, body = 206, body[first : last + 1]
            site.requests.append(Seen(self.command, path, status))
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Silent: ``site.requests`` is the log."""

    return Handler
