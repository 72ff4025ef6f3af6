"""What holds for every world: an answer meets all requirements, none is missed, and the same question has the same answer."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from resolve_world import pins, solve

from rocmpip.model.errors import NoPlan
from rocmpip.plan.requirements import need
from rocmpip.plan.versions import release, spec

NAMES = ("a", "b", "c", "d")
VERSIONS = ("1.0", "1.5", "2.0")
OPERATORS = ("==", "!=", ">=", "<=", "<", ">")

requirement = st.builds(
    lambda name, operator, version: f"{name}{operator}{version}" if operator else name,
    st.sampled_from(NAMES),
    st.sampled_from(("", *OPERATORS)),
    st.sampled_from(VERSIONS),
)
worlds = st.dictionaries(
    st.sampled_from(NAMES),
    st.dictionaries(st.sampled_from(VERSIONS), st.lists(requirement, max_size=2), min_size=1, max_size=3),
    min_size=1,
    max_size=4,
)


def meets(text: str, chosen: dict[str, str]) -> bool:
    wanted = need(text)
    return wanted.name in chosen and SpecifierSet(wanted.spec.text).contains(chosen[wanted.name], prereleases=True)


def whole(world: dict[str, dict[str, list[str]]], chosen: dict[str, str], requirements: list[str]) -> bool:
    return all(meets(text, chosen) for text in requirements) and all(
        meets(text, chosen) for name, version in chosen.items() for text in world[name][version]
    )


def solvable(world: dict[str, dict[str, list[str]]], requirements: list[str]) -> bool:
    """Every combination tried: the slow and sure way."""
    choices = [[(name, version) for version in versions] + [None] for name, versions in world.items()]
    return any(
        whole(world, dict(one for one in combination if one is not None), requirements)
        for combination in itertools.product(*choices)
    )


@settings(max_examples=100, deadline=None)
@given(worlds, st.lists(requirement, min_size=1, max_size=3))
def test_an_answer_meets_everything_and_is_found_when_there_is_one(
    world: dict[str, dict[str, list[str]]], requirements: list[str]
) -> None:
    try:
        chosen = pins(solve(world, *requirements))
    except NoPlan:
        assert not solvable(world, requirements)
        return
    assert whole(world, chosen, requirements)
    assert pins(solve(world, *requirements)) == chosen


numbers = st.integers(0, 12).map(str)
plain = st.lists(numbers, min_size=1, max_size=4).map(".".join)
version_text = st.one_of(
    plain,
    st.builds(
        lambda base, tail: base + tail,
        plain,
        st.sampled_from(["a1", "b2", "rc3", ".post1", ".dev4", "+rocm6.4", "+rocm10.0", "a1.dev2", ".post1.dev3", "+cu118"]),
    ),
    plain.map(lambda text: "1!" + text),
)
clause = st.builds(
    lambda operator, version: operator + version,
    st.sampled_from(["==", "!=", ">=", "<=", "<", ">", "~="]),
    plain,
).filter(lambda text: not text.startswith("~=") or "." in text)
wild = plain.map(lambda text: f"=={text}.*") | plain.map(lambda text: f"!={text}.*")


@settings(max_examples=250, deadline=None)
@given(version_text, version_text)
def test_versions_sort_as_packaging_sorts_them(one: str, other: str) -> None:
    assert (release(one) < release(other)) == (Version(one) < Version(other))
    assert (release(one) == release(other)) == (Version(one) == Version(other))


@settings(max_examples=250, deadline=None)
@given(st.lists(clause | wild, min_size=1, max_size=3).map(",".join), version_text)
def test_specifiers_contain_what_packaging_says(text: str, version: str) -> None:
    assert spec(text).contains(release(version)) == SpecifierSet(text).contains(version, prereleases=True)
