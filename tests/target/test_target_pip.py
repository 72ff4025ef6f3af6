"""Which pip runs in a target, and what it is asked about itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pip
import pytest

from rocmpip.model.errors import Refused
from rocmpip.target.environment import find_environment
from rocmpip.target.pip import option_arity, own_pip_version, pip_command, read_version
from rocmpip.target.run import pip_output

Venv = Callable[..., Path]


def test_versions() -> None:
    assert [read_version(text) for text in ("26.3", "23.0.1", "26.3.1.dev0", "24.1b2", "x")] == [
        (26, 3),
        (23, 0, 1),
        (26, 3, 1),
        (24, 1),
        (),
    ]


@pytest.mark.pip
def test_the_targets_own_pip(venv: Venv, clean_env: dict[str, str]) -> None:
    target = find_environment(str(venv(with_pip=True)), env={})
    command = pip_command(target)
    assert command.argv == (target.python, "-m", "pip")
    assert command.version == read_version(pip.__version__)
    said = pip_output(command, ["--version"], env=clean_env).stdout
    assert target.prefix in said


@pytest.mark.pip
def test_ours_for_a_target_without_pip(venv: Venv, clean_env: dict[str, str]) -> None:
    target = find_environment(str(venv()), env={})
    command = pip_command(target)
    assert command.runner
    assert command.python == target.python
    for done in (
        pip_output(command, ["list", "--verbose"], env=clean_env),
        subprocess.run([*command.argv, "list", "-v"], env=clean_env, capture_output=True, text=True, check=True),
    ):
        # Our pip runs, and nothing of our own environment is to be seen from there.
        assert "rocmpip" not in done.stdout.lower()
        assert "hypothesis" not in done.stdout.lower()


def test_a_pip_too_old_for_the_router_gives_way_to_ours(venv: Venv) -> None:
    python = venv(with_pip=True)
    site = next((python.parent.parent / "lib").glob("python3*")) / "site-packages"
    info = next(site.glob("pip-*.dist-info"))
    info.rename(info.with_name("pip-22.3.1.dist-info"))
    target = find_environment(str(python), env={})
    assert own_pip_version(target) == (22, 3, 1)
    assert pip_command(target).runner


def test_a_target_too_old_for_our_pip_is_told(venv: Venv) -> None:
    python = venv()
    prefix = python.parent.parent
    next((prefix / "lib").glob("python3*")).rename(prefix / "lib/python3.7")
    (prefix / "pyvenv.cfg").write_text("home = /x\nversion = 3.7.17\n")
    with pytest.raises(Refused, match="has no pip") as caught:
        pip_command(find_environment(str(python), env={}))
    assert "3.7.17" in caught.value.why
    assert "ensurepip" in caught.value.hint


@pytest.mark.pip
def test_options_are_learnt_from_pips_help(venv: Venv, clean_env: dict[str, str]) -> None:
    """Against every option of the table: the help tells which take a value."""
    from rocmpip.argv.table import command_grammar

    command = pip_command(find_environment(str(venv(with_pip=True)), env={}))
    told = option_arity(command, "install", clean_env)
    grammar = command_grammar("install", command.version)
    hidden = {"--use-pep517", "--no-user", "--no-python-version-warning"}
    known = {name: int(row.takes_value) for name, row in grammar.longs.items() if row.name not in hidden}
    shown = {name: arity for name, arity in known.items() if name in told}
    assert {name: told[name] for name in shown} == shown
    assert len(shown) > 60


def test_an_interpreter_that_is_not_there_tells_no_options(tmp_path: Path, clean_env: dict[str, str]) -> None:
    from rocmpip.target.pip import PipCommand

    assert option_arity(PipCommand((str(tmp_path / "gone"), "-m", "pip"), ()), "install", clean_env) == {}


def answers(python: Path) -> bool:
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def pythons() -> list[str]:
    """Every Python from 3.10 to 3.13 on PATH that runs (a shim may have nothing behind it)."""
    found = {f"3.{sys.version_info.minor}": sys.executable}
    for version in ("3.10", "3.11", "3.12", "3.13"):
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            path = Path(folder) / f"python{version}"
            if version not in found and path.exists() and answers(path):
                found[version] = str(path)
    return list(found.values())


@pytest.mark.pip
@pytest.mark.parametrize("python", pythons())
def test_our_pip_runs_under_every_python(venv: Venv, clean_env: dict[str, str], python: str) -> None:
    target = find_environment(str(venv(python)), env={})
    done = pip_output(pip_command(target), ["--version"], env=clean_env)
    assert done.code == 0, done.stderr
    assert f"(python {'.'.join(target.version.split('.')[:2])})" in done.stdout
