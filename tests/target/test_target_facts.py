"""Facts of a target kept between runs: right for the program that gave them, and for no other."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rocmpip.model.machine import TargetEnv
from rocmpip.plan.tags import cpython_texts
from rocmpip.target import facts as facts_module
from rocmpip.target.environment import find_environment
from rocmpip.target.facts import target_facts
from rocmpip.target.own_facts import own_facts


class Blobs(dict[tuple[str, str], bytes]):
    def get(self, kind: str, key: str) -> bytes | None:  # type: ignore[override]
        return super().get((kind, key))

    def put(self, kind: str, key: str, data: bytes) -> None:
        self[kind, key] = data


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> TargetEnv:
    """One whose interpreter must be asked."""
    monkeypatch.setattr(facts_module, "_known", {})
    monkeypatch.setattr("rocmpip.target.own_facts.own_facts", lambda: None)
    return find_environment(sys.executable, env={})


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_module, "_known", {})


def test_what_was_kept_is_not_asked_again(target: TargetEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Blobs()
    asked = target_facts(target, cache)
    assert asked.markers["python_version"] == ".".join(map(str, sys.version_info[:2]))
    assert len(cache) == 1
    forget(monkeypatch)
    monkeypatch.setattr("rocmpip.target.tags.native", lambda target: pytest.fail("asked again"))
    assert target_facts(target, cache) == asked


def test_the_running_system_is_told_anew(target: TargetEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Blobs()
    target_facts(target, cache)
    ((place, data),) = cache.items()
    markers, tags = json.loads(data)
    cache[place] = json.dumps([{**markers, "platform_release": "0.1-old"}, tags]).encode()
    forget(monkeypatch)
    assert target_facts(target, cache).markers["platform_release"] == os.uname().release


@pytest.mark.parametrize("broken", [b"", b"{}", b"[]", b"[{}, []]", b'[{"a": 1}, ["x"]]', b"\xff", b"[1, 2]"])
def test_what_cannot_be_read_is_asked_anew(target: TargetEnv, monkeypatch: pytest.MonkeyPatch, broken: bytes) -> None:
    cache = Blobs()
    asked = target_facts(target, cache)
    (place,) = cache
    cache[place] = broken
    forget(monkeypatch)
    assert target_facts(target, cache) == asked


def test_another_program_is_asked_itself(target: TargetEnv, tmp_path: Path) -> None:
    cache = Blobs()
    program = tmp_path / "python"
    shutil.copy(os.path.realpath(sys.executable), program)
    first = facts_module._key(replace(target, python=str(program)))
    stat = program.stat()
    os.utime(program, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert first and facts_module._key(replace(target, python=str(program))) not in ("", first)
    assert first != facts_module._key(target)
    assert not cache


def test_a_script_that_starts_some_python_is_always_asked(target: TargetEnv, tmp_path: Path) -> None:
    shim = tmp_path / "python"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    shim.chmod(0o755)
    assert facts_module._key(replace(target, python=str(shim))) == ""
    assert facts_module._key(replace(target, python=str(tmp_path / "none"))) == ""


# Our own interpreter's, without packaging ---------------------------------------------------------------------------------


@pytest.mark.parametrize("glibc", ["", "glibc 2.17", "glibc 2.5", "glibc 2.28", "glibc 2.100"])
def test_our_own_are_those_that_packaging_gives(monkeypatch: pytest.MonkeyPatch, glibc: str) -> None:
    import packaging._manylinux as many
    from packaging import tags
    from packaging.markers import default_environment

    if glibc:
        monkeypatch.setattr(os, "confstr", lambda name: glibc)
        many._get_glibc_version.cache_clear()
    try:
        ours = own_facts()
        assert ours is not None
        assert list(ours.tags) == [str(tag) for tag in tags.sys_tags()]
        assert ours.markers == {key: value for key, value in default_environment().items() if key != "extra"}
    finally:
        many._get_glibc_version.cache_clear()


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("sys.abiflags", "t"),
        ("sys.platform", "darwin"),
        ("sys.maxsize", 2**31 - 1),
        ("os.confstr", lambda name: None),
        ("os.confstr", lambda name: "musl 1.2"),
        ("os.environ", {"_PYTHON_HOST_PLATFORM": "linux-arm"}),
        ("sys.version", "3.13.0+ (heads/3.13)"),
    ],
)
def test_out_of_the_ordinary_packaging_is_asked(monkeypatch: pytest.MonkeyPatch, where: str, what: object) -> None:
    module, _, name = where.partition(".")
    monkeypatch.setattr(sys.modules[module], name, what)
    assert own_facts() is None


def test_a_distributions_own_word_on_manylinux_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "_manylinux.py").write_text("manylinux1_compatible = False")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert own_facts() is None


@given(
    st.integers(2, 20),
    st.lists(
        st.sampled_from(["linux_x86_64", "manylinux_2_28_x86_64", "manylinux2014_aarch64", "any", "win_amd64"]), unique=True
    ),
)
def test_tags_of_any_cpython_are_those_that_packaging_gives(minor: int, platforms: list[str]) -> None:
    from packaging.tags import compatible_tags, cpython_tags

    version = (3, minor)
    theirs = [
        *cpython_tags(version, abis=[f"cp3{minor}"], platforms=platforms),
        *compatible_tags(version, f"cp3{minor}", platforms),
    ]
    assert cpython_texts(version, platforms) == list(dict.fromkeys(map(str, theirs)))
