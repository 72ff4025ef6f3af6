"""Scouts change how long a lock takes and nothing else: same answers, same errors, and no trace of them afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmpip.app.scout_child import _scout
from rocmpip.app.scout_errand import Channel, Errand, pack, share_of
from rocmpip.app.scout_rows import Packer, Unpacker, pack_problem, unpack_problem
from rocmpip.catalogue.companions import Companions
from rocmpip.index.client import Client
from rocmpip.index.fast import FastPages, Slim, SlimPage
from rocmpip.model.errors import NetworkError, NoPlan
from rocmpip.model.packages import File
from rocmpip.model.request import IndexOptions
from rocmpip.plan.gather import Best
from rocmpip.plan.listing import Rules, Unusable
from rocmpip.plan.markers import target_environment
from tests.index.index_server import Raw, Reply, Site, html_page, json_page, sha256, wheel

SCRIPT = """
import os, sys
processors = int(sys.argv.pop(1))
os.sched_getaffinity = lambda pid: set(range(processors))
if processors == 3:
    def refused():
        raise BlockingIOError(11, "no more processes")
    os.fork = refused
from rocmpip.__main__ import main
sys.exit(main())
"""
"""``rocmpip`` as on a machine with so many processors: one means no scouts, three that none can be started."""

Add = Callable[..., None]


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture
def add(site: Site) -> Add:
    """``add(name, {version: needs})``: wheels with metadata and hashes, as a JSON page, or an HTML one."""

    def put(
        name: str,
        versions: Mapping[str, Sequence[str]],
        *,
        index: str = "simple",
        html: bool = False,
        yanked: Sequence[str] = (),
        python: Mapping[str, str] | None = None,
    ) -> None:
        rows: list[dict[str, object]] = []
        links = []
        for version, needs in versions.items():
            filename, content, metadata = wheel(name, version, needs, requires_python=(python or {}).get(version, ""))
            site.paths[f"/files/{filename}"] = Reply(content)
            site.paths[f"/files/{filename}.metadata"] = Reply(metadata)
            row: dict[str, object] = {
                "filename": filename,
                "url": f"../../files/{filename}",
                "hashes": {"sha256": sha256(content)},
                "core-metadata": {"sha256": sha256(metadata)},
            }
            if version in yanked:
                row["yanked"] = "broken"
            if python and version in python:
                row["requires-python"] = python[version]
            rows.append(row)
            links.append(f'<a href="../../files/{filename}#sha256={sha256(content)}" data-core-metadata="true">{filename}</a>')
        page = html_page("<!DOCTYPE html>" + "".join(links)) if html else json_page(name, rows)
        site.paths[f"/{index}/{name}/"] = page

    return put


def without_gpu(folder: Path, **more: str) -> dict[str, str]:
    """An environment on a machine without GPU and ROCm: for those there are scouts."""
    empty = folder / "no-machine"
    empty.mkdir(exist_ok=True)
    env = {key: value for key, value in os.environ.items() if key not in ("ROCMPIP_GFX", "ROCMPIP_ROCM")}
    return {**env, "ROCMPIP_SYSROOT": str(empty), **more}


def lock(site: Site, folder: Path, *words: str, processors: int, index: str = "simple") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", SCRIPT, str(processors), "lock", "-i", f"{site.url}/{index}", *words]
    env = without_gpu(folder, ROCMPIP_CACHE_DIR=str(folder / f"cache-{processors}"), PIP_RETRIES="0", PIP_TIMEOUT="3")
    return subprocess.run(
        command, env=env, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )


def told(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def same(site: Site, folder: Path, *words: str, index: str = "simple") -> subprocess.CompletedProcess[str]:
    """The lock of these words, which is the same with scouts, without them, and where they cannot be started."""
    alone = lock(site, folder, *words, processors=1, index=index)
    for processors in (2, 3):
        assert told(lock(site, folder, *words, processors=processors, index=index)) == told(alone)
    return alone


def pins(text: str) -> dict[str, str]:
    rows = [line.split()[0].split("==") for line in text.splitlines() if "==" in line and not line.startswith(("#", " "))]
    return dict(rows)


# The same answers --------------------------------------------------------------------------------------------------------


def test_a_set_with_extras_markers_and_conflicts(site: Site, add: Add, tmp_path: Path) -> None:
    add("app", {"1.0": ["lib>=1", "tool[fast]; python_version >= '3'", "never; python_version < '3'"]})
    add("lib", {"1.0": ["base<2"], "2.0": ["base>=2"]})
    add("base", {"1.0": [], "1.5": [], "2.0": ["missing-one"]})
    add("tool", {"1.0": ["speed; extra == 'fast'", "base<2"]})
    add("speed", {"3.0": [], "4.0rc1": []})
    done = same(site, tmp_path, "app")
    assert done.returncode == 0, done.stderr
    assert pins(done.stdout) == {"app": "1.0", "lib": "1.0", "base": "1.5", "tool": "1.0", "speed": "3.0"}


def test_the_words_of_a_conflict(site: Site, add: Add, tmp_path: Path) -> None:
    add("one", {"1.0": ["base<2"]})
    add("two", {"1.0": ["base>=2"]})
    add("base", {"1.0": [], "2.0": []})
    assert same(site, tmp_path, "one", "two").returncode != 0


def test_what_was_set_aside_is_told(site: Site, add: Add, tmp_path: Path) -> None:
    add("app", {"1.0": [], "2.0": []}, python={"1.0": ">=3.99", "2.0": ">=4"})
    done = same(site, tmp_path, "app")
    assert done.returncode != 0
    assert "Python >=4" in done.stderr


@pytest.mark.parametrize("words", [["app==1.0"], ["app"], ["app<2.0"], ["--pre", "app"], ["app==2.*"]])
def test_yanked_pre_releases_and_local_versions(site: Site, add: Add, tmp_path: Path, words: list[str]) -> None:
    versions: dict[str, Sequence[str]] = {"1.0": [], "1.1+local": [], "1.2": [], "2.0b1": [], "2.0.post1": [], "1.0.0": []}
    add("app", versions, yanked=["1.0", "1.2"])
    same(site, tmp_path, *words)


def test_an_old_version_among_hundreds(site: Site, add: Add, tmp_path: Path) -> None:
    add("app", {f"1.{number}": [f"dep=={number % 7}.0"] for number in range(120)})
    add("dep", {f"{number}.0": [] for number in range(7)})
    done = same(site, tmp_path, "app<1.5", "dep")
    assert pins(done.stdout) == {"app": "1.4", "dep": "4.0"}
    assert pins(same(site, tmp_path, "app<1.70", "dep==1.0").stdout) == {"app": "1.64", "dep": "1.0"}


def test_html_indexes_several_indexes_and_find_links(site: Site, add: Add, tmp_path: Path) -> None:
    add("app", {"1.0": ["lib"]}, html=True)
    add("app", {"1.1": ["lib", "local"]}, index="other")
    add("lib", {"1.0": []}, index="other", html=True)
    filename, content, _ = wheel("local", "5.0")
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / filename).write_bytes(content)
    words = ["--extra-index-url", f"{site.url}/other", "--find-links", "wheels", "app"]
    assert pins(same(site, tmp_path, *words).stdout) == {"app": "1.1", "lib": "1.0", "local": "5.0"}


def test_metadata_that_is_missing_or_wrong(site: Site, add: Add, tmp_path: Path) -> None:
    add("app", {"1.0": [], "2.0": []})
    site.paths["/files/app-2.0-py3-none-any.whl.metadata"] = Reply(b"Metadata-Version: 2.1\nName: app\nVersion: 2.0\n\nchanged")
    assert "is not what the index lists" in same(site, tmp_path, "app").stderr
    site.paths["/files/app-2.0-py3-none-any.whl.metadata"] = Reply(status=404)
    assert pins(same(site, tmp_path, "app").stdout) == {"app": "2.0"}, "read from the wheel itself"


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(status=404), 40),
        (Reply(status=503), 42),
        (Reply(b"<html>Login</html>"), 42),
        (Reply(b"{", headers={"Content-Type": "application/vnd.pypi.simple.v1+json"}), 42),
    ],
)
def test_a_page_that_cannot_be_had(site: Site, add: Add, tmp_path: Path, reply: Reply, code: int) -> None:
    add("app", {"1.0": ["gone"]})
    site.paths["/simple/gone/"] = reply
    done = same(site, tmp_path, "app")
    assert done.returncode == code
    assert "gone" in done.stderr


def test_another_projects_files(site: Site, add: Add, tmp_path: Path) -> None:
    add("other", {"1.0": []})
    site.paths["/simple/app/"] = site.paths["/simple/other/"]
    assert same(site, tmp_path, "app").returncode == 42


def test_hashes_on_the_line_and_existing_pins(site: Site, add: Add, tmp_path: Path) -> None:
    add("app", {"1.0": ["lib"], "2.0": ["lib"]})
    add("lib", {"1.0": [], "2.0": []})
    digest = sha256(wheel("app", "1.0", ["lib"])[1])
    (tmp_path / "in.txt").write_text(f"app --hash=sha256:{digest}\n")
    assert pins(same(site, tmp_path, "-r", "in.txt", "lib==2.0").stdout) in ({}, {"app": "1.0", "lib": "2.0"})
    locks = []
    for processors in (1, 2):
        out = tmp_path / f"lock-{processors}.txt"
        out.write_text("lib==1.0\n")
        lock(site, tmp_path, "app", "-o", out.name, processors=processors)
        assert pins(out.read_text()) == {"app": "2.0", "lib": "1.0"}
        lock(site, tmp_path, "app", "-o", out.name, "--upgrade-package", "lib", processors=processors)
        locks.append(pins(out.read_text()))
        assert lock(site, tmp_path, "app", "-o", out.name, "--check", processors=processors).returncode == 0
    assert locks == [{"app": "2.0", "lib": "2.0"}] * 2


def test_several_targets(site: Site, add: Add, tmp_path: Path) -> None:
    add("app", {"1.0": ["old; python_version < '3.12'"]})
    add("old", {"1.0": []})
    for processors in (1, 2):
        words = ["app", "--for", "python=3.11", "--for", "python=3.12", "-o", f"{processors}.txt"]
        assert lock(site, tmp_path, *words, processors=processors).returncode == 0
        texts = [(tmp_path / f"{processors}-py3{minor}.txt").read_text() for minor in (11, 12)]
        assert [sorted(pins(text)) for text in texts] == [["app", "old"], ["app"]]


def test_a_second_run_asks_for_no_metadata(site: Site, add: Add, tmp_path: Path) -> None:
    add("app", {"1.0": ["lib", "more"]})
    add("lib", {"1.0": []})
    add("more", {"1.0": []})
    for run in range(2):
        site.requests.clear()
        done = lock(site, tmp_path, "app", processors=2)
        assert done.returncode == 0, done.stderr
        assert sum(path.endswith(".metadata") for path, _ in site.requests) == (3 if run == 0 else 0)


# Accidents ---------------------------------------------------------------------------------------------------------------


def start(url: str, folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SCRIPT, "2", "lock", "-i", url, *words]
    env = without_gpu(folder, ROCMPIP_CACHE_DIR=str(folder / "cache"), PIP_RETRIES="0", PIP_TIMEOUT="30")
    return subprocess.Popen(
        command, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def below(parent: int) -> list[int]:
    """Process ids below ``parent``, nearest first."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{parent}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *below(int(child))]
    return found


def wait_until(true: Callable[[], Any], what: str) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def alive(process: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.fixture
def silent() -> Iterator[Raw]:
    """A server that takes questions and never answers."""

    def answer(connection: socket.socket, number: int) -> None:
        server.over.wait(60)

    with Raw(answer) as server:
        yield server


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_scout_that_is_killed_is_not_missed(site: Site, add: Add, tmp_path: Path, which: int) -> None:
    """The pages come only after the first scout, the second, or both are dead."""
    add("app", {"1.0": [f"dep{number}" for number in range(12)]})
    for number in range(12):
        add(f"dep{number}", {"1.0": [f"dep{number + 1}"] if number < 11 else []})
    page = site.paths["/simple/app/"]
    process: list[subprocess.Popen[str]] = []

    def held(handler: Any) -> Any:
        wait_until(lambda: (process and len(below(process[0].pid)) >= 2) or site.asked("/simple/app/") > 1, "no scouts")
        scouts = below(process[0].pid)
        for one in scouts if which == 2 else scouts[which : which + 1]:
            with contextlib.suppress(OSError):
                os.kill(one, signal.SIGKILL)
        return page

    site.paths["/simple/app/"] = held
    process.append(start(f"{site.url}/simple", tmp_path, "app"))
    out, err = process[0].communicate(timeout=90)
    assert process[0].returncode == 0, err
    assert len(pins(out)) == 13
    assert "Traceback" not in err


def test_the_scouts_die_with_their_maker(silent: Raw, tmp_path: Path) -> None:
    process = start(f"{silent.url}/simple", tmp_path, "app", "lib", "more", "tool")
    wait_until(lambda: len(below(process.pid)) >= 2 and silent.connections, "no scouts")
    scouts = below(process.pid)
    process.kill()
    process.communicate(timeout=30)
    wait_until(lambda: not any(map(alive, scouts)), "a scout is left")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all_of_them(silent: Raw, tmp_path: Path, number: signal.Signals) -> None:
    process = start(f"{silent.url}/simple", tmp_path, "app", "lib", "more", "tool", "-o", "out.txt")
    wait_until(lambda: len(below(process.pid)) >= 2 and silent.connections, "no scouts")
    scouts = below(process.pid)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode in (128 + number, -number)
    assert "Traceback" not in err
    wait_until(lambda: not any(map(alive, scouts)), "a scout is left")
    assert not (tmp_path / "out.txt").exists()


def test_nothing_is_left_of_them(site: Site, add: Add, tmp_path: Path) -> None:
    add("app", {"1.0": []})
    process = start(f"{site.url}/simple", tmp_path, "app")
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert below(os.getpid()) == [] or process.pid not in below(os.getpid())


def test_without_streams(site: Site, add: Add, tmp_path: Path) -> None:
    add("app", {"1.0": []})
    command = [sys.executable, "-c", SCRIPT, "2", "lock", "-i", f"{site.url}/simple", "app", "-o", "out.txt"]
    env = without_gpu(tmp_path, ROCMPIP_CACHE_DIR=str(tmp_path / "cache"))
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command], env=env, cwd=tmp_path, timeout=60, check=False
    )
    assert done.returncode == 0
    assert pins((tmp_path / "out.txt").read_text()) == {"app": "1.0"}


# What goes over the wire ---------------------------------------------------------------------------------------------------

TEXT = st.text(max_size=20)
SLIM = st.builds(
    lambda name, url, hashes, python, yanked, core, size: Slim(
        name, url, msgspec.Raw(msgspec.json.encode(hashes)), python, yanked, msgspec.Raw(msgspec.json.encode(core)), size=size
    ),
    TEXT,
    TEXT,
    st.dictionaries(TEXT, TEXT, max_size=2),
    st.none() | TEXT,
    st.none() | st.booleans() | TEXT,
    st.none() | st.booleans() | st.dictionaries(TEXT, TEXT, max_size=2),
    st.none() | st.integers(0, 2**60),
)
FILE = st.builds(
    File,
    TEXT,
    TEXT,
    st.dictionaries(TEXT, TEXT, max_size=2),
    TEXT,
    st.none() | TEXT,
    st.none() | TEXT,
    st.none() | st.integers(0, 2**60),
)


@given(st.lists(SLIM | FILE, max_size=4), st.booleans(), st.none() | TEXT, st.booleans())
def test_rows_come_over_as_they_were(rows: list[Slim | File], from_source: bool, yanked: str | None, stretched: bool) -> None:
    with Client(IndexOptions(index_url="https://pypi.example/simple"), env={}) as client:
        pages = FastPages(client)
        page = SlimPage(pages, "https://pypi.example/simple", "https://pypi.example/simple/x/", ())
        packer = Packer()
        packed = []
        for row in rows:
            if isinstance(row, Slim):
                row.place = page
            packed.append(packer.best(Best(row, from_source, yanked, stretched)))
        unpacker = Unpacker(pages)
        places = [list(pair) for pair in packer.pages]
        for row, data in zip(rows, packed, strict=True):
            best = unpacker.best(data, places)
            assert (best.from_source, best.yanked, best.stretched) == (from_source, yanked, stretched)
            assert best.row.filename == row.filename
            assert best.row.hashes == row.hashes
            assert best.row.requires_python == row.requires_python
            assert best.row.yanked == row.yanked
            if isinstance(row, File):
                assert best.row == row


def test_errors_come_over_or_are_left() -> None:
    problem = NetworkError("no page", why="HTTP 500", hint="wait", details=("a", "b"))
    problem.about_page = True
    packed = pack_problem(problem)
    assert packed is not None
    back = unpack_problem(packed)
    assert isinstance(back, NetworkError)
    assert (back.message, back.why, back.hint, back.details, back.about_page) == (
        "no page",
        "HTTP 500",
        "wait",
        ("a", "b"),
        True,
    )
    unusable = pack_problem(Unusable("its metadata is broken"))
    assert unusable is not None
    assert str(unpack_problem(unusable)) == "its metadata is broken"
    assert pack_problem(NoPlan("of another kind")) is None
    assert pack_problem(ValueError("of another kind")) is None


@given(st.lists(st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True), max_size=20))
def test_every_name_has_one_scout(names: list[str]) -> None:
    assert all(share_of(name, 2) in (0, 1) and share_of(name, 1) == 0 for name in names)


def test_every_process_knows_the_same_scout_for_a_name() -> None:
    names = [f"package-{number}" for number in range(200)]
    code = f"from rocmpip.app.scout_errand import share_of; print(*(share_of(name, 2) for name in {names}))"
    env = {**os.environ, "PYTHONHASHSEED": "7"}
    told = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    shares = [share_of(name, 2) for name in names]
    assert list(map(int, told.split())) == shares
    assert 60 < sum(shares) < 140, "each has about half"


@pytest.mark.parametrize("processors", [1, 2])
def test_no_page_is_asked_for_twice(site: Site, add: Add, tmp_path: Path, processors: int) -> None:
    add("app", {"1.0": ["lib", "gone-extra; extra == 'x'"]}, html=True)
    add("lib", {"1.0": []})
    assert lock(site, tmp_path, "app", processors=processors).returncode == 0
    assert [site.asked(f"/simple/{name}/") for name in ("app", "lib")] == [1, 1]


def test_what_is_said_before_the_errand_is_read_is_heard(tmp_path: Path) -> None:
    """A scout that starts slowly finds the errand and the first questions in one reading: none of them is lost."""
    errand = Errand(IndexOptions(no_index=True), (), (), Rules({}, "3.12.0"), dict(target_environment("3.12.0")), False, "", ())
    to_scout, to_home, to_other = os.pipe(), os.pipe(), os.pipe()
    home = Channel(to_home[0], to_scout[1])
    home.send(("errand", pack(errand)), ("until",), ("end",))
    idle = Channel(to_other[0], os.dup(to_other[1]))
    scout = Channel(to_scout[0], to_home[1])
    thread = threading.Thread(target=_scout, args=(0, 1, scout, idle, Companions({})), daemon=True)
    thread.start()
    assert home.read()[0] == "until"
    thread.join(20)
    assert not thread.is_alive()
