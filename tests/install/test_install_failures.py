"""pip's own failures inside our commands: its words stay as they are, the cause comes after them, and the journal keeps it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmpip.demo.wheels import Sdist, Wheel
from rocmpip.store.journal import Journal
from rocmpip.store.journal_entry import Entry
from tests.support.commands import envelope, rocmpip
from tests.support.environments import site_packages
from tests.support.replica import Replica

pytestmark = pytest.mark.pip

SETUP = """
import os, sys
from setuptools import setup
if "bdist_wheel" in sys.argv:
    print("token=hunter2-hunter2 in", os.getcwd())
    print("In file included from src/kernel.hip:3:")
    print("/opt/rocm/include/hip/amd_detail/host_defines.h:9:10: fatal error: 'cmath' file not found")
    sys.exit(1)
setup(name="NAME", version="1.0")
"""
PYPROJECT = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'


def broken(name: str) -> Sdist:
    """The replica outlives a test: what a test mends has a name of its own."""
    return Sdist(name, "1.0", files={"setup.py": SETUP.replace("NAME", name), "pyproject.toml": PYPROJECT})


class Place:
    """An environment on a simulated machine with one GPU."""

    def __init__(self, replica: Replica, python: Path, folder: Path) -> None:
        (folder / "machine").mkdir()
        self.python, self.folder = python, folder
        self.env = replica.env(folder, ROCMPIP_SYSROOT=str(folder / "machine"), ROCMPIP_GFX="gfx942", ROCMPIP_ROCM="6.4")

    def run(self, *words: str, code: int = 1, **env: str) -> subprocess.CompletedProcess[str]:
        done = rocmpip("--python", str(self.python), *words, env={**self.env, **env}, cwd=self.folder)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def pip(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pip", "--python", str(self.python), *words]
        return subprocess.run(command, env=self.env, cwd=self.folder, capture_output=True, text=True, check=False)

    def entries(self) -> list[Entry]:
        return Journal(self.folder / "state").entries()


@pytest.fixture
def place(replica: Replica, venv: Callable[..., Path], tmp_path: Path) -> Place:
    replica.add(broken("needs-headers"))
    return Place(replica, venv(), tmp_path)


def ours(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("rocmpip")]


def steady(text: str) -> list[str]:
    """pip's words without what differs from run to run: temporary folders and times."""
    return [line for line in text.splitlines() if "/tmp" not in line and "pip-" not in line]


def test_a_build_that_fails_in_pip_is_explained_after_pips_own_words(place: Place) -> None:
    alone = place.pip("install", "needs-headers")
    done = place.run("install", "needs-headers")
    assert steady(done.stdout) == steady(alone.stdout)
    words = done.stderr.partition("rocmpip: note:")[0]
    assert steady(words) == steady(alone.stderr) and "lines of output]" in words
    first, *rest = ours(done.stderr)
    assert "'cmath' file not found" in first and "C++ headers" in first
    assert any("do: " in line and "libstdc++" in line for line in rest)


def test_it_is_written_down_and_known_again_and_what_mends_it_too(place: Place, replica: Replica) -> None:
    replica.add(broken("mended-later"))
    place.run("install", "mended-later")
    (entry,) = place.entries()
    assert (entry.package, entry.diagnosis, entry.family) == ("mended-later", "libstdcxx-dev-missing", "host-toolchain")
    assert entry.command == "install" and entry.gfx == ("gfx942",) and not entry.worked
    assert "hunter2" not in str(entry)
    again = place.run("install", "mended-later")
    assert f"rocmpip journal show {entry.id}" in again.stderr
    (entry,) = place.entries()
    assert entry.seen == 2
    replica.add(Wheel("mended-later", "1.0"))
    done = place.run("install", "mended-later", code=0)
    assert "what failed before works now" in done.stderr
    assert place.entries()[0].worked


def test_a_dependency_is_named_and_mended_when_it_comes_along(place: Place, replica: Replica) -> None:
    replica.add(broken("mended-below"), Wheel("stands-on-it", "2.0", ("mended-below",)))
    place.run("install", "stands-on-it")
    assert [one.package for one in place.entries()] == ["mended-below"]
    replica.add(Wheel("mended-below", "1.0"))
    place.run("install", "stands-on-it", code=0)
    assert place.entries()[0].worked


@pytest.mark.parametrize("command", ["wheel", "install"])
def test_in_a_plan_and_in_wheel_it_is_the_same(place: Place, command: str) -> None:
    """Beside torch the request is planned, and pip builds this one in the plan's last step."""
    words = ["install", "torch", "needs-headers"] if command == "install" else ["wheel", "--no-deps", "needs-headers"]
    done = place.run(*words)
    assert "'cmath' file not found" in done.stderr.rpartition("lines of output]")[2]
    assert "libstdc++" in done.stderr
    (entry,) = place.entries()
    assert (entry.package, entry.command, entry.diagnosis) == ("needs-headers", command, "libstdcxx-dev-missing")


def test_in_json_the_cause_stands_in_the_envelope(place: Place) -> None:
    done = place.run("install", "--json", "torch", "needs-headers")
    error = envelope(done)["errors"][0]
    assert "'cmath' file not found" in error["message"]
    assert any(row.startswith("do: ") for row in error["details"])


def test_a_hash_that_does_not_fit(place: Place) -> None:
    (place.folder / "locked.txt").write_text(f"idna --hash=sha256:{'0' * 64}\n")
    alone = place.pip("install", "-r", "locked.txt")
    done = place.run("install", "-r", "locked.txt")
    assert alone.returncode == 1 and steady(done.stdout) == steady(alone.stdout)
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in done.stderr
    assert [one.diagnosis for one in place.entries()] == ["hash-mismatch"]


def test_a_server_that_does_not_answer(place: Place, replica: Replica) -> None:
    replica.files.failures["/packages/idna/"] = 503
    try:
        place.run("install", "--retries", "0", "idna")
    finally:
        replica.files.failures.clear()
    (entry,) = place.entries()
    assert "503" in entry.error and "127.0.0.1" in entry.error and not entry.worked
    place.run("install", "idna", code=0)
    assert place.entries()[0].worked


def test_what_no_rule_is_sure_of_is_left_to_pip_and_written_down(place: Place) -> None:
    alone = place.pip("install", "no-such-project-anywhere")
    done = place.run("install", "no-such-project-anywhere")
    assert done.stderr == alone.stderr and done.stdout == alone.stdout
    (entry,) = place.entries()
    assert "no-such-project-anywhere" in entry.error and entry.diagnosis == ""


@pytest.mark.parametrize("words", [["--no-such-option"], ["--dry-run", "needs-headers==9"]])
def test_wrong_options_and_dry_runs_are_no_failed_installs(place: Place, words: list[str]) -> None:
    done = rocmpip("--python", str(place.python), "install", *words, env=place.env, cwd=place.folder)
    assert done.returncode != 0
    assert place.entries() == []


def test_the_users_own_log_is_pips(place: Place) -> None:
    """pip shows less on the terminal under --log: that choice is the user's, so ours cannot be made that way."""
    place.run("install", "--log", "mine.log", "needs-headers")
    assert "fatal error: 'cmath' file not found" in (place.folder / "mine.log").read_text()
    assert [one.diagnosis for one in place.entries()] == ["libstdcxx-dev-missing"]


@pytest.mark.parametrize("version", ["23.3.2", "24.3.1"])
def test_older_pips_are_heard_too(place: Place, pip_path: Callable[[str], Path], version: str) -> None:
    shutil.copytree(pip_path(version), site_packages(place.python), dirs_exist_ok=True)
    done = place.run("install", "needs-headers")
    assert "lines of output]" in done.stderr and "C++ headers" in done.stderr.partition("rocmpip: note:")[2]


def test_a_machine_without_gpu_and_rocm_gets_pip_alone(place: Place) -> None:
    alone = place.pip("install", "needs-headers")
    done = place.run("install", "needs-headers", ROCMPIP_GFX="", ROCMPIP_ROCM="")
    assert steady(done.stderr) == steady(alone.stderr) and not ours(done.stderr)
    assert place.entries() == [] and not (place.folder / "state").exists()


def test_a_success_leaves_nothing_behind(place: Place) -> None:
    place.run("install", "idna", code=0)
    assert not (place.folder / "state").exists()
