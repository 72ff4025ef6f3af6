"""Whatever is asked of whatever index: never a pin without the ROCm label, never a build without kernels for every target."""

from __future__ import annotations

from choose_world import GPUS_OF_AMD, World, frozen_families, machine, november
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from rocmpip.catalogue import load
from rocmpip.model.errors import NoPlan
from rocmpip.model.plan import FamilyChoice
from rocmpip.model.rocm import rocm_of_label
from rocmpip.plan.choose import choose_family
from rocmpip.plan.tags import Tags, fits, tags_for

CATALOGUE = load()
WORLD = november()
frozen_families(WORLD)
TAGS = {python: tags_for(python, glibc=(2, 35)) for python in ("3.10", "3.11", "3.12", "3.13", "3.14", "3.14t")}

# pytorch.org's own lists, from its build scripts: what a wheel of that ROCm really has.
OLD = "900 906 908 90a 1030"
UPSTREAM = {
    (5, 6): OLD + " 1100",
    (5, 7): OLD + " 1100",
    (6, 0): OLD + " 1100 942",
    (6, 1): OLD + " 1100 942 1101",
    (6, 2): OLD + " 1100 942 1101 1102 1200 1201",
    (6, 3): OLD + " 1100 942 1101 1102 1200 1201",
    (6, 4): "908 90a 942 1030 1100 1101 1102 1200 1201",
    (7, 0): "908 90a 942 950 1030 1100 1101 1102 1150 1151 1200 1201",
    (7, 1): "908 90a 942 950 1030 1100 1101 1102 1150 1151 1200 1201",
    (7, 2): "908 90a 942 950 1030 1100 1101 1102 1150 1151 1200 1201",
    (7, 14): "908 90a 942 950 1030 1100 1101 1102 1103 1150 1151 1200 1201",
    (10, 0): "908 90a 942 950 1030 1100 1101 1102 1103 1150 1151 1200 1201",
}
GFX = st.sampled_from(["gfx" + gpu for gpu in (*GPUS_OF_AMD, "900", "906", "90c", "803", "1013", "132f")])
ROCM = st.sampled_from(
    [*"5.6 5.7 6.0 6.1 6.2 6.2.4 6.3 6.4 6.4.3 6.9 7.0 7.1 7.2 7.2.1 7.3 7.9 7.14 7.14.1 7.20 10.0 10.1 10.7 11.0".split(), ""]
)
TORCH = st.one_of(
    st.just(""),
    st.builds(
        lambda operator, minor, patch: f"{operator}2.{minor}.{patch}",
        st.sampled_from(["==", ">=", "<=", "<", "~=", "!="]),
        st.integers(0, 16),
        st.integers(0, 2),
    ),
)


def check(choice: FamilyChoice, targets: tuple[str, ...], tags: Tags, world: World) -> None:
    torch = Version(choice.pins["torch"])
    rocm = rocm_of_label(str(torch))
    assert rocm is not None and rocm == choice.rocm
    for name, version in choice.pins.items():
        if name in ("torch", "torchvision", "torchaudio"):
            assert rocm_of_label(version) == rocm, name
        else:
            assert "rocm" in name
        files = world.table[choice.index_url, name]
        assert name == "rocm" or any(
            file.filename.split("-")[1] == version and fits(file.filename, tags) is not None for file in files
        )
    for gfx in targets:
        assert not (gfx == "gfx906" and rocm.minor > (6, 3))
        if choice.family.startswith("pytorch.org"):
            assert gfx.removeprefix("gfx") in UPSTREAM[rocm.minor].split()
        elif "per-family" in choice.family:
            assert choice.index_url.rstrip("/").rsplit("/", 1)[1] in CATALOGUE.gfx.families(gfx)
        else:
            assert f"device-{gfx}" in choice.extras["torch"]
            page = world.table[choice.index_url, f"amd-torch-device-{gfx}"]
            assert any(f"-{torch}-" in file.filename for file in page)
    named = {extra for extras in choice.extras.values() for extra in extras}
    assert named <= {f"device-{gfx}" for gfx in targets}


@settings(max_examples=250, deadline=None)
@given(
    targets=st.lists(GFX, min_size=1, max_size=3, unique=True).map(tuple),
    rocm=ROCM,
    python=st.sampled_from(sorted(TAGS)),
    torch=TORCH,
    members=st.sets(st.sampled_from(["torchvision", "torchaudio", "triton"])),
    channel=st.sampled_from(["stable", "stable", "nightly", "test"]),
)
def test_labels_and_kernels(
    targets: tuple[str, ...], rocm: str, python: str, torch: str, members: set[str], channel: str
) -> None:
    requirements = {"torch": SpecifierSet(torch), **{name: SpecifierSet() for name in sorted(members)}}
    try:
        choice = choose_family(
            platform=machine(" ".join(targets), rocm),
            python_tags=TAGS[python],
            requirements=requirements,
            catalogue=CATALOGUE,
            candidates=WORLD,
            channel=channel,
        )
    except NoPlan as error:
        assert error.hint and error.details
        return
    check(choice, targets, TAGS[python], WORLD)
    public = Version(choice.pins["torch"])
    assert SpecifierSet(torch).contains(public, prereleases=True)
    assert channel != "stable" or not public.is_prerelease
    for name in members - {"triton"}:
        assert name in choice.pins


NAMES = st.sampled_from(
    ["torch", "torchvision", "torchaudio", "triton-rocm", "pytorch-triton-rocm", "rocm", "amd-torch-device-gfx942"]
)
LABEL = st.sampled_from(["", "+cpu", "+cu121", "+rocm6.4", "+rocm7.14", "+rocm10.0.0", "+rocm", "+rocm6.4.git1", "+xrocm6.4"])
VERSION = st.one_of(
    st.builds(lambda a, b: f"{a}.{b}", st.integers(0, 3), st.integers(0, 15)),
    st.sampled_from(["", "x", "2.9.1", "2.9.1.post1", "2.10.0a0", "2.10.0.dev1", "1!2.0", "99999999999999.1"]),
)
SUFFIX = st.sampled_from(
    [
        "-cp312-cp312-manylinux_2_28_x86_64.whl",
        "-cp312-cp312-win_amd64.whl",
        "-py3-none-any.whl",
        ".tar.gz",
        ".whl",
        "-.whl",
        "",
    ]
)


@settings(max_examples=150, deadline=None)
@given(
    files=st.lists(st.tuples(NAMES, VERSION, LABEL, SUFFIX), max_size=25),
    noise=st.lists(st.text(max_size=30), max_size=4),
    rocm=st.sampled_from(["6.4", "7.14", "10.0", ""]),
)
def test_pages_of_anything(files: list[tuple[str, str, str, str]], noise: list[str], rocm: str) -> None:
    world = World()
    indexes = ("https://download.pytorch.org/whl/rocm6.4/", "https://download.pytorch.org/whl/rocm7.14/")
    for index in (*indexes, "https://stable.repo.amd.com/rocm/whl-next/"):
        for name, version, label, suffix in files:
            world.put(index, name, f"{name.replace('-', '_')}-{version}{label}{suffix}", requires="nonsense" if noise else "")
        for text in noise:
            world.put(index, "torch", text)
    try:
        choice = choose_family(
            platform=machine("gfx942", rocm),
            python_tags=TAGS["3.12"],
            requirements={"torch": SpecifierSet()},
            catalogue=CATALOGUE,
            candidates=world,
        )
    except NoPlan:
        return
    label = rocm_of_label(choice.pins["torch"])
    assert label == choice.rocm and label is not None
    assert label.minor in ((6, 4), (7, 14), (10, 0))
