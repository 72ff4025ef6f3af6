"""Metadata by every road, and downloads that are checked and resumed."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rocmpip.index.client import Client, Limits, NoMetadata
from rocmpip.model.errors import InputError, NetworkError
from rocmpip.model.packages import File
from rocmpip.store.cache import PageCache
from tests.index.index_server import Raw, Reply, Site, sha256, wheel

Make = Callable[..., Client]
NAME, WHEEL, METADATA = wheel("torch", "2.9.1", ["filelock", "pytorch-triton-rocm==3.5.1"], padding=600_000)


def at(site: Site, **keys: Any) -> File:
    return File(**{"filename": NAME, "url": f"{site.url}/{NAME}", **keys})


def test_advertised_metadata_is_checked_against_its_hash(site: Site, make_client: Make) -> None:
    site.paths[f"/{NAME}.metadata"] = Reply(METADATA)
    client = make_client()
    file = at(site, core_metadata=f"sha256={sha256(METADATA)}")
    assert client.metadata(file) == client.metadata(file) == METADATA
    assert site.asked(f"/{NAME}.metadata") == 1
    with pytest.raises(NetworkError, match="not what the index lists"):
        make_client().metadata(at(site, core_metadata=f"sha256={'0' * 64}"))


def test_metadata_that_is_not_advertised_is_tried(site: Site, make_client: Make) -> None:
    site.paths[f"/{NAME}.metadata"] = Reply(METADATA)
    assert make_client().metadata(at(site)) == METADATA
    assert site.asked(f"/{NAME}") == 0


def test_metadata_that_is_not_advertised_is_not_believed_where_pip_would_not(
    site: Site, make_client: Make, tmp_path: Path
) -> None:
    site.paths[f"/{NAME}.metadata"] = Reply(b"Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1\n")
    site.paths[f"/{NAME}"] = Reply(WHEEL, ranges=True)
    cache = PageCache(tmp_path)
    assert make_client(cache=cache).metadata(at(site)) != METADATA
    assert make_client(cache=cache, guess=False).metadata(at(site)) == METADATA
    assert site.asked(f"/{NAME}.metadata") == 1


def test_few_files_ask_whether_there_is_metadata_that_is_not_advertised(site: Site, make_client: Make) -> None:
    """Of many threads one finds out; three misses are enough for a host."""
    for number in range(40):
        site.paths[f"/{number}/{NAME}"] = Reply(WHEEL, ranges=True)
    client = make_client()
    with ThreadPoolExecutor(20) as threads:
        found = list(threads.map(lambda number: client.metadata(at(site, url=f"{site.url}/{number}/{NAME}")), range(40)))
    assert found == [METADATA] * 40
    assert sum(path.endswith(".metadata") for path, _ in site.requests) <= 3


@pytest.mark.parametrize("suffix_ranges", [True, False])
def test_metadata_by_range_reads_costs_little(site: Site, make_client: Make, suffix_ranges: bool) -> None:
    site.paths[f"/{NAME}.metadata"] = Reply(b"<html>whatever you ask for</html>")
    site.paths[f"/{NAME}"] = Reply(WHEEL, ranges=True, suffix_ranges=suffix_ranges)
    assert make_client().metadata(at(site, size=len(WHEEL))) == METADATA
    assert all("range" in headers for path, headers in site.requests if path == f"/{NAME}")


def test_metadata_in_front_of_a_large_wheel(site: Site, make_client: Make) -> None:
    import io
    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("torch-2.9.1.dist-info/METADATA", METADATA)
        archive.writestr("torch/vendored/other-1.dist-info/METADATA", b"Name: other")
        archive.writestr("big", bytes(400_000))
    site.paths[f"/{NAME}"] = Reply(buffer.getvalue(), ranges=True)
    assert make_client().metadata(at(site)) == METADATA
    assert sum(1 for path, _ in site.requests if path == f"/{NAME}") == 2


def test_without_ranges_the_whole_wheel_is_the_last_resort(site: Site, make_client: Make) -> None:
    site.paths[f"/{NAME}"] = Reply(WHEEL)
    assert make_client().metadata(at(site)) == METADATA


def test_advertised_metadata_that_a_mirror_forgot(site: Site, make_client: Make) -> None:
    site.paths[f"/{NAME}"] = Reply(WHEEL, ranges=True)
    assert make_client().metadata(at(site, core_metadata=f"sha256={sha256(METADATA)}")) == METADATA


def test_hosts_without_metadata_files_are_not_asked_for_ever(site: Site, make_client: Make) -> None:
    client = make_client()
    for number in range(8):
        name, body, _ = wheel("six", str(number))
        site.paths[f"/{name}"] = Reply(body, ranges=True)
        client.metadata(File(name, f"{site.url}/{name}"))
    assert sum(1 for path, _ in site.requests if path.endswith(".metadata")) == 3


def test_an_sdist_has_no_metadata_and_a_broken_wheel_says_so(site: Site, make_client: Make) -> None:
    site.paths[f"/{NAME}"] = Reply(b"no zip at all" * 99, ranges=True)
    client = make_client()
    with pytest.raises(NoMetadata, match=r"six-1\.tar\.gz"):
        client.metadata(File("six-1.tar.gz", f"{site.url}/six-1.tar.gz"))
    with pytest.raises(NoMetadata, match="cannot be used"):
        client.metadata(at(site))
    with pytest.raises(NetworkError):
        make_client().metadata(at(site, url=f"{site.url}/gone.whl"))


def test_metadata_of_local_files(tmp_path: Path, make_client: Make) -> None:
    (tmp_path / NAME).write_bytes(WHEEL)
    assert make_client().metadata(File(NAME, (tmp_path / NAME).as_uri())) == METADATA
    for name, word in (("x-1-py3-none-any.whl", "cannot be read"), ("y-1-py3-none-any.whl", "cannot be used")):
        (tmp_path / "y-1-py3-none-any.whl").write_bytes(WHEEL[:100])
        with pytest.raises(InputError, match=word) as caught:
            make_client().metadata(File(name, (tmp_path / name).as_uri()))
        assert str(tmp_path / name) in caught.value.message and caught.value.hint


# Downloads


def listed(site: Site, **keys: Any) -> File:
    return at(site, **{"hashes": {"sha256": sha256(WHEEL)}, "size": len(WHEEL), **keys})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_download_is_checked_and_put_in_place(site: Site, tmp_path: Path, make_client: Make) -> None:
    site.paths[f"/{NAME}"] = Reply(WHEEL)
    seen: list[tuple[int, int | None]] = []
    path = make_client().download(listed(site), tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert path == tmp_path / NAME
    assert path.read_bytes() == WHEEL
    assert seen[-1] == (len(WHEEL), len(WHEEL))
    assert names(tmp_path) == [NAME]


@pytest.mark.parametrize(
    "keys",
    [
        {"hashes": {"sha256": "0" * 64}},
        {"hashes": {"md5": "0" * 32}},
        {"size": 10},
        {"size": len(WHEEL) + 1},
        {"hashes": {}, "size": len(WHEEL) - 1},
    ],
)
def test_wrong_bytes_leave_nothing(site: Site, tmp_path: Path, make_client: Make, keys: dict[str, Any]) -> None:
    site.paths[f"/{NAME}"] = Reply(WHEEL)
    with pytest.raises(NetworkError, match=NAME) as caught:
        make_client(retries=1).download(listed(site, **keys), tmp_path / "deep" / NAME)
    assert "not what the index lists" in caught.value.message
    assert names(tmp_path / "deep") == []


def test_a_cut_download_goes_on_where_it_stopped(site: Site, tmp_path: Path, make_client: Make) -> None:
    def answer(handler: Any) -> Reply | None:
        wanted = handler.headers.get("Range")
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        handler.send_response(206 if wanted else 200)
        if wanted:
            handler.send_header("Content-Range", f"bytes {start}-{len(WHEEL) - 1}/{len(WHEEL)}")
        handler.send_header("ETag", '"v1"')
        handler.send_header("Content-Length", str(len(WHEEL) - start))
        handler.end_headers()
        handler.wfile.write(WHEEL[start : start + 100_000])
        handler.close_connection = True
        return None

    site.paths[f"/{NAME}"] = answer
    path = make_client(retries=1).download(listed(site), tmp_path)
    assert path.read_bytes() == WHEEL
    assert 6 <= site.asked(f"/{NAME}") <= 8
    assert site.requests[-1][1]["if-range"] == '"v1"'


@pytest.mark.parametrize(
    ("hashed", "given", "why", "hint"),
    [
        (
            True,
            40_000,
            "the connection ended after 40000 of {size} bytes",
            "run the same command again: it goes on where it stopped",
        ),
        (
            False,
            40_000,
            "the connection ended after 40000 of {size} bytes",
            "run the same command again, or name another index or mirror",
        ),
        (
            True,
            0,
            "the connection ended after 0 of {size} bytes",
            "run the same command again, or name another index or mirror",
        ),
    ],
    ids=["resumable", "no-hash", "nothing-came"],
)
def test_a_cut_is_told_once_with_all_that_came(
    site: Site, tmp_path: Path, make_client: Make, hashed: bool, given: int, why: str, hint: str
) -> None:
    """Each try gets 20,000 bytes more at most, and the count is that of all tries together, not of the last answer."""

    def answer(handler: Any) -> Reply | None:
        wanted = handler.headers.get("Range")
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        handler.send_response(206 if wanted else 200)
        if wanted:
            handler.send_header("Content-Range", f"bytes {start}-{len(WHEEL) - 1}/{len(WHEEL)}")
        handler.send_header("Content-Length", str(len(WHEEL) - start))
        handler.end_headers()
        step = 20_000 if hashed else given
        handler.wfile.write(WHEEL[start : min(start + step, given)])
        handler.close_connection = True
        return None

    site.paths[f"/{NAME}"] = answer
    file = listed(site) if hashed else listed(site, hashes={})
    with pytest.raises(NetworkError) as caught:
        make_client(retries=1).download(file, tmp_path)
    assert (caught.value.why, caught.value.hint) == (why.format(size=len(WHEEL)), hint)


def test_the_next_run_resumes(site: Site, tmp_path: Path, make_client: Make) -> None:
    (tmp_path / f".{NAME}.part").write_bytes(WHEEL[:500_000])
    site.paths[f"/{NAME}"] = Reply(WHEEL, ranges=True)
    assert make_client().download(listed(site), tmp_path).read_bytes() == WHEEL
    assert site.requests[-1][1]["range"] == "bytes=500000-"


def test_a_part_of_another_file_is_found_out_and_the_next_try_is_clean(site: Site, tmp_path: Path, make_client: Make) -> None:
    (tmp_path / f".{NAME}.part").write_bytes(b"x" * 500_000)
    site.paths[f"/{NAME}"] = Reply(WHEEL, ranges=True)
    assert make_client().download(listed(site), tmp_path).read_bytes() == WHEEL
    assert names(tmp_path) == [NAME]


def test_without_hashes_a_part_of_an_earlier_run_is_not_trusted(site: Site, tmp_path: Path, make_client: Make) -> None:
    (tmp_path / f".{NAME}.part").write_bytes(b"x" * 500)
    site.paths[f"/{NAME}"] = Reply(WHEEL, ranges=True)
    assert make_client().download(listed(site, hashes={}), tmp_path).read_bytes() == WHEEL


def test_servers_that_fail_leave_no_file(site: Site, tmp_path: Path, make_client: Make) -> None:
    for status in (404, 500):
        site.paths[f"/{NAME}"] = Reply(status=status)
        with pytest.raises(NetworkError, match=NAME) as caught:
            make_client(retries=1).download(listed(site), tmp_path)
        assert f"HTTP {status}" in caught.value.why
        assert NAME not in names(tmp_path)


def test_a_download_that_trickles_ends(tmp_path: Path, make_client: Make) -> None:
    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not server.over.wait(0.02):
            connection.sendall(b"x")

    with Raw(answer) as server:
        client = make_client(retries=0, limits=Limits(backoff=0.001, trickle_window=0.1, trickle_rate=1000))
        with pytest.raises(NetworkError, match=NAME):
            client.download(File(NAME, f"{server.url}/{NAME}"), tmp_path)
    assert names(tmp_path) == []


def test_two_downloads_of_one_file_at_once(site: Site, tmp_path: Path, make_client: Make) -> None:
    import threading

    site.paths[f"/{NAME}"] = Reply(WHEEL, ranges=True)
    client = make_client()
    threads = [threading.Thread(target=client.download, args=(listed(site), tmp_path)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / NAME).read_bytes() == WHEEL
    assert names(tmp_path) == [NAME]


def test_a_local_file_is_copied_and_checked(tmp_path: Path, make_client: Make) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / NAME).write_bytes(WHEEL)
    file = File(NAME, (tmp_path / "a" / NAME).as_uri(), {"sha256": sha256(WHEEL)})
    assert make_client().download(file, tmp_path).read_bytes() == WHEEL
    with pytest.raises(NetworkError, match="not what"):
        make_client().download(File(NAME, file.url, {"sha256": "0" * 64}), tmp_path / "b.whl")
    assert not (tmp_path / "b.whl").exists()
