"""A file that rocmpip has fetched already is taken from disk by every pip, and fetched by pip where that cannot be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rocmpip.target.ready import WATCHED
from tests.index.index_server import Reply, Site, html_page, sha256, wheel

pytestmark = pytest.mark.pip

VERSIONS = ["23.3.2", "24.3.1", "25.3", "26.3"]
if sys.version_info < (3, 12):
    VERSIONS.insert(0, "23.0.1")
FILENAME, WHEEL, _ = wheel("pure", "1.0+local", padding=200_000)
FILES = f"/files/{FILENAME}"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        link = f"{site.url}/files/{FILENAME.replace('+', '%2B')}#sha256={sha256(WHEEL)}"
        site.paths["/simple/pure/"] = html_page(f'<a href="{link}">{FILENAME}</a>')
        yield site


def download(site: Site, folder: Path, pip: Path, table: str) -> subprocess.CompletedProcess[str]:
    (folder / "handed.json").write_text(table)
    env = {
        **os.environ,
        "PYTHONPATH": str(pip),
        "PIP_INDEX_URL": f"{site.url}/simple",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "ROCMPIP_HANDED": str(folder / "handed.json"),
    }
    words = ["download", "--no-deps", "-d", str(folder / "got"), "pure"]
    return subprocess.run(
        [sys.executable, WATCHED, str(os.getpid()), "", *words],
        env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pip_takes_it_from_disk(site: Site, tmp_path: Path, pip_path: Callable[[str], Path], version: str) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes(WHEEL)
    done = download(site, tmp_path, pip_path(version), json.dumps({f"{site.url}/files/{FILENAME}": str(copy)}))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "got" / FILENAME).read_bytes() == WHEEL
    assert site.asked(FILES) == 0


def test_its_hash_is_checked_by_pip(site: Site, tmp_path: Path, pip_path: Callable[[str], Path]) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes(WHEEL[:-1] + b"x")
    done = download(site, tmp_path, pip_path(VERSIONS[-1]), json.dumps({f"{site.url}/files/{FILENAME}": str(copy)}))
    assert done.returncode
    assert sha256(WHEEL) in done.stderr
    assert site.asked(FILES) == 0


@pytest.mark.parametrize("table", ["", "no JSON", '{"https://else.example/x.whl": "/gone"}', "gone"])
def test_whatever_is_not_there_is_fetched(site: Site, tmp_path: Path, pip_path: Callable[[str], Path], table: str) -> None:
    site.paths[FILES] = Reply(WHEEL)
    table = json.dumps({f"{site.url}/files/{FILENAME}": str(tmp_path / "gone")}) if table == "gone" else table
    done = download(site, tmp_path, pip_path(VERSIONS[-1]), table)
    assert done.returncode == 0, done.stderr
    assert site.asked(FILES) == 1
