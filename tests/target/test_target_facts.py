"""Facts of a target kept between runs: right for the program that gave them, and for no other."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rocmpip.model.machine import TargetEnv
from rocmpip.target import facts as facts_module
from rocmpip.target.environment import find_environment
from rocmpip.target.facts import target_facts


class Blobs(dict[tuple[str, str], bytes]):
    def get(self, kind: str, key: str) -> bytes | None:  # type: ignore[override]
        return super().get((kind, key))

    def put(self, kind: str, key: str, data: bytes) -> None:
        self[kind, key] = data


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> TargetEnv:
    monkeypatch.setattr(facts_module, "_known", {})
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
