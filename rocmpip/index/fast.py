"""Pages for a resolver that wants hundreds of them at once, decoded as little as choosing a version needs.

A page may list thousands of files of which one is chosen. ``Client.page`` makes a ``File`` of each; here hashes and
advertised metadata stay undecoded bytes, links stay as the page wrote them, and only what is asked for by ``to_file``
becomes a ``File``. What is no JSON page takes the client's own road.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rocmpip.index.address import Address
from rocmpip.index.client import Client
from rocmpip.index.fetch import Answer
from rocmpip.index.listing import ACCEPT, JSON_TYPE, NO_DIGEST, absolute_link, advertised_hash, readable_hashes
from rocmpip.index.pages import ABSENT, UNSAID
from rocmpip.index.pages import _fresh_until as fresh_until
from rocmpip.model.errors import NetworkError
from rocmpip.model.packages import Absent, File, Page
from rocmpip.model.record import Struct, msgspec
from rocmpip.model.redact import redact
from rocmpip.plan.listing import Row

_HEADERS = {"Accept": ACCEPT, "Accept-Encoding": "gzip"}
_NOTHING = msgspec.Raw(b"null")
_hashes = msgspec.json.Decoder(dict[str, str] | None)
_advertised = msgspec.json.Decoder(bool | dict[str, str] | None)


Packed = tuple[str, str, bytes, str | None, bool | str | None, bytes, bytes, int | None]


class Slim(msgspec.Struct, rename="kebab", gc=False):
    """One file of a JSON page; follows ``plan.listing.Row``."""

    filename: str
    url: str
    raw: msgspec.Raw = msgspec.field(default=_NOTHING, name="hashes")
    requires_python: str | None = None
    yanked: bool | str | None = None
    core_metadata: msgspec.Raw = _NOTHING
    dist_info_metadata: msgspec.Raw = _NOTHING
    size: int | None = None
    place: Any = None
    """The SlimPage it stands on; set after decoding, whatever the page says."""

    @property
    def hashes(self) -> Mapping[str, str]:
        """Algorithm → hex digest. What cannot be read is a digest that no file has: without one the file would go unchecked."""
        try:
            found = _hashes.decode(self.raw)
        except msgspec.MsgspecError:
            return {"sha256": NO_DIGEST}
        return readable_hashes(found.items()) if found else {}

    def to_file(self) -> File:
        """Raises NetworkError for a link that cannot be followed, or leads from a server into this machine."""
        page: SlimPage = self.place
        pages = page.pages
        url, userinfo = absolute_link(page.url, self.url)
        if not url:
            raise NetworkError(
                f"the page {redact(page.url)} has no usable link for {self.filename}",
                why=f"it says {redact(self.url[:200])!r}",
                hint="check the index URL: its server answers with what no index lists",
            )
        if userinfo is not None:
            pages.client.credentials.remember(url, userinfo)
        return File(
            self.filename,
            url,
            self.hashes,
            self.requires_python or "",
            self.yanked if isinstance(self.yanked, str) else ("" if self.yanked else None),
            self._core_metadata(),
            self.size if self.size is not None and self.size >= 0 else None,
            "",
            page.index,
            pages.trusted(url),
        )

    def packed(self) -> Packed:
        """All of it but its place, for another process. ``unpacked`` is the way back."""
        return (
            self.filename,
            self.url,
            bytes(self.raw),
            self.requires_python,
            self.yanked,
            bytes(self.core_metadata),
            bytes(self.dist_info_metadata),
            self.size,
        )

    def advertised(self) -> bytes:
        """What the page says of core metadata, as JSON: under the name of today, else the old one."""
        return bytes(self.core_metadata if self.core_metadata != _NOTHING else self.dist_info_metadata)

    def _core_metadata(self) -> str | None:
        raw = self.advertised()
        try:
            value = _advertised.decode(raw)
        except msgspec.MsgspecError:
            return None
        return advertised_hash(value)


def unpacked(values: Packed, place: SlimPage) -> Slim:
    """The row that ``Slim.packed`` took apart, standing on ``place``."""
    filename, url, hashes, requires_python, yanked, core, dist_info, size = values
    raw = msgspec.Raw
    return Slim(filename, url, raw(hashes), requires_python, yanked, raw(core), raw(dist_info), size, place)


class _Meta(msgspec.Struct, rename="kebab"):
    api_version: str = "1.0"


class _Document(msgspec.Struct, gc=False):
    files: list[Slim]
    meta: _Meta = msgspec.field(default_factory=_Meta)


_document = msgspec.json.Decoder(_Document)


class SlimPage(Struct, frozen=True):
    """All files an index lists for one project. ``url`` is the base of its relative links."""

    pages: FastPages
    index: str
    url: str
    rows: Sequence[Row]


class Fetched(Struct, frozen=True):
    """A page as it came, not decoded yet (or already, where it took the client's own road)."""

    index: str
    name: str
    answer: Answer | Page | Absent


class FastPages:
    """A client's pages, slim. Safe for threads; it keeps nothing, the asker does."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._fetcher = client.fetcher
        self._until = math.inf

    @property
    def until(self) -> float:
        """The moment at which the first of the pages fetched so far, or given by the client, goes stale; 0: at any time."""
        return min(self._until, self.client.until)

    def question(self, index_url: str, name: str) -> tuple[Address, dict[str, str]] | None:
        """How to ask for the page of ``name`` on a road of one's own; None where ``fetch`` must do it."""
        index = self.client.credentials.learn(index_url).rstrip("/")
        if not index.startswith(("http://", "https://")):
            return None
        return self._fetcher.question(f"{index}/{name}/", self._headers(name))

    def fetch(self, index_url: str, name: str) -> Fetched:
        """Ask for the page of ``name`` (normalised): the waiting half, for a thread. Raises NetworkError."""
        index = self.client.credentials.learn(index_url).rstrip("/")
        if not index.startswith(("http://", "https://")) or not self.client.secure(index):
            return self.settled(index_url, name)
        try:
            answer = self._fetcher.read(
                f"{index}/{name}/",
                subject=f"the page of {name}",
                most=self.client.limits.page_bytes,
                headers=self._headers(name),
            )
        except NetworkError as problem:
            problem.about_page = True
            raise
        known = self.answered(index_url, name, answer)
        return self.settled(index_url, name) if known is None else known

    def _headers(self, name: str) -> dict[str, str]:
        return {**_HEADERS, **self.client.page_headers(name)}

    def settled(self, index_url: str, name: str) -> Fetched:
        """A page by the client's own road, from the answer that is there already if one is. Raises NetworkError."""
        index = self.client.credentials.learn(index_url).rstrip("/")
        return Fetched(index, name, self.client.page(index_url, name))

    def answered(self, index_url: str, name: str, answer: Answer) -> Fetched | None:
        """What an answer to ``question`` says; None where ``client.page`` must read it (it need not ask again)."""
        index = self.client.credentials.learn(index_url).rstrip("/")
        # The router may be asked for it next.
        self.client.answered(index, name, answer)
        self._until = min(self._until, fresh_until(answer.headers, time.time() + UNSAID))
        if answer.status in ABSENT:
            return Fetched(index, name, Absent(name, index, ABSENT[answer.status]))
        if answer.status != 200 or not answer.headers.get("content-type", "").startswith(JSON_TYPE):
            return None
        return Fetched(index, name, answer)

    def decode(self, fetched: Fetched) -> SlimPage | Absent:
        """The page: the working half. Raises NetworkError for what is no page of an index."""
        index, name, answer = fetched.index, fetched.name, fetched.answer
        if isinstance(answer, Absent):
            return answer
        if isinstance(answer, Page):
            return SlimPage(self, index, index, answer.files)
        try:
            document = _document.decode(answer.body)
            if document.meta.api_version.partition(".")[0] == "1":
                page = SlimPage(self, index, answer.url, document.files)
                for row in document.files:
                    row.place = page
                return page if document.files else Absent(name, index, "an empty page")
        except msgspec.MsgspecError:
            pass
        # The client's own road says what is wrong with the page.
        slow = self.client.page(index, name)
        return slow if isinstance(slow, Absent) else SlimPage(self, index, index, slow.files)

    def trusted(self, url: str) -> bool:
        """True when --trusted-host names the URL's host."""
        return self._fetcher.trusted(url)
