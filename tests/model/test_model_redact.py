"""Credentials go out of every text; what our own advice writes in their place stays readable."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rocmpip
from rocmpip.model.redact import EXAMPLE, bare_url, redact

SECRET = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="/\x7f"), min_size=1, max_size=20
).filter(lambda text: not any(char.isspace() for char in text))


@given(SECRET, SECRET)
def test_credentials_never_show(user: str, password: str) -> None:
    told = redact(f"cannot reach https://{user}:q{password}q@h.example/simple (as asked)")
    assert told == "cannot reach https://****@h.example/simple (as asked)"
    assert bare_url(f"https://{user}:q{password}q@h.example/x") == "https://h.example/x"


@pytest.mark.parametrize("password", ["p'w", 'p"w', "p<w>", "p@w", "[p]w", "<password>x", "user:password"])
def test_what_people_paste(password: str) -> None:
    assert redact(f"git+https://me:{password}@h.example/x.git") == "git+https://****@h.example/x.git"


@pytest.mark.parametrize(
    "advice", [f"put them into the URL (https://{EXAMPLE}host/…)", f"socks5://[{EXAMPLE}]host:port", f"http://{EXAMPLE}host:80"]
)
def test_an_example_stays_readable(advice: str) -> None:
    assert redact(advice) == advice


def test_no_advice_of_ours_loses_its_example() -> None:
    """Every URL with a user that stands in our sources is the example, or made from it."""
    written = re.compile(r"""(?:hint|why)=f?["'][^"'\n]*?://(?!\{EXAMPLE\}|\[\{EXAMPLE\}\])[^\s"'/]*@""")
    found = [
        f"{path.name}: {match[0]}"
        for path in Path(rocmpip.__file__).parent.rglob("*.py")
        for match in written.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("https://h.example/x?token=abc&page=2", "https://h.example/x?token=****&page=2"),
        ("http://127.0.0.1:8123/abcdefghijklmnopqrstuv/simple", "http://127.0.0.1/router/simple"),
        ("mail me@h.example, see https://h.example/a me@b", "mail me@h.example, see https://h.example/a me@b"),
        ("no address at all: a@b", "no address at all: a@b"),
    ],
)
def test_the_rest(text: str, told: str) -> None:
    assert redact(text) == told
