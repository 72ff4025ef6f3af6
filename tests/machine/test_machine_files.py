"""Reads under a root folder stay inside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmpip.machine.files import Tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    inside = tmp_path / "root"
    (inside / "opt/rocm-6.4.0/.info").mkdir(parents=True)
    (inside / "opt/rocm-6.4.0/.info/version").write_text("6.4.0-47\n")
    (tmp_path / "secret").write_text("outside")
    return inside


def test_an_absolute_link_resolves_inside(root: Path) -> None:
    (root / "opt/rocm").symlink_to("/opt/rocm-6.4.0")
    tree = Tree(str(root))
    assert tree.text("/opt/rocm/.info/version") == "6.4.0-47\n"
    assert tree.real("/opt/rocm") == "/opt/rocm-6.4.0"
    assert tree.is_folder("/opt/rocm")


def test_a_chain_of_links(root: Path) -> None:
    (root / "etc/alternatives").mkdir(parents=True)
    (root / "opt/rocm").symlink_to("/etc/alternatives/rocm")
    (root / "etc/alternatives/rocm").symlink_to("../../opt/rocm-6.4.0")
    assert Tree(str(root)).text("/opt/rocm/.info/version") == "6.4.0-47\n"


def test_a_link_cannot_climb_out(root: Path) -> None:
    (root / "opt/out").symlink_to("../../secret")
    (root / "opt/far").symlink_to("../../../../../../../../../../etc/hostname")
    tree = Tree(str(root))
    assert tree.text("/opt/out") is None
    assert tree.text("/opt/far") is None
    assert any("climbs above the root folder" in note for note in tree.notes)


def test_an_absolute_link_to_a_host_file_is_not_followed(root: Path, tmp_path: Path) -> None:
    (root / "opt/abs").symlink_to(tmp_path / "secret")
    assert Tree(str(root)).text("/opt/abs") is None


def test_loops_end_and_are_told(root: Path) -> None:
    (root / "opt/a").symlink_to("b")
    (root / "opt/b").symlink_to("/opt/a")
    (root / "opt/self").symlink_to("self/self")
    tree = Tree(str(root))
    assert tree.text("/opt/a") is None
    assert tree.text("/opt/self/x") is None
    assert tree.real("/opt/a") == ""
    assert not tree.exists("/opt/a")
    assert sum("symbolic links" in note for note in tree.notes) == 2


def test_missing_files_are_silent(root: Path) -> None:
    tree = Tree(str(root))
    assert tree.text("/nowhere/at/all") is None
    assert tree.names("/nowhere") == []
    assert tree.notes == []


def test_an_unreadable_folder_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: str) -> list[str]:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("os.listdir", denied)
    tree = Tree(str(root))
    assert tree.names("/opt") == []
    assert tree.notes == ["/opt cannot be read: Permission denied"]


def test_notes_do_not_name_the_root(root: Path) -> None:
    (root / "opt/a").symlink_to("a")
    tree = Tree(str(root))
    tree.text("/opt/a")
    assert tree.notes and str(root) not in " ".join(tree.notes)


def test_without_a_root_paths_are_the_host_s(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    tree = Tree(None)
    assert tree.text(str(tmp_path / "link")) == "text"
    assert tree.real(str(tmp_path / "link")) == str((tmp_path / "file").resolve())
    assert tree.real(str(tmp_path / "none")) == ""


@given(st.lists(st.sampled_from(["..", ".", "a", "b", "", "link"]), max_size=12))
def test_no_path_leaves_the_root(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    root = tmp_path_factory.mktemp("root")
    (root / "a").mkdir()
    (root / "a/link").symlink_to("../../..")
    (root / "b").symlink_to("/a")
    where = Tree(str(root)).host("/" + "/".join(parts))
    assert Path(where).resolve().is_relative_to(root.resolve())
