"""Pages that a set will probably need are asked for before anything has said so; the answer never depends on it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.index.index_server import Reply, Site, json_page, sha256, wheel
from tests.lock.test_lock_scouts import lock, pins

HERE = "[companions.{}]\nneeds = {!r}\nsource = 'a test'\n"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        for name, needs in (("app", ["lib"]), ("lib", ["base"]), ("base", [])):
            filename, content, metadata = wheel(name, "1.0", needs)
            site.paths[f"/files/{filename}.metadata"] = Reply(metadata)
            row = {"filename": filename, "url": f"../../files/{filename}", "hashes": {"sha256": sha256(content)}}
            site.paths[f"/simple/{name}/"] = json_page(name, [{**row, "core-metadata": {"sha256": sha256(metadata)}}])
        yield site


@pytest.fixture(autouse=True)
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's catalogue file."""
    file = tmp_path / "site.toml"
    monkeypatch.setenv("ROCMPIP_CATALOGUE_PATH", str(file))
    file.write_text("")
    return file


def held(site: Site, path: str, until: threading.Event) -> list[bool]:
    """Have ``path`` answered once ``until`` is set, or after seconds. The list says for each answer whether it was."""
    answer = site.paths[path]
    assert isinstance(answer, Reply)
    seen: list[bool] = []

    def late(_: Any) -> Reply:
        seen.append(until.wait(2))
        return answer

    site.paths[path] = late
    return seen


def rings(site: Site, path: str) -> threading.Event:
    """Set when ``path`` is asked for."""
    answer, bell = site.paths[path], threading.Event()
    assert isinstance(answer, Reply)

    def ringing(_: Any) -> Reply:
        bell.set()
        return answer

    site.paths[path] = ringing
    return bell


@pytest.mark.parametrize("target", [[], ["--gfx", "gfx942", "--rocm", "6.4"]], ids=["no-gpu", "gfx942"])
@pytest.mark.parametrize("processors", [1, 2])
@pytest.mark.parametrize("known", [True, False])
def test_pages_are_asked_for_before_anybody_has_said_so(
    site: Site, catalogue: Path, tmp_path: Path, processors: int, known: bool, target: list[str]
) -> None:
    if known:
        catalogue.write_text(HERE.format("app", "lib") + HERE.format("lib", "base"))
    # What says that base is needed comes only when base was asked for: without the table that is never.
    early = held(site, "/files/lib-1.0-py3-none-any.whl.metadata", rings(site, "/simple/base/"))
    done = lock(site, tmp_path, "app", *target, processors=processors)
    assert pins(done.stdout) == {"app": "1.0", "lib": "1.0", "base": "1.0"}
    assert early == [known]


def test_the_torch_family_is_not_chosen_for_a_guess(site: Site, catalogue: Path, tmp_path: Path) -> None:
    """For an AMD target that means asking other indexes; nor is anything built or looked for that a recipe makes."""
    catalogue.write_text(HERE.format("app", "torch flash-attn nvidia-cublas-cu12 ghost"))
    done = lock(site, tmp_path, "app", "--gfx", "gfx942", "--rocm", "6.4", processors=1)
    assert pins(done.stdout) == {"app": "1.0", "lib": "1.0", "base": "1.0"}, done.stderr
    asked = {path.split("/")[2] for path, _ in site.requests if path.startswith("/simple/")}
    assert "ghost" in asked
    assert not asked & {"torch", "flash-attn", "nvidia-cublas-cu12"}


@pytest.mark.parametrize("processors", [1, 2])
def test_a_row_that_is_wrong_costs_a_request_and_changes_nothing(
    site: Site, catalogue: Path, tmp_path: Path, processors: int
) -> None:
    catalogue.write_text(HERE.format("app", "ghost broken lib base[never]") + HERE.format("base--never", "app"))
    site.paths["/simple/broken/"] = Reply(b"{", headers={"Content-Type": "application/vnd.pypi.simple.v1+json"})
    done = lock(site, tmp_path, "app", processors=processors)
    assert (done.returncode, done.stderr) == (0, "")
    assert pins(done.stdout) == {"app": "1.0", "lib": "1.0", "base": "1.0"}
    assert site.asked("/simple/ghost/") == 1
