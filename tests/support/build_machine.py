"""A machine for real builds: an environment with the HIP torch of this test suite, which meets one local index."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from rocmpip.demo.site import Site
from tests.support.commands import envelope, rocmpip
from tests.support.environments import make_venv, site_packages
from tests.support.real_sources import shelf_of
from tests.support.replica import sdist

EXTENSION = Path(__file__).parent / "hip_extension"
TORCH = "2.13.0+rocm7.2"


def _link(source: str, target: str) -> str:
    """A hard link where that is possible: pip replaces files, it writes into none."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target


class Machine:
    """An environment with a ROCm torch, on a machine with Debian's ROCm, that meets one local index."""

    def __init__(self, folder: Path, url: str, base: Path, ccache: Path) -> None:
        self.folder = folder
        self.python = make_venv(folder / "venv")
        shutil.rmtree(site_packages(self.python))
        shutil.copytree(site_packages(base), site_packages(self.python), copy_function=_link, symlinks=True)
        (folder / "home").mkdir()
        self.env = {
            **os.environ,
            "HOME": str(folder / "home"),
            "CCACHE_DIR": str(ccache),
            "PIP_INDEX_URL": f"{url}/simple",
            "ROCMPIP_PYTORCH_URL": url,
            "ROCMPIP_AMD_7_URL": f"{url}/amd7/",
            "ROCMPIP_AMD_10_URL": f"{url}/amd10/",
            "ROCMPIP_STATE_DIR": str(folder / "state"),
            "ROCMPIP_CACHE_DIR": str(folder / "cache"),
            "ROCMPIP_GFX": "gfx90a",
        }

    @property
    def wheelhouse(self) -> Path:
        return self.folder / "state/wheelhouse"

    def run(self, *words: str, timeout: float = 600, **env: str) -> subprocess.CompletedProcess[str]:
        """rocmpip, aimed at the environment."""
        done = rocmpip("--python", str(self.python), *words, env={**self.env, **env}, cwd=self.folder, timeout=timeout)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def told(self, *words: str, code: int = 0, **env: str) -> dict[str, Any]:
        """The envelope of a command that ends with ``code``."""
        told = envelope(done := self.run(*words, "--json", **env))
        assert done.returncode == code, (told["errors"], done.stderr)
        return told

    def versions(self) -> dict[str, str]:
        """What pip lists in the environment."""
        rows = json.loads(self.run("list", "--format", "json").stdout)
        return {row["name"].lower().replace("_", "-"): row["version"] for row in rows}

    def library(self, pattern: str) -> Path:
        """The one installed file that matches ``pattern``."""
        (found,) = site_packages(self.python).glob(pattern)
        return found

    def says(self, code: str) -> str:
        """What the environment's Python prints."""
        argv = [str(self.python), "-W", "ignore", "-c", code]
        done = subprocess.run(argv, env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


def index_site() -> Site:
    """The local index: what was fetched, and hip-extension as a source archive. Raises FileNotFoundError; to be started."""
    site = Site(offers_json=True)
    shelf = shelf_of(site)
    shelf.add([sdist("hip-extension", "1.0", EXTENSION, ("torch",))])
    site.mount("/simple/", shelf)
    return site
