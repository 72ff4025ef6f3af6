"""The shortcut before packaging reads exactly what packaging reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import InvalidRequirement, Requirement

from rocmpip.argv.pep508 import Parsed, check_marker, parse_requirement

ODD = """
requests | requests==2.31.0 | requests>=2,<3 | requests >= 2 | requests (>=2) | requests[socks] | requests[socks,use_chardet]>=2
requests[] | requests[ socks ] | requests[a,] | requests[,a] | Requests.Under_score | a | 1a | a- | -a | a..b | a_b-c.d==1
a==1.0.* | a!=1.* | a>=1.* | a~=1 | a~=1.0 | a~=1.0.* | a===1.0 | a===anything | a==1!2.0 | a==1.0rc1 | a>1.0.post1 | a==1.0+local
a==01.002 | a== 1 | a ==1 | a==1,==1 | a>=1,>=1,<2 | a<2,>=1 | a==1, | a,==1 | a==1,,<2 | a==\u0661 | a==1.\u0662 | a==1_0 | a<> 1 | a=1 | a>1 2
a; python_version < "3" | a ;x | a@ https://x/y.whl | a @ file:///x | a[b]@https://x | a==1;os_name=="nt" | a\t>=\t1 | a\n | a==1\n | \u00e9==1 | a[\u00e9]
a[b_c] | a[B.c-d]==1 | a<=1.2.3.4.5 | a==9999999999999999999999
"""
TEXTS = [one.strip(" ") for line in ODD.strip("\n").split("\n") for one in line.split(" | ")] + ["", " ", "==1", "a=="]


def by_packaging(text: str) -> Parsed | None:
    try:
        found = Requirement(text)
    except InvalidRequirement:
        return None
    marker = str(found.marker) if found.marker else ""
    return Parsed(found.name, frozenset(found.extras), str(found.specifier), marker, found.url or "")


def by_us(text: str) -> Parsed | None:
    try:
        return parse_requirement(text)
    except ValueError:
        return None


@pytest.mark.parametrize("text", TEXTS)
def test_odd_texts(text: str) -> None:
    assert by_us(text) == by_packaging(text)


PIECES = st.sampled_from(
    [*"ab1.-_[], =<>!~*@;()", "==", ">=", "<=", "~=", "!=", "===", "1.0", "2", "1.*", "rc1", "+x", "extra", " ; ", "é", "١"]
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_any_text(text: str) -> None:
    assert by_us(text) == by_packaging(text)


CLAUSE = st.builds(
    lambda operator, numbers, star: operator + ".".join(map(str, numbers)) + (".*" if star else ""),
    st.sampled_from(["==", "!=", ">=", "<=", ">", "<", "~="]),
    st.lists(st.integers(0, 2000), min_size=1, max_size=4),
    st.booleans(),
)


@given(st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,6}[A-Za-z0-9])?", fullmatch=True), st.lists(CLAUSE, max_size=4))
def test_names_and_clauses(name: str, clauses: list[str]) -> None:
    text = name + ",".join(clauses)
    assert by_us(text) == by_packaging(text)


def test_refusals_have_packagings_words() -> None:
    with pytest.raises(InvalidRequirement) as theirs:
        Requirement("a=1")
    with pytest.raises(ValueError, match="a=1") as ours:
        parse_requirement("a=1")
    assert str(ours.value) == str(theirs.value)


def test_markers() -> None:
    check_marker('python_version < "3.13"')
    with pytest.raises(ValueError, match="nonsense"):
        check_marker("nonsense")
