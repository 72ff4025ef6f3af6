"""doctor's three lines with a real hipcc."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.check.check_machines import answers, environment, healthy
from tests.support.hipcc import need_hipcc

pytestmark = pytest.mark.hipcc


@pytest.fixture
def env(tmp_path: Path, venv: Callable[..., Path]) -> dict[str, str]:
    """A machine whose hipcc hands over to the real one."""
    real = need_hipcc()
    root = healthy(tmp_path / "root")
    hipcc = root / "opt/rocm-6.4.0/bin/hipcc"
    hipcc.write_text(f'#!/bin/sh\nPATH={os.environ["PATH"]} exec {real} "$@"\n')
    return environment(root, venv().parent.parent)


def test_it_compiles_for_a_gpu_that_it_knows(env: dict[str, str]) -> None:
    check = answers(env, gfx=("gfx90a",))["hipcc"]
    assert check.verdict == "ok"
    assert "a kernel for gfx90a: compiled" in check.evidence


def test_a_gpu_that_it_does_not_know(env: dict[str, str]) -> None:
    check = answers(env, gfx=("gfx132f",))["hipcc"]
    assert check.verdict == "broken"
    assert "does not know the GPU" in check.why
    assert "gfx132f" in " ".join(check.evidence)


def test_a_compiler_that_hangs(env: dict[str, str]) -> None:
    from msgspec.structs import replace

    from rocmpip.app import doctor
    from rocmpip.check import tools

    hipcc = Path(env["ROCMPIP_SYSROOT"]) / "opt/rocm-6.4.0/bin/hipcc"
    hipcc.write_text('#!/bin/sh\ncase "$1" in --version) echo "HIP version: 6.4.0";; *) sleep 600;; esac\n')
    check = tools.hipcc(replace(doctor.look_at(env=env, cwd="/"), time_limit=0.5))
    assert check.verdict == "broken"
    assert "0.5 s" in " ".join(check.evidence)
