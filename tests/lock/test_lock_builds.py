"""Locks with packages that are built: from a wheelhouse by plain pip, or by ``rocmpip sync``, and what sync refuses."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmpip.lock import text
from tests.support.commands import envelope, rocmpip
from tests.support.environments import installed
from tests.support.replica import Replica

pytestmark = pytest.mark.pip

Env = dict[str, str]


@pytest.fixture
def env(replica: Replica, tmp_path: Path) -> Env:
    (tmp_path / "machine").mkdir()
    return replica.env(tmp_path, ROCMPIP_SYSROOT=str(tmp_path / "machine"), ROCMPIP_GFX="gfx942", ROCMPIP_ROCM="6.4")


def run(*words: str, env: Env, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = rocmpip(*words, env=env, cwd=cwd)
    assert "Traceback" not in done.stderr
    assert done.returncode == code, done.stdout + done.stderr
    return done


def pip(python: Path, *words: str, env: Env, cwd: Path) -> str:
    done = subprocess.run(
        [str(python), "-m", "pip", *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def locked(path: Path) -> text.Written:
    return text.read(path.read_text(encoding="utf-8"))


def without_tools(versions: dict[str, str]) -> dict[str, str]:
    return {name: version for name, version in versions.items() if name not in ("pip", "setuptools")}


def test_plain_pip_installs_a_lock_of_built_wheels(env: Env, venv: Callable[..., Path], tmp_path: Path) -> None:
    builder = str(venv())
    run("install", "--python", builder, "torch", env=env, cwd=tmp_path)
    run("build", "--python", builder, "flash-attn", "-w", "wheels", env=env, cwd=tmp_path)
    wheel = next((tmp_path / "wheels").glob("flash_attn-*.whl"))
    words = ("torch", "needs-flash-attn", "--wheelhouse", "wheels")
    for name in ("requirements.lock", "pylock.toml"):
        run("lock", "--python", builder, *words, "-o", name, env=env, cwd=tmp_path)
        content = (tmp_path / name).read_text()
        assert "built from source" not in content and "rocmpip sync" not in content
        install = re.search(r"install(?:: | = \")(pip install [^\"\n]*)", content)
        assert install is not None
        python = venv(with_pip=True)
        pip(python, *install.group(1).split()[1:], env=env, cwd=tmp_path)
        pip(python, "check", env=env, cwd=tmp_path)
        pins = locked(tmp_path / "requirements.lock").pins
        assert without_tools(installed(python)) == without_tools(pins)
        assert pins["flash-attn"] == wheel.name.split("-")[1]
    assert "--find-links wheels\n" in (tmp_path / "requirements.lock").read_text()
    # Another GPU, or another torch: the wheel is not for it, so the source is locked.
    other = run("lock", "--python", builder, *words, env={**env, "ROCMPIP_GFX": "gfx1100"}, cwd=tmp_path)
    assert "gfx1100" in other.stderr and wheel.name in other.stderr
    assert text.read(other.stdout).builds == {"flash-attn": "flash-attn"}
    older = run("lock", "--python", builder, *words, "torch<2.9", env=env, cwd=tmp_path)
    assert text.read(older.stdout).builds == {"flash-attn": "flash-attn"}
    # A version that nobody built is locked by its source.
    asked = run("lock", "--python", builder, *words, "flash-attn==2.8.3", env=env, cwd=tmp_path)
    assert text.read(asked.stdout).builds == {"flash-attn": "flash-attn"}


def test_sync_builds_what_the_lock_builds(env: Env, venv: Callable[..., Path], tmp_path: Path) -> None:
    python = venv(with_pip=True)
    lock = tmp_path / "out.txt"
    run("lock", "--python", str(python), "torch", "needs-flash-attn", "-o", "out.txt", env=env, cwd=tmp_path)
    written = locked(lock)
    assert written.builds == {"flash-attn": "flash-attn"}
    assert written.coordinates["install"] == "rocmpip sync out.txt"
    assert len(written.coordinates["recipe flash-attn"]) >= 12
    pip(python, "install", "-q", "--no-deps", "requests", env=env, cwd=tmp_path)
    sync = ("sync", "out.txt", "--python", str(python))
    dry = envelope(run(*sync, "--dry-run", "--json", env=env, cwd=tmp_path))["result"]
    assert dry["built"] == {"flash-attn": written.pins["flash-attn"]} and dry["extra"] == ["requests"]
    assert "torch" not in installed(python)
    done = envelope(run(*sync, "--json", env=env, cwd=tmp_path))["result"]
    assert done["built"] == dry["built"] and done["removed"] == [] and done["extra"] == ["requests"]
    there = installed(python)
    assert {name: there[name] for name in written.pins} == written.pins and "requests" in there
    # The same again has nothing to do; extras go when told.
    again = envelope(run(*sync, "--json", "--remove-extras", env=env, cwd=tmp_path))["result"]
    assert (again["installed"], again["built"], again["removed"]) == ({}, {}, ["requests"])
    assert without_tools(installed(python)) == without_tools(written.pins)
    pip(python, "check", env=env, cwd=tmp_path)


def test_a_source_that_is_not_the_locked_one_is_not_built(env: Env, venv: Callable[..., Path], tmp_path: Path) -> None:
    python = venv()
    run("lock", "--python", str(python), "torch", "flash-attn", "-o", "out.txt", env=env, cwd=tmp_path)
    lock = tmp_path / "out.txt"
    head, mark, tail = lock.read_text().partition("flash-attn==")
    lock.write_text(head + mark + re.sub(r"sha256:[0-9a-f]{8}", "sha256:00000000", tail, count=1))
    refused = run("sync", "out.txt", "--python", str(python), env=env, cwd=tmp_path, code=44)
    assert "flash-attn" in refused.stderr and "not the one that was locked" in refused.stderr
    assert "flash-attn" not in installed(python)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ROCMPIP_GFX": "gfx1100"}, "gfx1100"),
        ({"ROCMPIP_ROCM": "7.0"}, "has 7.0"),
        ({}, "Python 3.99"),
    ],
)
def test_sync_refuses_a_lock_for_another_machine(
    change: Env, reason: str, env: Env, venv: Callable[..., Path], tmp_path: Path
) -> None:
    python = venv(with_pip=True)
    run("lock", "--python", str(python), "filelock", "-o", "out.txt", env=env, cwd=tmp_path)
    lock = tmp_path / "out.txt"
    if not change:
        lock.write_text(re.sub(r"python: [0-9.]+", "python: 3.99", lock.read_text()))
    other = {**env, **change}
    sync = ("sync", "out.txt", "--python", str(python))
    refused = envelope(run(*sync, "--json", env=other, cwd=tmp_path, code=44))["errors"][0]
    assert any(reason in line for line in refused["details"])
    assert "--anyway" in refused["hint"]
    assert "filelock" not in installed(python)
    taken = run(*sync, "--anyway", env=other, cwd=tmp_path)
    assert reason in taken.stderr
    assert "filelock" in installed(python)
