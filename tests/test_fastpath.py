"""The fast path: what it imports, what it hands to pip, and what it keeps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

import rocmpip
from rocmpip import __main__ as fast

SOURCE = str(Path(rocmpip.__file__).parent.parent)

STAND_IN = """
import json, os, sys
print(json.dumps({"argv": sys.argv, "modules": sorted(sys.modules), "prefix": sys.prefix, "pid": os.getpid(), "path": sys.path,
                  "env": {k: v for k, v in os.environ.items() if "ROCMPIP" in k or k.startswith("PIP_")}}))
sys.stdout.flush()
sys.exit(int(os.environ.get("STAND_IN_CODE", "0")))
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def add_stand_in(python: Path) -> Path:
    """Put a pip that tells what reached it into an environment."""
    package = next((python.parent.parent / "lib").glob("python3*")) / "site-packages" / "pip"
    package.mkdir()
    (package / "__init__.py").write_text("__version__ = '99'\n")
    (package / "__main__.py").write_text(STAND_IN)
    return python


@pytest.fixture
def home(venv: Callable[..., Path]) -> Path:
    """The interpreter of an environment that runs rocmpip, with a stand-in for pip."""
    return add_stand_in(venv())


@pytest.fixture
def run(home: Path, clean_env: dict[str, str], tmp_path: Path) -> Run:
    def call(*words: str, env: dict[str, str] | None = None, python: Path = home, cwd: Path = tmp_path) -> object:
        return subprocess.run(
            [python, "-m", "rocmpip", *words],
            env={**clean_env, "PYTHONPATH": SOURCE, **(env or {})},
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
        )

    return call  # type: ignore[return-value]


def told(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    assert done.stdout, done.stderr
    answer = json.loads(done.stdout.splitlines()[0])
    assert isinstance(answer, dict)
    return answer


ALLOWED = {
    "rocmpip",
    "rocmpip.argv",
    "rocmpip.argv.split",
    "rocmpip.cli",
    "rocmpip.cli.table",
    "rocmpip.target",
    "rocmpip.target.become",
    "rocmpip.target.choose",
}


def test_a_plain_pip_command_imports_nothing_but_the_fast_path(run: Run, home: Path, clean_env: dict[str, str]) -> None:
    plain = subprocess.run(
        [home, "-m", "pip", "list"], env={**clean_env, "PYTHONPATH": SOURCE}, capture_output=True, text=True, check=True
    )
    before, ours = set(told(plain)["modules"]), set(told(run("list"))["modules"])  # type: ignore[call-overload]
    assert ours - before <= ALLOWED | {"__future__"}
    heavy = {
        "click",
        "packaging",
        "rich",
        "httpx",
        "tomllib",
        "tomli",
        "argparse",
        "subprocess",
        "dataclasses",
        "typing",
        "json",
    }
    assert not (ours - before) & heavy


def test_help_and_version_import_no_click(run: Run, home: Path, clean_env: dict[str, str]) -> None:
    code = "import sys; from rocmpip.__main__ import main; main(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [home, "-c", code], env={**clean_env, "PYTHONPATH": SOURCE}, capture_output=True, text=True, check=True
    )
    assert "'click'" not in done.stderr
    assert "'dataclasses'" not in done.stderr
    assert "Usage: rocmpip" in done.stdout


LINES = (
    "list --outdated",
    "-q freeze",
    "--isolated uninstall -y torch",
    "insta torch",
    "brand-new-command --with option",
    "--timeout 3 --cache-dir x cache info",
    "config set global.index-url https://x.example",
    "help install",
    "-- list",
    "list --json",
    "--no-such list",
)


@pytest.mark.parametrize("line", LINES)
def test_pip_gets_the_words_as_they_are(run: Run, line: str) -> None:
    answer = told(run(*line.split()))
    assert answer["argv"] == ["pip", *line.split()]


@pytest.mark.parametrize("line", LINES)
def test_another_environments_pip_gets_them_too(run: Run, venv: Callable[..., Path], line: str) -> None:
    other = add_stand_in(venv())
    prefix = str(other.parent.parent)
    for answer in (
        told(run(*line.split(), env={"VIRTUAL_ENV": prefix})),
        told(run("--python", str(other), *line.split())),
        told(run(f"--python={prefix}", *line.split(), env={"PIP_PYTHON": "/gone"})),
        told(run(*line.split(), env={"PIP_PYTHON": str(other)})),
    ):
        assert answer["argv"] == ["pip", *line.split()]
        assert answer["prefix"] == prefix
        env = {name: value for name, value in answer["env"].items() if not name.startswith("ROCMPIP_TEST_")}
        assert env == {"PIP_CONFIG_FILE": os.devnull}


@pytest.mark.parametrize("code", [0, 1, 2, 3, 23, 120])
def test_exit_codes_pass(run: Run, venv: Callable[..., Path], code: int) -> None:
    other = add_stand_in(venv())
    assert run("list", env={"STAND_IN_CODE": str(code)}).returncode == code
    assert run("list", env={"STAND_IN_CODE": str(code), "VIRTUAL_ENV": str(other.parent.parent)}).returncode == code


def test_no_parent_stays_behind(home: Path, venv: Callable[..., Path], clean_env: dict[str, str]) -> None:
    other = add_stand_in(venv())
    for env in ({}, {"VIRTUAL_ENV": str(other.parent.parent)}):
        with subprocess.Popen(
            [home, "-m", "rocmpip", "list"], env={**clean_env, "PYTHONPATH": SOURCE, **env}, stdout=subprocess.PIPE, text=True
        ) as child:
            out, _ = child.communicate()
        assert json.loads(out)["pid"] == child.pid


def test_the_working_directory_is_not_searched(
    home: Path, venv: Callable[..., Path], clean_env: dict[str, str], tmp_path: Path
) -> None:
    other = add_stand_in(venv())
    script = home.with_name("rocmpip")
    script.write_text(f"#!{home}\nimport sys\nfrom rocmpip.__main__ import main\nsys.exit(main())\n")
    script.chmod(0o755)
    for name in ("runpy", "pip", "os", "pkgutil"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the working directory')")
    for env in ({}, {"VIRTUAL_ENV": str(other.parent.parent)}):
        done = subprocess.run(
            [script, "list"],
            env={**clean_env, "PYTHONPATH": SOURCE, **env},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "" not in told(done)["path"]  # type: ignore[operator]


@pytest.mark.parametrize("words", [["--version"], ["-V"], ["--vers"], ["-V", "list"]])
def test_version_is_pips_line_and_ours(run: Run, venv: Callable[..., Path], words: list[str]) -> None:
    other = add_stand_in(venv())
    for env in ({}, {"VIRTUAL_ENV": str(other.parent.parent)}):
        done = run(*words, env=env)
        assert told(done)["argv"] == ["pip", *words]
        assert done.stdout.splitlines()[1:] == [f"rocmpip {rocmpip.__version__}"]


def test_version_of_a_pip_that_fails_says_no_more(run: Run) -> None:
    done = run("--version", env={"STAND_IN_CODE": "3"})
    assert (done.returncode, len(done.stdout.splitlines())) == (3, 1)


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"], ["-q"], ["-h", "install"]])
def test_help_is_ours_and_names_pips(run: Run, words: list[str]) -> None:
    done = run(*words)
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: rocmpip")
    assert "uninstall" in done.stdout


def test_the_shells_completion_reaches_pip(run: Run) -> None:
    answer = told(run(env={"PIP_AUTO_COMPLETE": "1", "COMP_WORDS": "pip ins", "COMP_CWORD": "1"}))
    assert answer["argv"] == ["pip"]


@pytest.mark.parametrize(
    ("words", "env", "message"),
    [
        (["--python", "/gone", "list"], {}, "Could not locate Python interpreter /gone"),
        (["list"], {"VIRTUAL_ENV": "/gone"}, "the active environment /gone cannot be used"),
        (["--version"], {"ROCMPIP_PYTHON": "/gone"}, "Could not locate Python interpreter /gone"),
        (["--python", os.devnull, "list"], {}, f"{os.devnull} does not run"),
    ],
)
def test_environments_that_are_not_there(run: Run, words: list[str], env: dict[str, str], message: str) -> None:
    done = run(*words, env={**env, "PYTHONPATH": os.pathsep.join((SOURCE, str(Path(msgspec.__file__).parents[1])))})
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interpreter_that_is_rocmpip_again_ends_at_once(run: Run, home: Path, tmp_path: Path) -> None:
    shim = tmp_path / "python"
    shim.write_text(f'#!/bin/sh\nexec "{home}" -m rocmpip "$@"\n')
    shim.chmod(0o755)
    done = run("list", env={"ROCMPIP_PYTHON": str(shim)})
    assert done.returncode == 1
    assert "is rocmpip again" in done.stderr


def test_our_environment_without_pip_is_told(run: Run, venv: Callable[..., Path]) -> None:
    done = run("list", python=venv())
    assert done.returncode == 1
    assert "has no pip" in done.stderr
    assert "Traceback" not in done.stderr


def overlay(monkeypatch: pytest.MonkeyPatch, name: str) -> list[Sequence[str]]:
    seen: list[Sequence[str]] = []

    def main(argv: Sequence[str]) -> int:
        seen.append(list(argv))
        return 7

    monkeypatch.setitem(sys.modules, f"rocmpip.app.{name}", SimpleNamespace(main=main))
    monkeypatch.setattr(fast, "_ships", lambda room, module: (room, module) == ("app", name))
    return seen


@pytest.mark.parametrize("name", ["install", "download", "wheel", "lock"])
def test_the_commands_we_stand_in_for(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    seen = overlay(monkeypatch, name)
    assert fast.main(["--gfx", "gfx942", "-q", "--python", "X", name, "torch", "--dry-run"]) == 7
    assert seen == [["--gfx", "gfx942", "--python", "X", "-q", "torch", "--dry-run"]]


def test_an_option_we_do_not_know_does_not_lead_an_install_past_us(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = overlay(monkeypatch, "install")
    assert fast.main(["--brand-new", "install", "torch"]) == 7
    assert seen == [["--brand-new", "torch"]]


def test_our_commands_get_what_stood_before_their_name(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def run(words: list[str]) -> int:
        seen.append(words)
        return 0

    monkeypatch.setattr(fast, "_ours", run)
    assert fast.main(["--json", "--python", "X", "doctor", "--quick"]) == 0
    assert fast.main(["help", "doctor"]) == 0
    assert seen == [["doctor", "--json", "--python", "X", "--quick"], ["doctor", "--help"]]


def test_help_of_install_is_pips_with_our_options(run: Run) -> None:
    done = run("download", "--help")
    assert told(done)["argv"] == ["pip", "download", "--help"]
    assert "--gfx" in done.stdout


REAL = (
    "list",
    "freeze --all",
    "show pip",
    "show no-such-package",
    "insta",
    "--no-such",
    "list --no-such",
    "cache --help",
    "help uninstall",
    "check",
    "uninstall -y no-such-package",
    "completion --bash",
    "hash",
)


@pytest.mark.pip
@pytest.mark.parametrize("line", REAL)
def test_output_is_that_of_the_pip_command(clean_env: dict[str, str], line: str) -> None:
    env = {**clean_env, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    pip = Path(sys.executable).with_name("pip")
    theirs = subprocess.run([pip, *line.split()], env=env, capture_output=True, text=True, check=False)
    mine = subprocess.run(
        [sys.executable, "-m", "rocmpip", *line.split()], env=env, capture_output=True, text=True, check=False
    )
    assert (mine.returncode, mine.stdout, mine.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr)


@pytest.mark.pip
def test_an_environment_without_pip_is_served_by_ours(venv: Callable[..., Path], clean_env: dict[str, str]) -> None:
    python = venv()
    done = subprocess.run(
        [sys.executable, "-m", "rocmpip", "list", "-v"],
        env={**clean_env, "VIRTUAL_ENV": str(python.parent.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "")


def test_an_interrupt_that_python_wraps_ends_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that comes while a class body of a module runs is a RuntimeError by the time it gets here."""

    def interrupted(*_: object) -> int:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as cause:
            raise RuntimeError("Error calling __set_name__") from cause

    monkeypatch.setattr(fast, "_dispatch", interrupted)
    assert fast.main(["detect"]) == 130


def test_other_failures_of_pip_itself_stay_pips(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise RuntimeError("pip's own")

    monkeypatch.setattr(fast, "_dispatch", broken)
    with pytest.raises(RuntimeError, match="pip's own"):
        fast.main(["list"])
