"""What the router costs: 100 small wheels by pip, by pip behind the router, and by `rocmpip install`, alternating, one index.

    python bench/router.py [--rounds 7] [--wheels 100]

nginx serves the index. Every install goes into an empty folder, without pip's cache; the router's start and all of rocmpip's own
planning are part of their times. Prints medians, and the medians of the ratios of each round.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.lock import served  # noqa: E402
from tests.index.index_server import sha256, wheel  # noqa: E402

BEHIND = """
import os, subprocess, sys
from rocmpip.index.client import Client
from rocmpip.model.request import IndexOptions
from rocmpip.model.routing import Route
from rocmpip.router.server import Router
index, *command = sys.argv[1:]
with Client(IndexOptions(index_url=index), env={}) as client:
    with Router(lambda name: Route(name, "plain", (index,)), client) as router:
        sys.exit(subprocess.call(command, env={**os.environ, "PIP_INDEX_URL": router.url}))
"""


def fill(root: Path, count: int) -> list[str]:
    """``count`` wheels with pages and metadata files; their names."""
    names = [f"small-package-{number:03}" for number in range(count)]
    for name in names:
        filename, content, metadata = wheel(name, "1.0")
        row = {
            "filename": filename,
            "url": f"../../{filename}",
            "hashes": {"sha256": sha256(content)},
            "core-metadata": {"sha256": sha256(metadata)},
        }
        page = root / "simple" / name / "index.json"
        page.parent.mkdir(parents=True)
        page.write_text(json.dumps({"meta": {"api-version": "1.0"}, "name": name, "files": [row]}))
        (root / filename).write_bytes(content)
        (root / f"{filename}.metadata").write_bytes(metadata)
    return names


def timed(command: list[str], env: dict[str, str], target: Path, count: int) -> float:
    shutil.rmtree(target, ignore_errors=True)
    begin = time.perf_counter()
    subprocess.run([*command, "--target", str(target)], env=env, check=True, stdout=subprocess.DEVNULL)
    took = time.perf_counter() - begin
    assert len(list(target.glob("*.dist-info"))) == count, "not everything was installed"
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--wheels", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = fill(folder / "root", options.wheels)
        venv = folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        python = str(venv / "bin" / "python")
        with served(folder / "root", folder / "nginx") as port:
            index = f"http://127.0.0.1:{port}/simple/"
            env = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "ROCMPIP_"))}
            env.pop("PYTHONDONTWRITEBYTECODE", None)
            env |= {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": index, "PYTHONPATH": str(ROOT)}
            env |= {"ROCMPIP_CACHE_DIR": str(folder / "cache"), "ROCMPIP_GFX": "gfx942", "ROCMPIP_ROCM": "6.4"}
            words = ["install", "-q", "--no-cache-dir", "--disable-pip-version-check", *names]
            pip = [python, "-m", "pip", *words]
            ways = {
                "pip": pip,
                "pip behind the router": [sys.executable, "-c", BEHIND, index, *pip],
                "rocmpip install": [sys.executable, "-m", "rocmpip", "--python", python, *words],
            }
            target = folder / "target"
            for command in ways.values():
                timed(command, env, target, options.wheels)
            rows = [[timed(command, env, target, options.wheels) for command in ways.values()] for _ in range(options.rounds)]
    print(f"{options.wheels} wheels, {options.rounds} rounds")
    for place, way in enumerate(ways):
        took = statistics.median(row[place] for row in rows)
        ratio = statistics.median(row[place] / row[0] for row in rows)
        print(f"{way:22} {took:6.2f} s  × pip {ratio:.3f}")
    print("goal: at most 1.08")


if __name__ == "__main__":
    main()
