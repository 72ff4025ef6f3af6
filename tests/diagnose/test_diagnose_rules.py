"""Rule files: every fault told at once, patterns that cannot run away, and a user's rules beside ours."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmpip.diagnose.lines import read_lines
from rocmpip.diagnose.match import MachineContext, _Search, diagnose, fill, fitting
from rocmpip.diagnose.pattern import MOST_WIDE, Pattern, bounded, fault_of, literals_of, nested_quantifier, wide_quantifiers
from rocmpip.diagnose.rules import CONFIDENCE, decode_rules, load_rules, shipped_rules
from rocmpip.model.errors import BadConfiguration

RULE = """
[[rule]]
kind = "flux"
family = "flow"
line = ["the flux is not (?:capacitated|ready)"]
weight = 99
cause = "No flux for {package} on {gfx}."
fix = ["sudo apt install flux", "sudo dnf install flux", "export A={rocm_path}"]
source = "us"
"""


def test_shipped_rules_are_sound() -> None:
    book = decode_rules(shipped_rules())
    assert len(book.rules) > 80
    for rule in book.rules:
        assert rule.cause.endswith("."), rule.kind
        assert rule.source
        assert rule.confidence in CONFIDENCE
        assert not any(re.search(r"install .*cuda", command) for command in rule.fix), "never: install CUDA"


def test_each_kind_has_one_family() -> None:
    families: dict[str, set[str]] = {}
    for rule in load_rules().rules:
        families.setdefault(rule.kind, set()).add(rule.family)
    assert [kind for kind, known in families.items() if len(known) > 1] == []


PATTERNS = load_rules().patterns


def test_no_pattern_can_run_away() -> None:
    # What bounds the work of one search; bench/diagnose.py times each pattern on lines that almost match.
    assert [one.text for one in PATTERNS if wide_quantifiers(one.text) > MOST_WIDE or nested_quantifier(one.text)] == []


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("ab", 0),
        ("a.*b", 1),
        (r"a\S+b+?c*", 3),
        ("a.*|b.*c.*", 2),
        ("(?:a.*|b.*c.*)d.*", 3),
        ("x(a(b.*)?c+)y", 2),
        ("[*+]{3}", 0),
    ],
)
def test_wide_quantifiers_are_counted_along_one_way(pattern: str, count: int) -> None:
    assert wide_quantifiers(pattern) == count


def test_a_pattern_in_vain_on_long_lines_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    class Counting:
        def __init__(self, regex: re.Pattern[str]) -> None:
            self.regex = regex

        def search(self, text: str) -> re.Match[str] | None:
            tried.append(len(text))
            return self.regex.search(text)

    book = decode_rules([("mine.toml", RULE)])
    monkeypatch.setitem(vars(book.patterns[0]), "regex", Counting(book.patterns[0].regex))
    lines = 5000
    # Letters keep each line's shape new, so that only patience ends the search.
    log = ((number, f"the flux is not {letters(number)} " + "x" * _Search.LONG) for number in range(lines))
    assert diagnose(log, book).findings == ()
    assert len(tried) <= _Search.PATIENCE + 1


def letters(number: int) -> str:
    return "".join("abcdefghij"[int(digit)] for digit in str(number))


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b",
        "(.*x)*",
        "(\\w+\\s?)+$",
        "(a|b+){4,}",
        "x",
        "a(?P<n>b)(?P=n)",
        "(a)\\1",
        "[",
        "a" * 501,
        "",
        ".*",
        "a*",
        "a" + ".*b" * 7,
    ],
)
def test_patterns_that_are_refused(pattern: str) -> None:
    assert bool(fault_of(pattern)) == (pattern != "x")


def test_quantifiers_are_bounded() -> None:
    assert bounded(r"a.*b\S+c[+*]\+d+?") == r"a.{0,240}b\S{1,240}c[+*]\+d{1,240}?"


@given(st.sampled_from([pattern.text for pattern in PATTERNS]), st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_a_match_holds_one_of_the_literals(text: str, line: str) -> None:
    pattern = Pattern(text)
    match = pattern.regex.search(line)
    assert match is None or pattern.may_match(line)


def test_literals() -> None:
    assert literals_of(r"cannot find -l(?:amdhip64|hiprtc)") == ("cannot find -l",)
    assert literals_of(r"(?:first thing|second) x") == ("first thing", "second")
    assert literals_of(r"(?:first)? x") == ()
    assert literals_of(r"Killed signal|out of memory") == ("Killed signal", "out of memory")
    assert literals_of(r"(?i)killed") == ()


def test_all_faults_are_told_at_once() -> None:
    text = """
replace = 3
other = 1
[[rule]]
kind = "A b"
family = "f"
line = ["(a+)+", 3]
also = 4
weight = 1000
confidence = "sure"
when = { gpu = 1, wsl = "yes" }
success = "no"
differs = ["x"]
cause = ""
[[rule]]
kind = "ok"
"""
    with pytest.raises(BadConfiguration) as caught:
        decode_rules([("mine.toml", text), ("broken.toml", "=")])
    told = "\n".join(caught.value.details)
    for word in (
        "replace",
        "'other'",
        "kind",
        "line",
        "also",
        "weight",
        "confidence",
        "'gpu'",
        "when.wsl",
        "success",
        "differs",
        "cause",
        "source",
        "#2",
        "not TOML",
    ):
        assert word in told, word
    assert caught.value.exit_code == 45


def test_a_users_rules_come_beside_ours_or_instead(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(RULE)
    book = load_rules((str(path),))
    context = MachineContext(gfx=("gfx942",), rocm="6.4.1", package="x", rocm_path="/opt/r", installer="apt")
    found = diagnose(read_lines(io.BytesIO(b"the flux is not ready\n")), book, context).findings[0]
    assert (found.kind, found.cause) == ("flux", "No flux for x on gfx942.")
    assert found.fix == ("sudo apt install flux", "export A=/opt/r")
    path.write_text('replace = ["libstdcxx-dev-missing"]\n' + RULE)
    load_rules.cache_clear()
    assert "libstdcxx-dev-missing" not in {rule.kind for rule in load_rules((str(path),)).rules}
    load_rules.cache_clear()


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00", b"#" * 1_100_000], ids=["missing", "not-utf-8", "too-large"])
def test_rule_files_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "mine.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadConfiguration):
        load_rules((str(path),))


def test_advice_for_this_machine() -> None:
    assert (
        fill("{gfx;} {rocm} {torch}", MachineContext(gfx=("gfx90a", "gfx942"), rocm="6.4.1", torch="2.9.1+rocm6.4"))
        == "gfx90a;gfx942 6.4 2.9.1"
    )
    assert fill("{gfx} {rocm_path}", MachineContext()) == "<gfx> /opt/rocm"
    assert fitting(("sudo dnf install a", "b"), "apt") == ("sudo dnf install a", "b")


def test_a_rule_for_other_machines_is_silent() -> None:
    book = decode_rules([("a.toml", RULE.replace("weight = 99", 'when = { gfx = ["gfx906"], wsl = false }'))])
    log = [(1, "the flux is not ready")]
    assert diagnose(log, book, MachineContext(gfx=("gfx942",))).findings == ()
    assert diagnose(log, book, MachineContext(gfx=("gfx906",), wsl=True)).findings == ()
    assert len(diagnose(log, book, MachineContext(gfx=("gfx906",))).findings) == 1
