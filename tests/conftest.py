"""Every test runs apart from this machine's pip, ROCm and shell settings, and meets only 127.0.0.1."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from rocmpip.demo.surroundings import clean_environment
from rocmpip.demo.sysroot import write_sysroot
from tests.support.environments import make_venv
from tests.support.kfd import GPUS
from tests.support.replica import Replica

# A loaded machine is slow to generate and to run: that is no fault of what is tested.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs behind it (``&``) with Ctrl-C ignored, and what we start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

IN_CI = os.environ.get("CI", "").lower() == "true"


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """In CI a skipped test is a failed one: everything a test needs is installed there."""
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome, report.longrepr = "failed", f"skipped in CI: {why}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.fixture(scope="session")
def test_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder without settings, shared by the run."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch, test_home: Path) -> None:
    kept = clean_environment(os.environ)
    for key in list(os.environ):
        if key not in kept and not key.startswith("ROCMPIP_TEST_"):
            monkeypatch.delenv(key)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("HOME", str(test_home))


@pytest.fixture
def clean_env() -> dict[str, str]:
    """The environment of this process for a child: already apart (see ``_apart``)."""
    return dict(os.environ)


@pytest.fixture(scope="session")
def _replica(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    with Replica(tmp_path_factory.mktemp("replica")) as replica:
        yield replica


@pytest.fixture
def replica(_replica: Replica) -> Iterator[Replica]:
    """The replica of pytorch.org, AMD and PyPI: one for the session, its record of requests empty at each test's start."""
    _replica.forget()
    yield _replica
    _replica.forget()


@pytest.fixture
def sysroot(tmp_path: Path) -> Callable[..., Path]:
    """Factory: ``sysroot(gpus=["mi300x"], rocm="6.4.0-47")`` → a folder for ROCMPIP_SYSROOT; see ``rocmpip.demo.sysroot``."""
    made = iter(range(1000))

    def make(gpus: Sequence[str] = (), rocm: str | Mapping[str, str] = "", *, driver: str = "") -> Path:
        return write_sysroot(tmp_path / f"sysroot{next(made)}", [GPUS[name] for name in gpus], rocm, driver=driver)

    return make


@pytest.fixture
def venv(tmp_path: Path) -> Callable[..., Path]:
    """Factory: ``venv()`` → the interpreter of a new environment without pip; ``venv(python, with_pip=True)``."""
    made = iter(range(1000))

    def make(python: str = "", *, with_pip: bool = False) -> Path:
        return make_venv(tmp_path / f"venv{next(made)}", python, with_pip=with_pip)

    return make


@pytest.fixture(scope="session")
def pip_path(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``pip_path("23.3.2")``: a folder for PYTHONPATH with that pip, from ROCMPIP_TEST_PIPS (a folder of pip's wheels) or from
    the index that this machine is set up for. Session scope: asked before tests are set apart."""
    environment = dict(os.environ)
    shelf = Path(environment.get("ROCMPIP_TEST_PIPS", "") or tmp_path_factory.mktemp("pips"))
    unpacked: dict[str, Path] = {}

    def path(version: str) -> Path:
        if version not in unpacked:
            wheel = shelf / f"pip-{version}-py3-none-any.whl"
            if not wheel.exists():
                command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", str(shelf), f"pip=={version}"]
                done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
                if done.returncode:
                    pytest.skip(f"pip {version} cannot be had here: {done.stderr.strip().splitlines()[-1:]}")
            unpacked[version] = tmp_path_factory.mktemp(f"pip-{version}")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(unpacked[version])
        return unpacked[version]

    return path
