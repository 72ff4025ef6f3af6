"""What must hold of every plan, whatever the GPU, the request and the Python: checked over a matrix of all three.

The knowledge of which wheels have kernels for which GPU is written down here by itself, from PyTorch's and AMD's build scripts,
and an oracle that knows nothing but these tables says whether there is a plan at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import parse_wheel_filename

from rocmpip.demo.torchlike import torch_wheel
from rocmpip.demo.wheels import Wheel
from tests.support import replica_tables as tables
from tests.support.environments import put
from tests.support.in_process import plan
from tests.support.other_python import make_other_python
from tests.support.replica import LINUX, Replica, pythons

pytestmark = pytest.mark.pip

OLD = "gfx900 gfx906 gfx908 gfx90a gfx1030 gfx1100"
MID = f"{OLD} gfx942 gfx1101 gfx1102 gfx1200 gfx1201"
NEW = f"{MID} gfx950 gfx1150 gfx1151"
THEROCK = "gfx908 gfx90a gfx942 gfx950 gfx1030 gfx1100 gfx1101 gfx1102 gfx1103 gfx1200 gfx1201 gfx1150 gfx1151"
# pytorch.org's index → the most that PyTorch's build scripts ever put into its wheels; gfx942 came with ROCm 6.0.
KERNELS = {
    **dict.fromkeys(("rocm5.3", "rocm5.4.2", "rocm5.5", "rocm5.6", "rocm5.7"), OLD),
    **dict.fromkeys(("rocm6.0", "rocm6.1", "rocm6.2"), f"{OLD} gfx942 gfx1101"),
    **dict.fromkeys(("rocm6.2.4", "rocm6.3"), MID),
    **dict.fromkeys(("rocm6.4", "rocm7.0", "rocm7.1", "rocm7.2"), NEW),
    "rocm7.14": THEROCK,
}
# ... and the least, from the scripts and from what users of these wheels report.
SURE = {
    **dict.fromkeys(KERNELS, "gfx90a gfx1100"),
    **dict.fromkeys(("rocm6.0", "rocm6.1", "rocm6.2", "rocm6.2.4", "rocm6.3", "rocm6.4"), "gfx90a gfx942 gfx1100"),
    **dict.fromkeys(("rocm7.0", "rocm7.1", "rocm7.2"), "gfx90a gfx942 gfx1100 gfx1151"),
    "rocm7.14": "gfx90a gfx942 gfx1100 gfx1103 gfx1151",
}
GPUS = ("gfx90a", "gfx942", "gfx1100", "gfx1151", "gfx906", "gfx1103", "gfx1031", "gfx132f")
PYTHONS = ("3.10.15", "3.11.9", "3.12.4", "3.13.1", "3.14.0")


@dataclass(frozen=True)
class Case:
    """One request. ``holds`` is what it asks of torch; ``second`` another GPU in the machine."""

    name: str
    rocm: str
    words: tuple[str, ...]
    holds: str = ""
    file: str = ""
    cuda_torch: bool = False
    second: str = ""


CASES = (
    Case("alone", "6.4", ("torch",)),
    Case("transitive", "7.2", ("accelerate",)),
    Case("2.9.1 on 6.4", "6.4", ("torch==2.9.1",), "==2.9.1"),
    Case("2.9.1 on 7.2", "7.2", ("torch==2.9.1",), "==2.9.1"),
    Case("2.9.1 on 10.0", "10.0", ("torch==2.9.1", "torchvision"), "==2.9.1"),
    Case("2.4.0 on 6.2", "6.2", ("torch==2.4.0",), "==2.4.0"),
    Case(
        "foreign index lines", "7.2", ("-r", "outer.txt"), ">=2.4", file="--extra-index-url {pytorch}/whl/cu130\ntorch>=2.4\n"
    ),
    Case("CUDA torch installed", "7.14", ("accelerate",), cuda_torch=True),
    Case("two GPUs", "10.0", ("torch", "torchvision"), second="gfx90a"),
)


def pairs() -> Iterator[tuple[str, Case, str]]:
    """Every GPU with every case, and the Pythons in turn, so that each meets every GPU and every case."""
    for row, gfx in enumerate(GPUS):
        for column, case in enumerate(CASES):
            yield gfx, case, PYTHONS[(row + column) % len(PYTHONS)]


def python_tag(python: str) -> str:
    return "cp" + "".join(python.split(".")[:2])


def possible(targets: tuple[str, ...], holds: str, python: str, kernels: dict[str, str]) -> bool:
    """Does any index hold a torch for this Python with kernels for every target?"""
    found: list[str] = []
    for index, (torches, _, _) in tables.PYTORCH.items():
        if set(targets) <= set(kernels[index].split()) and not ("gfx906" in targets and index > "rocm6.3"):
            found += torches.split()
    if set(targets) <= set(tables.DEVICES):
        found += [row[0] for _, rows in tables.AMD.values() for row in rows]
    return any(SpecifierSet(holds).contains(torch) and python_tag(python) in pythons(torch) for torch in found)


@pytest.fixture(scope="module")
def pythons_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pythons")


@pytest.fixture
def environment(pythons_dir: Path, tmp_path: Path) -> Callable[[str, bool], Path]:
    """``environment("3.14.0", cuda_torch)`` → its interpreter. Those without anything in them are shared."""

    def make(version: str, cuda_torch: bool) -> Path:
        if not cuda_torch:
            folder = pythons_dir / version
            return folder / "bin/python" if folder.exists() else make_other_python(folder, version)
        python = make_other_python(tmp_path / "cuda", version)
        tag = python_tag(version)
        cuda = torch_wheel(
            "2.10.0", f"{tag}-{tag}-linux_x86_64", requires=(f"nvidia-cublas-cu12==12.8.4.1 ; {LINUX}",), cuda="12.8"
        )
        put(python, cuda, Wheel("nvidia-cublas-cu12", "12.8.4.1"), Wheel("torchvision", "0.25.0", ("torch==2.10.0",)))
        return python

    return make


def write_file(case: Case, folder: Path, replica: Replica) -> None:
    if case.file:
        (folder / "outer.txt").write_text("-r inner/inner.txt\neinops\n")
        (folder / "inner").mkdir()
        (folder / "inner/inner.txt").write_text(case.file.format(pytorch=replica.pytorch.url))


@pytest.mark.parametrize(("gfx", "case", "python"), list(pairs()), ids=lambda value: getattr(value, "name", value))
def test_every_plan(
    gfx: str, case: Case, python: str, replica: Replica, environment: Callable[[str, bool], Path], tmp_path: Path
) -> None:
    targets = tuple(dict.fromkeys((gfx, case.second) if case.second else (gfx,)))
    write_file(case, tmp_path, replica)
    (tmp_path / "machine").mkdir()
    env = replica.env(
        tmp_path, ROCMPIP_GFX=",".join(targets), ROCMPIP_ROCM=case.rocm, ROCMPIP_SYSROOT=str(tmp_path / "machine")
    )
    where = environment(python, case.cuda_torch)
    code, envelope = plan("--python", str(where), *case.words, env=env, cwd=tmp_path)
    assert envelope["ok"] is (code == 0)
    if possible(targets, case.holds, python, SURE):
        assert code == 0, envelope["errors"]
    if not possible(targets, case.holds, python, KERNELS):
        assert code == 40, envelope["result"]
    if code:
        told(envelope["errors"][0], targets)
        return
    rows = {row["name"]: row for row in envelope["result"]["plan"]}
    assert len(rows) == len(envelope["result"]["plan"])
    nothing_cuda(rows)
    right_torch(rows, targets, python, replica)
    right_devices(rows, targets, replica)
    well_formed(envelope["result"]["plan"], replica)
    if case.rocm == "6.2":
        # 2.4.0 was never built for ROCm 6.2: that is said beside the package itself.
        assert rows["torch"]["version"] in ("2.4.0+rocm6.1", "2.4.0+rocm6.0")
        assert any("6.2" in reason and "2.4.0" in reason for reason in rows["torch"]["because"])
    if case.cuda_torch:
        assert rows["torch"]["action"] == "replace" and rows["torch"]["installed_version"] == "2.10.0"
        assert rows["torchvision"]["action"] == "replace"
        assert envelope["result"]["leftovers"] == ["nvidia-cublas-cu12"]


def told(error: dict[str, Any], targets: tuple[str, ...]) -> None:
    """A refusal names the GPU and says what to do; nothing is quietly left out."""
    assert error["code"] == 40
    assert any(gfx in error["message"] for gfx in targets)
    assert error["hint"]
    assert error["details"]


def nothing_cuda(rows: dict[str, dict[str, Any]]) -> None:
    for name, row in rows.items():
        assert not re.match(r"nvidia-(?!ml-py)|cuda-", name), name
        assert not re.search(r"\+(cu\d|cpu)", row["version"]), (name, row["version"])


def right_torch(rows: dict[str, dict[str, Any]], targets: tuple[str, ...], python: str, replica: Replica) -> None:
    """torch and its companions: one ROCm label, from the ROCm index of that label, for this Python, with the kernels."""
    torch = rows["torch"]
    assert torch["size"] > 0
    label = torch["version"].partition("+")[2]
    assert label.startswith("rocm"), torch["version"]
    for name in ("torchvision", "torchaudio"):
        if name in rows:
            assert rows[name]["version"].partition("+")[2] == label
    assert {str(tag).split("-")[0] for tag in parse_wheel_filename(torch["filename"])[3]} == {python_tag(python)}
    if torch["index"].startswith(replica.pytorch.url):
        assert torch["index"].endswith(f"/whl/{label}")
        assert set(targets) <= set(KERNELS[label].split())
        if "gfx906" in targets:
            assert tuple(map(int, label.removeprefix("rocm").split("."))) <= (6, 3)
    else:
        assert torch["index"].startswith(replica.amd.url)
        for gfx in targets:
            assert rows[f"amd-torch-device-{gfx}"]["version"] == torch["version"]


def right_devices(rows: dict[str, dict[str, Any]], targets: tuple[str, ...], replica: Replica) -> None:
    """Device packages of the target GPUs, all of those and no others; AMD's ``rocm`` comes as its source."""
    devices = {match.group(1) for name in rows if (match := re.search(r"-device-(.+)$", name))}
    if "rocm" in rows:
        assert devices == set(targets)
        assert rows["rocm"]["filename"].endswith(".tar.gz")
        assert rows["rocm"]["url"].startswith(replica.amd.url)
        assert {f"rocm-sdk-device-{gfx}" for gfx in targets} <= set(rows)
    else:
        assert not devices


KEYS = ("name", "version", "installed_version", "action", "origin", "index", "url", "sha256", "size", "because")


def well_formed(rows: list[dict[str, Any]], replica: Replica) -> None:
    """Each row as the contract has it, with a reason; addresses are those of the hosts, the router's never."""
    hosts = {site.url for site in replica.sites}
    for row in rows:
        assert set(KEYS) <= set(row)
        assert row["action"] in ("install", "replace", "keep", "build")
        assert row["origin"] in ("index", "wheelhouse", "build", "url")
        assert row["because"] and all(isinstance(reason, str) and reason for reason in row["because"]), row["name"]
        for place in (row["index"], row["url"]):
            assert place is None or any(place.startswith(host + "/") for host in hosts), place
        assert row["sha256"] is None or re.fullmatch(r"[0-9a-f]{64}", row["sha256"])
        assert row["size"] is None or row["size"] > 0
