"""Pages of an index → files: JSON (PEP 691, 700) and HTML (PEP 503, 592, 658, 714), and the form they are cached in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote, urljoin, urlsplit

from rocmpip.index.address import split_userinfo
from rocmpip.index.anchors import Anchor, HtmlPage, read_anchors
from rocmpip.index.credentials import Credentials, Userinfo
from rocmpip.model.filenames import belongs, is_archive
from rocmpip.model.packages import File
from rocmpip.model.record import msgspec

JSON_TYPE = "application/vnd.pypi.simple.v1+json"
ACCEPT = f"{JSON_TYPE}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"

# The largest HTML page of a real index has a few megabytes; reading a malicious one takes about a second for each.
_HTML_BYTES = 16 * 2**20
# A link that needs no work, as nearly all on a large page: absolute, without credentials, fragment and odd characters.
_PLAIN = re.compile(r"https?://[A-Za-z0-9.:-]+/[A-Za-z0-9/._%+!~=,-]*\Z")
# The hashes that pip knows; md5 and sha1 pass through, since pip compares them too.
# A digest that is none must stay one that nothing matches: leaving it out would let the file through unchecked.
_DIGEST = re.compile(r"[A-Za-z0-9._~+/=-]{1,128}\Z")
_HEX = re.compile(r"[0-9a-fA-F]+\Z")
NO_DIGEST = "unreadable"
_KNOWN_HASHES = frozenset(("sha256", "sha512", "sha384", "sha224", "sha1", "md5"))


class NotAnIndex(Exception):
    """The answer is no page of an index; the text says what it is instead."""


class _JsonFile(msgspec.Struct, rename="kebab"):
    filename: str
    url: str
    hashes: dict[str, str] = msgspec.field(default_factory=dict)
    requires_python: str | None = None
    yanked: bool | str | None = None
    core_metadata: bool | dict[str, str] | None = None
    dist_info_metadata: bool | dict[str, str] | None = None
    data_dist_info_metadata: bool | dict[str, str] | None = msgspec.field(default=None, name="data-dist-info-metadata")
    size: int | None = None
    upload_time: str | None = None


class _Meta(msgspec.Struct, rename="kebab"):
    api_version: str = "1.0"


class _JsonPage(msgspec.Struct):
    files: list[_JsonFile]
    meta: _Meta = msgspec.field(default_factory=_Meta)
    name: str = ""


class Row(msgspec.Struct, array_like=True):
    """One cached file: the fields of ``File`` that the page decides."""

    filename: str
    url: str
    hashes: dict[str, str]
    requires_python: str
    yanked: str | None
    core_metadata: str | None
    size: int | None
    upload_time: str


class Stored(msgspec.Struct, array_like=True):
    """One page on disk. ``absent`` is the reason when the index has no such project."""

    url: str
    etag: str
    modified: str
    fresh_until: float
    absent: str
    rows: list[Row]


_json = msgspec.json.Decoder(_JsonPage)
_stored = msgspec.msgpack.Decoder(Stored)
_encoder = msgspec.msgpack.Encoder()


def pack(stored: Stored) -> bytes:
    return _encoder.encode(stored)


def unpack(data: bytes) -> Stored | None:
    """None when the bytes are not what ``pack`` wrote."""
    try:
        return _stored.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def to_file(row: Row, index: str, trusted: bool) -> File:
    return File(
        row.filename,
        row.url,
        row.hashes,
        row.requires_python,
        row.yanked,
        row.core_metadata,
        row.size,
        row.upload_time,
        index,
        trusted,
    )


def parse_page(body: bytes, content_type: str, url: str, name: str, credentials: Credentials) -> tuple[list[Row], bool]:
    """The files of project ``name`` on the page at ``url``, and whether links held credentials (which are kept in memory).

    Files of other projects and links that are no archives are left out. Raises NotAnIndex for what is no page of an index,
    and for a page that has files but none of this project.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind.endswith("json") or (not kind and body[:1] == b"{"):
        rows = _from_json(body)
    elif kind.endswith("html") or kind == "application/xhtml+xml" or (not kind and body.lstrip()[:1] == b"<"):
        rows = _from_html(body, charset(content_type))
    else:
        raise NotAnIndex(f"it is {kind or 'data without a type'}, neither JSON nor HTML")
    kept, secret, others = [], False, 0
    for row in rows:
        if not belongs(row.filename, name):
            others += is_archive(row.filename)
            continue
        link, userinfo = absolute_link(url, row.url)
        if not link:
            continue
        if userinfo is not None:
            secret = True
            credentials.remember(link, userinfo)
        row.url = link
        kept.append(row)
    if others and not kept:
        raise NotAnIndex(f"it lists {others} files of other projects and none of {name}")
    return kept, secret


def parse_links(body: bytes, content_type: str, url: str, credentials: Credentials) -> Iterator[Row]:
    """Every archive that a find-links page of any shape links to."""
    kind = content_type.partition(";")[0].strip().lower()
    rows = _from_json(body) if kind.endswith("json") else _html_rows(_html(body, charset(content_type)).anchors)
    for row in rows:
        if is_archive(row.filename):
            link, userinfo = absolute_link(url, row.url)
            if userinfo is not None:
                credentials.remember(link, userinfo)
            if link:
                row.url = link
                yield row


def charset(content_type: str) -> str:
    match = re.search(r"charset=[\"']?([A-Za-z0-9._-]+)", content_type, re.IGNORECASE)
    return match.group(1) if match else "utf-8"


def _text(body: bytes, encoding: str) -> str:
    try:
        return body.decode(encoding, "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def absolute_link(page: str, href: str) -> tuple[str, Userinfo | None]:
    """``href`` on ``page`` as an absolute URL, and the credentials it held; "" for what cannot be fetched.

    A page on a server may not point into this machine's files.
    """
    if _PLAIN.match(href):
        return href, None
    try:
        link, userinfo = split_userinfo(urljoin(page, href.partition("#")[0].strip()))
        scheme = urlsplit(link).scheme
    except ValueError:
        return "", None
    allowed = scheme in ("http", "https") or (scheme == "file" and page.startswith("file:"))
    return (link, userinfo) if allowed else ("", None)


def _from_json(body: bytes) -> list[Row]:
    try:
        page = _json.decode(body)
    except msgspec.ValidationError as problem:
        raise NotAnIndex(f"its JSON is not that of an index ({problem})") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NotAnIndex("its JSON is broken") from None
    if page.meta.api_version.partition(".")[0] != "1":
        raise NotAnIndex(f"it speaks version {page.meta.api_version[:20]} of the simple API; version 1 is known")
    rows = []
    for file in page.files:
        advertised = file.core_metadata
        if advertised is None:
            advertised = file.dist_info_metadata if file.dist_info_metadata is not None else file.data_dist_info_metadata
        yanked = file.yanked if isinstance(file.yanked, str) else ("" if file.yanked else None)
        rows.append(
            Row(
                file.filename,
                file.url,
                readable_hashes(file.hashes.items()),
                file.requires_python or "",
                yanked,
                advertised_hash(advertised),
                file.size if file.size is not None and file.size >= 0 else None,
                file.upload_time or "",
            )
        )
    return rows


def advertised_hash(value: bool | dict[str, str] | None) -> str | None:
    """``File.core_metadata`` for what a page's JSON says of it. A hash that is no digest is kept: no metadata has it, as in pip."""
    if not isinstance(value, dict):
        return "" if value else None
    known = readable_hashes(value.items())
    best = "sha256" if "sha256" in known else next(iter(known), "")
    return f"{best}={known[best]}" if best else ""


def readable_hashes(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Those of the algorithms that pip knows; what is no digest stays as one that no file has."""
    return {name: digest_text(text) for name, text in pairs if text and name in _KNOWN_HASHES}


def digest_text(text: str) -> str:
    """A page's digest as it is compared: hex digits in lower case, anything else as it is, or a word that is no digest."""
    if _HEX.match(text):
        return text.lower()
    return text if _DIGEST.match(text) else NO_DIGEST


def _html(body: bytes, encoding: str) -> HtmlPage:
    if len(body) > _HTML_BYTES:
        raise NotAnIndex(f"its HTML has {len(body)} bytes; {_HTML_BYTES} are read at most")
    return read_anchors(_text(body, encoding))


def _from_html(body: bytes, encoding: str) -> list[Row]:
    page = _html(body, encoding)
    if page.api_version and page.api_version.partition(".")[0] != "1":
        raise NotAnIndex(f"it speaks version {page.api_version[:20]} of the simple API; version 1 is known")
    rows = list(_html_rows(page.anchors))
    if not page.like_an_index and not any(is_archive(row.filename) for row in rows):
        raise NotAnIndex("it is a web page without links to packages")
    return rows


def _html_rows(anchors: Iterable[Anchor]) -> Iterator[Row]:
    for anchor in anchors:
        href = anchor["href"].strip()
        link, _, fragment = href.partition("#")
        filename = unquote(link.partition("?")[0].rpartition("/")[2])
        algorithm, _, digest = fragment.partition("&")[0].partition("=")
        metadata = anchor.get("data-core-metadata", anchor.get("data-dist-info-metadata"))
        yield Row(
            filename,
            link,
            readable_hashes([(algorithm, digest)]),
            anchor.get("data-requires-python", ""),
            anchor.get("data-yanked"),
            _html_advertised(metadata),
            _number(anchor.get("data-size")),
            anchor.get("data-upload-time", ""),
        )


def _html_advertised(value: str | None) -> str | None:
    if value is None or value.strip().lower() == "false":
        return None
    algorithm, _, digest = value.strip().partition("=")
    return advertised_hash({algorithm: digest}) if digest else ""


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else None
