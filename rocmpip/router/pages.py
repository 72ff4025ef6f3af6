"""One project's page: merged as pip merges its sources, written as JSON (PEP 691) or HTML (PEP 503)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from html import escape
from typing import TypeVar

from rocmpip.model.filenames import belongs
from rocmpip.model.packages import Absent, File
from rocmpip.model.record import Struct, msgspec
from rocmpip.model.routing import Route
from rocmpip.router.upstream import Upstream

JSON_TYPE = "application/vnd.pypi.simple.v1+json"
HTML_TYPE = "application/vnd.pypi.simple.v1+html"
_T = TypeVar("_T")


class Entry(Struct, frozen=True):
    """One candidate: the file, and the link and metadata mark it gets on our page."""

    file: File
    href: str
    core_metadata: str | None


def gather(route: Route, client: Upstream) -> tuple[list[File], list[str]]:
    """The files of a route, and why indexes had none. Raises the first error of a source.

    Find-links come before indexes, and among indexes the first wins, as for pip. A second file of the same name counts only
    when its sha256 differs: a request with hashes may mean either.
    """
    sources: list[Callable[[], tuple[File, ...] | Absent]] = []
    for place in route.find_links:
        sources.append(lambda place=place: _links(client, place, route.name))  # type: ignore[misc]
    for index in route.indexes:
        sources.append(lambda index=index: _page(client, index, route.name))  # type: ignore[misc]
    files: list[File] = []
    absent: list[str] = []
    for found in together(sources):
        if isinstance(found, Absent):
            absent.append(f"{found.index}: {found.reason}")
        else:
            files.extend(found)
    files.extend(route.files)
    return _distinct(files, route.keep), absent


def _links(client: Upstream, place: str, name: str) -> tuple[File, ...]:
    return tuple(file for file in client.find_links(place) if belongs(file.filename, name))


def _page(client: Upstream, index: str, name: str) -> tuple[File, ...] | Absent:
    found = client.page(index, name)
    return found if isinstance(found, Absent) else found.files


def _distinct(files: Sequence[File], keep: Callable[[File], bool] | None) -> list[File]:
    seen: dict[str, list[str]] = {}
    kept = []
    for file in files:
        if keep is not None and not keep(file):
            continue
        digest = file.hashes.get("sha256", "")
        before = seen.setdefault(file.filename, [])
        if before and (not digest or "" in before or digest in before):
            continue
        before.append(digest)
        kept.append(file)
    return kept


def together(calls: Sequence[Callable[[], _T]]) -> list[_T]:
    """Run all at the same time; results in order. Raises the first failure in order, after all have ended."""
    if len(calls) < 2:
        return [call() for call in calls]
    results: list[_T | None] = [None] * len(calls)
    problems: list[BaseException | None] = [None] * len(calls)

    def work(place: int) -> None:
        try:
            results[place] = calls[place]()
        except BaseException as problem:
            problems[place] = problem

    threads = [threading.Thread(target=work, args=(place,), daemon=True) for place in range(1, len(calls))]
    for thread in threads:
        thread.start()
    work(0)
    for thread in threads:
        thread.join()
    for problem in problems:
        if problem is not None:
            raise problem
    return results  # type: ignore[return-value]


def as_json(name: str, entries: Sequence[Entry]) -> bytes:
    """Only ``core-metadata`` is written: the older key makes pip 23.0 crash."""
    files = []
    for entry in entries:
        file = entry.file
        row: dict[str, object] = {"filename": file.filename, "url": entry.href, "hashes": dict(file.hashes)}
        if file.requires_python:
            row["requires-python"] = file.requires_python
        if file.yanked is not None:
            row["yanked"] = file.yanked or True
        if entry.core_metadata is not None:
            algorithm, _, digest = entry.core_metadata.partition("=")
            row["core-metadata"] = {algorithm: digest} if digest else True
        if file.size is not None:
            row["size"] = file.size
        if file.upload_time:
            row["upload-time"] = file.upload_time
        files.append(row)
    page = {"meta": {"api-version": "1.0"}, "name": name, "files": files}
    return msgspec.json.encode(page)


def as_html(name: str, entries: Sequence[Entry]) -> bytes:
    lines = [
        "<!DOCTYPE html>",
        '<html><head><meta charset="utf-8"><meta name="pypi:repository-version" content="1.0">',
        f"<title>Links for {escape(name)}</title></head><body>",
    ]
    for entry in entries:
        file = entry.file
        algorithm = next((each for each in ("sha256", "sha512", *file.hashes) if each in file.hashes), "")
        fragment = f"#{algorithm}={file.hashes[algorithm]}" if algorithm else ""
        attributes = [f'href="{escape(entry.href + fragment)}"']
        if file.requires_python:
            attributes.append(f'data-requires-python="{escape(file.requires_python)}"')
        if file.yanked is not None:
            attributes.append(f'data-yanked="{escape(file.yanked)}"')
        if entry.core_metadata is not None:
            attributes.append(f'data-core-metadata="{escape(entry.core_metadata or "true")}"')
        if file.upload_time:
            attributes.append(f'data-upload-time="{escape(file.upload_time)}"')
        lines.append(f"<a {' '.join(attributes)}>{escape(file.filename)}</a><br>")
    lines.append("</body></html>")
    return "\n".join(lines).encode()


def wants_json(accept: str) -> bool:
    """Which of the two a client prefers; HTML when it does not say (a browser, an old tool)."""
    best = {True: -1.0, False: 0.0}
    for part in accept.split(","):
        kind, _, rest = part.strip().partition(";")
        _, _, quality = rest.strip().partition("q=")
        try:
            weight = float(quality.strip()) if quality else 1.0
        except ValueError:
            weight = 0.0
        kind = kind.strip().lower()
        if kind in (JSON_TYPE, "application/vnd.pypi.simple.latest+json"):
            best[True] = max(best[True], weight or -1.0)
        elif kind in (HTML_TYPE, "application/vnd.pypi.simple.latest+html", "text/html", "*/*"):
            best[False] = max(best[False], weight)
    return best[True] >= best[False] and best[True] > 0
