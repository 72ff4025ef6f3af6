"""What the router costs: `pip install` of 100 small wheels, direct and behind it, alternating, from the same local index.

    python bench/router.py [--rounds 5] [--wheels 100]

Prints the median of each and the ratio. The router's start (imports, port) is part of its time, as in a run of rocmpip.
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

from tests.index.index_server import JSON, Reply, Site, sha256, wheel  # noqa: E402

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


def fill(site: Site, count: int) -> list[str]:
    """``count`` wheels with pages and metadata files; their names."""
    names = [f"small-package-{number:03}" for number in range(count)]
    for name in names:
        filename, content, metadata = wheel(name, "1.0")
        row = {
            "filename": filename,
            "url": f"{site.url}/{filename}",
            "hashes": {"sha256": sha256(content)},
            "core-metadata": {"sha256": sha256(metadata)},
        }
        page = {"meta": {"api-version": "1.0"}, "name": name, "files": [row]}
        site.paths[f"/simple/{name}/"] = Reply(json.dumps(page).encode(), headers={"Content-Type": JSON})
        site.paths[f"/{filename}"] = Reply(content)
        site.paths[f"/{filename}.metadata"] = Reply(metadata)
    return names


def timed(command: list[str], env: dict[str, str], target: Path) -> float:
    shutil.rmtree(target, ignore_errors=True)
    begin = time.perf_counter()
    subprocess.run([*command, "--target", str(target)], env=env, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--wheels", type=int, default=100)
    options = parser.parse_args()
    with Site() as site, tempfile.TemporaryDirectory() as folder:
        names = fill(site, options.wheels)
        index = f"{site.url}/simple"
        env = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
        env |= {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": index, "PYTHONPATH": str(ROOT)}
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-cache-dir", "--disable-pip-version-check", *names]
        behind = [sys.executable, "-c", BEHIND, index, *pip]
        target = Path(folder) / "target"
        timed(pip, env, target)
        timed(behind, env, target)
        rows = [(timed(pip, env, target), timed(behind, env, target)) for _ in range(options.rounds)]
        direct, routed = (statistics.median(column) for column in zip(*rows, strict=True))
        ratio = statistics.median(second / first for first, second in rows)
        print(
            f"{options.wheels} wheels, {options.rounds} rounds, {site.asked('/simple/' + names[0] + '/')} pages of the first name asked"
        )
        print(f"pip direct         {direct:.2f} s")
        print(f"behind the router  {routed:.2f} s")
        print(f"ratio              {ratio:.3f} (goal: at most 1.08)")


if __name__ == "__main__":
    main()
