"""The guard's lines in pip.conf: pip reads them, others' lines stay byte for byte, and off leaves no trace."""

from __future__ import annotations

import configparser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmpip.argv.config import parse_pip_config
from rocmpip.model.errors import InputError
from rocmpip.store.guard import COMMANDS, Files, read, sections_for, with_guard, without_guard, write

CONF = Path("/env/pip.conf")
GUARD = "/env/rocmpip-guard.txt"


def effective(text: str, command: str = "install") -> list[str]:
    """The constraint files that pip reads for a command: the command's section goes before [global]."""
    parser = configparser.RawConfigParser()
    parser.read_string(text)
    return parser.get(command, "constraint", fallback=parser.get("global", "constraint", fallback="")).split()


def guarded_text(text: str | None, below: str = "") -> str:
    """``text`` with the guard; ``below`` is a file that pip reads before it."""
    merged = parse_pip_config(below + "\n")
    for section, values in parse_pip_config(text or "").items():
        merged.setdefault(section, {}).update(values)
    return with_guard(text, GUARD, sections_for(text, GUARD, merged, CONF), CONF)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "\n",
        "# only a comment\n",
        "[global]\n",
        "[global]",
        "[global]\nindex-url = https://pypi.example/simple\n",
        "[global]\nindex-url = https://pypi.example/simple",
        "[global]\r\nindex-url = https://pypi.example/simple\r\n\r\n[install]\r\nno-compile = yes\r\n",
        "[install]\nno-compile = yes\n",
        "[install]\nno-compile = yes",
        "[global]\nfind-links =\n    https://a.example/\n\n    https://b.example/\n; the end\n\n# of install\n[install]\nuser = no\n",
        "[global]\n    timeout = 60\n    # inside\n    retries: 3\n[list]\nformat = json\n",
        "  [global]\n  timeout = 60\n  [install]\n  user = no\n",
        "[freeze]\ntimeout = 1\n[global]\n[list]\nformat = json\n",
        "[DEFAULT]\ntimeout = 9\n[global]\nretries = 1\n",
    ],
)
def test_on_and_off_give_back_every_byte(text: str | None) -> None:
    guarded = guarded_text(text)
    assert effective(guarded) == [GUARD]
    for line in (text or "").splitlines():
        assert line in guarded.splitlines()
    assert without_guard(guarded, GUARD) == text


@pytest.mark.parametrize(
    ("text", "below", "expected"),
    [
        ("[global]\nconstraint = mine.txt\n", "", {"install": ["mine.txt"], "wheel": ["mine.txt"]}),
        (
            "[global]\nconstraint =\n  a.txt\n  b.txt\ntimeout = 3",
            "",
            {"install": ["a.txt", "b.txt"], "lock": ["a.txt", "b.txt"]},
        ),
        ("[global]\nretries = 1\n", "[global]\nconstraint=low.txt", {"install": ["low.txt"], "download": ["low.txt"]}),
        ("[install]\nuser = no\n", "[install]\nconstraint=low.txt", {"install": ["low.txt"], "wheel": []}),
        (None, "[global]\nconstraint=a\n[wheel]\nconstraint=b", {"install": ["a"], "wheel": ["b"]}),
    ],
)
def test_constraints_that_were_there_go_on_counting(text: str | None, below: str, expected: dict[str, list[str]]) -> None:
    guarded = guarded_text(text, below)
    for command, others in expected.items():
        assert effective(guarded, command) == [GUARD, *others]
    assert without_guard(guarded, GUARD) == text


def test_a_commands_own_constraint_leaves_no_place() -> None:
    text = "[global]\ntimeout = 3\n[install]\nconstraint = mine.txt\n"
    with pytest.raises(InputError, match="takes one alone") as told:
        guarded_text(text)
    assert GUARD in told.value.hint
    helped = guarded_text(text.replace("mine.txt", f"mine.txt {GUARD}"))
    assert all(GUARD in effective(helped, command) for command in COMMANDS)


def test_lines_written_since_stay_when_the_guard_goes() -> None:
    guarded = with_guard(None, GUARD, {"global": ()}, CONF)
    grown = guarded + "timeout = 60\n[list]\nformat = json\n"
    assert without_guard(grown, GUARD) == "[global]\ntimeout = 60\n[list]\nformat = json\n"
    within = guarded.replace("[global]\n", "[global]\nretries = 2\n")
    assert without_guard(within, GUARD) == "[global]\nretries = 2\n"


def test_what_pip_config_has_rewritten_is_understood() -> None:
    """`pip config set` drops comments, and with them the marks."""
    rewritten = f"[global]\nconstraint = {GUARD} mine.txt\ntimeout = 60\n\n"
    assert without_guard(rewritten, GUARD) == "[global]\nconstraint = mine.txt\ntimeout = 60\n\n"
    assert without_guard(f"[global]\nconstraint = {GUARD}\ntimeout = 60\n", GUARD) == "[global]\ntimeout = 60\n"


@pytest.mark.parametrize("text", ["no section = 1\n", "[global]\na = 1\na = 2\n", "[global]\n[global]\n", "[broken\n"])
def test_a_broken_file_is_told(text: str) -> None:
    with pytest.raises(InputError) as told:
        with_guard(text, GUARD, {"global": ()}, CONF)
    assert str(CONF) in told.value.message
    assert "not changed" in told.value.hint


KEYS = st.sampled_from(("timeout", "index-url", "find-links", "no_index", "--retries", "user", "constraint"))
VALUES = st.sampled_from(("1", "yes", "https://pypi.example/simple", "", "a b", "%(x)s", "é"))
NEWLINES = st.sampled_from(("\n", "\r\n"))


@st.composite
def configurations(draw: st.DrawFn) -> str:
    """Files that pip reads: sections, keys, continuations, comments, blank lines, any indentation and either newline."""
    newline = draw(NEWLINES)
    lines: list[str] = draw(st.lists(st.sampled_from(("", "# a", "; b")), max_size=2))
    for section in draw(st.lists(st.sampled_from(("global", "install", "wheel", "list")), unique=True, max_size=4)):
        lines.append(f"[{section}]")
        indent = draw(st.sampled_from(("", "  ")))
        for key in draw(st.lists(KEYS, unique=True, max_size=3)):
            if key == "constraint" and section == "list":
                continue
            lines.append(f"{indent}{key} {draw(st.sampled_from('=:'))} {draw(VALUES)}")
            lines += [f"{indent}\t{word}" for word in draw(st.lists(st.sampled_from(("x", "y")), max_size=2))]
            lines += draw(st.lists(st.sampled_from(("", "# c", f"{indent}; d")), max_size=2))
    text = newline.join(lines)
    return text + newline if draw(st.booleans()) else text


@given(configurations())
def test_any_file_comes_back(text: str) -> None:
    try:
        guarded = guarded_text(text)
    except InputError as problem:
        assert "takes one alone" in problem.message
        return
    for command in COMMANDS:
        assert effective(guarded, command) == [GUARD, *effective(text, command)]
    assert without_guard(guarded, GUARD) == text
    assert guarded_text(without_guard(guarded, GUARD)) == guarded


def test_a_path_with_blanks_is_one_word() -> None:
    reference = Files(Path("/my envs/a")).reference
    assert reference == "file:///my%20envs/a/rocmpip-guard.txt"


def test_writing_keeps_links_and_permissions(tmp_path: Path) -> None:
    real = tmp_path / "real.conf"
    real.write_text("old")
    real.chmod(0o600)
    link = tmp_path / "pip.conf"
    link.symlink_to(real)
    write(link, "new\r\n")
    assert link.is_symlink()
    assert real.read_bytes() == b"new\r\n"
    assert real.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pip.conf", "real.conf"]
    assert read(link) == "new\r\n"


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_bytes(b"[global]\n\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        read(tmp_path / "pip.conf")
    with pytest.raises(InputError):
        read(tmp_path)
    with pytest.raises(InputError):
        write(tmp_path / "gone" / "pip.conf", "")
