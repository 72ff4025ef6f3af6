"""`rocmpip shell-init`, evaluated by the real shells that are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmpip.app.shell_init import SHELLS, own_command, script
from rocmpip.cli.complete import complete
from tests.support.commands import envelope, rocmpip

Shell = Callable[..., "subprocess.CompletedProcess[str]"]

SHOW = {"bash": "alias pip", "zsh": "alias pip", "fish": "functions pip"}
INIT = {
    "bash": 'eval "$(rocmpip shell-init bash)"',
    "zsh": 'eval "$(rocmpip shell-init zsh)"',
    "fish": "rocmpip shell-init fish | source",
}
UNDO = {shell: text.replace(f"shell-init {shell}", f"shell-init {shell} --undo") for shell, text in INIT.items()}
OFFER = {
    "bash": 'COMP_WORDS=({0}); COMP_CWORD={1}; _rocmpip_complete; printf "%s\\n" "${{COMPREPLY[@]}}"',
    "zsh": 'compadd() {{ shift; print -l -- "$@" }}; words=({0}); CURRENT=$(( {1} + 1 )); _rocmpip',
    "fish": 'complete -C "{0}"',
}
HERE = [shell for shell in INIT if shutil.which(shell)]


@pytest.fixture
def shell(tmp_path: Path, clean_env: dict[str, str]) -> Shell:
    """Run lines in a shell in which `rocmpip` is a command on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "rocmpip").write_text(f'#!/bin/sh\nexec {sys.executable} -m rocmpip "$@"\n')
    (folder / "rocmpip").chmod(0o755)
    env = {**clean_env, "PATH": f"{folder}:{clean_env['PATH']}", "HOME": str(tmp_path)}

    def run(name: str, *lines: str) -> subprocess.CompletedProcess[str]:
        flags = {"bash": ["--norc", "-c"], "zsh": ["-f", "-c"], "fish": ["--no-config", "-c"]}[name]
        return subprocess.run(
            [name, *flags, "\n".join(lines)], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )

    return run


def test_bash_is_here_to_be_tested() -> None:
    assert "bash" in HERE


@pytest.mark.parametrize("name", HERE)
def test_pip_means_rocmpip_and_twice_is_once(shell: Shell, name: str) -> None:
    once = shell(name, INIT[name], SHOW[name])
    assert (once.returncode, once.stderr) == (0, "")
    assert "rocmpip" in once.stdout
    twice = shell(name, INIT[name], INIT[name], SHOW[name])
    assert (twice.returncode, twice.stderr, twice.stdout) == (0, "", once.stdout)


@pytest.mark.parametrize("name", HERE)
def test_undo_gives_back_what_was_there(shell: Shell, name: str) -> None:
    mine = {"bash": "alias pip='echo mine'", "zsh": "alias pip='echo mine'", "fish": "function pip; echo mine; end"}[name]
    done = shell(name, mine, INIT[name], INIT[name], UNDO[name], UNDO[name], SHOW[name])
    assert (done.returncode, done.stderr) == (0, "")
    assert "mine" in done.stdout
    assert "rocmpip" not in done.stdout
    bare = shell(name, INIT[name], UNDO[name], SHOW[name])
    assert "rocmpip" not in bare.stdout


@pytest.mark.parametrize("name", HERE)
def test_under_strict_options(shell: Shell, name: str) -> None:
    strict = {"bash": "set -euo pipefail", "zsh": "setopt err_exit no_unset", "fish": ""}[name]
    done = shell(name, strict, INIT[name], INIT[name], UNDO[name], "echo reached")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "reached\n")


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize(
    ("words", "offered", "not_offered"),
    [
        ("pip de", {"detect", "demo", "debug"}, {"install"}),
        ("pip unins", {"uninstall"}, {"install"}),
        ("pip shim re", {"remove"}, {"install"}),
        ("pip shim install --fo", {"--force"}, {"--json"}),
        ("pip shell-init z", {"zsh"}, {"bash"}),
        ("pip install --gf", {"--gfx"}, {"--rocm"}),
        ("pip install --no-ind", {"--no-index"}, {"--gfx"}),
    ],
)
def test_completion_knows_our_commands_and_pips(
    shell: Shell, name: str, words: str, offered: set[str], not_offered: set[str]
) -> None:
    line = OFFER[name].format(words, len(words.split()) - 1)
    done = shell(name, INIT[name], line)
    found = set(done.stdout.split())
    assert offered <= found, done.stdout + done.stderr
    assert not not_offered & found


def test_only_what_pip_does_not_know_is_ours_to_offer(capsys: pytest.CaptureFixture[str]) -> None:
    assert complete({"COMP_WORDS": "pip ", "COMP_CWORD": "1"}) is False
    words = capsys.readouterr().out.split()
    assert {"detect", "guard"} <= set(words)
    assert not {"install", "list", "wheel"} & set(words)
    assert complete({"COMP_WORDS": "pip --python x guard ", "COMP_CWORD": "4"}) is True
    assert capsys.readouterr().out.split() == ["off", "on", "status"]
    assert complete({"COMP_WORDS": "pip list --", "COMP_CWORD": "2"}) is False
    assert complete({"COMP_WORDS": "pip"}) is False
    assert complete({"COMP_WORDS": "pip x", "COMP_CWORD": "many"}) is False
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", SHELLS)
def test_every_script_names_the_command_and_the_way_back(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    program = folder / "rocmpip"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    before = sys.argv[0]
    sys.argv[0] = str(program)
    try:
        assert own_command({"PATH": str(folder)}) == ["rocmpip"]
        assert own_command({"PATH": "/usr/bin"}) == [str(program)]
        text = script(name, {"PATH": "/usr/bin"})
    finally:
        sys.argv[0] = before
    assert f"'{program}'" in text
    assert "@" + "COMMAND@" not in text and "@" + "ALIAS@" not in text
    assert f"shell-init {name}" in script(name, os.environ, undo=True)


def test_a_command_with_blanks_works_as_alias(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "a b's" / "rocmpip"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho reached $*\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program)])
    for name in HERE:
        text = script(name, {"PATH": "/usr/bin"})
        expand = {"bash": ["shopt -s expand_aliases"], "zsh": ["setopt aliases"], "fish": []}[name]
        (tmp_path / "init").write_text(text)
        run = "eval 'pip list'" if name != "fish" else "pip list"
        done = shell(name, *expand, f". {tmp_path}/init", run)
        assert done.stdout == "reached list\n", (name, done.stderr)


def test_json_and_bad_words(clean_env: dict[str, str]) -> None:
    told = envelope(rocmpip("shell-init", "bash", "--json", env=clean_env))
    assert "alias pip=" in told["result"]["script"]
    bad = rocmpip("shell-init", "csh", env=clean_env)
    assert bad.returncode == 2
    assert "bash" in bad.stderr and "Traceback" not in bad.stderr
