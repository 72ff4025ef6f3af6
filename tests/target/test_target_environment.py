"""Which environment is meant, and what its folders tell."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmpip.model.errors import InputError
from rocmpip.target import interpreter as interpreter_module
from rocmpip.target.environment import find_environment, marker_environment, supported_tags

Venv = Callable[..., Path]


@pytest.fixture
def conda(tmp_path: Path) -> Path:
    """A conda environment, as far as its folders tell."""
    prefix = tmp_path / "conda"
    (prefix / "conda-meta").mkdir(parents=True)
    (prefix / "conda-meta" / "python-3.12.4-h194c7f8_0_cpython.json").write_text("{}")
    (prefix / "conda-meta" / "python-dateutil-2.9.0-py_0.json").write_text("{}")
    (prefix / "lib/python3.12/site-packages/pip").mkdir(parents=True)
    (prefix / "lib/python3.12/site-packages/pip/__main__.py").write_text("")
    (prefix / "bin").mkdir()
    (prefix / "bin/python").symlink_to(sys.executable)
    return prefix


def test_the_order_of_places(venv: Venv, conda: Path) -> None:
    named, variable, pips, active = (venv() for _ in range(4))
    env = {
        "PIP_PYTHON": str(pips),
        "ROCMPIP_PYTHON": str(variable),
        "VIRTUAL_ENV": str(active.parent.parent),
        "CONDA_PREFIX": str(conda),
    }
    found = [find_environment(str(named), env=env)]
    for name in ("PIP_PYTHON", "ROCMPIP_PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX"):
        found.append(find_environment(env=env))
        del env[name]
    found.append(find_environment(env=env))
    assert [one.source for one in found] == [
        "--python",
        "PIP_PYTHON",
        "ROCMPIP_PYTHON",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "the interpreter that runs rocmpip",
    ]
    assert [one.python for one in found[:4]] == [str(named), str(pips), str(variable), str(active)]
    assert (found[5].python, found[5].own) == (sys.executable, True)
    assert not any(one.own for one in found[:5])


def test_a_virtual_environment_is_read_without_running_it(venv: Venv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter_module, "run_program", lambda *args: pytest.fail("an interpreter was run"))
    python = venv()
    prefix = python.parent.parent
    for place in (str(python), str(prefix)):
        found = find_environment(place, env={})
        version = ".".join(map(str, sys.version_info[:3]))
        assert (found.kind, found.version, found.prefix) == ("venv", version, str(prefix))
        assert found.site_packages == (str(next((prefix / "lib").glob("python3*")) / "site-packages"),)
        assert (found.has_pip, found.own, found.externally_managed) == (False, False, False)


def test_what_uv_and_virtualenv_write_in_pyvenv_cfg(venv: Venv) -> None:
    python = venv()
    minor = ".".join(map(str, sys.version_info[:2]))
    for line in (f"version_info = {minor}.9", f"version_info = {minor}.9.final.0"):
        (python.parent.parent / "pyvenv.cfg").write_text(f"home = /x\nimplementation = CPython\nuv = 0.5\n{line}\n")
        assert find_environment(str(python), env={}).version == f"{minor}.9"


def test_conda(conda: Path) -> None:
    found = find_environment(env={"CONDA_PREFIX": str(conda)})
    assert (found.kind, found.version, found.has_pip) == ("conda", "3.12.4", True)
    assert found.site_packages == (str(conda / "lib/python3.12/site-packages"),)
    assert not found.externally_managed
    (conda / "lib/python3.12/EXTERNALLY-MANAGED").write_text("[externally-managed]\n")
    assert find_environment(env={"CONDA_PREFIX": str(conda)}).externally_managed


def test_paths_are_relative_to_the_working_directory_and_commands_are_found_on_path(venv: Venv) -> None:
    python = venv()
    prefix = python.parent.parent
    assert find_environment(prefix.name, env={}, cwd=str(prefix.parent)).python == str(python)
    assert find_environment("python3", env={"PATH": f"/gone:{python.parent}"}).python == str(python.with_name("python3"))


@pytest.mark.parametrize(
    ("python", "env", "message", "why"),
    [
        ("/gone/python", {}, "Could not locate Python interpreter /gone/python", ""),
        ("", {"ROCMPIP_PYTHON": "/gone"}, "Could not locate Python interpreter /gone", "ROCMPIP_PYTHON names it"),
        ("", {"VIRTUAL_ENV": "/gone"}, "the active environment /gone cannot be used", "the folder does not exist"),
        ("", {"CONDA_PREFIX": "/usr/share"}, "the active environment /usr/share cannot be used", "has no Python interpreter"),
    ],
)
def test_places_that_are_not_there(python: str, env: dict[str, str], message: str, why: str) -> None:
    with pytest.raises(InputError) as caught:
        find_environment(python, env=env)
    assert caught.value.message == message
    assert why in caught.value.why
    assert caught.value.hint


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 3\n", "#!/bin/sh\necho hello\n", "no program"])
def test_what_is_no_python(tmp_path: Path, clean_env: dict[str, str], text: str) -> None:
    program = tmp_path / "python"
    program.write_text(text)
    program.chmod(0o755)
    with pytest.raises(InputError, match=r"does not (work as a Python 3 interpreter|run)"):
        find_environment(str(program), env=clean_env)


def test_an_interpreter_that_hangs_is_given_up(
    tmp_path: Path, clean_env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter_module, "SECONDS", 0.3)
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    with pytest.raises(InputError, match="did not answer within"):
        find_environment(str(program), env=clean_env)


def test_a_broken_virtual_environment(venv: Venv, clean_env: dict[str, str]) -> None:
    python = venv()
    python.resolve()
    for link in python.parent.iterdir():
        link.unlink()
    (python.parent / "python").symlink_to("/gone/python3")
    with pytest.raises(InputError, match="cannot be used"):
        find_environment(env={**clean_env, "VIRTUAL_ENV": str(python.parent.parent)})


def test_a_shim_is_resolved_by_asking_it(tmp_path: Path, venv: Venv, clean_env: dict[str, str]) -> None:
    python = venv()
    shim = tmp_path / "shims" / "python3"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{python}" "$@"\n')
    shim.chmod(0o755)
    found = find_environment(str(shim), env=clean_env)
    assert (found.python, found.kind, found.prefix) == (str(python), "venv", str(python.parent.parent))


def test_a_virtual_environment_that_sees_the_systems_packages_is_asked(venv: Venv, clean_env: dict[str, str]) -> None:
    python = venv()
    text = (python.parent.parent / "pyvenv.cfg").read_text().replace("packages = false", "packages = true")
    (python.parent.parent / "pyvenv.cfg").write_text(text)
    found = find_environment(str(python), env=clean_env)
    assert found.kind == "venv"
    assert found.site_packages[0].startswith(str(python.parent.parent))
    assert len(found.site_packages) > 1


def test_a_json_module_in_the_working_directory_is_not_imported(
    tmp_path: Path, clean_env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('imported from the working directory')")
    monkeypatch.chdir(tmp_path)
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    assert find_environment(str(base), env=clean_env, ask=True).version.startswith("3.")


def test_markers_and_tags_of_a_target_without_packaging(venv: Venv) -> None:
    python = venv()
    target = find_environment(str(python), env={})
    markers = marker_environment(target)
    assert markers["python_full_version"] == target.version
    assert "extra" not in markers
    minor = f"cp3{sys.version_info.minor}"
    assert supported_tags(target)[0].startswith(f"{minor}-{minor}-")
    assert "py3-none-any" in supported_tags(target)
    assert supported_tags(target) == supported_tags(find_environment(sys.executable, env={}))


def test_tags_of_foreign_targets_are_pips(venv: Venv) -> None:
    """The lists are what pip's own ``get_supported`` gives, asked of the pip that runs the tests."""
    code = (
        "import sys, json; from pip._internal.utils.compatibility_tags import get_supported;"
        "q = json.loads(sys.argv[1]); print(json.dumps([str(t) for t in get_supported(**q)]))"
    )
    target = find_environment(sys.executable, env={})
    for question, ours in (
        (
            {"version": "312", "platforms": ["manylinux2014_x86_64"], "impl": "cp", "abis": ["cp312"]},
            {"python_version": "3.12", "platforms": ["manylinux2014_x86_64"], "implementation": "cp", "abis": ["cp312"]},
        ),
        ({"version": "310"}, {"python_version": "310"}),
        ({"platforms": ["manylinux_2_28_x86_64", "linux_x86_64"]}, {"platforms": ["manylinux_2_28_x86_64", "linux_x86_64"]}),
        (
            {"version": "39", "platforms": ["any"], "impl": "py"},
            {"python_version": "3.9", "platforms": ["any"], "implementation": "py"},
        ),
    ):
        done = subprocess.run([sys.executable, "-c", code, json.dumps(question)], capture_output=True, text=True, check=True)
        assert supported_tags(target, **ours) == list(dict.fromkeys(json.loads(done.stdout))), question


def test_the_environment_that_runs_us_is_told_without_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter_module, "run_program", lambda *args: pytest.fail("an interpreter was run"))
    found = find_environment(env={})
    assert found.own
    assert found.has_pip
    assert Path(found.prefix).samefile(sys.prefix)
