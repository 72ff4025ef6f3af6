"""The cache under whole locks: many at once, killed ones, damaged files, a full or read-only disk. The answer is always the same."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.index.index_server import Reply, Site, json_page, sha256, wheel
from tests.lock.test_lock_scouts import SCRIPT, without_gpu

pytestmark = pytest.mark.pip

PROJECTS = 12
PROCESSORS = pytest.mark.parametrize("processors", [1, 2])
"""Without scouts, and with them."""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """p0 needs all others, each in several versions."""
    with Site() as site:
        for number in range(PROJECTS):
            name, rows = f"p{number}", []
            for version in range(4):
                needs = [f"p{other}>=1.{version % 3}" for other in (2 * number + 1, 2 * number + 2) if other < PROJECTS]
                filename, content, metadata = wheel(name, f"1.{version}", needs)
                site.paths[f"/files/{filename}"] = Reply(content)
                site.paths[f"/files/{filename}.metadata"] = Reply(metadata)
                rows.append(
                    {
                        "filename": filename,
                        "url": f"../../files/{filename}",
                        "hashes": {"sha256": sha256(content)},
                        "core-metadata": {"sha256": sha256(metadata)},
                    }
                )
            site.paths[f"/simple/{name}/"] = json_page(name, rows)
        yield site


class Locks:
    """``rocmpip lock p0`` (or of another ``wanted``) with a cache; ``good`` is what it prints."""

    def __init__(self, site: Site, folder: Path) -> None:
        self._site, self._folder = site, folder
        self.cache = folder / "cache"
        self.good = self.run(1, folder / "first-cache").stdout
        assert self.good.count("==") == PROJECTS

    def start(
        self, processors: int, cache: Path | None = None, wanted: str = "p0", options: Sequence[str] = (), **more: Any
    ) -> subprocess.Popen[str]:
        index = f"{self._site.url}/simple"
        command = [sys.executable, "-W", "error", "-c", SCRIPT, str(processors), "lock", "-i", index, wanted, *options]
        env = without_gpu(self._folder, ROCMPIP_CACHE_DIR=str(cache or self.cache), PIP_RETRIES="0", PIP_TIMEOUT="30")
        return subprocess.Popen(
            command, env=env, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, **more,
        )  # fmt: skip

    def run(self, processors: int, cache: Path | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
        process = self.start(processors, cache, **more)
        out, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
        assert "Traceback" not in error
        return subprocess.CompletedProcess(process.args, 0, out, error)

    def same(self, processors: int, **more: Any) -> str:
        """It prints what it always prints; returns its words."""
        done = self.run(processors, **more)
        assert done.stdout == self.good
        return done.stderr

    def forget_answer(self) -> None:
        """Have the next run resolve, from a cache that is there."""
        shutil.rmtree(self.cache / "locks", ignore_errors=True)


@pytest.fixture
def locks(site: Site, tmp_path: Path) -> Locks:
    return Locks(site, tmp_path)


@PROCESSORS
def test_twenty_at_once_on_one_empty_cache(locks: Locks, processors: int) -> None:
    running = [locks.start(processors) for _ in range(20)]
    for process in running:
        out, error = process.communicate(timeout=240)
        assert (process.returncode, out, error) == (0, locks.good, "")
    locks.forget_answer()
    assert locks.same(processors) == ""


@PROCESSORS
def test_killed_at_any_moment(locks: Locks, processors: int) -> None:
    """Alone, or with its scouts; after each of them the next one has the right answer without a word."""
    moments = random.Random(7)
    for number in range(16):
        process = locks.start(processors, start_new_session=True)
        time.sleep(moments.uniform(0.03, 0.5))
        with contextlib.suppress(OSError):
            (os.killpg if number % 2 else os.kill)(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        if number % 4 == 3:
            locks.forget_answer()
            assert locks.same(processors) == ""
            assert locks.same(processors) == ""


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "a byte short": lambda data: data[:-1],
    "other bytes": lambda data: random.Random(1).randbytes(len(data)),
    "zeros": lambda data: bytes(len(data)),
    "a flipped bit": lambda data: data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :],
    "a longer file": lambda data: data + b"\0" * 100,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_every_file_damaged_in_turn(locks: Locks, damage: str) -> None:
    locks.same(2)
    files = [path.relative_to(locks.cache) for path in locks.cache.rglob("*") if path.is_file()]
    assert {path.parts[0] for path in files} == {"pages", "locks"}
    for path in files:
        whole = locks.cache / path
        if whole.exists():
            whole.write_bytes(DAMAGE[damage](whole.read_bytes()))
        if path.parts[0] != "locks":
            locks.forget_answer()
        assert locks.same(2) == ""


@pytest.mark.parametrize("word", ["2", "9"])
def test_an_answer_that_was_changed_is_not_given(locks: Locks, word: str) -> None:
    """One digit of a hash or version in the kept answer: it is still JSON, and not what was kept."""
    locks.same(2)
    (memo,) = (locks.cache / "locks").iterdir()
    kept = memo.read_text()
    place = kept.index("p0==1.3")
    memo.write_text(kept[: place + 6] + word + kept[place + 7 :])
    assert locks.same(2) == ""


@PROCESSORS
@pytest.mark.parametrize("size", [0, 100, 1000])
def test_a_disk_that_is_full(locks: Locks, processors: int, size: int) -> None:
    """No file can grow beyond ``size``, as on a full disk: it works without a cache, says so once, and leaves no half file."""
    said = locks.same(processors, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
    assert said.count("warning: the cache") == 1
    assert "not used for writing: File too large" in said
    assert not [path for path in (locks.cache / "locks").iterdir() if path.suffix != ".json"]
    assert locks.same(processors) == ""


@PROCESSORS
def test_a_cache_that_cannot_be(locks: Locks, processors: int) -> None:
    locks.cache.write_text("not a folder")
    said = locks.same(processors)
    assert said.count("warning: the cache") == 1
    assert "Not a directory" in said
    assert locks.cache.read_text() == "not a folder"


@PROCESSORS
@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_cache_that_others_can_write_is_not_believed(locks: Locks, processors: int, mode: int) -> None:
    locks.same(processors)
    locks.forget_answer()
    (locks.cache / "pages").chmod(mode)
    assert "can be written by others" in locks.same(processors)


def test_answers_that_are_kept_are_few(locks: Locks) -> None:
    folder = locks.cache / "locks"
    folder.mkdir(parents=True, mode=0o700)
    for number in range(300):
        (folder / f"{number}.json").write_text("{}")
    locks.same(2)
    assert len(list(folder.iterdir())) <= 101


def test_notes_come_with_a_kept_answer_too(site: Site, locks: Locks) -> None:
    """The version that is asked for was taken back: that is as true the second time."""
    filename, content, metadata = wheel("taken-back", "1.0")
    row = {
        "filename": filename,
        "url": f"../../files/{filename}",
        "hashes": {"sha256": sha256(content)},
        "core-metadata": True,
        "yanked": "eats files",
    }
    site.paths["/simple/taken-back/"] = json_page("taken-back", [row])
    site.paths[f"/files/{filename}.metadata"] = Reply(metadata)
    said = []
    for _ in range(2):
        before = len(site.requests)
        said.append(locks.run(2, wanted="taken-back==1.0").stderr)
    assert len(site.requests) == before, "nobody was asked the second time"
    assert "note:" in said[0] and "eats files" in said[0]
    assert said[1] == said[0]


@pytest.mark.parametrize("option", ["--find-links", "--wheelhouse"])
def test_a_folder_of_wheels_is_watched(site: Site, locks: Locks, tmp_path: Path, option: str) -> None:
    """The kept answer holds while the folder is as it was: another wheel, or other bytes in one, and it is worked out anew."""

    def asked() -> int:
        before = len(site.requests)
        outputs.append(locks.run(2, options=(option, "wheels")).stdout)
        return len(site.requests) - before

    outputs: list[str] = []
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / "p1-1.7-py3-none-any.whl").write_bytes(wheel("p1", "1.7")[1])
    assert asked() > 0 and "p1==1.7" in outputs[-1]
    assert asked() == 0 and outputs[-1] == outputs[-2]
    (folder / "p1-1.7-py3-none-any.whl").write_bytes(wheel("p1", "1.7", padding=50)[1])
    assert asked() > 0 and outputs[-1] != outputs[-2]
    (folder / "p1-1.8-py3-none-any.whl").write_bytes(wheel("p1", "1.8")[1])
    assert asked() > 0 and "p1==1.8" in outputs[-1]
