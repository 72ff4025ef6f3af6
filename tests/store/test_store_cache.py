"""The disk cache: many processes, kills at any moment, garbage, a full or read-only disk, a bound on its size."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocmpip.store.cache import PageCache

KEY = "ab" * 32
WRITER = """
import sys
from pathlib import Path
from rocmpip.store.cache import PageCache
cache, rounds = PageCache(Path(sys.argv[1])), int(sys.argv[2])
number = 0
while rounds < 0 or number < rounds:
    number += 1
    key = f"{number % 7:064x}"
    cache.put("page", key, key.encode() * (number % 50 + 1000))
    got = cache.get("page", key)
    assert got is not None and set(got[place : place + 64] for place in range(0, len(got), 64)) == {key.encode()}, key
    if number == 20:
        print("running", flush=True)
"""


def kept(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.name != ".trim"]


def test_what_is_put_is_got(tmp_path: Path) -> None:
    cache = PageCache(tmp_path / "c")
    assert cache.get("page", KEY) is None
    for data in (b"", b"x", os.urandom(100_000)):
        cache.put("page", KEY, data)
        assert cache.get("page", KEY) == data
    assert cache.get("metadata", KEY) is None
    assert PageCache(tmp_path / "c").get("page", KEY) == data
    cache.clear()
    assert cache.get("page", KEY) is None


def test_only_the_user_can_read(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        PageCache(tmp_path / "c").put("page", KEY, b"x")
    finally:
        os.umask(before)
    for path in (tmp_path / "c").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    assert stat.S_IMODE((tmp_path / "c").stat().st_mode) == 0o700


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.binary(max_size=200), cut=st.integers(0, 200), noise=st.binary(max_size=20), place=st.integers(0, 220))
def test_truncated_and_garbage_files_are_misses(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, cut: int, noise: bytes, place: int
) -> None:
    folder = tmp_path_factory.mktemp("c")
    cache = PageCache(folder)
    cache.put("page", KEY, data)
    (path,) = kept(folder)
    whole = path.read_bytes()
    for broken in (whole[:cut], whole[:place] + noise + whole[place + len(noise) :], noise, whole + noise):
        path.write_bytes(broken)
        found = cache.get("page", KEY)
        assert found == (data if broken == whole else None)
        cache.put("page", KEY, data)


def test_things_that_are_no_files(tmp_path: Path) -> None:
    cache = PageCache(tmp_path)
    cache.put("page", KEY, b"x")
    (path,) = kept(tmp_path)
    path.unlink()
    path.symlink_to("/etc/hostname")
    assert cache.get("page", KEY) is None
    path.unlink()
    os.mkfifo(path)
    # A pipe without a writer would block an ordinary open for ever.
    assert cache.get("page", KEY) is None


def test_many_processes_at_once(tmp_path: Path) -> None:
    running = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), "150"], stdout=subprocess.PIPE) for _ in range(8)]
    for child in running:
        child.communicate(timeout=60)
    assert [child.returncode for child in running] == [0] * 8
    assert len(kept(tmp_path)) == 7


def test_killed_at_any_moment(tmp_path: Path) -> None:
    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), "-1"], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            child.send_signal(signal.SIGKILL)
    cache = PageCache(tmp_path)
    for number in range(7):
        key = f"{number:064x}"
        found = cache.get("page", key)
        assert found is not None
        assert found == key.encode() * (len(found) // 64)


def test_a_disk_that_cannot_be_written_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    cache = PageCache(tmp_path / "c", warn=told.append)
    cache.put("page", KEY, b"before")

    def full(*arguments: object, **keys: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rocmpip.store.cache.os.fdopen", full)
    cache.put("page", KEY, b"after")
    cache.put("page", "cd" * 32, b"after")
    monkeypatch.undo()
    assert len(told) == 1
    assert "No space left" in told[0]
    assert cache.get("page", KEY) == b"before"
    assert len(kept(tmp_path)) == 1


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told: list[str] = []
    cache = PageCache(tmp_path / "file" / "c", warn=told.append)
    cache.put("page", KEY, b"x")
    assert cache.get("page", KEY) is None
    assert len(told) == 1


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_folder_that_others_can_write_is_not_believed(tmp_path: Path, mode: int) -> None:
    PageCache(tmp_path / "c").put("page", KEY, b"x")
    (tmp_path / "c").chmod(mode)
    told: list[str] = []
    assert PageCache(tmp_path / "c", warn=told.append).get("page", KEY) is None
    assert len(told) == 1
    assert "written by others" in told[0]


def test_the_size_is_bounded_and_the_oldest_go(tmp_path: Path) -> None:
    cache = PageCache(tmp_path, limit=400_000)
    for number in range(100):
        cache.put("page", f"{number:064x}", bytes(10_000))
        (path,) = [path for path in kept(tmp_path) if path.parent.name + path.name == f"{number:064x}"]
        os.utime(path, (time.time() - 1000 + number,) * 2)
    assert cache.size() <= 400_000 + 400_000 // 8
    assert cache.get("page", f"{99:064x}") is not None
    assert cache.get("page", f"{0:064x}") is None
    cache.put("page", KEY, bytes(200_000))
    assert cache.get("page", KEY) is None  # larger than a quarter of the whole


def test_what_killed_writers_left_is_removed(tmp_path: Path) -> None:
    cache = PageCache(tmp_path)
    cache.put("page", KEY, b"x")
    left = kept(tmp_path)[0].with_name(".new-1-1")
    left.write_bytes(b"half")
    os.utime(left, (time.time() - 7200,) * 2)
    (tmp_path / ".trim").write_bytes(b"")
    PageCache(tmp_path).put("page", KEY, b"y")
    assert not left.exists()
