"""Whatever a server sends: an answer or an error of ours, and never a scan that does not end."""

from __future__ import annotations

import httpcore
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rocmpip.index.address import parse_address
from rocmpip.index.anchors import read_anchors
from rocmpip.index.credentials import Credentials
from rocmpip.index.limits import Deadline
from rocmpip.index.listing import NotAnIndex, parse_page, unpack
from rocmpip.index.names import Names
from rocmpip.index.tls import Tls
from rocmpip.index.transport import Lane
from rocmpip.index.wire_errors import WireError
from rocmpip.model.request import IndexOptions

easy = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
TOKENS = """<a| href=|"|'|>|</a>|six-1.zip|<!--|-->|<base|<meta| name=|=|/| |#|[|<script|</script>|&gt;|&#x110000;|data-yanked|http://|@|é|
<title>Links for|<|\x00"""
markup = st.lists(st.sampled_from(TOKENS.split("|")), max_size=40).map("".join)


@easy
@given(markup)
@example("<base href=http://[><a href=six-1.zip>")
@example("<a href=http://[>")
def test_any_markup_is_read(text: str) -> None:
    for anchor in read_anchors(text).anchors:
        assert anchor["href"]


@easy
@given(
    st.one_of(st.binary(max_size=100), markup.map(str.encode)),
    st.sampled_from(["text/html", "application/json", "", "x/y", "text/html; charset=utf-7"]),
)
def test_any_page_is_files_or_no_index(body: bytes, kind: str) -> None:
    try:
        rows, _ = parse_page(body, kind, "https://h.example/six/", "six", Credentials(IndexOptions(), {}))
    except NotAnIndex as problem:
        assert str(problem)
    else:
        assert all(row.url.startswith(("http://", "https://")) and row.filename.startswith("six") for row in rows)


@easy
@given(st.binary(max_size=60))
def test_any_bytes_in_the_cache_are_a_page_or_nothing(data: bytes) -> None:
    assert unpack(data) is None or data


HTTP = [
    *(
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 100 Go on\r\n\r\n",
        b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"\r\n",
    ),
    *(b"5\r\nhello\r\n", b"0\r\n\r\n", b"Content-Encoding: gzip\r\n", b"hello", b"Connection: close\r\n", b"\x1f\x8b\x08\x00"),
]
pieces = st.lists(st.one_of(st.binary(max_size=20), st.sampled_from(HTTP)), max_size=10).map(b"".join)


@easy
@given(pieces)
def test_any_bytes_on_the_wire_are_an_answer_or_an_error(data: bytes) -> None:
    address = parse_address("http://h.example/")
    lane = Lane(address, None, Tls("", "", (), {}), 1.0, Names())
    lane._backend._plain = httpcore.MockBackend([data])  # type: ignore[assignment]
    kept: list[Lane] = []
    try:
        response = lane.ask("GET", address, {}, Deadline(5), kept.append)
        body = response.read(1000)
    except WireError as problem:
        assert str(problem)
    else:
        response.close()
        assert len(body) <= 1000
        assert response.finished
        assert kept == [lane]


@pytest.mark.parametrize(
    "piece",
    [
        '<a "',
        "<a =",
        "<a ",
        '<a href="x ',
        "<a href=\"x '",
        "<!--",
        "<script>",
        "<a href='",
        "<title>",
        "<a x=\"' y='\" >",
        "<",
    ],
)
def test_scanning_is_linear(piece: str) -> None:
    # A quadratic scan of these would take minutes.
    assert read_anchors(piece * 100_000).anchors == []
    assert read_anchors("<a " + piece[-1] * 300_000).anchors == []


@pytest.mark.parametrize("filler", [" ", "/", "=", "x ", "\n"])
def test_a_tag_without_end_is_left(filler: str) -> None:
    assert read_anchors("<a href=x " + filler * 300_000).anchors == []


def test_html_of_a_size_that_no_index_has_is_not_scanned() -> None:
    with pytest.raises(NotAnIndex, match="HTML has"):
        parse_page(b"<a " * 6_000_000, "text/html", "https://h.example/", "six", Credentials(IndexOptions(), {}))
