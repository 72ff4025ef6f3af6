"""What the client keeps on disk: listings with validators, metadata; what it never keeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rocmpip.index.client import Client
from rocmpip.model.errors import NetworkError
from rocmpip.model.packages import Absent, File, Page
from rocmpip.store.cache import PageCache
from tests.index.index_server import Reply, Site, json_page, sha256, wheel

Make = Callable[..., Client]
ROW = {
    "filename": "six-1-py3-none-any.whl",
    "url": "f/six-1-py3-none-any.whl",
    "hashes": {"sha256": "ab" * 32},
    "requires-python": ">=3.8",
    "yanked": "no",
    "core-metadata": {"sha256": "cd" * 32},
    "size": 7,
    "upload-time": "2026-01-01T00:00:00Z",
}


def with_etag(handler: object) -> Reply:
    if handler.headers.get("If-None-Match") == '"v1"':  # type: ignore[attr-defined]
        return Reply(status=304, headers={"ETag": '"v1"'})
    return json_page("six", [ROW], ETag='"v1"')


def test_a_page_is_asked_again_with_its_validator(site: Site, tmp_path: Path, make_client: Make) -> None:
    site.paths["/s/six/"] = with_etag
    pages = [make_client(cache=PageCache(tmp_path)).page(f"{site.url}/s", "six") for _ in range(3)]
    assert pages[0] == pages[1] == pages[2]
    assert isinstance(pages[0], Page)
    assert [headers.get("if-none-match") for _, headers in site.requests] == [None, '"v1"', '"v1"']


def test_a_fresh_page_is_not_asked_again(site: Site, tmp_path: Path, make_client: Make) -> None:
    site.paths["/s/six/"] = json_page("six", [ROW], **{"Cache-Control": "max-age=600, public"})
    pages = [make_client(cache=PageCache(tmp_path)).page(f"{site.url}/s", "six") for _ in range(3)]
    assert pages[0] == pages[2]
    assert len(site.requests) == 1


@pytest.mark.parametrize(("refresh", "asked"), [((":all:",), 2), (("six",), 2), (("other",), 1), ((), 1)])
def test_a_page_that_is_to_be_asked_afresh(
    site: Site, tmp_path: Path, make_client: Make, refresh: tuple[str, ...], asked: int
) -> None:
    site.paths["/s/six/"] = json_page("six", [ROW], **{"Cache-Control": "max-age=600, public"})
    for _ in range(2):
        make_client(cache=PageCache(tmp_path), refresh=refresh).page(f"{site.url}/s", "Six")
    expected = "max-age=0" if asked == 2 else None
    assert [headers.get("cache-control") for _, headers in site.requests] == [expected] * asked


@pytest.mark.parametrize("control", ["no-store", "no-cache", "max-age=0", "max-age=600, no-cache", "max-age=x", ""])
def test_a_page_that_must_be_asked(site: Site, tmp_path: Path, make_client: Make, control: str) -> None:
    site.paths["/s/six/"] = json_page("six", [ROW], **{"Cache-Control": control})
    for _ in range(2):
        make_client(cache=PageCache(tmp_path)).page(f"{site.url}/s", "six")
    assert len(site.requests) == 2


def test_a_page_that_is_gone_is_gone(site: Site, tmp_path: Path, make_client: Make) -> None:
    site.paths["/s/six/"] = with_etag
    make_client(cache=PageCache(tmp_path)).page(f"{site.url}/s", "six")
    site.paths["/s/six/"] = Reply(status=404)
    assert isinstance(make_client(cache=PageCache(tmp_path)).page(f"{site.url}/s", "six"), Absent)
    site.paths["/s/six/"] = with_etag
    assert isinstance(make_client(cache=PageCache(tmp_path)).page(f"{site.url}/s", "six"), Page)


def test_offline_means_the_cache_and_files(site: Site, tmp_path: Path, make_client: Make) -> None:
    site.paths["/s/six/"] = with_etag
    (tmp_path / "links").mkdir()
    (tmp_path / "links/six-2.zip").write_bytes(b"")
    cache = PageCache(tmp_path / "cache")
    online = make_client(cache=cache)
    page = online.page(f"{site.url}/s", "six")
    online.page(f"{site.url}/s", "nothing")
    count = len(site.requests)
    client = make_client(cache=cache, offline=True)
    assert client.page(f"{site.url}/s", "six") == page
    assert isinstance(client.page(f"{site.url}/s", "nothing"), Absent)
    assert len(client.find_links(str(tmp_path / "links"))) == 1
    with pytest.raises(NetworkError, match="offline") as caught:
        client.page(f"{site.url}/s", "seven")
    assert f"{site.url}/s/seven/" in caught.value.why
    assert len(site.requests) == count


def test_metadata_is_kept_under_its_hash(site: Site, tmp_path: Path, make_client: Make) -> None:
    name, _, metadata = wheel("six", "1")
    site.paths[f"/{name}.metadata"] = Reply(metadata)
    file = File(name, f"{site.url}/{name}", core_metadata=f"sha256={sha256(metadata)}")
    for _ in range(3):
        assert make_client(cache=PageCache(tmp_path)).metadata(file) == metadata
    assert len(site.requests) == 1
    with pytest.raises(NetworkError):
        make_client(cache=PageCache(tmp_path)).metadata(File(name, file.url, core_metadata="sha256=" + "0" * 64))


def test_credentials_never_reach_the_disk(site: Site, tmp_path: Path, make_client: Make) -> None:
    row = {"filename": "six-2.zip", "url": f"http://inner:hidden1@127.0.0.1:{site.port}/six-2.zip"}
    site.paths["/s/six/"] = json_page("six", [ROW, row], ETag='"v1"')
    site.paths["/s/two/"] = json_page("two", [], ETag='"v1"')
    url = f"http://outer:hidden2@127.0.0.1:{site.port}/s"
    client = make_client(index_url=url, cache=PageCache(tmp_path))
    client.page(url, "six")
    client.page(url, "two")
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"hidden" not in stored
    assert b"outer" not in stored
    assert b"127.0.0.1" in stored


def test_garbage_in_the_cache_is_asked_anew(site: Site, tmp_path: Path, make_client: Make) -> None:
    class Garbage:
        def get(self, kind: str, key: str) -> bytes:
            return b"\x93garbage"

        def put(self, kind: str, key: str, data: bytes) -> None:
            pass

    site.paths["/s/six/"] = with_etag
    name, _, metadata = wheel("six", "1")
    site.paths[f"/{name}.metadata"] = Reply(metadata)
    client = make_client(cache=Garbage())
    assert isinstance(client.page(f"{site.url}/s", "six"), Page)
    assert client.metadata(File(name, f"{site.url}/{name}", core_metadata="")) == metadata
