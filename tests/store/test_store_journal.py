"""The journal: many writers, kills, full pages, nothing private, and what looks alike."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmpip.app.journal import note_failure, note_success, seen_before, words
from rocmpip.model.errors import InputError, Refused
from rocmpip.store.journal import LARGEST, Journal
from rocmpip.store.journal_entry import decode, encode
from rocmpip.store.journal_text import alike, tidy, words_of

ERROR = "/home/kim/w/ext.hip:3:10: fatal error: 'hip/hip_runtime.h' file not found"


def failed(journal: Journal, error: str = ERROR, package: str = "my-attn", **more: object) -> str:
    return journal.record(command="install", error=error, package=package, version="1.0", **more)[0]  # type: ignore[arg-type]


def test_write_and_read(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state")
    assert journal.entries() == []
    assert not (tmp_path / "state").exists()
    name = failed(
        journal, gfx=("gfx942",), rocm="6.4.0", env={"MAX_JOBS": "8", "AWS_SECRET": "x"}, diagnosis="rocm-wheels-without-devel"
    )
    (entry,) = journal.entries()
    assert entry.id == name
    assert (entry.package, entry.gfx, entry.rocm, dict(entry.env)) == ("my-attn", ("gfx942",), "6.4.0", {"MAX_JOBS": "8"})
    assert "kim" not in entry.error
    assert journal.path.stat().st_mode & 0o777 == 0o600
    assert journal.folder.stat().st_mode & 0o777 == 0o700


def test_the_same_failure_is_counted(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    name = failed(journal)
    again, earlier = journal.record(command="install", error=ERROR.replace("kim", "lee"), package="my-attn", version="1.0")
    assert again == name
    assert earlier is not None
    assert earlier.id == name
    assert [one.seen for one in journal.entries()] == [2]


def test_notes_and_mending(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    name = failed(journal)
    journal.note(name[:4], "the  -devel\x1b[31m package was missing")
    journal.mended(name, "rocmpip install --jobs 2 my-attn")
    (entry,) = journal.entries()
    assert entry.worked
    assert entry.did == ("rocmpip install --jobs 2 my-attn",)
    assert entry.notes[0].isprintable()
    failed(journal)
    assert not journal.entries()[0].worked, "it failed again"


@pytest.mark.parametrize("wanted", ["ffffffff", "zz", "", "\x1b[31m"])
def test_unknown_ids(tmp_path: Path, wanted: str) -> None:
    journal = Journal(tmp_path)
    failed(journal)
    with pytest.raises(InputError) as caught:
        journal.find(wanted if wanted != "ffffffff" else "0" * 8 + "f")
    assert caught.value.message.isprintable()


def test_search_takes_words_as_they_are(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    failed(journal)
    assert len(journal.search("MY-ATTN hip_runtime.h")) == 1
    assert journal.search("my.attn") == []
    assert journal.search("(((") == []


@pytest.mark.parametrize(
    "torn",
    [
        b'{"v":1,"type":"en',
        b"\x00\xff",
        b"[" * 5000,
        b'{"v":9,"type":"entry"}\n',
        b"null\n",
        b'{"v":1,"type":"note","of":[1]}\n',
    ],
)
def test_torn_and_foreign_lines_cost_nothing_else(tmp_path: Path, torn: bytes) -> None:
    journal = Journal(tmp_path)
    first = failed(journal)
    with journal.path.open("ab") as stream:
        stream.write(torn)
    second = failed(journal, "ValueError: something else entirely went wrong here", "other")
    assert [one.id for one in journal.entries()] == [first, second]


WRITER = """
import sys
from rocmpip.store.journal import Journal
journal = Journal(sys.argv[1], limit=int(sys.argv[3]))
print("ready", flush=True)
for number in range(int(sys.argv[2])):
    journal._append({"type": "entry", "id": "%08x" % (int(sys.argv[4]) * 100000 + number), "at": "", "error": "e" * 300})
"""


def _writers(folder: Path, count: int, each: int, limit: int = 10_000_000) -> list[subprocess.Popen[str]]:
    code = textwrap.dedent(WRITER)
    return [
        subprocess.Popen(
            [sys.executable, "-c", code, str(folder), str(each), str(limit), str(number)], stdout=subprocess.PIPE, text=True
        )
        for number in range(count)
    ]


def test_many_writers(tmp_path: Path) -> None:
    running = _writers(tmp_path, 20, 20)
    assert [one.wait(60) for one in running] == [0] * 20
    assert len(Journal(tmp_path).entries()) == 400


def test_a_kill_in_the_middle(tmp_path: Path) -> None:
    running = _writers(tmp_path, 2, 100_000)
    for one in running:
        assert one.stdout is not None
        one.stdout.readline()
    while not Journal(tmp_path).path.exists() or Journal(tmp_path).path.stat().st_size < 20_000:
        assert all(one.poll() is None for one in running)
    for one in running:
        one.send_signal(signal.SIGKILL)
        one.wait(20)
    before = len(Journal(tmp_path).entries())
    assert before > 10
    failed(Journal(tmp_path))
    assert len(Journal(tmp_path).entries()) == before + 1


def test_it_never_grows_beyond_two_pages(tmp_path: Path) -> None:
    running = _writers(tmp_path, 3, 120, limit=20_000)
    assert [one.wait(60) for one in running] == [0] * 3
    sizes = {path.name: path.stat().st_size for path in tmp_path.glob("journal*.jsonl")}
    assert all(size < 20_000 + 4 * LARGEST for size in sizes.values()), sizes
    assert len(Journal(tmp_path).entries()) > 20


def test_a_long_failure_fits_one_write(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    env = dict.fromkeys(("CC", "CXX", "CFLAGS", "LD_LIBRARY_PATH", "CMAKE_ARGS"), "错" * 5000)
    failed(journal, "错误 " * 5000, "p" * 900, env=env, fix=("命令" * 900,) * 40, cause="因" * 9000)
    lines = journal.path.read_bytes().split(b"\n")
    assert max(map(len, lines)) < LARGEST
    assert journal.entries()[0].package.startswith("ppp")


def test_what_cannot_be_written_is_told_and_never_stops_a_command(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(Refused):
        failed(Journal(tmp_path / "state"))
    assert note_failure(env={}, state_dir=str(tmp_path / "state"), command="install", error=ERROR) is None
    (tmp_path / "own").mkdir()
    (tmp_path / "own/journal.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused):
        failed(Journal(tmp_path / "own"))
    assert not (tmp_path / "elsewhere").exists()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "third").mkdir()
    os.mkfifo(tmp_path / "third/journal.jsonl")
    assert Journal(tmp_path / "third").entries() == []


@pytest.mark.parametrize(
    "text",
    [
        "pip install -i https://me:s3cr3tvalue@host/simple x",
        "HF_TOKEN=hf_s3cr3tvalueAAAAAAA python",
        'headers {"Authorization": "Bearer s3cr3tvalue"}',
        "--token s3cr3tvalue",
        "password: s3cr3tvalue",
        "https://host/x?access_token=s3cr3tvalue&y=1",
        "api-key = 's3cr3tvalue'",
        "glpat-s3cr3tvalue-xyz",
        "Cookie: session=s3cr3tvalue",
        "TWINE_PASSWORD s3cr3tvalue",
        "machine host login me password s3cr3tvalue",
        "curl -u me:s3cr3tvalue https://host",
    ],
)
def test_secrets_go(text: str) -> None:
    assert "s3cr3tvalue" not in tidy(text)


def test_homes_go() -> None:
    text = "/home/kim/a /Users/lee/b C:\\Users\\max\\c /opt/own/kim2/d"
    assert tidy(text, "/opt/own/kim2") == "~/a ~/b ~\\c ~/d"


@given(st.text(max_size=300))
@settings(max_examples=150, deadline=None)
def test_tidy_text_is_one_safe_line(text: str) -> None:
    told = tidy(text, "/home/kim", 100)
    assert len(told) <= 100
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in told)


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=40), max_size=5))
def test_records_survive_a_torn_line_before_them(record: Mapping[str, str]) -> None:
    line = encode({**record, "v": 1, "type": "note"})
    whole = (b'{"v":1,"ty' + line).split(b"\n")
    assert [decode(one) for one in whole if decode(one)] == [{**record, "v": 1, "type": "note"}]


def test_alike() -> None:
    one = words_of("/a/b/ext.hip:3:10: fatal error: 'hip/hip_runtime.h' file not found")
    assert alike(one, words_of("/c/d/e/ext.hip:77:1: fatal error: 'hip/hip_runtime.h' file not found"))
    assert not alike(one, words_of("fatal error: 'cmath' file not found in this other place"))
    assert not alike(words_of(""), words_of(""))


def test_a_later_failure_hears_of_the_earlier_one(tmp_path: Path) -> None:
    env = {"HOME": "/home/kim", "MAX_JOBS": "16"}
    state = str(tmp_path)
    assert (
        note_failure(
            env=env, state_dir=state, command="install", error=ERROR, package="my-attn", version="1.0", torch="2.9.1+rocm6.4"
        )
        is None
    )
    ids = note_success(
        env={**env, "MAX_JOBS": "2"},
        state_dir=state,
        command="rocmpip install my-attn",
        package="my-attn",
        version="1.1",
        torch="2.9.1+rocm6.4",
    )
    assert len(ids) == 1
    earlier = note_failure(
        env=env, state_dir=state, command="install", error=ERROR.replace(":3:", ":9:"), package="other", version="2"
    )
    assert earlier is not None
    assert earlier.worked
    assert earlier.did == ("rocmpip install my-attn; version 1.0 → 1.1; MAX_JOBS=2",)
    assert "MAX_JOBS=2" in seen_before(earlier)
    assert "done" in words(earlier)


def test_success_without_a_journal_makes_none(tmp_path: Path) -> None:
    assert note_success(env={}, state_dir=str(tmp_path / "none"), command="install", package="x") == ()
    assert not (tmp_path / "none").exists()
