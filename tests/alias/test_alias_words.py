"""What pip refuses, warns of and tells: the same words, exit codes and requests under rocmpip with its router on."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.index.index_server import Reply, Site, json_page, sha256, wheel
from tests.support.commands import rocmpip
from tests.support.environments import installed

pytestmark = pytest.mark.pip


class Words:
    """The same words to pip and to rocmpip, for one environment, beside an index whose project ``pure`` has one wheel."""

    def __init__(self, site: Site, python: Path, folder: Path) -> None:
        self.site, self.python, self.folder = site, python, folder
        (folder / "machine").mkdir()
        (folder / "work").mkdir()
        (folder / "work/empty").mkdir()
        self.env = {
            **os.environ,
            "PIP_NO_CACHE_DIR": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "ROCMPIP_SYSROOT": str(folder / "machine"),
            "ROCMPIP_GFX": "gfx942",
            "ROCMPIP_ROCM": "6.4",
            "ROCMPIP_STATE_DIR": str(folder / "state"),
            "ROCMPIP_CACHE_DIR": str(folder / "cache"),
        }
        self.filename, self.wheel, self.metadata = wheel("pure", "1.0")
        self.index = f"{site.url}/simple"
        site.paths[f"/files/{self.filename}"] = Reply(self.wheel, ranges=True)
        self.page()

    def page(self, **keys: object) -> None:
        row = {"filename": self.filename, "url": f"{self.site.url}/files/{self.filename}", **keys}
        self.site.paths["/simple/pure/"] = json_page("pure", [row])

    def ours(self, *words: str) -> subprocess.CompletedProcess[str]:
        done = rocmpip("--python", str(self.python), *words, env=self.env, cwd=self.folder / "work")
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def pip(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pip", "--python", str(self.python), *words]
        return subprocess.run(
            command, env=self.env, cwd=self.folder / "work", stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip


@pytest.fixture
def words(venv: Callable[..., Path], tmp_path: Path) -> Iterator[Words]:
    with Site() as site:
        yield Words(site, venv(), tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "install --updgrade pure",
        "download --re x",
        "wheel -Z",
        "install pure --index-url",
        "install --retries many pure",
        "install -r file:///gone/r.txt",
        "install --build-constraint gone.txt pure",
        "install --user --target t pure",
        "install --python-version 3.1 --only-binary=:all:",
        "install --pre --only-final y pure",
    ],
)
def test_what_pip_refuses_in_its_words_and_with_its_exit_code(words: Words, line: str) -> None:
    plain, ours = words.pip(*line.split()), words.ours(*line.split())
    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout)
    assert ours.stderr.rstrip("\n") == plain.stderr.rstrip("\n")
    assert plain.stderr


def test_an_option_of_ours_is_refused_by_us(words: Words) -> None:
    done = words.ours("install", "--jobs", "many", "pure")
    assert done.returncode == 2
    assert "Usage:" not in done.stderr and "--jobs" in done.stderr


@pytest.mark.parametrize("line", ["install -i --user ./empty pure", "install -i --user pure"])
def test_an_index_without_a_scheme_is_warned_of_once(words: Words, line: str) -> None:
    warning = 'WARNING: The index url "--user" seems invalid, please provide a scheme.'
    done = words.ours(*line.split())
    assert done.returncode
    assert done.stderr.count(warning) == 1
    assert warning not in words.ours(*line.split(), "-qq").stderr


def test_pages_are_told_as_the_users_index(words: Words) -> None:
    done = words.ours("install", "-v", "-i", words.index, "pure")
    assert done.returncode == 0, done.stderr
    assert (
        f"Getting page {words.index}/pure/" in words.pip("install", "-vvv", "--dry-run", "-I", "-i", words.index, "pure").stdout
    )
    told = words.ours("install", "-vvv", "--dry-run", "-I", "-i", words.index, "pure", "--no-deps").stdout
    assert f"Getting page {words.index}/pure/" in told
    assert not re.search(r"[A-Za-z0-9_-]{32}/simple", told)


def test_pages_that_cannot_be_had_are_told_too(words: Words) -> None:
    done = words.ours("install", "-vvv", "--retries", "0", "-i", "http://127.0.0.1:1/simple", "pure")
    assert done.returncode == 42
    assert "Getting page http://127.0.0.1:1/simple/pure/" in done.stdout
    quiet = words.ours("install", "--retries", "0", "-i", "http://127.0.0.1:1/simple", "pure")
    assert (quiet.returncode, quiet.stdout) == (42, "")


def test_metadata_that_is_not_advertised_is_not_asked_for(words: Words) -> None:
    words.site.paths[f"/files/{words.filename}.metadata"] = Reply(b"Metadata-Version: 2.1\nName: pure\nVersion: 1.0\n\nother")
    for command in ("download", "install"):
        done = words.ours(command, "-i", words.index, "pure")
        assert done.returncode == 0, done.stderr
    assert words.site.asked(f"/files/{words.filename}.metadata") == 0


def test_a_page_is_asked_afresh_as_pip_would(words: Words) -> None:
    del words.env["PIP_NO_CACHE_DIR"]
    for options in ((), ("--refresh-package", "other"), ("--refresh-package", "pure"), ("--refresh-package=:all:",)):
        assert words.ours("install", "-I", "-i", words.index, "pure", *options).returncode == 0
    asked = [headers.get("cache-control") for path, headers in words.site.requests if path == "/simple/pure/"]
    assert asked == [None, None, "max-age=0", "max-age=0"]


def test_upload_times_that_an_index_does_not_tell_are_pips_to_refuse(words: Words) -> None:
    line = ["install", "--uploaded-prior-to=2100-01-01T00:00:00", "-i", words.index, "pure"]
    plain, ours = words.pip(*line), words.ours(*line)
    assert ours.returncode == plain.returncode == 1
    assert "does not provide upload-time metadata" in plain.stderr
    assert "does not provide upload-time metadata" in ours.stderr
    words.page(**{"upload-time": "2026-01-01T00:00:00Z"})
    assert words.ours(*line).returncode == 0
    assert installed(words.python) == {"pure": "1.0"}


def test_a_metadata_hash_that_is_none_refuses_the_file(words: Words) -> None:
    words.site.paths[f"/files/{words.filename}.metadata"] = Reply(words.metadata)
    words.page(**{"core-metadata": {"sha256": "wrong-hash"}})
    for command in ("download", "install"):
        done = words.ours(command, "-i", words.index, "pure")
        assert done.returncode
        assert "wrong-hash" in done.stderr
    assert not installed(words.python)


def lock(words: Words, name: str = "pure", version: str = "1.0") -> str:
    """A pylock.toml on the server; its URL."""
    filename = words.filename if name == "pure" else wheel(name, version)[0]
    text = f"""lock-version = "1.0"
created-by = "a test"
[[packages]]
name = "{name}"
version = "{version}"
[[packages.wheels]]
url = "{words.site.url}/files/{filename}"
hashes = {{sha256 = "{sha256(words.wheel)}"}}
"""
    words.site.paths["/pylock.toml"] = Reply(text.encode(), headers={"Content-Type": "text/plain"})
    return f"{words.site.url}/pylock.toml"


def test_a_lock_from_the_network_is_read_and_installed(words: Words) -> None:
    done = words.ours("install", "-r", lock(words))
    assert done.returncode == 0, done.stderr
    assert installed(words.python) == {"pure": "1.0"}


@pytest.mark.parametrize(("name", "version"), [("torch", "2.9.1+cu128"), ("nvidia-cublas-cu12", "12.1")])
def test_a_lock_from_the_network_must_be_for_this_machine(words: Words, name: str, version: str) -> None:
    done = words.ours("install", "-r", lock(words, name, version))
    assert done.returncode == 40
    assert f"{name} {version}" in done.stderr
    assert not installed(words.python) and not any(path.startswith("/files/") for path, _ in words.site.requests)


def test_a_lock_that_cannot_be_had_is_told_by_pip(words: Words) -> None:
    line = ["install", "--retries", "0", "-r", "http://127.0.0.1:1/pylock.toml"]
    plain, ours = words.pip(*line), words.ours(*line)
    assert ours.returncode == plain.returncode != 0
    assert "connection-failed" in ours.stderr


def sdist(words: Words, *, static: bool, code: str = "") -> str:
    """The source of project ``src`` on the index, with a build back end of its own that runs ``code``; the path of its file."""
    backend = (
        f"{code}\n"
        "import os, zipfile\n"
        "META = 'Metadata-Version: 2.2\\nName: src\\nVersion: 1.0\\n'\n"
        "def build_wheel(folder, config_settings=None, metadata_directory=None):\n"
        "    with zipfile.ZipFile(os.path.join(folder, 'src-1.0-py3-none-any.whl'), 'w') as made:\n"
        "        made.writestr('src.py', '')\n"
        "        made.writestr('src-1.0.dist-info/METADATA', META)\n"
        "        made.writestr('src-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n"
        "        made.writestr('src-1.0.dist-info/RECORD', '')\n"
        "    return 'src-1.0-py3-none-any.whl'\n"
    )
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "made"\nbackend-path = ["."]\n',
        "made.py": backend,
        "PKG-INFO": f"Metadata-Version: {'2.2' if static else '2.1'}\nName: src\nVersion: 1.0\n",
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(f"src-1.0/{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    path = "/files/src-1.0.tar.gz"
    words.site.paths[path] = Reply(buffer.getvalue())
    row = {"filename": "src-1.0.tar.gz", "url": words.site.url + path, "hashes": {"sha256": sha256(buffer.getvalue())}}
    words.site.paths["/simple/src/"] = json_page("src", [row])
    return path


def test_the_wheel_that_pip_built_is_found_again_by_pip(words: Words, venv: Callable[..., Path]) -> None:
    del words.env["PIP_NO_CACHE_DIR"]
    words.env["PIP_CACHE_DIR"] = str(words.folder / "pip")
    sdist(words, static=True)
    assert words.ours("install", "-i", words.index, "src").returncode == 0
    words.python = venv()
    again = words.pip("install", "-i", words.index, "src")
    assert again.returncode == 0, again.stderr
    assert "Using cached src-1.0-py3-none-any.whl" in again.stdout


@pytest.mark.parametrize("static", [True, False])
def test_a_source_that_was_read_once_is_not_fetched_to_be_read_again(
    words: Words, venv: Callable[..., Path], static: bool
) -> None:
    del words.env["PIP_NO_CACHE_DIR"]
    words.env["PIP_CACHE_DIR"] = str(words.folder / "pip")
    path = sdist(words, static=static)
    for _ in range(2):
        words.python = venv()
        done = words.ours("install", "-i", words.index, "src")
        assert done.returncode == 0, done.stderr
        assert installed(words.python) == {"src": "1.0"}
    assert "Using cached src-1.0-py3-none-any.whl" in done.stdout
    # The plan reads it and pip fetches it; the second time neither does.
    assert [one for one, _ in words.site.requests] == ["/simple/src/", path, path, "/simple/src/"]
    assert words.ours("install", "-I", "--no-cache-dir", "-i", words.index, "src").returncode == 0
    assert words.site.asked(path) == 4


def test_a_source_that_pip_cannot_build_fails_in_its_words(words: Words) -> None:
    sdist(words, static=False, code="raise SystemExit('no compiler here')")
    line = ["install", "--no-build-isolation", "-i", words.index, "src"]
    plain, ours = words.pip(*line), words.ours(*line)
    assert ours.returncode == plain.returncode == 1
    assert "no compiler here" in plain.stderr and "no compiler here" in ours.stderr
