"""PubGrub's search: right by exhaustion on small worlds, and uv's answer where several are right.

``uv_answers.json`` holds small made-up worlds and what ``uv pip compile`` (0.13.9, Python 3.12) answered for each when it was asked. In all of
them a search that only backtracks ends with another answer than uv's, or with none that is right.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from resolve_world import TAGS, World, pins, solve

from rocmpip.model.errors import NoPlan
from rocmpip.plan.listing import Candidate, Metadata, Rules
from rocmpip.plan.pubgrub import OUT, ROOT_VERSION, Incompatibility, NoSolution, Solver
from rocmpip.plan.requirements import lines_of, need
from rocmpip.plan.resolve import Options
from rocmpip.plan.versions import release

ANSWERS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("uv_answers.json").read_text(encoding="utf-8"))

# Rows 2.0 to 2.9 of the inner package want the old a; only the oldest does not.
TOO_OLD = {"1.0.0": ["too-old"], **{f"2.0.{number}": ["a==1.0.0"] for number in range(10)}}


@pytest.mark.parametrize("row", ANSWERS, ids=lambda row: row["id"])
def test_uvs_answer(row: Mapping[str, Any]) -> None:
    world = World(row["projects"])
    options = Options(pre=row.get("pre", False), preferred=row.get("preferred", {}))
    more: dict[str, Any] = {
        "rules": Rules(TAGS, "3.12.0", stretch_python=True),
        "python": "3.12.0",
        "constraints": row.get("constraints", ()),
        "overrides": lines_of(row.get("overrides", ())),
    }
    if row["answer"] is None:
        with pytest.raises(NoPlan):
            solve(world, *row["requirements"], options=options, **more)
    else:
        assert pins(solve(world, *row["requirements"], options=options, **more)) == row["answer"]


def test_what_is_refused_five_times_is_chosen_before_what_it_was_refused_for() -> None:
    world = {"a": {"1.0.0": [], "2.0.0": []}, "b": TOO_OLD, "too-old": {"1.0.0": []}}
    assert pins(solve(world, "a", "b")) == {"a": "1.0.0", "b": "2.0.9"}


def test_an_indirect_conflict_goes_back_to_the_oldest_as_in_uv() -> None:
    world = {"a": {"1.0.0": [], "2.0.0": []}, "b": {"1.0.0": ["b-inner"]}, "b-inner": TOO_OLD, "too-old": {"1.0.0": []}}
    wanted = {"a": "2.0.0", "b": "1.0.0", "b-inner": "1.0.0", "too-old": "1.0.0"}
    assert pins(solve(world, "a", "b")) == wanted


def test_a_project_that_always_needs_an_extra_of_its_own() -> None:
    """Some releases name themselves with an extra in their plain requirements."""
    world = {
        "p": {"2": {"needs": ["p[client]", "q>=2; extra == 'client'"], "extras": ["client"]}, "1": ["r"]},
        "q": {"1": [], "2": []},
        "r": {"1": []},
    }
    assert pins(solve(world, "q<2", "p")) == {"p": "1", "q": "1", "r": "1"}
    assert pins(solve({**world, "o": {"1": ["q>2"], "0": []}}, "q", "p", "o")) == {"o": "0", "p": "2", "q": "2"}


def test_hundreds_of_versions_that_do_not_go_together_take_no_time() -> None:
    """Every version of p wants another q, every version of q another r, and r has only the oldest: 300² pairs, one answer."""
    count = 300
    world = World(
        {
            "p": {f"{n}.0": [f"q=={n}.0"] for n in range(1, count)},
            "q": {f"{n}.0": [f"r=={n}.0"] for n in range(1, count)},
            "r": {"1.0": []},
        }
    )
    assert pins(solve(world, "r", "p", "q")) == {"p": "1.0", "q": "1.0", "r": "1.0"}


def test_what_comes_next_is_asked_for_together() -> None:
    """After four, eight, sixteen … refused versions: twice as many of those that follow."""
    hints: list[tuple[str, str]] = []

    class Watched(World):
        def prefetch(self, name: str, text: str = "", extras: frozenset[str] = frozenset()) -> None:
            hints.append((name, text))

    world = Watched({"p": {f"{n}.0": ["r>=2"] if n else [] for n in range(30)}, "r": {"1.0": []}, "s": {"1.0": ["r"]}})
    assert pins(solve(world, "r==1.0", "s", "p"))["p"] == "0.0"
    asked = [text for name, text in hints if name == "p" and text]
    assert asked[:8] == [f"=={n}.0" for n in range(25, 17, -1)]
    assert set(asked) >= {f"=={n}.0" for n in range(25)}


NAMES = ("a", "b", "c", "d")
VERSIONS = ("1.0", "2.0", "3.0")
_SPECS = st.sampled_from(("", "==1.0", "==2.0", "==3.0", "<2", ">=2", "!=2.0", "<3,>1", "==4.0"))


@st.composite
def worlds(draw: st.DrawFn) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for name in NAMES:
        others = [one for one in NAMES if one != name]
        wants = st.lists(st.tuples(st.sampled_from(others), _SPECS).map("".join), max_size=2)
        versions = draw(st.sets(st.sampled_from(VERSIONS), min_size=1))
        found[name] = {version: draw(wants) for version in sorted(versions)}
    return found


def _fits(world: Mapping[str, Mapping[str, list[str]]], roots: list[str], chosen: Mapping[str, str]) -> bool:
    wanted = [*roots, *(text for name, version in chosen.items() for text in world[name][version])]
    return all(one.name in chosen and one.spec.contains(release(chosen[one.name])) for one in map(need, wanted))


def _exists(world: Mapping[str, Mapping[str, list[str]]], roots: list[str]) -> bool:
    choices = [[None, *world[name]] for name in NAMES]
    for row in itertools.product(*choices):
        chosen = {name: version for name, version in zip(NAMES, row, strict=True) if version is not None}
        if _fits(world, roots, chosen):
            return True
    return False


@pytest.mark.parametrize("pip_rules", [False, True], ids=["uv", "pip"])
@settings(max_examples=150, deadline=None)
@given(world=worlds(), roots=st.lists(st.tuples(st.sampled_from(NAMES), _SPECS).map("".join), min_size=1, max_size=3))
def test_an_answer_fits_and_is_found_if_there_is_one(
    pip_rules: bool, world: dict[str, dict[str, list[str]]], roots: list[str]
) -> None:
    try:
        found = pins(solve(world, *roots, options=Options(pip_rules=pip_rules)))
    except NoPlan:
        assert pip_rules or not _exists(world, roots)
    else:
        assert _fits(world, roots, found)


def test_a_pin_that_came_to_fit_again_is_looked_at_again() -> None:
    """resolvelib forgot what such a pin needs: nothing satisfies these, and it answered a 2.0.0, b 1.2.0, c 3.0.0 although a needs c<=2.0.0."""
    world = {
        "a": {"2.1.0": ["c>=3.0.0", "c==1.1.0"], "2.0.0": ["c<=2.0.0", "c", "b>=1.2.0"]},
        "b": {
            "2.0.0": ["c==1.1.0", "a~=2.1.0"],
            "1.1.0": ["a>=2.1.0", "c==2.1.0"],
            "1.2.0": ["c>=3.0.0"],
            "1.0.0": ["a", "a"],
            "2.1.0": ["a==2.0.0"],
        },
        "c": {"2.1.0": ["b>=1.0.0"], "3.0.0": ["a==2.*"], "1.1.0": ["b>2.1.0"], "2.0.0": ["a>2.0.0", "b"]},
    }
    for pip_rules in (False, True):
        with pytest.raises(NoPlan):
            solve(world, "b", "c", options=Options(pip_rules=pip_rules))


def test_a_set_without_conflicts_loads_no_second_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rocmpip.plan.pubgrub_search", None)
    assert pins(solve({"a": {"1": ["b"]}, "b": {"1": [], "2": []}}, "a")) == {"a": "1", "b": "2"}


def test_terms_of_one_package_are_learned_from() -> None:
    """Root needs one of two versions, both are excluded: the search ends with the root alone."""
    solver = Solver()
    solver.everything[1] = 0b111
    solver.propagate(0)
    solver.decide(0, ROOT_VERSION)
    solver.depend(0, ROOT_VERSION, 1, 0b110)
    assert solver.propagate(0) == []
    assert solver.undecided(1) and not solver.term(1) & OUT
    solver.add(Incompatibility({1: 0b010}))
    solver.propagate(1)
    assert solver.term(1) == 0b100
    solver.add(Incompatibility({1: 0b100}))
    with pytest.raises(NoSolution):
        solver.propagate(1)


def test_a_forbidden_name_is_not_avoided_by_a_conflict_elsewhere() -> None:
    """An older ``app`` would do without the CUDA package; the conflict between ``x`` and ``y`` must not lead there."""
    world = {
        "app": {"2": ["cuda-thing"], "1": []},
        "x": {"2": ["z<2"], "1": []},
        "y": {"1": ["z>=2"]},
        "z": {"1": [], "2": []},
        "cuda-thing": {"1": []},
    }
    with pytest.raises(NoPlan, match="cuda-thing"):
        solve(world, "x", "y", "app", forbidden=lambda name: "it is CUDA" if name == "cuda-thing" else None)


def test_added_extras_hold_behind_a_conflict() -> None:
    world = {
        "torch": {"2": {"needs": ["kernels; extra == 'device-gfx942'"], "extras": ["device-gfx942"]}},
        "kernels": {"1": []},
        "x": {"2": ["z<2"], "1": []},
        "y": {"1": ["z>=2"]},
        "z": {"1": [], "2": []},
    }
    found = solve(world, "x", "y", "torch", options=Options(extras={"torch": ("device-gfx942",)}))
    assert pins(found) == {"kernels": "1", "torch": "2", "x": "1", "y": "1", "z": "2"}
    assert found.pins["torch"].extras == ("device-gfx942",)
    assert [parent.name for parent in found.pins["kernels"].parents] == ["torch"]


def test_a_url_holds_behind_a_conflict_and_one_behind_other_packages_is_left_to_resolvelib() -> None:
    url = "https://files.example/z-1-py3-none-any.whl"
    world = World({"x": {"2": ["z>=2"], "1": ["z"]}, "y": {"1": [f"z @ {url}"]}})
    world.urls[url] = Candidate("z", release("1"), origin="url", url=url, metadata=Metadata())
    assert pins(solve(world, f"z @ {url}", "x")) == {"x": "1", "z": "1"}
    assert pins(solve(world, "y", "x")) == {"x": "1", "y": "1", "z": "1"}


def test_a_yanked_version_is_not_taken_because_of_a_conflict() -> None:
    world = {
        "a": {"3": {"needs": [], "yanked": "broken"}, "2": ["b<2"], "1": []},
        "b": {"2": [], "1": []},
        "c": {"1": ["b>=2"]},
    }
    assert pins(solve(world, "a", "c")) == {"a": "1", "b": "2", "c": "1"}
    assert pins(solve(world, "a==3", "c")) == {"a": "3", "b": "2", "c": "1"}
