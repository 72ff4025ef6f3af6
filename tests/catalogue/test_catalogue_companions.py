"""The table of companions: what is fetched ahead, and never more than that."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rocmpip.catalogue import load
from rocmpip.catalogue.companions import Companions, load_companions
from rocmpip.model.errors import BadConfiguration
from rocmpip.model.packages import normalise
from rocmpip.model.settings import Settings


def test_the_nearest_come_first_each_once_and_rings_end() -> None:
    table = Companions({"app": "lib tool[fast]", "lib": "base app", "base": "lib", "tool": "deep", "tool--fast": "speed"})
    assert list(table.of([("app", ())])) == ["lib", "tool", "base", "deep", "speed"]
    assert list(table.of([("tool", ())])) == ["deep"]
    assert list(table.of([("tool", ("fast",)), ("base", ())])) == ["deep", "speed", "lib", "app"]
    assert list(table.of([("unknown", ("fast",))])) == []


def test_an_extra_that_is_asked_for_later_is_followed_too() -> None:
    table = Companions({"app": "tool other", "other": "tool[fast]", "tool--fast": "speed"})
    assert list(table.of([("app", ())])) == ["tool", "other", "speed"]


def test_the_shipped_rows_are_names_and_bring_nothing_of_cuda() -> None:
    table = load_companions()
    catalogue = load()
    names = table.names()
    assert len(table) > 1000
    assert {name for name in names if normalise(name) != name} == set()
    assert {name for name in names if catalogue.forbidden(name)} == set()
    assert all(re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name) for name in names)


def test_a_users_rows_are_laid_over(tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_text(
        '[companions.torch]\nneeds = "ours"\n\n[companions.ours]\nneeds = "numpy[extra]"\nsource = "us"\n\n'
        "[companions.numpy]\nremove = true\n"
    )
    table = load_companions([str(file)])
    assert list(table.of([("torch", ())])) == ["ours", "numpy"]
    assert "filelock" in set(load_companions().of([("torch", ())]))
    load(Settings(catalogue_path=(str(file),)))


def test_faults_of_a_users_rows_are_told_by_the_catalogue(tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_text('[companions.ours]\nneeds = ["a list"]\nother = "x"\n')
    with pytest.raises(BadConfiguration) as caught:
        load(Settings(catalogue_path=(str(file),)))
    told = "\n".join(caught.value.details)
    assert "companions.ours.needs must be a string" in told
    assert "companions.ours.other is not a known key" in told
    assert "companions.ours is new and needs source" in told
