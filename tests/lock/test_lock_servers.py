"""``rocmpip lock`` where a server fails or lies: exit 42 with package and URL, in time, and nothing is written."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.index.index_server import JSON, Reply, Site, sha256
from tests.lock.lying_servers import FALSE_METADATA, NO_INDEX, core_metadata, faults, lies, stock
from tests.lock.test_lock_scouts import SCRIPT, told, without_gpu

pytestmark = pytest.mark.pip

STAGES = {
    "page": ("/simple/lib/", True),
    "metadata": ("/files/lib-2.0-py3-none-any.whl.metadata", True),
    "wheel": ("/files/lib-2.0-py3-none-any.whl", False),
}
"""What fails → its path, and whether metadata is published beside the wheels (else it is read from those)."""
LONGEST = 20.0
"""Seconds in which the error must come, with a time limit of half a second (and much room for a busy machine)."""
PROCESSORS = (1, 2)
"""Without scouts, and with them."""


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture
def over() -> Iterator[threading.Event]:
    """Set at the end, for answers that wait."""
    event = threading.Event()
    yield event
    event.set()


def lock(site: Site, folder: Path, processors: int, *words: str, retries: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", SCRIPT, str(processors), "lock", "-i", f"{site.url}/simple", *words]
    cache = str(folder / f"cache-{time.monotonic_ns()}")
    env = without_gpu(folder, ROCMPIP_CACHE_DIR=cache, PIP_RETRIES=str(retries), PIP_TIMEOUT="0.5")
    return subprocess.run(
        command, env=env, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )


def refused(site: Site, folder: Path, url: str, *, ways: tuple[int, ...] = PROCESSORS) -> None:
    """The lock of app ends with 42 and names lib and ``url``, alike on so many processors; no file comes of it."""
    errors = []
    for processors in ways:
        begun = time.monotonic()
        done = lock(site, folder, processors, "app", "-o", "out.txt")
        assert time.monotonic() - begun < LONGEST
        code, out, error = told(done)
        assert code == 42, error
        assert out == ""
        assert "lib" in error and url in error and "next:" in error
        assert not (folder / "out.txt").exists()
        errors.append(error)
    assert len(set(errors)) == 1


@pytest.mark.parametrize("fault", faults(b"x" * 100, threading.Event()))
@pytest.mark.parametrize("stage", STAGES)
def test_an_answer_that_fails(site: Site, over: threading.Event, tmp_path: Path, stage: str, fault: str) -> None:
    path, metadata = STAGES[stage]
    stock(site, metadata=metadata)
    good = site.paths[path]
    assert isinstance(good, Reply)
    site.paths[path] = faults(good.body, over)[fault]
    if stage == "wheel" and fault == "says gzip of what is none":
        # The bytes are the wheel's: a file's encoding is nothing to us.
        assert lock(site, tmp_path, 2, "app").returncode == 0
        return
    refused(site, tmp_path, site.url + path, ways=PROCESSORS if stage == "page" else PROCESSORS[1:])


@pytest.mark.parametrize("kind", NO_INDEX)
def test_what_is_no_index(site: Site, tmp_path: Path, kind: str) -> None:
    stock(site)
    content_type, body = NO_INDEX[kind]
    site.paths["/simple/lib/"] = Reply(body, headers={"Content-Type": content_type})
    refused(site, tmp_path, f"{site.url}/simple")


@pytest.mark.parametrize("lie", lies({"files": [{}, {}]}))
def test_json_that_lies(site: Site, tmp_path: Path, lie: str) -> None:
    page = lies(stock(site))[lie]
    site.paths["/simple/lib/"] = Reply(json.dumps(page).encode(), headers={"Content-Type": JSON})
    refused(site, tmp_path, site.url)


@pytest.mark.parametrize("kind", FALSE_METADATA)
@pytest.mark.parametrize("hashed", [True, False])
def test_metadata_that_is_not_the_wheels(site: Site, tmp_path: Path, kind: str, hashed: bool) -> None:
    page = stock(site)
    data = FALSE_METADATA[kind]
    page["files"][1]["core-metadata"] = {"sha256": sha256(data)} if hashed else True
    site.paths["/simple/lib/"] = Reply(json.dumps(page).encode(), headers={"Content-Type": JSON})
    site.paths["/files/lib-2.0-py3-none-any.whl.metadata"] = Reply(data)
    refused(site, tmp_path, f"{site.url}/files/lib-2.0-py3-none-any.whl")


@pytest.mark.parametrize("version", ["2.0.0", "2"])
def test_a_version_that_is_written_otherwise_is_the_same(site: Site, tmp_path: Path, version: str) -> None:
    page = stock(site)
    data = core_metadata("Lib", version)
    page["files"][1]["core-metadata"] = {"sha256": sha256(data)}
    site.paths["/simple/lib/"] = Reply(json.dumps(page).encode(), headers={"Content-Type": JSON})
    site.paths["/files/lib-2.0-py3-none-any.whl.metadata"] = Reply(data)
    for processors in PROCESSORS:
        assert "lib==2.0" in told(lock(site, tmp_path, processors, "app"))[1]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_server_that_recovers(site: Site, tmp_path: Path, stage: str, status: int) -> None:
    path, metadata = STAGES[stage]
    stock(site, metadata=metadata)
    good = site.paths[path]
    headers = {"Retry-After": "0"} if status == 429 else {}
    for processors in PROCESSORS:
        site.requests.clear()
        site.paths[path] = lambda _: Reply(status=status, headers=headers) if site.asked(path) == 1 else good
        done = lock(site, tmp_path, processors, "app", retries=3)
        assert done.returncode == 0, done.stderr
        assert "lib==2.0" in done.stdout
        assert site.asked(path) >= 2


def test_an_existing_lock_is_left_as_it_is(site: Site, tmp_path: Path) -> None:
    stock(site)
    out = tmp_path / "out.txt"
    assert lock(site, tmp_path, 2, "app", "-o", "out.txt").returncode == 0
    before = out.read_bytes()
    site.paths["/simple/lib/"] = Reply(status=500)
    assert lock(site, tmp_path, 2, "app", "-o", "out.txt").returncode == 42
    assert out.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("cache")) == ["no-machine", "out.txt"]
