"""Real source archives and the wheels that their builds need, on an index at 127.0.0.1.

``python -m tests.support.real_sources`` fetches them once into the cache folder (ROCMPIP_TEST_CACHE), from wherever this
machine's pip finds packages. Tests never reach out: they take what lies there, by its hash.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from packaging.utils import parse_wheel_filename
from packaging.version import Version

from rocmpip.demo.site import Shelf, Site
from rocmpip.demo.wheels import Artifact, Wheel
from tests.support.hip_torch import cache_folder

NEEDED = (
    "setuptools", "wheel", "ninja", "packaging", "psutil", "numpy", "py-cpuinfo", "einops", "hjson", "msgpack", "pydantic", "tqdm",
    "filelock", "sympy", "networkx", "jinja2", "fsspec", "typing-extensions",
)  # fmt: skip
"""What builds and installs of SOURCES and of torch 2.13 ask an index for."""


@dataclass(frozen=True)
class Source:
    """One file of an index: a source archive or a wheel."""

    name: str
    version: str
    filename: str
    sha256: str

    @property
    def path(self) -> Path:
        return cache_folder() / self.filename

    def check(self, path: Path) -> None:
        """Raises ValueError when ``path`` is not the archive that the tests were written for."""
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != self.sha256:
            raise ValueError(f"{path} is not the {self.name} {self.version} that the tests know: sha256 {found}")


SOURCES = (
    Source(
        "flash-attn",
        "2.8.3.post2",
        "flash_attn-2.8.3.post2.tar.gz",
        "d0f9f0b08a986cdeadbffcf5ec8b3a8f514366c68ad1853d3ab061bc83cc340b",
    ),
    Source(
        "deepspeed", "0.19.8", "deepspeed-0.19.8.tar.gz", "9e491abd0827ea5c389dd702e15e11e13d83d904bac4a20d6c2a4cb37207a9af"
    ),
    Source(
        "torch-scatter",
        "2.1.2",
        "torch_scatter-2.1.2.tar.gz",
        "69b3aa435f2424ac6a1bfb6ff702da6eb73b33ca0db38fb26989c74159258e47",
    ),
)

GPU_WHEELS = (
    Source(
        "gafime-rocm",
        "0.4.7",
        "gafime_rocm-0.4.7-cp312-cp312-manylinux_2_28_x86_64.whl",
        "8443a55ed53342993a65958e56dd78998e2ef7ed24fc58e376b91c1c3f09914a",
    ),
    Source(
        "jax-rocm7-plugin",
        "0.12.0",
        "jax_rocm7_plugin-0.12.0-cp312-cp312-manylinux_2_27_x86_64.whl",
        "56ea9cb8b20b2155307da1c7f81941d6811954d8ce3431ffe8d56aa251b725de",
    ),
)
"""Real ROCm wheels to look into: plain bundles for 13 targets, compressed ones (CCOB 3, zstd) for 27."""


def wheels_folder() -> Path:
    """Where the wheels of NEEDED lie."""
    return cache_folder() / f"wheels-cp{sys.version_info[0]}{sys.version_info[1]}"


def fetch() -> None:
    """Download what is not there yet. Raises CalledProcessError, ValueError for an archive with another hash, and
    rocmpip's own errors."""
    from rocmpip.app.context import gather
    from rocmpip.app.request import sorted_request
    from rocmpip.app.session import open_session
    from rocmpip.app.sources import source_files

    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    missing = [source for source in SOURCES if not source.path.is_file()]
    if missing:
        # pip's own download command would run each setup.py, and these want torch: rocmpip's client only fetches.
        context = gather("wheel", [source.name for source in missing])
        with open_session(context, sorted_request(context)) as session:
            for source in missing:
                file = source_files(session.policy, source.name)[Version(source.version)]
                with tempfile.TemporaryDirectory(dir=cache) as folder:
                    made = session.client.download(file, Path(folder) / source.filename)
                    source.check(made)
                    made.replace(source.path)
    for wheel in GPU_WHEELS:
        if not wheel.path.is_file():
            with tempfile.TemporaryDirectory(dir=cache) as folder:
                argv = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", folder]
                argv += ["--python-version", "3.12", "--platform", wheel.filename.rpartition("-")[2].removesuffix(".whl")]
                subprocess.run([*argv, f"{wheel.name}=={wheel.version}"], check=True)
                wheel.check(Path(folder, wheel.filename))
                Path(folder, wheel.filename).replace(wheel.path)
    if not wheels_folder().is_dir():
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            argv = [sys.executable, "-m", "pip", "download", "-q", "--only-binary", ":all:", "-d", f"{folder}/wheels", *NEEDED]
            subprocess.run(argv, check=True)
            Path(folder, "wheels").replace(wheels_folder())


@dataclass(frozen=True)
class WheelFile(Wheel):
    """A real wheel, as an artifact of a local index."""

    path: Path = Path()

    @property
    def filename(self) -> str:
        return self.path.name

    @property
    def content(self) -> bytes:
        return self.path.read_bytes()

    @cached_property
    def metadata(self) -> bytes:
        with zipfile.ZipFile(self.path) as archive:
            return archive.read(next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA")))


@dataclass(frozen=True)
class SourceFile(Artifact):
    """A real source archive, as an artifact of a local index."""

    path: Path = Path()

    @property
    def filename(self) -> str:
        return self.path.name

    @property
    def content(self) -> bytes:
        return self.path.read_bytes()


def shelf_of(site: Site) -> Shelf:
    """Everything of the cache folder as one index, with its files on ``site``. Raises FileNotFoundError when it was not fetched."""
    shelf = Shelf(lambda artifact: site.put(f"/packages/{artifact.project}/", artifact))
    for path in sorted(wheels_folder().iterdir()):
        name, version, _, _ = parse_wheel_filename(path.name)
        shelf.add([WheelFile(name, str(version), path=path)])
    for source in SOURCES:
        source.check(source.path)
        shelf.add([SourceFile(source.name, source.version, path=source.path)])
    return shelf


if __name__ == "__main__":
    fetch()
