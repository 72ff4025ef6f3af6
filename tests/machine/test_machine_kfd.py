"""KFD sysfs → GPUs."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine_trees import (
    CPU,
    MI300X,
    MI350X,
    NODES,
    RAPHAEL,
    RX7900XTX,
    RX9070XT,
    STRIX_HALO,
    UNKNOWN,
    machine,
    node,
    properties,
    write,
)

from rocmpip.machine.files import Tree
from rocmpip.machine.kfd import parse_properties, read_topology
from rocmpip.model.machine import Gpu


def seen(root: Path) -> tuple[list[Gpu], list[str]]:
    tree = Tree(str(root))
    gpus, _, _ = read_topology(tree)
    return list(gpus), tree.notes


@pytest.mark.parametrize(
    ("values", "gfx", "pci_id", "location"),
    [
        (RX7900XTX, "gfx1100", "1002:744c", "0000:86:00.0"),
        (MI300X, "gfx942", "1002:74a1", "0000:10:00.0"),
        (MI350X, "gfx950", "1002:75a0", ""),
        (STRIX_HALO, "gfx1151", "1002:1586", "0000:c6:00.0"),
        (RX9070XT, "gfx1201", "1002:7550", "0000:84:00.0"),
        (UNKNOWN, "gfx132f", "1002:7fff", "0000:40:00.0"),
    ],
)
def test_captured_nodes(tmp_path: Path, values: dict[str, int], gfx: str, pci_id: str, location: str) -> None:
    gpus, notes = seen(machine(tmp_path, values))
    assert [(gpu.gfx, gpu.pci_id, gpu.location, gpu.node) for gpu in gpus] == [(gfx, pci_id, location, 1)]
    assert gpus[0].source == "/sys/class/kfd/kfd/topology/nodes/1/properties"
    assert notes == []


def test_a_cpu_node_is_no_gpu(tmp_path: Path) -> None:
    tree = Tree(str(machine(tmp_path, cpus=4)))
    assert read_topology(tree) == ((), 0, True)
    assert tree.notes == []


def test_nodes_are_sorted_as_numbers(tmp_path: Path) -> None:
    gpus, _ = seen(machine(tmp_path, *[MI300X] * 12))
    assert [gpu.node for gpu in gpus] == list(range(1, 13))


def test_the_uuid_is_the_runtime_s_spelling(tmp_path: Path) -> None:
    gpus, _ = seen(machine(tmp_path, RX7900XTX, STRIX_HALO))
    assert [gpu.uuid for gpu in gpus] == ["GPU-a1ffc9d1799c317f", ""]


def test_the_name_file_counts_unless_it_names_nothing(tmp_path: Path) -> None:
    node(tmp_path, 0, MI300X, "vega20")
    node(tmp_path, 1, MI300X, "ip discovery")
    node(tmp_path, 2, MI300X, "bad\x1b[31mname")
    assert [gpu.name for gpu in seen(tmp_path)[0]] == ["vega20", "", ""]


@pytest.mark.parametrize(
    ("values", "integrated"),
    [
        (RAPHAEL, True),
        ({**STRIX_HALO, "cpu_cores_count": 16}, True),
        (RX9070XT, False),
        (MI300X, False),
        ({**UNKNOWN, "simd_count": 8}, True),
        ({**UNKNOWN, "simd_count": 32}, False),
    ],
)
def test_the_guess_for_integrated_gpus(tmp_path: Path, values: dict[str, int], integrated: bool) -> None:
    assert [gpu.integrated for gpu in seen(machine(tmp_path, values))[0]] == [integrated]


def test_another_vendor_is_no_gpu_of_ours(tmp_path: Path) -> None:
    assert seen(machine(tmp_path, {**MI300X, "vendor_id": 0x10DE})) == ([], [])


def test_an_old_kernel_without_gfx_target_version_is_told(tmp_path: Path) -> None:
    values = {key: value for key, value in MI300X.items() if key != "gfx_target_version"}
    gpus, notes = seen(machine(tmp_path, values))
    assert gpus == []
    assert "gfx_target_version missing or 0" in notes[0]


def test_a_number_that_cannot_be_decoded_is_told(tmp_path: Path) -> None:
    gpus, notes = seen(machine(tmp_path, {**MI300X, "gfx_target_version": 129999}, RX9070XT))
    assert [gpu.gfx for gpu in gpus] == ["gfx1201"]
    assert "129999" in notes[0]


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES])
def test_masked_nodes_are_left_out_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    machine(tmp_path, *[MI300X] * 3)
    deny(monkeypatch, f"{NODES}/1/", number)
    deny(monkeypatch, f"{NODES}/3/", number)
    tree = Tree(str(tmp_path))
    gpus, masked, answered = read_topology(tree)
    assert [gpu.node for gpu in gpus] == [2]
    assert (masked, answered) == (2, True)
    assert "nodes 1, 3: permission denied" in tree.notes[0]


def deny(monkeypatch: pytest.MonkeyPatch, part: str, number: int) -> None:
    """Reads below ``part`` fail as sysfs fails them: the open works, the read says no. (Root ignores file modes.)"""
    real_open, real_read = os.open, os.read
    denied: set[int] = set()

    def fake_open(path: str, flags: int, mode: int = 0o777) -> int:
        handle = real_open(path, flags, mode)
        denied.discard(handle)
        if part in path:
            denied.add(handle)
        return handle

    def fake_read(handle: int, size: int) -> bytes:
        if handle in denied:
            raise PermissionError(number, os.strerror(number))
        return real_read(handle, size)

    monkeypatch.setattr(os, "open", fake_open)
    monkeypatch.setattr(os, "read", fake_read)


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\xff\xfe" * 5000, b"simd_count", b"simd_count twelve\n", "simd_count ١٢\n".encode(), b"\n\n\n", b"{}"],
)
def test_broken_properties_are_told_and_hide_nothing_else(tmp_path: Path, content: bytes) -> None:
    machine(tmp_path, MI300X, RX9070XT)
    write(tmp_path, f"/{NODES}/1/properties", content)
    gpus, notes = seen(tmp_path)
    assert [gpu.gfx for gpu in gpus] == ["gfx1201"]
    assert "nodes/1/properties" in notes[0]


def test_a_huge_file_is_read_at_its_beginning_only(tmp_path: Path) -> None:
    machine(tmp_path, MI300X)
    path = tmp_path / NODES / "1/properties"
    path.write_text(properties(MI300X))
    os.truncate(path, 100 * 1024 * 1024)
    gpus, notes = seen(tmp_path)
    assert [gpu.gfx for gpu in gpus] == ["gfx942"]
    assert notes == ["/sys/class/kfd/kfd/topology/nodes/1/properties is larger than 64 KiB: only its beginning was read"]


def test_what_is_no_file_never_hangs(tmp_path: Path) -> None:
    machine(tmp_path, MI300X, MI300X, RX9070XT)
    for number in (1, 2):
        (tmp_path / NODES / f"{number}/properties").unlink()
    os.mkfifo(tmp_path / NODES / "1/properties")
    (tmp_path / NODES / "2/properties").mkdir()
    gpus, notes = seen(tmp_path)
    assert [gpu.gfx for gpu in gpus] == ["gfx1201"]
    assert [note.endswith("cannot be read: not a regular file") for note in notes] == [True, True]


def test_a_loop_of_links_is_told(tmp_path: Path) -> None:
    machine(tmp_path, RX9070XT)
    loop = tmp_path / NODES / "2"
    loop.symlink_to("3")
    (tmp_path / NODES / "3").symlink_to("2")
    gpus, notes = seen(tmp_path)
    assert [gpu.gfx for gpu in gpus] == ["gfx1201"]
    assert len(notes) == 2 and "symbolic links" in notes[0]


def test_odd_names_among_the_nodes_are_passed_over(tmp_path: Path) -> None:
    machine(tmp_path, MI300X)
    for name in ("x", "1a", "-1", "٣", "99999999999999999999"):
        (tmp_path / NODES / name).mkdir()
    assert [gpu.node for gpu in seen(tmp_path)[0]] == [1]


def test_nothing_there_is_no_answer(tmp_path: Path) -> None:
    tree = Tree(str(tmp_path))
    assert read_topology(tree) == ((), 0, False)
    assert tree.notes == []


def test_only_broken_nodes_are_no_answer(tmp_path: Path) -> None:
    write(tmp_path, f"/{NODES}/0/properties", b"\xff" * 64)
    assert read_topology(Tree(str(tmp_path)))[2] is False


@given(st.binary(max_size=2000))
def test_parsing_never_fails(data: bytes) -> None:
    found = parse_properties(data.decode("utf-8", "replace"))
    assert all(0 <= value < 10**20 for value in found.values())


NUMBERS = st.integers(min_value=0, max_value=2**64 - 1)


@given(st.dictionaries(st.sampled_from(sorted(set(RX7900XTX) - {"hive_id", "local_mem_size", "num_xcc"})), NUMBERS))
def test_what_the_kernel_writes_is_read_back(values: dict[str, int]) -> None:
    assert parse_properties(properties(values)) == values


@given(st.dictionaries(st.sampled_from(sorted(RX7900XTX)), st.text(max_size=30)), st.randoms())
def test_broken_lines_do_not_disturb_good_ones(junk: dict[str, str], random: object) -> None:
    lines = [f"{key} {value}" for key, value in junk.items() if key != "simd_count"]
    text = "\n".join([*lines, "simd_count 192", ""])
    assert parse_properties(text)["simd_count"] == 192 or "simd_count" in " ".join(lines)


def test_cpu_sample_has_no_simds() -> None:
    assert CPU["simd_count"] == 0
