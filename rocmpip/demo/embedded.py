"""The embedded indexes and the simulated node, read from the TOML beside this file."""

from __future__ import annotations

import platform as machine
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rocmpip.demo.site import Shelf, Site
from rocmpip.demo.sysroot import write_rocm, write_sysroot
from rocmpip.demo.torchlike import setuptools_wheel, torch_wheel, triton_wheel
from rocmpip.demo.wheels import Artifact, Sdist, Wheel
from rocmpip.model import toml

DATA = Path(__file__).parent / "data"


def read(name: str) -> dict[str, Any]:
    """``index.toml`` or ``node.toml``."""
    return toml.loads((DATA / name).read_text(encoding="utf-8"))


def source_archive(name: str, version: str, folder: str = "") -> Sdist:
    """A source archive of ``data/sources/FOLDER`` with @VERSION@ filled in, and the code-object writer beside its setup.py."""
    top = DATA / "sources" / (folder or name)
    files: dict[str, str | bytes] = {
        path.relative_to(top).as_posix(): path.read_text(encoding="utf-8").replace("@VERSION@", version)
        for path in sorted(top.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }
    files["fatbin.py"] = Path(__file__).with_name("fatbin.py").read_text(encoding="utf-8")
    return Sdist(name, version, files=files)


@cache
def fitting_platform(platform: str) -> str:
    """``platform`` when this machine's interpreter takes it, else the plain tag of the machine (another libc or processor)."""
    from packaging.tags import platform_tags

    supported = list(platform_tags())
    return platform if platform in supported else f"linux_{machine.machine()}"


def artifacts(row: Mapping[str, Any], table: Mapping[str, Any]) -> Iterator[Artifact]:
    """The wheels or sdists of one [[package]]."""
    pairs = [name.split("==") for name in row.get("names", ())]
    pairs += [[row["name"], version] for version in row.get("versions", ())]
    platform = fitting_platform(table["platform"])
    tags = [f"{python}-{python}-{platform}" for python in table["pythons"]]
    requires = tuple(row.get("requires", ()))
    for name, version in pairs:
        for tag in tags if row.get("tag") == "python" else ["py3-none-any"]:
            kind = row.get("kind", "plain")
            if kind == "torch":
                yield torch_wheel(version, tag, requires=requires, rocm=row.get("rocm", ""), cuda=row.get("cuda", ""))
            elif kind == "triton":
                yield triton_wheel(name, version, tag)
            elif kind == "backend":
                yield setuptools_wheel(version)
            elif kind == "source":
                yield source_archive(name, version, row["source"])
            else:
                yield Wheel(name, version, requires, files=row.get("modules", {}), tag=tag)


@dataclass(frozen=True)
class Servers:
    """The running hosts: ``simple`` is the PyPI-like index, ``pytorch`` the root that holds ``whl/``, ``nowhere`` has nothing."""

    simple: str
    pytorch: str
    nowhere: str


@contextmanager
def served() -> Iterator[Servers]:
    """The embedded indexes on 127.0.0.1 for the time of the block: pages on one host, files on another."""
    table = read("index.toml")
    pypi, pytorch, files = Site(offers_json=True), Site(missing=403), Site()
    shelves: dict[str, Shelf] = {}
    for row in table["package"]:
        path = row["index"]
        if path not in shelves:
            shelves[path] = Shelf(lambda artifact, path=path: files.put(f"/{path}/", artifact))  # type: ignore[misc]
            (pypi if path == "simple" else pytorch).mount(f"/{path}/", shelves[path])
        shelves[path].add(artifacts(row, table))
    sites = (pypi, pytorch, files)
    for site in sites:
        site.start()
    try:
        yield Servers(f"{pypi.url}/simple", pytorch.url, f"{pytorch.url}/amd/")
    finally:
        for site in sites:
            site.stop()


@dataclass(frozen=True)
class Node:
    """The simulated machine: ``sysroot`` for the probe; ``rocm`` a folder that both the probe and builds see."""

    sysroot: Path
    rocm: Path
    rocm_version: str


def write_node(folder: Path) -> Node:
    """Write the node under ``folder``.

    Its ROCm root lies at one path inside and outside the simulated machine, since builds look for tools and headers where
    the probe said ROCm is. The compilers in it are stand-ins.
    """
    told = read("node.toml")
    sysroot, rocm = folder / "machine", folder / "rocm"
    write_sysroot(sysroot, told["gpu"])
    write_rocm(rocm, told["rocm"], tools=("hipcc", "amdclang++", "c++"))
    inside = sysroot / str(rocm.resolve()).lstrip("/")
    write_rocm(inside, told["rocm"])
    (sysroot / "proc/sys/kernel/osrelease").write_text(told["kernel"] + "\n")
    return Node(sysroot, rocm.resolve(), told["rocm"].split("-")[0])
