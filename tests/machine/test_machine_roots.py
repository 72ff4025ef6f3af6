"""Every layout of a ROCm root, and which one wins."""

from __future__ import annotations

from pathlib import Path

import pytest
from machine_trees import hip_header, rocm, write

from rocmpip.machine.files import Tree
from rocmpip.machine.roots import find_roots
from rocmpip.model.machine import RocmRoot
from rocmpip.model.rocm import parse_rocm

Found = list[tuple[str, str, str, str]]


def found(root: Path, env: dict[str, str] | None = None, pip: tuple[RocmRoot, ...] = ()) -> tuple[Found, list[str]]:
    """(version, path, source, kind) of every root, and the notes."""
    tree = Tree(str(root))
    roots = find_roots(tree, env or {}, pip)
    return [(str(one.version), one.path, one.source, one.kind) for one in roots], tree.notes


def test_nothing(tmp_path: Path) -> None:
    assert found(tmp_path) == ([], [])


def test_opt_rocm_as_a_link_is_one_root(tmp_path: Path) -> None:
    rocm(tmp_path)
    (tmp_path / "opt/rocm").symlink_to("/opt/rocm-6.4.0")
    assert found(tmp_path) == ([("6.4.0", "/opt/rocm", "/opt/rocm/.info/version", "root")], [])


def test_a_chain_through_alternatives_is_one_root(tmp_path: Path) -> None:
    rocm(tmp_path)
    (tmp_path / "etc/alternatives").mkdir(parents=True)
    (tmp_path / "etc/alternatives/rocm").symlink_to("/opt/rocm-6.4.0")
    (tmp_path / "opt/rocm").symlink_to("/etc/alternatives/rocm")
    assert [row[1] for row in found(tmp_path)[0]] == ["/opt/rocm"]


def test_versions_are_sorted_as_numbers(tmp_path: Path) -> None:
    for version in ("6.2.4", "6.10.0", "6.9.1", "10.0.0", "7.2.0"):
        rocm(tmp_path, f"/opt/rocm-{version}", f"{version}-1\n")
    assert [row[0] for row in found(tmp_path)[0]] == ["10.0.0", "7.2.0", "6.10.0", "6.9.1", "6.2.4"]


def test_opt_rocm_wins_over_a_newer_one_beside_it(tmp_path: Path) -> None:
    rocm(tmp_path, "/opt/rocm-6.3.0", "6.3.0-39\n")
    rocm(tmp_path, "/opt/rocm-7.2.0", "7.2.0-1\n")
    (tmp_path / "opt/rocm").symlink_to("rocm-6.3.0")
    assert [row[:2] for row in found(tmp_path)[0]] == [("6.3.0", "/opt/rocm"), ("7.2.0", "/opt/rocm-7.2.0")]


def test_rocm_path_wins_over_all(tmp_path: Path) -> None:
    rocm(tmp_path, "/opt/rocm", "7.2.0-1\n")
    rocm(tmp_path, "/home/me/rocm", "6.1.2-9\n")
    rows, notes = found(tmp_path, {"ROCM_PATH": "/home/me/rocm/"})
    assert rows[0] == ("6.1.2", "/home/me/rocm", "ROCM_PATH, /home/me/rocm/.info/version", "root")
    assert rows[1][1] == "/opt/rocm"
    assert notes == []


def test_rocm_path_keeps_its_name_when_it_is_also_opt_rocm(tmp_path: Path) -> None:
    rocm(tmp_path)
    (tmp_path / "opt/rocm").symlink_to("rocm-6.4.0")
    rows, _ = found(tmp_path, {"ROCM_PATH": "/opt/rocm-6.4.0", "HIP_PATH": "/opt/rocm"})
    assert [row[1:3] for row in rows] == [("/opt/rocm-6.4.0", "ROCM_PATH, /opt/rocm-6.4.0/.info/version")]


def test_hip_path_below_an_old_root_means_the_root(tmp_path: Path) -> None:
    rocm(tmp_path, "/opt/rocm-5.7.1", "5.7.1-98\n")
    (tmp_path / "opt/rocm-5.7.1/hip").mkdir()
    rows, notes = found(tmp_path, {"HIP_PATH": "/opt/rocm-5.7.1/hip"})
    assert [row[:3] for row in rows] == [("5.7.1", "/opt/rocm-5.7.1", "HIP_PATH, /opt/rocm-5.7.1/.info/version")]
    assert notes == []


@pytest.mark.parametrize(("value", "told"), [("/opt/gone", "which is not there"), ("rocm", "not an absolute path"), ("", None)])
def test_a_variable_that_names_no_root_is_told(tmp_path: Path, value: str, told: str | None) -> None:
    rocm(tmp_path, "/opt/rocm")
    rows, notes = found(tmp_path, {"ROCM_PATH": value})
    assert [row[1] for row in rows] == ["/opt/rocm"]
    assert [told in note for note in notes if told] == ([True] if told else [])


@pytest.mark.parametrize("name", ["version", "version-utils", "version-libs"])
@pytest.mark.parametrize("text", ["6.4.0-47", "6.4.0-47\n", "6.4.0", " 6.4.0.60400-47~22.04\n"])
def test_version_files(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path, f"/opt/rocm/.info/{name}", text)
    assert found(tmp_path)[0] == [("6.4.0", "/opt/rocm", f"/opt/rocm/.info/{name}", "root")]


def test_a_header_stands_in_for_missing_version_files(tmp_path: Path) -> None:
    hip_header(tmp_path, "/opt/rocm", 6, 4, 43482)
    assert found(tmp_path)[0] == [("6.4", "/opt/rocm", "/opt/rocm/include/hip/hip_version.h", "root")]


def test_rocm_s_own_header_comes_before_hip_s(tmp_path: Path) -> None:
    hip_header(tmp_path, "/opt/rocm", 7, 16)
    text = "#define ROCM_VERSION_MAJOR   10\n#define ROCM_VERSION_MINOR   1\n#define ROCM_VERSION_PATCH   0\n"
    write(tmp_path, "/opt/rocm/include/rocm-core/rocm_version.h", text)
    assert found(tmp_path) == (
        [("10.1.0", "/opt/rocm", "/opt/rocm/include/rocm-core/rocm_version.h", "root")],
        [],
    )


def test_a_hip_version_that_may_not_be_rocm_s_is_told(tmp_path: Path) -> None:
    hip_header(tmp_path, "/usr", 7, 16)
    rows, notes = found(tmp_path)
    assert rows[0][0] == "7.16"
    assert "from ROCm 10 on HIP has numbers of its own" in notes[0]


def test_core_folders_of_newer_packages(tmp_path: Path) -> None:
    rocm(tmp_path, "/opt/rocm/core-7.14", "7.14.0\n")
    rocm(tmp_path, "/opt/rocm/core-10.1", "10.1.0\n")
    (tmp_path / "opt/rocm/core").symlink_to("core-7.14")
    rows, notes = found(tmp_path)
    assert [row[:2] for row in rows] == [("7.14.0", "/opt/rocm/core"), ("10.1.0", "/opt/rocm/core-10.1")]
    assert notes == []


def test_the_highest_core_wins_where_none_is_linked(tmp_path: Path) -> None:
    rocm(tmp_path, "/opt/rocm/core-7.9", "7.9.0\n")
    rocm(tmp_path, "/opt/rocm/core-7.14", "7.14.0\n")
    assert [row[1] for row in found(tmp_path)[0]] == ["/opt/rocm/core-7.14", "/opt/rocm/core-7.9"]


def test_a_root_of_links_into_its_core_is_one_root(tmp_path: Path) -> None:
    rocm(tmp_path, "/opt/rocm/core-7.14", "7.14.0\n")
    (tmp_path / "opt/rocm/.info").symlink_to("core-7.14/.info")
    assert [row[1] for row in found(tmp_path)[0]] == ["/opt/rocm"]


def test_a_distribution_s_rocm(tmp_path: Path) -> None:
    hip_header(tmp_path, "/usr", 5, 2)
    write(tmp_path, "/usr/share/hip/version", "HIP_VERSION_MAJOR=5\nHIP_VERSION_MINOR=2\nHIP_VERSION_PATCH=21153\n")
    rows, notes = found(tmp_path, {"ROCM_PATH": "/usr", "HIP_PATH": "/usr"})
    assert rows == [("5.2", "/usr", "ROCM_PATH, /usr/include/hip/hip_version.h", "distribution")]
    assert notes == []
    assert found(tmp_path)[0] == [("5.2", "/usr", "/usr/include/hip/hip_version.h", "distribution")]


def test_a_distribution_that_has_only_the_version_list(tmp_path: Path) -> None:
    write(tmp_path, "/usr/share/hip/version", "# Auto-generated by cmake\nHIP_VERSION_MAJOR=6\nHIP_VERSION_MINOR=1\n")
    assert found(tmp_path)[0] == [("6.1", "/usr", "/usr/share/hip/version", "distribution")]


def test_pip_and_conda_come_last(tmp_path: Path) -> None:
    hip_header(tmp_path, "/usr", 5, 7)
    hip_header(tmp_path, "/home/me/conda", 6, 3)
    pip = RocmRoot(parse_rocm("7.14.0"), "/venv/lib/_rocm_sdk_core", "/venv/lib/rocm_sdk_core-7.14.0.dist-info", "pip")
    rows, _ = found(tmp_path, {"CONDA_PREFIX": "/home/me/conda"}, (pip,))
    assert [(row[0], row[3]) for row in rows] == [("5.7", "distribution"), ("7.14.0", "pip"), ("6.3", "conda")]


def test_a_conda_environment_without_rocm_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "conda").mkdir()
    assert found(tmp_path, {"CONDA_PREFIX": "/conda"}) == ([], [])


@pytest.mark.parametrize(
    "content", [b"", b"\x00\xff" * 3000, b"unknown\n", b"6\n", b"9" * 5000, b"\x1b[31m6.4\x1b[0m", b"2024.1"]
)
def test_a_broken_version_is_told_and_another_root_wins(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, "/opt/rocm/.info/version", content)
    rocm(tmp_path, "/opt/rocm-6.2.4", "6.2.4-1\n")
    rows, notes = found(tmp_path)
    assert [row[1] for row in rows] == ["/opt/rocm-6.2.4"]
    assert "/opt/rocm/.info/version does not hold a version" in notes
    assert any(note.startswith("/opt/rocm has no readable ROCm version") for note in notes)


def test_a_broken_version_file_beside_a_good_one(tmp_path: Path) -> None:
    write(tmp_path, "/opt/rocm/.info/version", b"\xff\xfe")
    write(tmp_path, "/opt/rocm/.info/version-utils", "6.4.0-47\n")
    assert found(tmp_path)[0] == [("6.4.0", "/opt/rocm", "/opt/rocm/.info/version-utils", "root")]


def test_a_folder_left_behind_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "opt/rocm-6.0.0/lib").mkdir(parents=True)
    rows, notes = found(tmp_path)
    assert rows == []
    assert notes == ["/opt/rocm-6.0.0 has no readable ROCm version (.info/version, hip_version.h): it does not count"]


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt/rocm").symlink_to("rocm-6.4.0")
    (tmp_path / "opt/rocm-7.0.0").symlink_to("rocm-7.0.0")
    rows, notes = found(tmp_path)
    assert rows == []
    assert any("/opt/rocm-7.0.0" in note for note in notes)
    assert "/opt/rocm is a link that leads nowhere" in notes


def test_a_stale_link_is_told(tmp_path: Path) -> None:
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt/rocm").symlink_to("rocm-5.7.1")
    assert found(tmp_path) == ([], ["/opt/rocm is a link that leads nowhere"])


def test_rocm_path_at_pip_s_rocm(tmp_path: Path) -> None:
    rocm(tmp_path, "/opt/rocm", "6.4.0\n")
    (tmp_path / "site/_rocm_sdk_devel").mkdir(parents=True)
    pip = RocmRoot(parse_rocm("7.14.0"), "/site/_rocm_sdk_core", "/site/rocm_sdk_core-7.14.0.dist-info", "pip")
    rows, notes = found(tmp_path, {"ROCM_PATH": "/site/_rocm_sdk_devel"}, (pip,))
    assert rows == [
        ("7.14.0", "/site/_rocm_sdk_devel", "ROCM_PATH, /site/rocm_sdk_core-7.14.0.dist-info", "pip"),
        ("6.4.0", "/opt/rocm", "/opt/rocm/.info/version", "root"),
    ]
    assert notes == []


def test_other_folders_of_opt_are_passed_over(tmp_path: Path) -> None:
    for name in ("rocm-smi", "rocm-", "rocmfoo", "amdgpu", "rocm-x.y"):
        (tmp_path / "opt" / name).mkdir(parents=True)
    assert found(tmp_path) == ([], [])
