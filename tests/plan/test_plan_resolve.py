"""The resolver on small worlds: one table row for each rule that a person could name."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from resolve_world import TAGS, World, pins, solve

from rocmpip.model.errors import InputError, NoPlan
from rocmpip.model.packages import File, RequirementLine
from rocmpip.plan.listing import Candidate, Metadata, Rules
from rocmpip.plan.requirements import lines_of
from rocmpip.plan.resolve import FamilyOption, Options
from rocmpip.plan.versions import release

PLAIN = {
    "a": {"1.0": ["b"], "2.0": ["b>=2"]},
    "b": {"1.0": [], "2.0": [], "3.0": []},
}
PRE = {"a": {"1.0": [], "2.0b1": []}, "only": {"1.0a1": [], "1.0a2": []}, "b": {"1.0": ["a>=2.0b1"]}}
YANKED = {"a": {"1.0": [], "2.0": {"yanked": "broken"}}, "gone": {"1.0": {"yanked": ""}}, "b": {"1.0": ["a==2.0"]}}
LOCAL = {"t": {"1.2.3": [], "1.2.3+foo": [], "1.2.2+bar": []}, "old": {"1.2.3": []}}
EXTRAS = {
    "a": {
        "1.0": {"needs": ["b; extra == 'x'", "c; extra == 'y'"], "extras": ["x", "y"]},
        "2.0": {"needs": ["b>=2; extra == 'x'", "c; extra == 'y'"], "extras": ["x", "y"]},
    },
    "b": {"1.0": [], "2.0": []},
    "c": {"1.0": ["a[x]"]},
    "self": {"1.0": {"needs": ["self[x]; extra == 'all'", "b; extra == 'x'"], "extras": ["x", "all"]}},
}
PYTHONS = {
    "a": {"1.0": [], "2.0": {"python": ">=3.13"}},
    "b": {"1.0": {"python": "<3.11"}},
}
BACK = {
    # The newest a pulls a b that no c accepts; the right answer lies two steps back.
    "a": {"3": ["b==3"], "2": ["b==2"], "1": ["b==1"]},
    "b": {"3": [], "2": [], "1": []},
    "c": {"1": ["b<3"]},
    "d": {"1": ["b!=2"]},
}
STUCK = {"s": {"1.0": ["b==1.0"], "2.0b1": ["b==2.0"]}, "b": {"1.0": [], "2.0": []}}
EARLIER = {
    "u": {"1.0": [], "2.0": []},
    "w": {"2.0": ["u"], "3.0": ["u<2"]},
    "far": {f"{number}.0": ["u<2"] if number > 1 else ["u"] for number in range(1, 10)},
}
CYCLE = {"a": {"1": ["b"]}, "b": {"1": ["c"]}, "c": {"1": ["a"]}}


@pytest.mark.parametrize(
    ("world", "requirements", "constraints", "wanted"),
    [
        pytest.param(PLAIN, ["a"], [], {"a": "2.0", "b": "3.0"}, id="newest"),
        pytest.param(PLAIN, ["a", "b<2"], [], {"a": "1.0", "b": "1.0"}, id="older-parent"),
        pytest.param(PLAIN, ["a"], ["b<3"], {"a": "2.0", "b": "2.0"}, id="constraint"),
        pytest.param(PLAIN, ["b"], ["a==1.0"], {"b": "3.0"}, id="constraint-asks-for-nothing"),
        pytest.param(PLAIN, ["a; python_version < '3'", "b"], [], {"b": "3.0"}, id="marker-off"),
        pytest.param(PLAIN, ["A", "B_!=3"][:1], [], {"a": "2.0", "b": "3.0"}, id="name-in-any-spelling"),
        pytest.param(PLAIN, ["b~=1.0"], [], {"b": "1.0"}, id="compatible"),
        pytest.param(PLAIN, ["b==2.*"], [], {"b": "2.0"}, id="wildcard"),
        pytest.param(PLAIN, ["b (>=2, <3)"], [], {"b": "2.0"}, id="old-brackets"),
        pytest.param(PRE, ["a"], [], {"a": "1.0"}, id="pre-release-not-taken"),
        pytest.param(PRE, ["a>=2.0b1"], [], {"a": "2.0b1"}, id="pre-release-asked-for"),
        pytest.param(PRE, ["a"], ["a>=2.0b1"], {"a": "2.0b1"}, id="pre-release-by-constraint"),
        pytest.param(PRE, ["a>=1.0a1"], [], {"a": "1.0"}, id="pre-release-named-and-not-needed"),
        pytest.param(PRE, ["a>1.0"], [], {"a": "2.0b1"}, id="pre-release-in-need"),
        pytest.param(PRE, ["b"], [], {"a": "2.0b1", "b": "1.0"}, id="pre-release-a-package-needs"),
        pytest.param(STUCK, ["s", "b==2.0"], [], {"b": "2.0", "s": "2.0b1"}, id="pre-release-behind-a-conflict"),
        pytest.param(EARLIER, ["u", "w"], [], {"u": "2.0", "w": "2.0"}, id="earlier-choice-stays"),
        pytest.param(EARLIER, ["w", "u"], [], {"u": "1.0", "w": "3.0"}, id="later-choice-follows"),
        pytest.param(EARLIER, ["u", "far"], [], {"u": "1.0", "far": "9.0"}, id="earlier-choice-moves-in-the-end"),
        pytest.param(PRE, ["only"], [], {"only": "1.0a2"}, id="nothing-but-pre-releases"),
        pytest.param(YANKED, ["a"], [], {"a": "1.0"}, id="yanked-passed-over"),
        pytest.param(YANKED, ["a==2.0"], [], {"a": "2.0"}, id="yanked-pinned"),
        pytest.param(LOCAL, ["t"], [], {"t": "1.2.3+foo"}, id="local-sorts-higher"),
        pytest.param(LOCAL, ["t==1.2.3"], [], {"t": "1.2.3+foo"}, id="local-meets-public-pin"),
        pytest.param(LOCAL, ["t<=1.2.3"], [], {"t": "1.2.3+foo"}, id="local-meets-upper-bound"),
        pytest.param(LOCAL, ["t<1.2.3"], [], {"t": "1.2.2+bar"}, id="local-below"),
        pytest.param(LOCAL, ["t==1.2.2+bar"], [], {"t": "1.2.2+bar"}, id="local-pinned"),
        pytest.param(EXTRAS, ["a"], [], {"a": "2.0"}, id="no-extra"),
        pytest.param(EXTRAS, ["a[x]"], [], {"a": "2.0", "b": "2.0"}, id="extra"),
        pytest.param(EXTRAS, ["a[x]", "b<2"], [], {"a": "1.0", "b": "1.0"}, id="extra-moves-base"),
        pytest.param(EXTRAS, ["a", "a[Y]"], [], {"a": "2.0", "b": "2.0", "c": "1.0"}, id="extra-comes-later"),
        pytest.param(EXTRAS, ["self[all]"], [], {"b": "2.0", "self": "1.0"}, id="extra-of-itself"),
        pytest.param(PYTHONS, ["a"], [], {"a": "1.0"}, id="requires-python"),
        pytest.param(BACK, ["a", "c"], [], {"a": "2", "b": "2", "c": "1"}, id="back-once"),
        pytest.param(BACK, ["a", "c", "d"], [], {"a": "1", "b": "1", "c": "1", "d": "1"}, id="back-twice"),
        pytest.param(CYCLE, ["a"], [], {"a": "1", "b": "1", "c": "1"}, id="cycle"),
    ],
)
def test_answers(world: dict, requirements: Sequence[str], constraints: Sequence[str], wanted: dict[str, str]) -> None:
    assert pins(solve(world, *requirements, constraints=constraints)) == wanted


@pytest.mark.parametrize(
    ("world", "requirements", "constraints", "said"),
    [
        (PLAIN, ["a>=3"], [], ["no version of a fits", "2.0, 1.0"]),
        (PLAIN, ["zzz"], [], ["no such project: zzz", "https://pypi.example/simple", "spelling"]),
        (PLAIN, ["a==2.0", "b<2"], [], ["b>=2", "b<2", "a 2.0", "3.0, 2.0, 1.0"]),
        (PLAIN, ["a==2.0"], ["b<2"], ["b>=2", "constraints.txt:1"]),
        (YANKED, ["gone"], [], ["only yanked versions of gone"]),
        (YANKED, ["b"], [], ["only yanked versions of a"]),
        (LOCAL, ["t>1.2.3"], [], ["no version of t"]),
        (LOCAL, ["old==1.2.3+cu118"], [], ["no version of old"]),
        (PYTHONS, ["b"], [], ["needs Python <3.11", "another Python"]),
        (PYTHONS, ["a>=2"], [], ["needs Python >=3.13", "another Python"]),
        (BACK, ["a", "c", "d", "b>=2"], [], ["cannot be met together"]),
    ],
)
def test_conflicts_are_told(world: dict, requirements: Sequence[str], constraints: Sequence[str], said: Sequence[str]) -> None:
    with pytest.raises(NoPlan) as caught:
        solve(world, *requirements, constraints=constraints)
    problem = caught.value
    told = "\n".join((problem.message, problem.why, problem.hint, *problem.details))
    assert problem.exit_code == 40
    assert problem.hint
    for text in said:
        assert text in told


def test_pip_rules_are_pips() -> None:
    options = Options(pip_rules=True)
    assert pins(solve(PRE, "a>=1.0a1", options=options)) == {"a": "2.0b1"}
    assert pins(solve(EARLIER, "u", "w", options=options)) == {"u": "1.0", "w": "3.0"}
    assert pins(solve(PRE, "b", options=options)) == {"a": "2.0b1", "b": "1.0"}
    assert pins(solve(PRE, "a>1.0", options=options)) == {"a": "2.0b1"}
    assert pins(solve(YANKED, "b", options=options)) == {"a": "2.0", "b": "1.0"}


def test_pre_option_takes_pre_releases_everywhere() -> None:
    assert pins(solve(PRE, "b", options=Options(pre=True))) == {"a": "2.0b1", "b": "1.0"}


def test_unknown_extra_is_a_note_and_no_error() -> None:
    found = solve(EXTRAS, "a[nope]")
    assert pins(found) == {"a": "2.0"}
    assert any("nope" in note for note in found.notes)


def test_preferred_versions_stay_while_they_fit() -> None:
    assert pins(solve(PLAIN, "a", options=Options(preferred={"b": "2.0"}))) == {"a": "2.0", "b": "2.0"}
    assert pins(solve(PLAIN, "a", options=Options(preferred={"b": "1.0"}))) == {"a": "2.0", "b": "3.0"}
    assert pins(solve(PRE, "a", options=Options(preferred={"a": "2.0b1"}))) == {"a": "2.0b1"}


def test_no_deps_takes_the_named_alone() -> None:
    assert pins(solve(PLAIN, "a", options=Options(no_deps=True))) == {"a": "2.0"}


def test_overrides_replace_what_packages_ask_for() -> None:
    found = solve(PLAIN, "a", overrides=lines_of(["b==1.0"], "overrides.txt"))
    assert pins(found) == {"a": "2.0", "b": "1.0"}


def test_metadata_that_refuses_this_python_moves_to_an_older_version() -> None:
    world = World({"a": {"1.0": [], "2.0": []}})
    world.metadata_of["a", "2.0"] = Metadata(requires_python=">=4")
    assert pins(solve(world, "a")) == {"a": "1.0"}


def test_broken_metadata_moves_to_an_older_version_and_is_told_at_the_end() -> None:
    world = {"a": {"1.0": [], "2.0": ["b @@@ nonsense"]}}
    assert pins(solve(world, "a")) == {"a": "1.0"}
    with pytest.raises(NoPlan) as caught:
        solve(world, "a>=2")
    assert "nonsense" in "\n".join(caught.value.details)


WHEELS = {
    "a": {
        "1.0": {"files": ["a-1.0-py3-none-any.whl", "a-1.0.tar.gz"]},
        "2.0": {"files": ["a-2.0-cp312-cp312-win_amd64.whl"]},
        "3.0": {"files": ["a-3.0.tar.gz"]},
    },
    "mac": {"1.0": {"files": ["mac-1.0-cp312-cp312-macosx_14_0_arm64.whl"]}},
}


@pytest.mark.parametrize(
    ("rules", "version", "filename"),
    [
        (Rules(TAGS, "3.12.1"), "3.0", "a-3.0.tar.gz"),
        (Rules(TAGS, "3.12.1", only_binary=frozenset(["a"])), "1.0", "a-1.0-py3-none-any.whl"),
        (Rules(TAGS, "3.12.1", only_binary=frozenset([":all:"])), "1.0", "a-1.0-py3-none-any.whl"),
        (Rules(TAGS, "3.12.1", no_binary=frozenset([":all:"])), "3.0", "a-3.0.tar.gz"),
        (Rules(TAGS, "3.12.1", prefer_binary=True), "1.0", "a-1.0-py3-none-any.whl"),
    ],
)
def test_which_file(rules: Rules, version: str, filename: str) -> None:
    found = solve(WHEELS, "a", rules=rules)
    assert pins(found) == {"a": version}
    assert found.pins["a"].file is not None
    assert found.pins["a"].file.filename == filename


def test_upper_bounds_of_requires_python_are_left_aside_where_that_is_allowed() -> None:
    world = {"old": {"1.0": {"python": ">=3.6,<3.8"}}, "new": {"1.0": {"python": ">=3.13"}}, "eq": {"1": {"python": "==3.7.*"}}}
    rules = Rules(TAGS, "3.12.1", stretch_python=True)
    found = solve(world, "old", "eq", rules=rules)
    assert pins(found) == {"eq": "1", "old": "1.0"}
    assert any("--ignore-requires-python" in note for note in found.notes)
    with pytest.raises(NoPlan):
        solve(world, "old")
    with pytest.raises(NoPlan):
        solve(world, "new", rules=rules)
    # An older version that says nothing fits a newer Python no better.
    both: dict[str, dict[str, object]] = {"a": {"1": [], "2": {"python": "<3.8"}}}
    assert pins(solve(both, "a", rules=rules)) == {"a": "2"}
    assert pins(solve(both, "a")) == {"a": "1"}


@pytest.mark.parametrize(
    ("requires", "fits"),
    [
        *((text, True) for text in ("", ">=3.6", ">=3.6.*", ">=3.6<4", ">=3.6,", ">='3.6'", ">3", ">3.12", ">3.12.0", "~=3.7")),
        *((text, True) for text in ("==3.7.*", "!=3.12.*", "<=3.8", "===3.12", ">=3.12.0rc1", "!=3.0*,>=2.7", "<3.12,>3.11.9")),
        *((text, True) for text in (">=3.8, <3.14, !=3.9.*", "==3.12.*", ">=3.12.1")),
        *((text, False) for text in (">=3.13.0rc1", ">=3.13.*", "~=3.12.9", "~=3.13", ">3.12.1", "==3.13.*", ">=3.12.2")),
        *((text, False) for text in ("foo", "=>3.6", "3.6", ">=4|>=3")),
    ],
)
def test_requires_python_as_a_lower_bound(requires: str, fits: bool) -> None:
    assert Rules({}, "3.12.1", stretch_python=True).takes_python(requires) is fits


def test_no_fitting_file_is_told_with_the_files_that_are_there() -> None:
    with pytest.raises(NoPlan) as caught:
        solve(WHEELS, "mac")
    assert "mac-1.0-cp312-cp312-macosx_14_0_arm64.whl" in caught.value.why


def test_hash_mode_takes_files_with_the_given_hash_only() -> None:
    world = World({"a": {"1.0": {"hashes": {"sha256": "1" * 64}}, "2.0": {"hashes": {"sha256": "2" * 64}}}})
    line = RequirementLine("a", "r.txt:1", name="a", hashes=("sha256:" + "1" * 64,))
    from rocmpip.plan.markers import target_environment
    from rocmpip.plan.resolve import resolve

    def run(lines: Sequence[RequirementLine]) -> dict[str, str]:
        hashes = {one.name: frozenset(one.hashes) for one in lines if one.hashes}
        world.rules = replace(world.rules, hashes=hashes)
        return pins(
            resolve(
                lines,
                source=world,
                environment=target_environment("3.12.1"),
                rules=world.rules,
                options=Options(require_hashes=True),
            )
        )

    assert run([line]) == {"a": "1.0"}
    with pytest.raises(InputError, match="has no --hash"):
        run([replace(line, hashes=())])


def test_hash_mode_wants_hashes_of_what_is_pulled_in() -> None:
    world = World({"a": {"1.0": {"needs": ["b"], "hashes": {"sha256": "1" * 64}}}, "b": {"1.0": []}})
    line = RequirementLine("a", "r.txt:1", name="a", specifier="==1.0", hashes=("sha256:" + "1" * 64,))
    from rocmpip.plan.markers import target_environment
    from rocmpip.plan.resolve import resolve

    with pytest.raises(InputError, match=r"b==1\.0 \(needed by a\) has no --hash"):
        resolve([line], source=world, environment=target_environment("3.12.1"), rules=world.rules)


def test_url_requirement_stands_for_the_project_alone() -> None:
    world = World({"a": {"1.0": ["b"]}, "b": {"1.0": []}})
    url = "https://files.example/b-9.0-py3-none-any.whl"
    world.urls[url] = Candidate(
        "b", release("9.0"), File("b-9.0-py3-none-any.whl", url), origin="url", metadata=Metadata(), url=url
    )
    assert pins(solve(world, "a", f"b @ {url}")) == {"a": "1.0", "b": "9.0"}
    with pytest.raises(NoPlan):
        solve(world, "a", "b<2", f"b @ {url}")


def forbidden(name: str) -> str | None:
    return "it is for NVIDIA GPUs" if name.startswith("nvidia-") else None


def test_forbidden_names_are_never_backtracked_past() -> None:
    world = {"app": {"1": ["lib"]}, "lib": {"2": ["nvidia-cublas-cu12"], "1": []}}
    with pytest.raises(NoPlan) as caught:
        solve(world, "app", forbidden=forbidden)
    assert "lib asks for it" in caught.value.message
    assert caught.value.details == ("you → app → lib → nvidia-cublas-cu12",)


def test_forbidden_names_of_versions_that_fall_out_do_not_matter() -> None:
    world = {"lib": {"2": ["nvidia-cublas-cu12"], "1": []}, "app": {"1": ["lib<2"]}}
    assert pins(solve(world, "lib", "app", forbidden=forbidden)) == {"app": "1", "lib": "1"}


def family(label: str, **torch: Sequence[str]) -> FamilyOption:
    world = World({"torch": {version.replace("_", "."): needs for version, needs in torch.items()}})
    listing = world.candidates("torch")
    candidates = []
    for one in listing:
        one.metadata = world.metadata_of["torch", one.version.text]
        candidates.append(one)
    from rocmpip.plan.listing import Listing

    return FamilyOption(
        label, {"torch": Listing("torch", candidates, because=f"torch comes from {label}")}, because=f"chosen: {label}"
    )


def test_a_later_family_is_taken_when_the_first_cannot_satisfy_the_set() -> None:
    world = {"new": {"1": ["torch>=2.10"]}, "torch": {"2.99": ["nvidia-x"]}}
    families = [
        family("rocm6.4", **{"2_9_1+rocm6_4": []}),
        family("rocm7.0", **{"2_10_0+rocm7_0": []}),
    ]
    first = solve(world, "torch", families=families)
    assert (pins(first), first.family, first.option) == ({"torch": "2.9.1+rocm6.4"}, "rocm6.4", 0)
    moved = solve(world, "torch", "new", families=families)
    assert (pins(moved), moved.family) == ({"new": "1", "torch": "2.10.0+rocm7.0"}, "rocm7.0")
    assert moved.fell_out[0][0] == "rocm6.4"
    assert "torch>=2.10" in moved.fell_out[0][1]


def test_no_family_satisfies_tells_all_of_them() -> None:
    world = {"new": {"1": ["torch>=3"]}}
    families = [family("rocm6.4", **{"2_9_1+rocm6_4": []}), family("rocm7.0", **{"2_10_0+rocm7_0": []})]
    with pytest.raises(NoPlan) as caught:
        solve(world, "torch", "new", families=families)
    told = "\n".join((caught.value.message, caught.value.why, *caught.value.details))
    assert "torch>=3" in told
    assert "2.9.1+rocm6.4" in told
    assert "2.10.0+rocm7.0" in told


def test_pins_tell_who_asked_and_come_sorted() -> None:
    found = solve(PLAIN, "a", "b>=2")
    assert list(found.pins) == ["a", "b"]
    assert [(one.name, one.requirement, one.origin) for one in found.pins["b"].parents] == [
        ("", "b>=2", "command line"),
        ("a", "b>=2", ""),
    ]
    assert found.pins["a"].requires == ("b",)
    assert found.pins["a"].direct


def test_a_requirement_that_is_none_is_the_users_error() -> None:
    line = RequirementLine("a>>1", "r.txt:3", name="a", specifier=">>1")
    from rocmpip.plan.markers import target_environment
    from rocmpip.plan.resolve import resolve

    world = World(PLAIN)
    with pytest.raises(InputError, match=r"r\.txt:3"):
        resolve([line], source=world, environment=target_environment("3.12.1"), rules=world.rules)


def test_the_search_gives_up_with_words() -> None:
    with pytest.raises(NoPlan, match="gave up after 2 rounds"):
        solve(CYCLE, "a", options=Options(max_rounds=2))
