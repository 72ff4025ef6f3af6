"""Project pages and find-links places: asked, checked, kept on disk with their validators."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path

from rocmpip.index.blobs import BlobCache, key
from rocmpip.index.download import local_path
from rocmpip.index.fetch import Answer, Fetcher
from rocmpip.index.findlinks import folder_rows, local_rows
from rocmpip.index.listing import ACCEPT, NotAnIndex, Row, Stored, pack, parse_links, parse_page, to_file, unpack
from rocmpip.model.errors import NetworkError
from rocmpip.model.filenames import belongs
from rocmpip.model.packages import Absent, File, Page
from rocmpip.model.redact import redact

UNSAID = 600.0
"""Seconds for which a page counts as fresh, where that is asked for and its server does not say (the real index says 600)."""

ABSENT = {404: "HTTP 404", 403: "HTTP 403", 410: "HTTP 410"}


class Pages:
    """Safe for threads; remembers nothing but what goes to disk."""

    def __init__(self, fetcher: Fetcher, cache: BlobCache | None, *, marks_trust: bool, refresh: tuple[str, ...] = ()) -> None:
        """``marks_trust``: there are --trusted-host options, so files say whether their host is one. ``refresh``: names, or
        ":all:", for which no cache on the way may answer unasked."""
        self._fetcher = fetcher
        self._limits = fetcher.limits
        self._credentials = fetcher.credentials
        self._cache = cache
        self._marks_trust = marks_trust
        self._refresh = refresh
        self.notes: list[str] = []
        self.until = math.inf
        """The moment at which the first of the pages given so far goes stale; 0 when one may be another at any time."""

    def page(self, index: str, name: str, answer: Answer | None = None) -> Page | Absent:
        """``index`` without credentials and last slash, ``name`` normalised; ``answer``: what it has said already.

        Raises NetworkError.
        """
        url = f"{index}/{name}/"
        if index.startswith("file:"):
            return self._local_page(index, name, url)
        if not self._fetcher.secure(index):
            return Absent(name, index, "plain http from a host that --trusted-host does not name: ignored, as pip does")
        place = key("page", url)
        if answer is not None:
            return self._answered(answer, url, index, name, place)
        stored = self._stored(place)
        afresh = self.headers(name)
        if not afresh and stored is not None and not stored.absent and time.time() < stored.fresh_until:
            self.until = min(self.until, stored.fresh_until)
            return self._to_page(stored, index, name)
        if self._fetcher.offline and stored is not None:
            self.until = 0.0
            return self._to_page(stored, index, name)
        headers = {"Accept": ACCEPT, "Accept-Encoding": "gzip", **afresh}
        if stored is not None and not stored.absent:
            if stored.etag:
                headers["If-None-Match"] = stored.etag
            if stored.modified:
                headers["If-Modified-Since"] = stored.modified
        answer = self._fetcher.read(url, subject=f"the page of {name}", most=self._limits.page_bytes, headers=headers)
        if answer.status == 304 and stored is not None:
            self.until = min(self.until, _fresh_until(answer.headers, time.time() + UNSAID))
            stored.fresh_until = _fresh_until(answer.headers, stored.fresh_until)
            if stored.fresh_until:
                self._store(place, stored)
            return self._to_page(stored, index, name)
        return self._answered(answer, url, index, name, place)

    def headers(self, name: str) -> dict[str, str]:
        """What the question for the page of ``name`` says to caches, as pip says it; nothing unless it is to be asked afresh."""
        return {"Cache-Control": "max-age=0"} if name in self._refresh or ":all:" in self._refresh else {}

    def _answered(self, answer: Answer, url: str, index: str, name: str, place: str) -> Page | Absent:
        self.until = min(self.until, _fresh_until(answer.headers, time.time() + UNSAID))
        if answer.status in ABSENT:
            fresh = Stored(url, "", "", 0.0, ABSENT[answer.status], [])
        else:
            fresh = self._parsed(answer, url, name)
        if fresh.url:
            self._store(place, fresh)
        return self._to_page(fresh, index, name)

    def _parsed(self, answer: Answer, url: str, name: str) -> Stored:
        """The page as it is cached; its ``url`` is "" when it must not be (links with credentials, no-store)."""
        if answer.status != 200:
            raise NetworkError(
                f"the page of {name} could not be had from {redact(url)}",
                why=f"the server answers HTTP {answer.status}",
                hint="check the index URL",
            )
        try:
            rows, secret = parse_page(answer.body, answer.headers.get("content-type", ""), answer.url, name, self._credentials)
        except NotAnIndex as problem:
            raise NetworkError(
                f"{redact(url)} is no index page for {name}",
                why=str(problem),
                hint="an index URL ends where project names are added, often in /simple; a login page or proxy may answer for it",
            ) from None
        keep = not secret and "no-store" not in answer.headers.get("cache-control", "")
        return Stored(
            url if keep else "",
            answer.headers.get("etag", ""),
            answer.headers.get("last-modified", ""),
            _fresh_until(answer.headers, 0.0),
            "" if rows else "an empty page",
            rows,
        )

    def _local_page(self, index: str, name: str, url: str) -> Page | Absent:
        folder = local_path(url)
        self.until = 0.0
        try:
            if not folder.is_dir():
                return Absent(name, index, "no such folder")
            page = folder / "index.html"
            if page.is_file():
                rows, _ = parse_page(page.read_bytes(), "text/html", page.as_uri(), name, self._credentials)
            else:
                rows = [row for row in folder_rows(folder) if belongs(row.filename, name)]
        except NotAnIndex as problem:
            raise NetworkError(f"{folder} is no index page for {name}", why=str(problem)) from None
        except OSError as problem:
            raise NetworkError(f"{folder} cannot be read", why=problem.strerror or str(problem)) from None
        return self._to_page(Stored("", "", "", 0.0, "" if rows else "an empty page", rows), index, name)

    def _to_page(self, stored: Stored, index: str, name: str) -> Page | Absent:
        if stored.absent:
            return Absent(name, index, stored.absent)
        return Page(name, index, self._files(stored.rows, index))

    def _files(self, rows: list[Row], index: str) -> tuple[File, ...]:
        if not self._marks_trust:
            return tuple(to_file(row, index, False) for row in rows)
        return tuple(to_file(row, index, self._fetcher.trusted(row.url)) for row in rows)

    def find_links(self, place: str) -> tuple[File, ...]:
        """``place`` without credentials. What pip passes over is passed over with a note."""
        shown = redact(place)
        if not place.startswith(("http://", "https://")):
            path = local_path(place) if place.startswith("file:") else Path(place).expanduser()
            if not path.is_dir():  # a folder can be watched by whoever keeps an answer
                self.until = 0.0
            try:
                return self._files(local_rows(path, self._credentials), shown)
            except OSError as problem:
                self.notes.append(f"find-links place {shown} is passed over: {problem.strerror or problem}")
                return ()
        self.until = 0.0
        if not self._fetcher.secure(place):
            self.notes.append(f"find-links place {shown} is plain http from a host that --trusted-host does not name")
            return ()
        headers = {"Accept": "text/html", "Accept-Encoding": "gzip"}
        answer = self._fetcher.read(place, subject="the find-links page", most=self._limits.page_bytes, headers=headers)
        if answer.status != 200:
            self.notes.append(f"find-links place {shown} is passed over: HTTP {answer.status}")
            return ()
        try:
            rows = list(parse_links(answer.body, answer.headers.get("content-type", ""), answer.url, self._credentials))
        except NotAnIndex as problem:
            raise NetworkError(f"{shown} is no find-links page", why=str(problem)) from None
        return self._files(rows, shown)

    def _stored(self, key: str) -> Stored | None:
        data = self._cache.get("page", key) if self._cache is not None else None
        return unpack(data) if data is not None else None

    def _store(self, key: str, stored: Stored) -> None:
        if self._cache is not None:
            self._cache.put("page", key, pack(stored))


def _fresh_until(headers: Mapping[str, str], otherwise: float) -> float:
    """The moment until which a page needs no question, from Cache-Control (no heuristics)."""
    control = headers.get("cache-control", "").lower()
    if "no-cache" in control or "no-store" in control:
        return 0.0
    for part in control.split(","):
        key, _, value = part.strip().partition("=")
        if key == "max-age" and value.strip('"').isdigit():
            age = headers.get("age", "0").strip()
            return time.time() + min(int(value.strip('"')), 86400) - (int(age) if age.isdigit() else 0)
    return otherwise
