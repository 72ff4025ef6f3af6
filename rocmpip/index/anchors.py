"""The links of an HTML page, found in one pass.

A scanner of its own because the standard parser takes seconds for the megabytes of a nightly index, and has had inputs on which
it took quadratic time. This one moves forward only: a tag that does not end swallows the rest of the page, as in browsers.
"""

from __future__ import annotations

import contextlib
import re
from urllib.parse import urljoin

from rocmpip.model.record import Struct, field

Anchor = dict[str, str]
"""Attributes of one ``<a>`` (lower-case names), ``href`` always among them and resolved against ``<base>``."""

_START = re.compile(r"<(!--|(?:a|base|meta|title|h1|script|style)(?=[\s/>]))", re.IGNORECASE)
_BLANK = re.compile(r"[\s/]*")
_ATTRIBUTE = re.compile(r"([^\s\"'>/=]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+)))?|(>)")
_LIKE_INDEX = re.compile(
    r"\s*(?:links for|index of|simple index|simple package|directory listing|project index)", re.IGNORECASE
)


class HtmlPage(Struct):
    anchors: list[Anchor] = field(default_factory=list)
    api_version: str = ""
    like_an_index: bool = False
    """It says what it is: a repository version, a title such as "Links for torch" or "Index of /", or nothing at all."""


def read_anchors(text: str) -> HtmlPage:
    """Links, base and repository version. ``like_an_index`` is also true for a page without any text and links: an empty one."""
    page = HtmlPage()
    base = ""
    place = 0
    while (start := _START.search(text, place)) is not None:
        word = start.group(1).lower()
        if word == "!--":
            place = _after(text, "-->", start.end())
            continue
        attributes, place = _attributes(text, start.end())
        if word in ("script", "style"):
            place = _after_tag(text, word, place)
        elif word in ("title", "h1"):
            page.like_an_index = page.like_an_index or _LIKE_INDEX.match(text, place) is not None
        elif word == "base":
            base = base or attributes.get("href", "")
        elif word == "meta":
            if attributes.get("name", "").lower() == "pypi:repository-version":
                page.api_version = attributes.get("content", "")
                page.like_an_index = True
        elif attributes.get("href"):
            page.anchors.append(attributes)
    if base:
        for anchor in page.anchors:
            # A broken base or link stays as it is: who fetches it says what is wrong.
            with contextlib.suppress(ValueError):
                anchor["href"] = urljoin(base, anchor["href"])
    if not page.anchors and len(text) < 4096 and not re.sub(r"<[^<>]{0,1000}>|\s", "", text):
        page.like_an_index = True
    return page


def _attributes(text: str, place: int) -> tuple[Anchor, int]:
    """Attributes from ``place`` to the tag's end, and the place behind it."""
    found: Anchor = {}
    while True:
        # Blanks on their own: as a part of the pattern they would be scanned again and again.
        place = _BLANK.match(text, place).end()  # type: ignore[union-attr]
        match = _ATTRIBUTE.match(text, place)
        if match is None:
            # An unpaired quote or an equals sign astray: skip one character; an endless tag runs to the end of the text.
            if place >= len(text):
                return {}, len(text)
            place = text.find(">", place) + 1 if text[place] in "\"'" else place + 1
            if place == 0:
                return {}, len(text)
            if text[place - 1] == ">":
                return found, place
            continue
        place = match.end()
        if match.group(5):
            return found, place
        value = next((group for group in match.groups()[1:4] if group is not None), "")
        found.setdefault(match.group(1).lower(), _unescaped(value) if "&" in value else value)


def _unescaped(value: str) -> str:
    from html import unescape  # most pages are JSON

    return unescape(value)


def _after(text: str, mark: str, place: int) -> int:
    end = text.find(mark, place)
    return len(text) if end < 0 else end + len(mark)


def _after_tag(text: str, word: str, place: int) -> int:
    end = re.compile(rf"</{word}", re.IGNORECASE).search(text, place)
    return len(text) if end is None else end.end()
