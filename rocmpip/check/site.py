"""What verify's static steps look at: the environment, the GPUs it is meant for, and how a process would load its files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rocmpip.check.family import requires
from rocmpip.check.inventory import Dist, Inventory
from rocmpip.check.linker import Files, Process, Search, read_cache, shared_files
from rocmpip.machine.files import Tree
from rocmpip.machine.override import claimed_gfx
from rocmpip.machine.variables import OVERRIDE
from rocmpip.model.gfx import Gfx, parse_gfx
from rocmpip.model.machine import InstalledDist, Platform, TargetEnv
from rocmpip.model.record import Struct, field

if TYPE_CHECKING:
    from rocmpip.catalogue.catalogue import Catalogue

_SDK = re.compile(r"_rocm_sdk_\w+$")


class Site(Struct, frozen=True, dict=True):
    """Frozen facts of one verify run."""

    env: Mapping[str, str]
    platform: Platform
    target: TargetEnv
    catalogue: Catalogue
    inventory: Inventory
    installed: Mapping[str, InstalledDist]
    asked: tuple[str, ...] = ()
    """--gfx as written, with target features."""
    tree: Tree = field(default_factory=Tree)
    names: frozenset[str] = frozenset()
    """The distributions asked for; empty means all."""

    @property
    def aimed(self) -> bool:
        """True unless someone said ``--gfx none`` on a machine without ROCm: else what is verified is meant for an AMD GPU,
        on a build machine without one too, and a CUDA build is wrong."""
        return self.platform.state != "none" or not self.platform.gfx_source

    @property
    def simulated(self) -> bool:
        return bool(self.tree.root)

    @cached_property
    def targets(self) -> tuple[Gfx, ...]:
        """GPUs that code must run on, with the features that are known; an override changes what the runtime asks for."""
        claimed = self.claimed
        found: list[Gfx] = []
        features = {gpu.gfx: gpu.features for gpu in self.platform.gpus}
        for word in re.split(r"[;,\s]+", ";".join(self.asked)):
            if word and word.lower() != "none":
                parsed = parse_gfx(word)
                features[parsed.name] = parsed.features or features.get(parsed.name, ())
        for gfx in self.platform.gfx_targets:
            found.append(Gfx(claimed, ()) if claimed else Gfx(gfx, tuple(features.get(gfx, ()))))
        return tuple(dict.fromkeys(found))

    @cached_property
    def claimed(self) -> str:
        """The gfx that HSA_OVERRIDE_GFX_VERSION makes the runtime say, or ""."""
        try:
            return claimed_gfx(self.env[OVERRIDE]) if self.env.get(OVERRIDE, "").strip() else ""
        except ValueError:
            return ""

    @cached_property
    def folders(self) -> tuple[Path, ...]:
        return tuple(Path(folder) for folder in self.target.site_packages)

    # -- the linker ----------------------------------------------------------------------------------------------

    def place(self, path: str) -> str:
        """Where a path really is: the environment and the system are real, /opt may be a simulated root's."""
        if self.simulated and path.startswith("/opt/") and not os.path.exists(path):  # noqa: PTH110
            try:
                return self.tree.host(path)
            except OSError:
                return path
        return path

    @cached_property
    def search(self) -> Search:
        preloads: dict[str, str] = {}
        sdk = [
            entry / "lib"
            for folder in self.folders
            if folder.is_dir()
            for entry in sorted(folder.iterdir())
            if _SDK.fullmatch(entry.name)
        ]
        if sdk:
            preloads = shared_files([*sdk, *(folder / "rocm_sysdeps/lib" for folder in sdk)])
        return Search(
            files=Files(self.place),
            ld_library_path=tuple(folder for folder in re.split("[:;]", self.env.get("LD_LIBRARY_PATH", "")) if folder),
            cache=read_cache(),
            # torch (and jax) load ROCm's libraries from the SDK packages by hand, before their own.
            preloads=preloads,
            preloaded=tuple(path for path in re.split(r"[:\s]+", self.env.get("LD_PRELOAD", "")) if path.startswith("/")),
        )

    @cached_property
    def python(self) -> Process:
        """The interpreter as it is before any import."""
        process = Process(self.search)
        process.start(os.path.realpath(self.target.python))
        return process

    @cached_property
    def with_torch(self) -> Process:
        """The interpreter after ``import torch``."""
        process = self.python.copy()
        folder = self.torch_folder
        if folder is not None:
            for path in (
                folder / "lib/libtorch_global_deps.so",
                *sorted(folder.glob("_C*.so")),
                *sorted(folder.glob("lib/libtorch_python.so")),
            ):
                process.load(str(path))
        return process

    @cached_property
    def torch_folder(self) -> Path | None:
        torch = self.installed.get("torch")
        folder = Path(torch.path).parent / "torch" if torch is not None else None
        return folder if folder is not None and folder.is_dir() else None

    def process(self, dist: Dist) -> Process:
        """A fresh process in the state in which the distribution's files are loaded."""
        return (self.with_torch if dist.torch or dist.name == "torch" or requires(dist.dist, "torch") else self.python).copy()


def rocm_of(site: Site, path: str) -> str:
    """Which ROCm a library comes from: torch's own, the SDK packages, or a root's folder."""
    real = os.path.realpath(path)
    for folder in site.folders:
        base = os.path.realpath(folder)
        if real.startswith(base + os.sep):
            top = Path(real).relative_to(base).parts[0]
            return "rocm-sdk packages" if top.startswith("_rocm_sdk_") else f"{top}'s own"
    return os.path.dirname(real)  # noqa: PTH120


def words(names: Sequence[str], count: int = 4) -> str:
    """``a, b, c and 5 more``."""
    more = len(names) - count
    return ", ".join(names[:count]) + (f" and {more} more" if more > 0 else "")
