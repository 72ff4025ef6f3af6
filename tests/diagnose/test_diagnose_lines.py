"""Logs of any size and encoding: right line numbers, bounded time and memory, nothing that a terminal would obey."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmpip.diagnose import lines as reading
from rocmpip.diagnose.lines import read_lines
from rocmpip.diagnose.match import Diagnosis, diagnose
from rocmpip.diagnose.rules import load_rules
from rocmpip.diagnose.text import LONGEST, bare, clean, encoding_of

CAUSE = "/w/a.hip:1:10: fatal error: 'cmath' file not found"


def told(data: bytes) -> Diagnosis:
    return diagnose(read_lines(io.BytesIO(data)), load_rules())


def found(data: bytes) -> tuple[str, int]:
    one = told(data).findings[0]
    return one.kind, one.line


@pytest.mark.parametrize(
    "data",
    [
        f"a\nb\n{CAUSE}\n".encode(),
        f"a\r\nb\r\n{CAUSE}\r\n".encode(),
        f"a\nb\n\x1b[1m\x1b[31m{CAUSE}\x1b[0m\x1b[K\n".encode(),
        f"a\nb\n[1/9] x\r[2/9] y\r{CAUSE}\n".encode(),
        f"a\nb\n{CAUSE}\n".encode("utf-16"),
        f"a\nb\n{CAUSE}\n".encode("utf-16-le"),
        f"a\nb\n{CAUSE}\n".encode("utf-16-be"),
        b"\xef\xbb\xbfa\nb\n" + CAUSE.encode(),
        b"\x00\xff\xfe\x9b\nb\x00\n" + CAUSE.encode() + b"\n",
        b"x" * 10_000_000 + b"\nb\n" + CAUSE.encode(),
        b"a\n" + b"tqdm 1%\r" * 500_000 + b"\n" + CAUSE.encode(),
    ],
    ids=["plain", "crlf", "colours", "progress", "utf-16", "le", "be", "bom", "garbage", "10-MB-line", "long-progress"],
)
def test_encodings_and_line_ends(data: bytes) -> None:
    assert found(data) == ("libstdcxx-dev-missing", 3)


def test_chinese_gcc_in_utf_8_and_gbk() -> None:
    text = "c++: 致命错误：已杀死 signal terminated program cc1plus\n编译中断。\n"
    assert found(text.encode())[0] == found(text.encode("gbk"))[0] == "build-out-of-memory"


@pytest.mark.parametrize("at", [0, 3, 40, 70, 99])
def test_a_large_log_keeps_its_line_numbers(at: int) -> None:
    step = b"[1/2] hipcc -Wall -Werror -c error.cpp -o error.o -I/opt/rocm/include " + b"y" * 60 + b"\n"
    parts = [step * 1500] * 100
    parts.insert(at, CAUSE.encode() + b"\n")
    assert found(b"".join(parts)) == ("libstdcxx-dev-missing", at * 1500 + 1)


def test_a_flood_of_errors_hides_nothing_elsewhere() -> None:
    flood = b"x.c:1: error: nothing that a rule knows\n" * 200_000
    step = b"compiling something at length, without a word of trouble in it\n" * 200_000
    assert found(b"".join((flood, step, CAUSE.encode(), b"\n", step)))[0] == "libstdcxx-dev-missing"


def test_memory_stays_bounded(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as stream:
        for _ in range(60):
            stream.write(b"[1/2] hipcc -Werror -c error.cpp -o error.o and more words\n" * 18_000)
    tracemalloc.start()
    try:
        with path.open("rb") as stream:
            count = sum(1 for _ in read_lines(stream))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40_000_000
    assert 0 < count < 60_000


def test_only_the_size_asked_for_is_read() -> None:
    stream = io.BytesIO(b"a\n" * 1000)
    assert len(list(read_lines(stream, 20))) == 11
    assert stream.tell() == 20


@given(st.binary(max_size=3000))
@settings(max_examples=150, deadline=None)
def test_no_bytes_break_it_or_reach_a_terminal(data: bytes) -> None:
    for number, text in read_lines(io.BytesIO(data)):
        assert 1 <= number <= data.count(b"\n") + 2 + data.count(b"\x00")
        assert len(text) <= LONGEST + 10
        assert not any((ord(char) < 32 and char != "\t") or 127 <= ord(char) < 160 for char in text)
    result = told(data)
    assert all(finding.evidence.isprintable() or "\t" in finding.evidence for finding in result.findings)


@given(st.lists(st.sampled_from([CAUSE, "error: x", "\x1b]0;title\x07", "a\rb", "[9/9] ok", ""]), max_size=40), st.booleans())
@settings(max_examples=80, deadline=None)
def test_small_pieces_and_whole_logs_say_the_same(parts: list[str], wide: bool) -> None:
    data = "\n".join(parts).encode("utf-16" if wide else "utf-8")
    whole = told(data)

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 7, 7) if size and size > 0 else 7)

    if not wide and len(data) > 7:
        return  # A pipe that hands out a few bytes makes many chunks; the mark of UTF-16 alone must be in the first.
    assert [(one.kind, one.line) for one in diagnose(read_lines(Slow(data)), load_rules()).findings] == [
        (one.kind, one.line) for one in whole.findings
    ]


def test_terminal_escapes_of_all_kinds_go() -> None:
    evil = "\x1b]8;;http://x\x07link\x1b]8;;\x07 \x1b[2J\x1b[1;1H\x9b31m\x1bP1$r\x1b\\\u202eerror: \x07x\x08\x7f"
    assert clean(evil).isprintable()
    assert "link" in clean(evil)


@pytest.mark.parametrize(
    "prefix",
    ["#18 41.2 ", "#7 [3/5] 0.123 ", "2026-11-30T12:00:00.123456Z ", "[12:00:01] ", "> ", "> > ", "  │ ", "Nov 30 12:00:00 host app[12]: ", "[rank0]: ", "(EngineCore_0 pid=77) "],
)  # fmt: skip
def test_prefixes_are_no_part_of_the_message(prefix: str) -> None:
    assert bare(prefix + "2.9.1+cu128 None").strip() == "2.9.1+cu128 None"


def test_binary_data_is_not_taken_for_utf_16() -> None:
    assert encoding_of(b"\x7fELF" + b"\0" * 300) == "utf-8"
    assert encoding_of("ab".encode("utf-16-le") * 20) == "utf-16-le"


def test_gates_and_chunks_fit_each_other() -> None:
    assert reading.HEAD + reading.TAIL < reading.CHUNK
    assert all(reading.GATES)


@pytest.mark.parametrize("word", ["fatal error: ", "致命错误："])
def test_the_middle_of_a_large_log_is_read_in_chinese_too(word: str) -> None:
    step = "gcc -c 文件.c -o 文件.o 与其他许多没有意义的单词\n".encode() * 120_000
    line = f"c++: {word}已杀死 signal terminated program cc1plus\n".encode()
    assert found(b"".join((step, line, step))) == ("build-out-of-memory", 120_001)
