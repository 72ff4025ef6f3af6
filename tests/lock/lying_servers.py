"""What a server can do wrong with one answer, and what a JSON page can say that is not so."""

from __future__ import annotations

import copy
import gzip
import threading
from collections.abc import Callable, Mapping
from typing import Any

from tests.index.index_server import JSON, Reply, Site, json_page, sha256, wheel

Fault = Reply | Callable[[Any], "Reply | None"]
MEGABYTE = b" " * 2**20


def core_metadata(name: str, version: str) -> bytes:
    return wheel(name, version)[2]


def stock(site: Site, *, metadata: bool = True) -> dict[str, Any]:
    """``app`` 1.0, which needs ``lib`` 1.0 or 2.0. Returns the page of lib, to be changed and put back by ``put``."""
    pages: dict[str, dict[str, Any]] = {}
    for name, version, needs in (("app", "1.0", ["lib"]), ("lib", "1.0", []), ("lib", "2.0", [])):
        filename, content, core = wheel(name, version, needs)
        site.paths[f"/files/{filename}"] = Reply(content, ranges=True)
        row: dict[str, Any] = {
            "filename": filename,
            "url": f"../../files/{filename}",
            "hashes": {"sha256": sha256(content)},
        }
        if metadata:
            site.paths[f"/files/{filename}.metadata"] = Reply(core)
            row["core-metadata"] = {"sha256": sha256(core)}
        page = pages.setdefault(name, {"meta": {"api-version": "1.1"}, "name": name, "files": []})
        page["files"].append(row)
    for name, page in pages.items():
        site.paths[f"/simple/{name}/"] = json_page(name, page["files"])
    return pages["lib"]


def raw(*pieces: bytes, until: threading.Event | None = None) -> Fault:
    """Exactly these bytes, and then the end of the connection; ``until``: only when that is set."""

    def answer(handler: Any) -> None:
        handler.close_connection = True
        try:
            for piece in pieces:
                handler.connection.sendall(piece)
        except OSError:
            return
        if until is not None:
            until.wait(60)

    return answer


def _head(length: int | None, *headers: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"Content-Type: {JSON}", *headers]
    lines += [f"Content-Length: {length}"] if length is not None else []
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def faults(body: bytes, over: threading.Event) -> dict[str, Fault]:
    """Ways to fail at an answer whose right body is ``body``, by name. None of them ends well when it is asked again."""
    packed, half = gzip.compress(body), len(body) // 2
    chunked, zipped, closing = "Transfer-Encoding: chunked", "Content-Encoding: gzip", "Connection: close"
    huge = gzip.compress(b" " * (200 << 20), 1)
    return {
        "stalls before the head": raw(until=over),
        "stalls in the head": raw(b"HTTP/1.1 200 OK\r\nContent-T", until=over),
        "stalls in the body": raw(_head(len(body)), body[:half], until=over),
        "stalls in a chunk": raw(_head(None, chunked), _chunk(body)[:20], until=over),
        "stalls between chunks": raw(_head(None, chunked), _chunk(body), until=over),
        "stalls in gzip": raw(_head(len(packed), zipped), packed[: len(packed) // 2], until=over),
        "closes": raw(),
        "cuts the head": raw(b"HTTP/1.1 200 OK\r\nContent-T"),
        "cuts the body": raw(_head(len(body)), body[:half]),
        "cuts a chunk": raw(_head(None, chunked), _chunk(body)[:20]),
        "cuts between chunks": raw(_head(None, chunked), _chunk(body)),
        "cuts gzip": raw(_head(None, zipped, closing), packed[: len(packed) // 2]),
        "cuts gzip and says so": raw(_head(len(packed) // 2, zipped), packed[: len(packed) // 2]),
        "says too long a length": raw(_head(len(body) + 50), body),
        "says too short a length": raw(_head(half), body),
        "says gzip of what is none": raw(_head(len(body), zipped), body),
        "garbage": raw(bytes(range(256)) * 4),
        "500": Reply(status=500),
        "503": Reply(status=503),
        "429": Reply(status=429, headers={"Retry-After": "9999"}),
        "redirects to itself": lambda handler: Reply(status=302, headers={"Location": handler.path}),
        "redirects to a file": Reply(status=302, headers={"Location": "file:///etc/passwd"}),
        "says 200 MB": raw(_head(200 << 20), *[MEGABYTE] * 70),
        "sends 200 MB": raw(_head(None, chunked), *[_chunk(MEGABYTE)] * 200),
        "packs 200 MB": raw(_head(len(huge), zipped), huge),
    }


NO_INDEX: dict[str, tuple[str, bytes]] = {
    "login page": ("text/html", b"<html><form>please log in</form></html>"),
    "text": ("text/plain", b"lib-2.0-py3-none-any.whl"),
    "broken JSON": (JSON, b'{"files": ['),
    "JSON of something else": ("application/json", b'{"message": "ok"}'),
    "another project's HTML": ("text/html", b'<a href="/other-1.0-py3-none-any.whl">other-1.0-py3-none-any.whl</a>'),
}


def lies(page: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Pages that are ``page`` (of lib 1.0 and 2.0) but for one thing that is no page's to say, by what it is."""

    def changed(**more: Any) -> dict[str, Any]:
        return {**copy.deepcopy(dict(page)), **more}

    def newest(**more: Any) -> dict[str, Any]:
        made = changed()
        made["files"][1].update(more)
        return made

    other = "other-2.0-py3-none-any.whl"
    return {
        "files are an object": changed(files={}),
        "files are null": changed(files=None),
        "files are numbers": changed(files=[1, 2]),
        "no files": {key: value for key, value in changed().items() if key != "files"},
        "meta is a list": changed(meta=[]),
        "another version of the API": changed(meta={"api-version": "2.0"}),
        "a file name is a number": newest(filename=7),
        "a URL is a number": newest(url=7),
        "a URL is broken": newest(url="http://["),
        "a URL points into this machine": newest(url="file:///etc/passwd"),
        "a URL is a script": newest(url="javascript:x"),
        "a URL is another file's": newest(url="../../files/lib-1.0-py3-none-any.whl"),
        "a file name has another version": newest(filename="lib-3.0-py3-none-any.whl"),
        "all files are another project's": changed(files=[{**row, "filename": other} for row in page["files"]]),
        "hashes are text": newest(hashes="abc"),
        "a hash is a number": newest(hashes={"sha256": 5}),
        "a hash is too short": newest(hashes={"sha256": "abc"}),
        "a hash brings a line": newest(hashes={"sha256": "a" * 64 + "\nevil==1"}),
        "metadata has another hash": newest(**{"core-metadata": {"sha256": "a" * 64}}),
        "yanked is a number": newest(yanked=7),
        "requires-python is a number": newest(**{"requires-python": 3}),
        "a size is text": newest(size="big"),
    }


FALSE_METADATA: dict[str, bytes] = {
    "another project": b"Metadata-Version: 2.1\nName: other\nVersion: 2.0\n",
    "another version": b"Metadata-Version: 2.1\nName: lib\nVersion: 3.0\n",
    "no name and version": b"Metadata-Version: 2.1\n",
    "nothing": b"",
    "garbage": bytes(range(256)) * 8,
    "a page": b"<html>please log in</html>",
}
