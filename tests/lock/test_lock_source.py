"""The resolver over real connections: pages in every form, several indexes, servers that fail, and the memo of a lock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rocmpip.app.resolve import IndexSource
from rocmpip.demo.wheels import Wheel
from rocmpip.index.client import Client
from rocmpip.index.limits import Limits
from rocmpip.model.errors import NetworkError, NoPlan
from rocmpip.model.packages import File, RequirementLine
from rocmpip.model.request import IndexOptions
from rocmpip.model.routing import Route, Synthetic
from rocmpip.plan.listing import Rules
from rocmpip.plan.markers import Markers, target_environment
from rocmpip.plan.requirements import lines_of
from rocmpip.plan.resolve import Resolution, resolve
from tests.index.index_server import Reply, Site, html_page, json_page
from tests.support.commands import rocmpip

TAGS = {"py3-none-any": 0}
Solve = Callable[..., Resolution]


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture
def solve(site: Site) -> Solve:
    def run(
        *texts: str, indexes: Sequence[str] = (), retries: int = 0, expected: Sequence[str] = (), **more: Any
    ) -> Resolution:
        urls = [f"{site.url}/{one}" for one in indexes] or [f"{site.url}/simple"]
        options = IndexOptions(index_url=urls[0], extra_index_urls=tuple(urls[1:]), timeout=2, retries=retries)
        markers = Markers(target_environment("3.12.1"))
        lines: Sequence[RequirementLine] = lines_of(texts)
        with (
            Client(options, env={}, limits=Limits(page_seconds=5)) as client,
            IndexSource(client, rules=Rules(TAGS, "3.12.1"), markers=markers, bounds=lines, **more) as source,
        ):
            source.expect(expected)
            return resolve(lines, source=source, environment=markers, rules=source.rules)

    return run


def add(site: Site, name: str, versions: dict[str, Sequence[str]], *, index: str = "simple", html: bool = False) -> None:
    rows, links = [], []
    for version, needs in versions.items():
        filename = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
        rows.append({"filename": filename, "url": f"../../files/{filename}", "hashes": {}, "core-metadata": True})
        links.append(f'<a href="../../files/{filename}" data-core-metadata="true">{filename}</a>')
        text = "".join(f"Requires-Dist: {need}\n" for need in needs)
        site.paths[f"/files/{filename}.metadata"] = Reply(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{text}".encode()
        )
    page = html_page("<!DOCTYPE html><html><body>" + "".join(links)) if html else json_page(name, rows)
    site.paths[f"/{index}/{name}/"] = page


def versions(found: Resolution) -> dict[str, str]:
    return {name: pin.version for name, pin in found.pins.items()}


@pytest.mark.parametrize("html", [False, True])
def test_json_and_html_pages_give_the_same(site: Site, solve: Solve, html: bool) -> None:
    add(site, "a", {"1.0": [], "2.0": ["b<2", "c; extra == 'x'"]}, html=html)
    add(site, "b", {"1.0": [], "2.0": []}, html=html)
    add(site, "c", {"1.0": []}, html=html)
    assert versions(solve("a[x]")) == {"a": "2.0", "b": "1.0", "c": "1.0"}
    assert all(pin.file is not None and pin.file.url.startswith(site.url) for pin in solve("a").pins.values())


def test_each_page_and_metadata_file_is_asked_for_once(site: Site, solve: Solve) -> None:
    add(site, "a", {"1.0": ["b", "c"]})
    add(site, "b", {"1.0": ["c"]})
    add(site, "c", {"1.0": ["a"]})
    solve("a", "b", "c")
    assert sorted(path for path, _ in site.requests) == sorted(
        [*(f"/simple/{name}/" for name in "abc"), *(f"/files/{name}-1.0-py3-none-any.whl.metadata" for name in "abc")]
    )


@pytest.mark.parametrize(("needs", "pinned", "looks"), [(["b<2"], "1.0", 0), (["b"], "2.0", 1)])
def test_only_what_is_needed_is_looked_for_where_advertised_metadata_is_missing(
    site: Site, solve: Solve, needs: list[str], pinned: str, looks: int
) -> None:
    """The newest ``b`` is guessed at before anything is known: that guess is one request, and no look into the wheel."""
    add(site, "b", {"2.0": [], "1.0": []})
    add(site, "a", {"1.0": needs})
    del site.paths["/files/b-2.0-py3-none-any.whl.metadata"]
    wheel = Wheel("b", "2.0")
    site.paths[f"/files/{wheel.filename}"] = Reply(wheel.content, ranges=True)
    assert versions(solve("a", expected=["b"])) == {"a": "1.0", "b": pinned}
    asked = [path for path, headers in site.requests if path.startswith("/files/b-2.0")]
    assert len({path for path in asked if not path.endswith(".metadata")}) == looks
    assert looks or len(asked) == 1


def test_several_indexes_are_merged_as_pip_merges_them(site: Site, solve: Solve) -> None:
    add(site, "a", {"1.0": []}, index="one")
    add(site, "a", {"2.0": []}, index="two")
    assert versions(solve("a", indexes=["one", "two"])) == {"a": "2.0"}
    assert versions(solve("a<2", indexes=["one", "two"])) == {"a": "1.0"}


def test_a_name_that_no_index_has(site: Site, solve: Solve) -> None:
    with pytest.raises(NoPlan, match="no such project: nothing-such") as caught:
        solve("nothing-such")
    assert site.url in caught.value.why


def test_a_route_takes_a_name_away_from_the_indexes(site: Site, solve: Solve) -> None:
    add(site, "torch", {"2.99": ["nvidia-x"]})
    add(site, "app", {"1.0": ["torch", "ext"]})
    made = Synthetic("ext-1.0-py3-none-any.whl", b"Metadata-Version: 2.1\nName: ext\nVersion: 1.0\nRequires-Dist: torch\n")
    file = File("torch-2.9.1+rocm6.4-py3-none-any.whl", f"{site.url}/rocm/torch.whl", core_metadata="")
    site.paths["/rocm/torch.whl.metadata"] = Reply(b"Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1+rocm6.4\n")
    routes = {"torch": Route("torch", "family", files=(file,)), "ext": Route("ext", "recipe", synthetic=(made,))}
    found = solve("app", route=routes.get)
    assert versions(found) == {"app": "1.0", "ext": "1.0", "torch": "2.9.1+rocm6.4"}
    assert found.pins["ext"].candidate.origin == "recipe"
    assert "/simple/torch/" not in [path for path, _ in site.requests]


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"<html>please log in</html>", headers={"Content-Type": "text/html"}),
        Reply(b'{"files": [{"filename": 3}]}', headers={"Content-Type": "application/vnd.pypi.simple.v1+json"}),
        Reply(b'{"files": [', headers={"Content-Type": "application/vnd.pypi.simple.v1+json"}),
        Reply(b"", status=500),
        Reply(b"", status=429, headers={"Retry-After": "3600"}),
        Reply(b"", status=302, headers={"Location": "/simple/a/"}),
        json_page("a", [{"filename": "other-1.0-py3-none-any.whl", "url": "x.whl", "hashes": {}}]),
    ],
    ids=["login", "lies", "cut", "500", "429", "circle", "other-project"],
)
def test_servers_that_fail_are_told_with_url_and_name_in_time(site: Site, solve: Solve, reply: Reply) -> None:
    site.paths["/simple/a/"] = reply
    begun = time.monotonic()
    with pytest.raises(NetworkError) as caught:
        solve("a")
    told = caught.value.message + caught.value.why
    assert caught.value.exit_code == 42
    assert "a" in told
    assert site.url.removeprefix("http://") in told
    assert time.monotonic() - begun < 8


def test_a_server_that_fails_once_is_asked_again(site: Site, solve: Solve) -> None:
    add(site, "a", {"1.0": []})
    good = site.paths["/simple/a/"]
    site.paths["/simple/a/"] = lambda _: Reply(status=503) if site.asked("/simple/a/") == 1 else good
    assert versions(solve("a", retries=2)) == {"a": "1.0"}


def test_a_broken_page_that_nobody_needs_harms_nothing(site: Site, solve: Solve) -> None:
    """The newest a is looked at ahead and leads to a broken page; the constraint rules it out."""
    add(site, "a", {"1.0": [], "2.0": ["broken"]})
    add(site, "cap", {"1.0": ["a<2"]})
    site.paths["/simple/broken/"] = Reply(status=500)
    assert versions(solve("cap", "a")) == {"a": "1.0", "cap": "1.0"}


@pytest.mark.pip
def test_the_same_lock_again_asks_nobody(site: Site, tmp_path: Path, clean_env: dict[str, str]) -> None:
    rows = [
        {
            "filename": "a-1.0-py3-none-any.whl",
            "url": "a-1.0-py3-none-any.whl",
            "hashes": {"sha256": "a" * 64},
            "core-metadata": True,
        }
    ]
    site.paths["/simple/a/"] = json_page("a", rows)
    site.paths["/simple/a/a-1.0-py3-none-any.whl.metadata"] = Reply(b"Metadata-Version: 2.1\nName: a\nVersion: 1.0\n")
    (tmp_path / "machine").mkdir()
    (tmp_path / "in.txt").write_text("a\n")
    env = {**clean_env, "ROCMPIP_SYSROOT": str(tmp_path / "machine"), "ROCMPIP_CACHE_DIR": str(tmp_path / "cache")}
    words = ("lock", "-i", f"{site.url}/simple", "-r", "in.txt", "-o", "out.txt")

    def run(**more: str) -> int:
        before = len(site.requests)
        done = rocmpip(*words, env={**env, **more}, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "1 packages in out.txt" in done.stderr or "1 package" in done.stderr
        return len(site.requests) - before

    assert run() == 2
    content = (tmp_path / "out.txt").read_text()
    assert run() == 0
    (tmp_path / "out.txt").unlink()
    assert run() == 0
    assert (tmp_path / "out.txt").read_text() == content
    assert run(PIP_PRE="1") > 0  # another input
    (tmp_path / "in.txt").write_text("a>=1\n")
    assert run() > 0
    memos = list((tmp_path / "cache" / "locks").iterdir())
    assert memos
    for memo in memos:
        assert memo.stat().st_mode & 0o077 == 0
        memo.write_bytes(b"\xff garbage")
    assert run() > 0
