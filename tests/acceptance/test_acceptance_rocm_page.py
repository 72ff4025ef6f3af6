"""AMD's ``rocm`` while planning: what its setup.py would say for these GPUs, in the form of the index that was chosen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rocmpip.app.family import rocm_environment, rocm_page
from rocmpip.catalogue import load
from rocmpip.model.packages import Absent, File, Page
from rocmpip.model.plan import FamilyChoice
from rocmpip.model.rocm import parse_rocm
from rocmpip.model.settings import Settings

URL = "https://amd.example/simple/"


class Index:
    """Pages of an index: project → versions."""

    def __init__(self, **projects: str) -> None:
        self.projects = {name.replace("_", "-"): versions.split() for name, versions in projects.items()}

    def page(self, index_url: str, name: str) -> Page | Absent:
        if name not in self.projects:
            return Absent(name, index_url)
        ending = "{}-{}.tar.gz" if name == "rocm" else "{}-{}-py3-none-linux_x86_64.whl"
        names = [ending.format(name.replace("-", "_"), version) for version in self.projects[name]]
        return Page(name, index_url, tuple(File(one, f"{index_url}{one}") for one in names))

    def find_links(self, place: str) -> tuple[File, ...]:
        return ()


def context(*gfx: str) -> Any:
    return SimpleNamespace(platform=SimpleNamespace(gfx_targets=gfx), catalogue=load(Settings()))


def choice(family: str, rocm: str, pin: str = "") -> FamilyChoice:
    return FamilyChoice(family, URL, parse_rocm(rocm), {"torch": f"2.9.1+rocm{rocm}", **({"rocm": pin} if pin else {})})


def requires(family: FamilyChoice, index: Index, *gfx: str) -> str:
    route = rocm_page(family, context(*gfx), index)
    assert len(route.synthetic) == 1
    return route.synthetic[0].metadata.decode()


def test_a_post_release_that_mends_rocm_alone_takes_the_parts_that_are_there() -> None:
    index = Index(rocm="7.14.0.post1", rocm_sdk_core="7.14.0", rocm_sdk_libraries="7.14.0", rocm_sdk_device_gfx942="7.14.0")
    told = requires(choice("pytorch.org rocm7.14", "7.14", "7.14.0.post1"), index, "gfx942")
    assert "Version: 7.14.0.post1\n" in told
    for part in ("core==7.14.0\n", "libraries==7.14.0;", "device-gfx942==7.14.0;"):
        assert f"rocm-sdk-{part}" in told


@pytest.mark.parametrize(
    ("family", "gfx", "library", "variable"),
    [
        ("AMD per-family", "gfx1103", "rocm-sdk-libraries-gfx110X-all==7.9.0", "gfx110X-all"),
        ("AMD 7.14 multi-arch", "gfx1103", "rocm-sdk-libraries==7.9.0", "gfx1103"),
    ],
)
def test_the_form_is_that_of_the_index(family: str, gfx: str, library: str, variable: str) -> None:
    made = choice(family, "7.9", "7.9.0")
    assert library.lower() in requires(made, Index(rocm="7.9.0"), gfx).lower()
    assert rocm_environment(context(gfx), made) == {"ROCM_SDK_TARGET_FAMILY": variable}


def test_no_gpu_says_nothing() -> None:
    assert rocm_environment(context(), None) == {}
    assert rocm_environment(context("gfx942", "gfx90a"), None) == {"ROCM_SDK_TARGET_FAMILY": "gfx942"}
