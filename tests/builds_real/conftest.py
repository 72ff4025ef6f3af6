"""One machine for real builds: Debian's hipcc, an environment with the HIP torch, and an index with real source archives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rocmpip.demo.site import Site
from tests.support.build_machine import Machine, index_site
from tests.support.hip_torch import NoCpuTorch, hip_environment
from tests.support.hipcc import need_hipcc


@pytest.fixture(scope="session")
def build_index() -> Iterator[Site]:
    try:
        site = index_site()
    except FileNotFoundError as problem:
        pytest.skip(f"{problem.filename} is not there: python -m tests.support.real_sources")
    yield site.start()
    site.stop()


@pytest.fixture(scope="session")
def ccache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ccache")


@pytest.fixture
def machine(build_index: Site, ccache: Path, tmp_path: Path) -> Machine:
    """A machine of its own for each test."""
    need_hipcc()
    try:
        base = hip_environment(download=False)
    except NoCpuTorch as problem:
        pytest.skip(str(problem))
    return Machine(tmp_path, build_index.url, base, ccache)
