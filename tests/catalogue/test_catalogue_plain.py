"""The quick reader agrees with a real TOML parser, or gives up."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmpip.catalogue import rows
from rocmpip.catalogue.plain import read_plain

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def agrees(text: str) -> bool:
    found = read_plain(text)
    return found is None or found == tomllib.loads(text)


def test_the_gpu_table_is_plain() -> None:
    """Detection waits for this file: a row that is not plain makes every start slower."""
    with open(rows.__file__.replace("rows.py", "data/gfx.toml"), encoding="utf-8") as stream:
        text = stream.read()
    assert read_plain(text) == tomllib.loads(text)


def test_plain_text() -> None:
    text = '# comment\n\n[gfx.gfx90a]\nname = "MI210 (größer) = # ]"\n  flag = true\n[other]\nb-c_1="x"\nempty = ""\n'
    assert read_plain(text) == {
        "gfx": {"gfx90a": {"name": "MI210 (größer) = # ]", "flag": True}},
        "other": {"b-c_1": "x", "empty": ""},
    }


@pytest.mark.parametrize(
    "text",
    [
        "a = 1",
        "a = ['x']",
        "a = 'x'",
        'a = "x\\n"',
        'a = """x"""',
        'a = "x" # comment',
        'a = "x"\r\n',
        "# lone \r return",
        'a.b = "x"',
        '"a" = "x"',
        "[[a]]",
        "[a] # comment",
        '["a"]',
        "[ a ]",
        "[a]\n[a]",
        '[a]\nb = "x"\n[a.b]',
        '[a]\nb = "x"\nb = "y"',
        'a = "unclosed',
        "a =",
        "= 1",
        "a",
        "[",
        "[]",
        '"',
        'a = "',
    ],
)
def test_anything_else_is_left_to_the_parser(text: str) -> None:
    assert read_plain(text) is None


PIECES = st.lists(
    st.sampled_from(['"', "=", "[", "]", "a", "b", ".", " ", "\n", "\t", "\r", "#", "true", "false", "\\", "'", "é", "\x00"]),
    max_size=40,
)


@given(PIECES.map("".join))
def test_it_never_disagrees(text: str) -> None:
    assert agrees(text)


@given(st.text(max_size=60))
def test_nor_on_any_text(text: str) -> None:
    assert agrees(text)
