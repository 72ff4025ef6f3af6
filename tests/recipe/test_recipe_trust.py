"""Trust: given once, for this content and no other."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path

import pytest

from rocmpip.model.errors import Refused
from rocmpip.store.trust import TrustStore, project_digest, state_folder


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    return TrustStore(tmp_path / "state")


def test_state_folder() -> None:
    assert state_folder({"ROCMPIP_STATE_DIR": "/s"}) == Path("/s")
    assert state_folder({"XDG_STATE_HOME": "/x", "HOME": "/h"}) == Path("/x/rocmpip")
    assert state_folder({"HOME": "/h"}) == Path("/h/.local/state/rocmpip")
    assert str(os.getuid()) in str(state_folder({}))


def test_trust_is_bound_to_content(store: TrustStore, tmp_path: Path) -> None:
    digests = {"a.toml": "1" * 64, "b.toml": "2" * 64}
    assert "rocmpip recipe trust" in store.refuses(tmp_path, digests)
    store.trust(folder=tmp_path, digests=digests)
    assert store.refuses(tmp_path, digests) == ""
    for other in ({**digests, "a.toml": "3" * 64}, {"a.toml": "1" * 64}, {**digests, "c.toml": "4" * 64}, {}):
        assert "changed since" in store.refuses(tmp_path, other)
    assert store.refuses(tmp_path, digests) == ""


def test_links_to_the_same_folder_are_the_same(store: TrustStore, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    store.trust(folder=tmp_path / "link", digests={"a": "1"})
    assert store.refuses(tmp_path / "real", {"a": "1"}) == ""


def test_the_file_is_private_and_whole(store: TrustStore, tmp_path: Path) -> None:
    store.trust(folder=tmp_path, digests={"a.toml": "1" * 64})
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700
    assert json.loads(store.path.read_text())["schema"] == 1
    assert {path.name for path in store.path.parent.iterdir()} <= {"trust.json", "trust.json.lock"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"schema": 1}',
        b'{"schema": 9, "folders": {}, "projects": {}}',
        b'{"schema": 1, "folders": {"/x": 3}, "projects": {}}',
        b"[" * 5000,
    ],
)
def test_a_damaged_file_trusts_nothing_and_can_be_written_anew(content: bytes, store: TrustStore, tmp_path: Path) -> None:
    store.path.parent.mkdir()
    store.path.write_bytes(content)
    store.path.chmod(0o600)
    assert "damaged" in store.refuses(tmp_path, {})
    store.trust(folder=tmp_path, digests={"a": "1"})
    assert store.refuses(tmp_path, {"a": "1"}) == ""


def test_a_file_that_others_may_write_trusts_nothing(store: TrustStore, tmp_path: Path) -> None:
    store.trust(folder=tmp_path, digests={"a": "1"})
    store.path.chmod(0o666)
    assert "others may write" in store.refuses(tmp_path, {"a": "1"})


def test_a_link_in_place_of_the_file_trusts_nothing(store: TrustStore, tmp_path: Path) -> None:
    store.trust(folder=tmp_path, digests={"a": "1"})
    store.path.rename(tmp_path / "elsewhere.json")
    store.path.symlink_to(tmp_path / "elsewhere.json")
    assert store.refuses(tmp_path, {"a": "1"}) != ""


def test_a_project_is_bound_to_its_table_alone(store: TrustStore, tmp_path: Path) -> None:
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text('[project]\nname = "x"\n[tool.rocmpip]\npytorch_url = "https://mirror.example"\n')
    assert not store.trusts_project(pyproject)
    store.trust(pyproject=pyproject)
    assert store.trusts_project(pyproject)
    pyproject.write_text('[project]\nname = "y"\nversion = "2"\n[tool.rocmpip]\npytorch_url = "https://mirror.example"\n')
    assert store.trusts_project(pyproject)
    pyproject.write_text('[tool.rocmpip]\npytorch_url = "https://evil.example"\n')
    assert not store.trusts_project(pyproject)


@pytest.mark.parametrize(
    "text", ["", "[tool]\nrocmpip = {}\n", "broken = \n", "tool = 3\n", "[tool]\nother = 1\n", "x = " + "[" * 4000]
)
def test_a_project_that_says_nothing_is_never_trusted(text: str, store: TrustStore, tmp_path: Path) -> None:
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text(text)
    assert project_digest(pyproject) == ""
    store.trust(pyproject=pyproject)
    assert not store.trusts_project(pyproject)


def test_forget(store: TrustStore, tmp_path: Path) -> None:
    store.trust(folder=tmp_path / "p/.rocmpip/recipes", digests={"a": "1"})
    store.trust(folder=tmp_path / "pq", digests={"a": "1"})
    assert store.forget(tmp_path / "p")
    assert not store.forget(tmp_path / "p")
    assert store.refuses(tmp_path / "p/.rocmpip/recipes", {"a": "1"}) != ""
    assert store.refuses(tmp_path / "pq", {"a": "1"}) == ""


def test_many_writers_lose_nothing(store: TrustStore, tmp_path: Path) -> None:
    threads = [
        threading.Thread(
            target=lambda n=n: TrustStore(store.path.parent).trust(folder=tmp_path / str(n), digests={"a": str(n)})
        )
        for n in range(12)
    ]  # type: ignore[misc]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(store.refuses(tmp_path / str(n), {"a": str(n)}) == "" for n in range(12))


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused) as caught:
        TrustStore(tmp_path / "file/state").trust(folder=tmp_path, digests={})
    assert "ROCMPIP_STATE_DIR" in caught.value.hint
