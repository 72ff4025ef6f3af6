"""What is installed, by folder names."""

from __future__ import annotations

from pathlib import Path

from rocmpip.target.installed import installed


def metadata(folder: Path, name: str, version: str, filename: str = "METADATA") -> Path:
    folder.mkdir()
    (folder / filename).write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: of the text\n")
    return folder


def test_names_and_versions(tmp_path: Path) -> None:
    metadata(tmp_path / "torch-2.9.1+rocm6.4.dist-info", "torch", "2.9.1+rocm6.4")
    metadata(tmp_path / "Flash_Attn-2.8.3.dist-info", "flash-attn", "2.8.3")
    metadata(tmp_path / "old-1.0-py3.11.egg-info", "old", "1.0", "PKG-INFO")
    (tmp_path / "older-0.5-py3.11.egg-info").write_text("Name: older\nVersion: 0.5\n")
    metadata(tmp_path / "project.egg-info", "My.Project", "3", "PKG-INFO")
    metadata(tmp_path / "~orch-2.0.dist-info", "torch", "2.0")
    (tmp_path / "torch").mkdir()
    found = {dist.name: dist.version for dist in installed([str(tmp_path)])}
    assert found == {
        "torch": "2.9.1+rocm6.4",
        "flash-attn": "2.8.3",
        "old": "1.0",
        "older": "0.5",
        "my-project": "3",
    }


def test_ambiguous_folder_names_are_looked_up(tmp_path: Path) -> None:
    metadata(tmp_path / "a-b-1.0.dist-info", "a-b", "1.0")
    metadata(tmp_path / "c-1_2.dist-info", "c", "1!2")
    (tmp_path / "broken-x-y.dist-info").mkdir()
    assert [(dist.name, dist.version) for dist in installed([str(tmp_path)])] == [("a-b", "1.0"), ("c", "1!2")]


def test_only_the_names_asked_for_in_any_spelling(tmp_path: Path) -> None:
    metadata(tmp_path / "flash_attn-2.8.3.dist-info", "flash-attn", "2.8.3")
    metadata(tmp_path / "other-1.dist-info", "other", "1")
    assert [dist.name for dist in installed([str(tmp_path)], ["Flash.Attn", "gone"])] == ["flash-attn"]


def test_the_first_folder_wins_and_missing_ones_are_empty(tmp_path: Path) -> None:
    for name, version in (("one", "1"), ("two", "2")):
        (tmp_path / name).mkdir()
        metadata(tmp_path / name / f"torch-{version}.dist-info", "torch", version)
    found = installed([str(tmp_path / "gone"), str(tmp_path / "one"), str(tmp_path / "two"), str(tmp_path / "one")])
    assert [(dist.version, dist.path) for dist in found] == [("1", str(tmp_path / "one/torch-1.dist-info"))]


def test_linked_projects(tmp_path: Path) -> None:
    source = tmp_path / "src"
    source.mkdir()
    metadata(source / "linked.egg-info", "linked", "4.2", "PKG-INFO")
    site = tmp_path / "site"
    site.mkdir()
    (site / "linked.egg-link").write_text(f"{source}\n.")
    (site / "lost.egg-link").write_text(f"{tmp_path}/gone\n.")
    assert [(dist.name, dist.version) for dist in installed([str(site)])] == [("linked", "4.2")]


def test_binary_garbage(tmp_path: Path) -> None:
    folder = tmp_path / "x-y-z.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_bytes(bytes(range(256)))
    (tmp_path / "d-1.dist-info").write_bytes(b"\0")
    assert [dist.name for dist in installed([str(tmp_path)])] == ["d"]
