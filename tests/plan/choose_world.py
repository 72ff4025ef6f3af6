"""Indexes as they stood in late November 2026, written down from what was published: nothing here reads the catalogue."""

from __future__ import annotations

from rocmpip.model.machine import Gpu, Platform
from rocmpip.model.packages import Absent, File, Page
from rocmpip.model.rocm import RocmVersion, parse_rocm

PT = "https://download.pytorch.org/whl/"
AMD7 = "https://repo.amd.com/rocm/whl-multi-arch/"
AMD10 = "https://stable.repo.amd.com/rocm/whl-next/"
AMD10_NIGHTLY = "https://nightly.repo.amd.com/rocm/whl-next/"
AMD_FAMILY = "https://repo.amd.com/rocm/whl/"

# index: torch | torchvision | torchaudio | triton
STABLE = {
    "5.6": ("2.1.0 2.1.2 2.2.0 2.2.2", "0.16.0 0.16.2 0.17.0 0.17.2", "2.1.0 2.1.2 2.2.0 2.2.2", "2.1.0 2.2.0"),
    "5.7": ("2.2.0 2.2.2 2.3.0 2.3.1", "0.17.0 0.17.2 0.18.0 0.18.1", "2.2.0 2.2.2 2.3.0 2.3.1", "2.2.0 2.3.0 2.3.1"),
    "6.0": ("2.3.0 2.3.1 2.4.0 2.4.1", "0.18.0 0.18.1 0.19.0 0.19.1", "2.3.0 2.3.1 2.4.0 2.4.1", "2.3.0 2.3.1 3.0.0"),
    "6.1": (
        "2.4.0 2.4.1 2.5.0 2.5.1 2.6.0",
        "0.19.0 0.19.1 0.20.0 0.20.1 0.21.0",
        "2.4.0 2.4.1 2.5.0 2.5.1 2.6.0",
        "3.0.0 3.1.0 3.2.0",
    ),
    "6.2": ("2.5.0 2.5.1", "0.20.0 0.20.1", "2.5.0 2.5.1", "3.1.0"),
    "6.2.4": ("2.6.0 2.7.0 2.7.1", "0.21.0 0.22.0 0.22.1", "2.6.0 2.7.0 2.7.1", "3.2.0 3.3.0 3.3.1"),
    "6.3": (
        "2.7.0 2.7.1 2.8.0 2.9.0 2.9.1",
        "0.22.0 0.22.1 0.23.0 0.24.0 0.24.1",
        "2.7.0 2.7.1 2.8.0 2.9.0 2.9.1",
        "3.3.0 3.3.1 3.4.0 3.5.0 3.5.1",
    ),
    "6.4": ("2.8.0 2.9.0 2.9.1", "0.23.0 0.24.0 0.24.1", "2.8.0 2.9.0 2.9.1", "3.4.0 3.5.0 3.5.1"),
    "7.0": ("2.10.0", "0.25.0", "2.10.0", "3.6.0"),
    "7.1": (
        "2.10.0 2.11.0 2.12.0 2.12.1 2.13.0",
        "0.25.0 0.26.0 0.27.0 0.27.1 0.28.0",
        "2.10.0 2.11.0",
        "3.6.0 3.7.0 3.7.1",
    ),
    "7.2": ("2.11.0 2.12.0 2.12.1 2.13.0", "0.26.0 0.27.0 0.27.1 0.28.0", "2.11.0", "3.6.0 3.7.0 3.7.1"),
    "7.14": ("2.14.0 2.14.1", "0.29.0 0.29.1", "2.11.0 2.11.1", "3.8.0"),
}
GPUS_OF_AMD = (
    "908 90a 942 950 1010 1011 1012 1030 1031 1032 1033 1034 1035 1036 1100 1101 1102 1103 1150 1151 1152 1153 1200 1201 1250"
).split()


def pythons(torch: str) -> str:
    """Tags of torch's wheels, from the release notes: cp38-cp311 for 2.0 … cp310-cp314t from 2.12."""
    minor = int(torch.split(".")[1])
    table = {2: "38-312", 3: "38-312", 4: "38-312", 5: "39-312", 6: "39-313", 7: "39-313t", 8: "39-313t"}
    return {1: "38-311", **table}.get(minor, "310-314t")


def tags_of(span: str) -> list[str]:
    first, last = span.rstrip("t").split("-")
    numbers = range(int(first[1:]), int(last[1:]) + 1)
    found = [f"cp3{number}-cp3{number}" for number in numbers]
    if span.endswith("t"):
        found.append(f"cp{last}-cp{last}t")
    return found


def platform_tag(torch: str) -> str:
    return "manylinux_2_28_x86_64" if int(torch.split(".")[1]) >= 6 else "linux_x86_64"


class World:
    """A ``Candidates`` over a table of file names. ``asked`` remembers every question."""

    def __init__(self) -> None:
        self.table: dict[tuple[str, str], list[File]] = {}
        self.asked: list[tuple[str, str]] = []
        self.missing = "HTTP 403"

    def page(self, index_url: str, name: str) -> Page | Absent:
        self.asked.append((index_url, name))
        files = self.table.get((index_url, name))
        if files is None:
            return Absent(name, index_url, self.missing)
        return Page(name, index_url, tuple(files))

    def put(self, index: str, name: str, filename: str, *, yanked: str | None = None, requires: str = "") -> None:
        file = File(filename, f"https://files.example/{filename}", yanked=yanked, requires_python=requires, index=index)
        self.table.setdefault((index, name), []).append(file)

    def wheel(self, index: str, name: str, version: str, spans: str = "310-314t", tag: str = "manylinux_2_28_x86_64") -> None:
        for python in tags_of(spans):
            self.put(index, name, f"{name.replace('-', '_')}-{version}-{python}-{tag}.whl")


def november() -> World:
    """All indexes."""
    world = World()
    for rocm, (torches, visions, audios, tritons) in STABLE.items():
        index = f"{PT}rocm{rocm}/"
        triton = "triton-rocm" if int(rocm.split(".")[0]) >= 7 else "pytorch-triton-rocm"
        spans = [pythons(torch) for torch in torches.split()]
        for torch in torches.split():
            world.wheel(index, "torch", f"{torch}+rocm{rocm}", pythons(torch), platform_tag(torch))
        for vision in visions.split():
            torch = f"2.{int(vision.split('.')[1]) - 15}"
            world.wheel(index, "torchvision", f"{vision}+rocm{rocm}", pythons(torch), platform_tag(torch))
        for audio in audios.split():
            world.wheel(index, "torchaudio", f"{audio}+rocm{rocm}", spans[-1], platform_tag(torches.split()[-1]))
        for version in tritons.split():
            world.wheel(index, triton, version, spans[-1], platform_tag(torches.split()[-1]))
    for version in ("7.14.0", "7.14.0.post1"):
        world.put(f"{PT}rocm7.14/", "rocm", f"rocm-{version}.tar.gz")
    _amd(
        world,
        AMD7,
        {"2.11.0+rocm7.14.0": "0.26.0+rocm7.14.0", "2.12.0+rocm7.14.0": "0.27.0+rocm7.14.0"},
        "3.7.0+git0263a6a6.rocm7.14.0",
    )
    _amd(
        world,
        AMD10,
        {"2.12.0+rocm10.0.0": "", "2.13.0+rocm10.0.0": "0.28.0+rocm10.0.0", "2.14.0+rocm10.1.0": ""},
        "3.8.0+gitabc.rocm10.0.0",
    )
    world.wheel(AMD10, "torchaudio", "2.11.0.2+rocm10.0.0")
    _nightlies(world)
    return world


def _amd(world: World, index: str, torches: dict[str, str], triton: str) -> None:
    for torch, vision in torches.items():
        world.wheel(index, "torch", torch)
        if vision:
            world.wheel(index, "torchvision", vision)
        for gpu in GPUS_OF_AMD:
            world.put(index, f"amd-torch-device-gfx{gpu}", f"amd_torch_device_gfx{gpu}-{torch}-py3-none-linux_x86_64.whl")
            if vision:
                name = f"amd-torchvision-device-gfx{gpu}"
                world.put(index, name, f"{name.replace('-', '_')}-{vision}-py3-none-linux_x86_64.whl")
    world.wheel(index, "triton", triton)
    for version in ("7.14.0",) if index == AMD7 else ("10.0.0", "10.1.0"):
        world.put(index, "rocm", f"rocm-{version}.tar.gz")


def _nightlies(world: World) -> None:
    for rocm in ("7.14", "10.0"):
        index = f"{PT}nightly/rocm{rocm}/"
        for day in ("20261120", "20261121"):
            world.wheel(index, "torch", f"2.15.0.dev{day}+rocm{rocm}")
            world.wheel(index, "torchvision", f"0.30.0.dev{day}+rocm{rocm}")
        world.wheel(index, "triton-rocm", "3.8.0+git12345678")
    torch = "2.15.0a0+rocm10.2.0a20261120"
    world.wheel(AMD10_NIGHTLY, "torch", torch)
    for gpu in (*GPUS_OF_AMD, "900", "906", "90c"):
        name = f"amd-torch-device-gfx{gpu}"
        world.put(AMD10_NIGHTLY, name, f"amd_torch_device_gfx{gpu}-{torch}-py3-none-linux_x86_64.whl")


def frozen_families(world: World) -> None:
    """AMD's per-family indexes, as far as they matter here."""
    for family in ("gfx110X-all", "gfx103X-dgpu", "gfx1151", "gfx101X-dgpu"):
        index = f"{AMD_FAMILY}{family}/"
        world.wheel(index, "torch", "2.9.1+rocm7.10.0", "310-313")
        world.wheel(index, "torchvision", "0.24.0+rocm7.10.0", "310-313")


def machine(gfx: str, rocm: str = "", driver: str = "") -> Platform:
    """A platform: gfx names with spaces between, ROCm as text ("" for none)."""
    names = tuple(gfx.split())
    version: RocmVersion | None = parse_rocm(rocm) if rocm else None
    return Platform(
        gpus=tuple(Gpu(name) for name in names),
        gfx_targets=names,
        gfx_source="--gfx",
        rocm=version,
        rocm_root="/opt/rocm" if rocm else "",
        rocm_source="--rocm" if rocm else "",
        roots=(),
        driver=driver,
    )
