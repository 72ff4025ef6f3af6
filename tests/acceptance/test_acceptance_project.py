"""An editable install is as quick as any other: its modules are compiled, also where Python may not do that by itself."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = "import sys, hatchling.build as build; print(build.build_editable(sys.argv[1]))"


def test_an_editable_install_compiles_the_modules(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    for name in ("rocmpip", "recipes"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", BUILD, str(tmp_path)], cwd=checkout, env=env, capture_output=True, check=True)
    sources = [path for path in (checkout / "rocmpip").rglob("*.py") if "data" not in path.parts]
    assert len(sources) > 100
    missing = [path for path in sources if not Path(importlib.util.cache_from_source(str(path))).is_file()]
    assert not missing
