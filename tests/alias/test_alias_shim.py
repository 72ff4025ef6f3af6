"""`rocmpip shim`: a pip by name. Whatever stands where, it ends at once with the right result or a clear error."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmpip.store.shim import KEPT, MARK, look, text_of
from tests.support.commands import envelope, rocmpip

MINOR = ".".join(map(str, sys.version_info[:2]))
NAMES = ["pip", "pip3", f"pip{MINOR}"]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A `rocmpip` command in a folder of its own."""
    folder = tmp_path / "tool"
    folder.mkdir()
    path = folder / "rocmpip"
    path.write_text(f"#!{sys.executable}\nimport sys\nfrom rocmpip.__main__ import main\nsys.exit(main())\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def env(clean_env: dict[str, str], venv: Callable[..., Path], tmp_path: Path) -> dict[str, str]:
    python = venv(with_pip=True)
    return {
        **clean_env,
        "VIRTUAL_ENV": str(python.parent.parent),
        "PATH": f"{tmp_path / 'shims'}:{python.parent}:/usr/bin:/bin",
    }


def run(program: Path | str, *words: str, env: dict[str, str], timeout: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *words], env=env, capture_output=True, text=True, timeout=timeout, check=False)


@pytest.fixture
def shims(program: Path, env: dict[str, str], tmp_path: Path) -> Path:
    done = run(program, "shim", "install", str(tmp_path / "shims"), env=env)
    assert done.returncode == 0, done.stderr
    return tmp_path / "shims"


def test_a_script_that_calls_pip_by_name_gets_rocmpip(shims: Path, env: dict[str, str]) -> None:
    assert sorted(path.name for path in shims.iterdir()) == sorted(NAMES)
    for name in NAMES:
        done = run("/bin/sh", "-c", f"{name} --version", env=env)
        assert done.returncode == 0, done.stderr
        pips, ours = done.stdout.splitlines()
        assert env["VIRTUAL_ENV"] in pips and ours.startswith("rocmpip ")
    code = run("/bin/sh", "-c", "pip show nothing-of-that-name", env=env)
    assert code.returncode == 1


def test_words_and_input_pass_as_they_are(shims: Path, tmp_path: Path, env: dict[str, str]) -> None:
    echo = tmp_path / "tool" / "rocmpip"
    echo.write_text('#!/bin/sh\nfor word in "$@"; do echo "<$word>"; done\ncat\n')
    done = subprocess.run(
        [shims / "pip", "a b", "", "*", "$HOME"], env=env, input="in", capture_output=True, text=True, check=True
    )
    assert done.stdout == "<a b>\n<>\n<*>\n<$HOME>\nin"


def test_status_and_remove(shims: Path, program: Path, env: dict[str, str]) -> None:
    told = envelope(run(program, "shim", "status", "--json", env=env))["result"]
    assert told["active"] is True
    assert {"path": str(shims / "pip"), "shim": True, "program": str(program), "works": True} in told["pips"]
    words = run(program, "shim", "status", env=env)
    assert words.stdout.splitlines()[0].startswith(str(shims / "pip"))
    removed = envelope(run(program, "shim", "remove", str(shims), "--json", env=env))["result"]
    assert removed["removed"] == sorted(str(shims / name) for name in NAMES)
    assert list(shims.iterdir()) == []
    again = run(program, "shim", "remove", str(shims), env=env)
    assert (again.returncode, "no shim" in again.stderr) == (0, True)
    assert envelope(run(program, "shim", "status", "--json", env=env))["result"]["active"] is False
    gone = run(program, "shim", "remove", str(shims / "gone"), env=env)
    assert gone.returncode == 2


def test_installing_again_changes_nothing(shims: Path, program: Path, env: dict[str, str]) -> None:
    before = {path.name: path.read_bytes() for path in shims.iterdir()}
    assert run(program, "shim", "install", str(shims), env=env).returncode == 0
    assert {path.name: path.read_bytes() for path in shims.iterdir()} == before


def test_anothers_pip_is_never_overwritten_unasked(program: Path, env: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "pip3").write_text("#!/bin/sh\necho theirs\n")
    refused = envelope(run(program, "shim", "install", str(folder), "--json", env=env))
    assert refused["errors"][0]["code"] == 44
    assert "--force" in refused["errors"][0]["hint"]
    assert [path.name for path in folder.iterdir()] == ["pip3"]
    forced = run(program, "shim", "install", str(folder), "--force", env=env)
    assert forced.returncode == 0
    assert (folder / f"pip3{KEPT}").read_text() == "#!/bin/sh\necho theirs\n"
    assert run(program, "shim", "install", str(folder), env=env).returncode == 0
    assert run(program, "shim", "remove", str(folder), env=env).returncode == 0
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("pip3", "#!/bin/sh\necho theirs\n")]


def test_a_folder_that_cannot_be_written_is_told(program: Path, env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run(program, "shim", "install", str(tmp_path / "file"), env=env)
    assert done.returncode == 1
    assert "rocmpip: error:" in done.stderr and "Traceback" not in done.stderr


def test_the_note_says_how_it_comes_first(program: Path, env: dict[str, str], tmp_path: Path) -> None:
    done = run(program, "shim", "install", str(tmp_path / "late"), env=env)
    assert f"export PATH={tmp_path / 'late'}:$PATH" in done.stderr


def test_real_pip_absent(shims: Path, env: dict[str, str], venv: Callable[..., Path]) -> None:
    """The shim is the only pip there is: an environment without pip is served by rocmpip's own."""
    bare = venv()
    done = run(
        shims / "pip", "--version", env={**env, "VIRTUAL_ENV": str(bare.parent.parent), "PATH": f"{shims}:/usr/bin:/bin"}
    )
    assert done.returncode == 0, done.stderr
    assert f"(python {MINOR})" in done.stdout


def test_linked(shims: Path, env: dict[str, str], tmp_path: Path, program: Path) -> None:
    link = tmp_path / "links" / "pip"
    link.parent.mkdir()
    link.symlink_to(shims / "pip")
    done = run(link, "--version", env=env)
    assert "rocmpip " in done.stdout
    told = look(link)
    assert told is not None and told.ours and told.program == str(program)


def test_a_shim_that_starts_a_shim_is_a_clear_error_at_once(tmp_path: Path, env: dict[str, str]) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text(text_of("pip", [str(other)], tmp_path))
    other.write_text(text_of("pip", [str(one)], tmp_path))
    for path in (one, other):
        path.chmod(0o755)
    done = run(one, "list", env=env, timeout=20)
    assert done.returncode == 2
    assert "starts itself" in done.stderr and "shim install" in done.stderr
    itself = tmp_path / "self"
    itself.write_text(text_of("pip", [str(itself)], tmp_path))
    itself.chmod(0o755)
    assert run(itself, "list", env=env, timeout=20).returncode == 2


def test_a_shim_installed_by_a_shim_starts_rocmpip(shims: Path, program: Path, env: dict[str, str], tmp_path: Path) -> None:
    done = run(shims / "pip", "shim", "install", str(tmp_path / "more"), env=env)
    assert done.returncode == 0, done.stderr
    told = look(tmp_path / "more" / "pip")
    assert told is not None and told.program == str(program)


def test_a_child_of_the_shims_pip_may_call_pip_again(shims: Path, env: dict[str, str]) -> None:
    """A build that calls pip by name: another process, so no circle."""
    done = run("/bin/sh", "-c", "pip --version >/dev/null && pip --version && exec pip --version", env=env)
    assert (done.returncode, done.stdout.count("rocmpip ")) == (0, 2), done.stderr


def test_rocmpip_gone(shims: Path, program: Path, env: dict[str, str]) -> None:
    program.unlink()
    done = run(shims / "pip", "list", env=env)
    assert done.returncode == 127
    assert str(program) in done.stderr and "is gone" in done.stderr
    told = look(shims / "pip")
    assert told is not None and told.ours and not told.works


def test_the_versioned_name_means_that_python(tmp_path: Path, env: dict[str, str], program: Path) -> None:
    shim = tmp_path / "pip3.99"
    shim.write_text(text_of("pip3.99", [str(program)], tmp_path))
    shim.chmod(0o755)
    done = run(shim, "list", env=env)
    assert done.returncode == 1
    assert "python3.99" in done.stderr
    assert run(shim, "--python", sys.executable, "--version", env=env).returncode == 0


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", b"\xff\xfe\x00", b"# x\n" * 9, f"\n\n{MARK}\n".encode()])
def test_what_is_no_shim_of_ours(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pip").write_bytes(content)
    found = look(tmp_path / "pip")
    assert found is not None and not found.ours
    assert look(tmp_path / "none") is None
    (tmp_path / "pip3").symlink_to(tmp_path / "nowhere")
    dangling = look(tmp_path / "pip3")
    assert dangling is not None and not dangling.ours


def test_help_names_the_three(clean_env: dict[str, str]) -> None:
    done = rocmpip("shim", "--help", env=clean_env)
    assert all(word in done.stdout for word in ("install", "remove", "status"))
