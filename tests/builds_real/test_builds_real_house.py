"""The wheelhouse and recipes of others, through the commands that people type: damage, unsafe folders, trust, attacks."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import envelope, rocmpip
from tests.support.environments import installed, make_venv
from tests.support.replica import Replica

pytestmark = pytest.mark.pip


class Person:
    """Installs flash-attn's small stand-in on a gfx1100 machine."""

    def __init__(self, replica: Replica, folder: Path) -> None:
        self.folder = folder
        self.made = iter(range(100))
        for name in ("machine", "project"):
            (folder / name).mkdir()
        self.env = replica.env(
            folder, ROCMPIP_SYSROOT=str(folder / "machine"), ROCMPIP_GFX="gfx1100", ROCMPIP_ROCM="6.4"
        )  # fmt: skip
        self.python = self.new()

    def new(self) -> Path:
        return make_venv(self.folder / f"venv{next(self.made)}")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        done = rocmpip(*words, env=self.env, cwd=self.folder / "project")
        assert "Traceback" not in done.stderr
        return done

    def install(self, *words: str, code: int = 0) -> dict[str, Any]:
        told = envelope(done := self.run("install", "--json", "--python", str(self.python), "flash-attn", *words))
        assert done.returncode == code, told
        return told

    def wheelhouse(self, *words: str, code: int = 0) -> dict[str, Any]:
        told = envelope(done := self.run("wheelhouse", *words, "--json"))
        assert done.returncode == code, told
        result: dict[str, Any] = told["result"]
        return result

    @property
    def wheel(self) -> Path:
        (found,) = (self.folder / "state/wheelhouse/flash-attn").glob("*/*.whl")
        return found

    def log(self) -> str:
        """The newest build log."""
        return max((self.folder / "state/logs").iterdir(), key=lambda path: path.stat().st_mtime_ns).read_text()


@pytest.fixture
def person(replica: Replica, tmp_path: Path) -> Person:
    return Person(replica, tmp_path)


BUILT = ["flash-attn 2.8.3.post2"]


def test_a_flipped_bit_is_noticed_and_never_installed(person: Person) -> None:
    assert person.install()["result"]["built"] == BUILT
    data = bytearray(person.wheel.read_bytes())
    data[len(data) // 2] ^= 1
    person.wheel.write_bytes(bytes(data))
    person.wheelhouse("verify", code=43)
    person.python = person.new()
    assert person.install()["result"]["built"] == BUILT
    assert installed(person.python)["flash-attn"] == "2.8.3.post2"
    person.wheelhouse("verify")
    assert bytes(data) != person.wheel.read_bytes()


def test_a_wheelhouse_that_others_may_write_is_refused(person: Person) -> None:
    person.install()
    house = person.folder / "state/wheelhouse"
    house.chmod(0o777)
    person.python = person.new()
    told = person.install(code=44)
    assert str(house) in str(told["errors"]) and "flash-attn" not in installed(person.python)
    house.chmod(0o700)
    assert person.install()["result"]["built"] == []


def test_out_and_in_again(person: Person) -> None:
    """Exported for its target, pruned, imported: the next environment takes it without a build."""
    person.install()
    target = person.wheelhouse("list")["wheels"][0]
    person.wheelhouse("export", "gfx1100", str(person.folder / "out"))
    assert [path.name for path in (person.folder / "out").glob("*.whl")] == [person.wheel.name]
    person.wheelhouse("prune", "--all")
    assert person.wheelhouse("list")["wheels"] == []
    person.wheelhouse("import", str(person.folder / "out"))
    assert person.wheelhouse("list")["wheels"][0]["fingerprint"] == target["fingerprint"]
    person.python = person.new()
    assert person.install()["result"]["built"] == []
    assert installed(person.python)["flash-attn"] == "2.8.3.post2"


def test_rebuild_and_only_ready(person: Person) -> None:
    told = person.install("--only-ready", code=40)
    assert "--only-ready" in str(told["errors"])
    assert person.install()["result"]["built"] == BUILT
    assert person.install()["result"]["built"] == []
    told = person.install("--rebuild", "Flash_Attn")
    assert told["result"]["built"] == BUILT
    assert any("you asked for a rebuild" in row["because"] for row in told["result"]["plan"])
    # It need not be named a second time.
    done = person.run("install", "--json", "--python", str(person.python), "torch", "--rebuild", "flash-attn")
    assert envelope(done)["result"]["built"] == BUILT


def test_python_may_stand_before_the_command(person: Person) -> None:
    person.install()
    done = person.run("--python", str(person.python), "build", "flash-attn", "-w", "build", "--json")
    (row,) = envelope(done)["result"]["wheels"]
    assert row["origin"] == "wheelhouse" and Path(row["path"]).parent == person.folder / "project/build"


RECIPE = """schema = 1
[package]
name = "flash-attn"
extends = "_torch-extension"
[metadata]
requires = ["torch"]
[verify]
device_code = false
[build.env]
BUILD_TARGET = "rocm"
FLASH_ATTENTION_TRITON_AMD_ENABLE = "TRUE"
FLASH_ATTENTION_FORCE_BUILD = "TRUE"
"""


def test_a_projects_recipe_does_nothing_until_it_is_trusted_and_not_after_it_changes(person: Person) -> None:
    path = person.folder / "project/.rocmpip/recipes/flash-attn.toml"
    path.parent.mkdir(parents=True)
    path.write_text(RECIPE + 'FLASH_ATTENTION_MARK = "one"\n')
    told = person.install()
    assert "FLASH_ATTENTION_MARK" not in person.log() and "rocmpip recipe trust" in str(told["result"]["notes"])
    assert person.run("recipe", "trust", ".").returncode == 0
    assert person.install()["result"]["built"] == BUILT
    assert "rocmpip: FLASH_ATTENTION_MARK=one\n" in person.log()
    path.write_text(RECIPE + 'FLASH_ATTENTION_MARK = "two"\n')
    told = person.install("--rebuild", "flash-attn")
    assert "FLASH_ATTENTION_MARK" not in person.log() and "changed since" in str(told["result"]["notes"])


HEAD = 'schema = 1\n[package]\nname = "evil"\n'
ATTACKS = {
    "up": '[build.env]\nEVIL_A = "../x"\n',
    "absolute": '[build.env]\nEVIL_A = "/etc/passwd"\n',
    "shell": '[build.env]\nEVIL_A = "$(touch owned)"\n',
    "preload": '[build.env]\nLD_PRELOAD = "x.so"\n',
    "ssh": '[build.env]\nGIT_SSH_COMMAND = "touch owned"\n',
    "ext": f'[source]\nkind = "git"\nurl = "ext::sh -c touch% owned"\ncommit = "{"0" * 40}"\n',
    "nul": '[build.env]\nEVIL_A = "a\\u0000b"\n',
    "types": '[build]\nprepare = 3\nmemory_per_job = "much"\n[build.env]\nEVIL_A = 1\n',
    "step": '[build]\nprepare = [["sh", "-c", "touch owned"]]\n',
    "deep": "x = " + "[" * 5000 + "]" * 5000 + "\n",
    "name": None,
}  # fmt: skip


def test_recipes_as_attacks_are_all_told_and_run_nothing(person: Person) -> None:
    project = person.folder / "project"
    files = []
    for name, text in ATTACKS.items():
        folder = person.folder / "attacks" / name
        folder.mkdir(parents=True)
        files.append(folder / "evil.toml")
        files[-1].write_text('schema = 1\n[package]\nname = "../evil"\n' if text is None else HEAD + text)
    for path in files:
        done = person.run("recipe", "check", str(path), "--json")
        (error,) = json.loads(done.stdout)["errors"]
        assert (done.returncode, error["code"]) == (45, 45) and str(path) in str(error), path
    assert person.run("recipe", "check", *map(str, files)).returncode == 45
    # The same by the way of a project, and of the command line.
    (project / ".rocmpip").mkdir()
    (person.folder / "attacks/preload").rename(project / ".rocmpip/recipes")
    assert person.run("recipe", "trust", ".").returncode == 45
    done = person.run("install", "--python", str(person.python), "--recipe", str(files[2]), "flash-attn")
    assert done.returncode == 45 and installed(person.python) == {}
    assert not list(person.folder.rglob("owned"))


@pytest.fixture
def bare(person: Person) -> Callable[[str], dict[str, Any]]:
    def install(name: str) -> dict[str, Any]:
        env = {**person.env, "PATH": str(person.folder / "nothing"), "ROCMPIP_GFX": "gfx90a"}
        done = rocmpip("install", "--json", "--python", str(person.python), name, env=env, cwd=person.folder)
        return envelope(done)

    return install


def test_what_a_build_lacks_is_told_with_three_ways(bare: Callable[[str], dict[str, Any]], person: Person) -> None:
    (error,) = bare("flash-attn")["errors"]
    assert error["code"] == 44
    assert "hipcc" in str(error["details"])
    assert all(f"{word}: " in error["hint"] for word in ("Debian, Ubuntu", "Fedora, RHEL", "TheRock"))
    assert "apt" in error["hint"] and "dnf" in error["hint"]
    assert installed(person.python) == {}
