"""Pages: what goes in comes out again, in JSON and HTML, and sources merge as pip merges them."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rocmpip.index.credentials import Credentials
from rocmpip.index.listing import parse_page, to_file
from rocmpip.model.errors import NetworkError
from rocmpip.model.packages import File
from rocmpip.model.request import IndexOptions
from rocmpip.model.routing import Route
from rocmpip.router.pages import HTML_TYPE, JSON_TYPE, Entry, as_html, as_json, gather, together, wants_json
from tests.router.router_upstream import Memory

quick = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
digests = st.text("0123456789abcdef", min_size=64, max_size=64)
texts = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=30).map(str.strip)
segments = st.text(string.ascii_letters + string.digits + "._-~%+&;=,'()", min_size=1, max_size=20)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    version = f"{draw(st.integers(0, 999))}.{draw(st.integers(0, 9))}" + draw(st.sampled_from(["", "+rocm6.4", "+cpu", "rc1"]))
    filename = draw(st.sampled_from([f"torch-{version}-py3-none-any.whl", f"torch-{version}.tar.gz"]))
    folder = draw(segments.filter(lambda text: text not in (".", "..")))
    url = f"https://files.example/{folder}/{filename.replace('+', '%2B')}"
    advertised = draw(st.one_of(st.none(), st.just(""), digests.map(lambda digest: f"sha256={digest}")))
    hashes = draw(st.one_of(st.just({}), digests.map(lambda digest: {"sha256": digest})))
    file = File(
        filename,
        url,
        hashes,
        draw(st.one_of(st.just(""), st.just(">=3.10,<4"), texts)),
        draw(st.one_of(st.none(), texts)),
        advertised,
        draw(st.one_of(st.none(), st.integers(0, 2**40))),
        draw(st.sampled_from(["", "2026-01-02T03:04:05.678Z"])),
    )
    return Entry(file, url, advertised)


def read(body: bytes, kind: str) -> list[File]:
    rows, secret = parse_page(body, kind, "http://127.0.0.1/x/", "torch", Credentials(IndexOptions(), {}))
    assert not secret
    return [to_file(row, "", False) for row in rows]


@quick
@given(st.lists(entries(), max_size=5))
def test_json_comes_back_as_it_was(rows: list[Entry]) -> None:
    assert read(as_json("torch", rows), JSON_TYPE) == [entry.file for entry in rows]


@quick
@given(st.lists(entries(), max_size=5))
def test_html_comes_back_as_it_was_but_for_the_size(rows: list[Entry]) -> None:
    expected = [replace(entry.file, size=None) for entry in rows]
    assert read(as_html("torch", rows), HTML_TYPE) == expected


@quick
@given(st.lists(entries(), min_size=1, max_size=3))
def test_the_old_metadata_keys_are_not_written(rows: list[Entry]) -> None:
    assert "dist-info-metadata" not in as_json("torch", rows).decode()
    assert "dist-info-metadata" not in as_html("torch", rows).decode()


def test_the_json_of_one_file() -> None:
    file = File("six-1.zip", "https://h.example/six-1.zip", yanked="", core_metadata="")
    row = json.loads(as_json("six", [Entry(file, file.url, "")]))["files"][0]
    assert row == {"filename": "six-1.zip", "url": file.url, "hashes": {}, "yanked": True, "core-metadata": True}


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01", True),
        ("application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01", True),
        ("application/vnd.pypi.simple.latest+json", True),
        ("text/html", False),
        ("*/*", False),
        ("", False),
        ("application/vnd.pypi.simple.v1+json;q=0, text/html", False),
        ("application/vnd.pypi.simple.v1+json;q=0.1, text/html;q=0.9", False),
        ("application/vnd.pypi.simple.v1+json;q=broken, text/html", False),
        (",;q=,;;", False),
    ],
)
def test_which_form_is_wanted(accept: str, expected: bool) -> None:
    assert wants_json(accept) is expected


def at(place: str, filename: str, **hashes: str) -> File:
    return File(filename, f"https://{place}.example/{filename}", hashes)


def test_sources_merge_and_the_first_of_a_name_wins() -> None:
    memory = Memory(
        pages={
            ("a", "six"): (at("a", "six-1.zip"), at("a", "six-2.zip")),
            ("b", "six"): (at("b", "six-2.zip"), at("b", "six-3.zip")),
        },
        links={"links": (at("l", "six-1.zip"), at("l", "seven-1.zip"))},
    )
    route = Route("six", "plain", ("a", "b", "c"), ("links",), (at("own", "six-4.zip"), at("own", "six-3.zip")))
    files, absent = gather(route, memory)
    assert [file.url.split(".")[0].removeprefix("https://") + file.filename[3:6] for file in files] == [
        "l-1.",
        "a-2.",
        "b-3.",
        "own-4.",
    ]
    assert absent == ["c: HTTP 404"]


def test_a_second_file_with_another_hash_counts_since_a_request_may_mean_it() -> None:
    one, same, other, unknown = (
        at(name, "six-1.zip", **({"sha256": digest} if digest else {}))
        for name, digest in zip("abcd", ["1", "1", "2", ""], strict=True)
    )
    memory = Memory(pages={(file.url, "six"): (file,) for file in (one, same, other, unknown)})
    files, _ = gather(Route("six", "plain", tuple(file.url for file in (one, same, other, unknown))), memory)
    assert files == [one, other]


def test_what_the_policy_does_not_keep_is_left_out() -> None:
    memory = Memory(pages={("a", "six"): (at("a", "six-1.zip"), at("a", "six-2.zip"))})
    route = Route("six", "plain", ("a",), files=(at("own", "six-1.1.zip"),), keep=lambda file: "-1" not in file.filename)
    assert [file.filename for file in gather(route, memory)[0]] == ["six-2.zip"]


def test_one_broken_index_is_an_error_not_a_gap() -> None:
    memory = Memory(pages={("a", "six"): (at("a", "six-1.zip"),), ("b", "six"): NetworkError("b is down")})
    with pytest.raises(NetworkError, match="b is down"):
        gather(Route("six", "plain", ("a", "b")), memory)


def test_together_is_at_the_same_time_and_in_order() -> None:
    import threading

    barrier = threading.Barrier(3, timeout=10)

    def work(number: int) -> int:
        barrier.wait()
        return number

    assert together([lambda: work(0), lambda: work(1), lambda: work(2)]) == [0, 1, 2]
