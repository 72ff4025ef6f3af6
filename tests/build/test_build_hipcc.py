"""Real builds: Debian's hipcc and a HIP-flavoured torch make a .cpp + .cu extension; the stale trap; true failures."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from rocmpip.app.build_package import Made, Package, Toolbox, build_package
from rocmpip.elf import code_objects, examine_wheel, needed
from rocmpip.model.errors import BuildFailed
from rocmpip.model.machine import Platform, TargetEnv
from rocmpip.model.recipe import ResolvedRecipe, Value, Verify
from rocmpip.model.rocm import parse_rocm
from rocmpip.store.wheelhouse import Wheelhouse
from tests.support.environments import site_packages
from tests.support.hip_torch import NoCpuTorch, hip_environment
from tests.support.hipcc import need_hipcc
from tests.support.repack import repack

pytestmark = [pytest.mark.hipcc, pytest.mark.slow, pytest.mark.pip]

EXTENSION = Path(__file__).parents[1] / "support/hip_extension"
TORCH = "2.13.0+rocm7.2"


@pytest.fixture(scope="module")
def python() -> Path:
    """An environment with pip and the HIP torch."""
    need_hipcc()
    try:
        return hip_environment(download=False)
    except NoCpuTorch as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """setuptools, wheel and ninja of the test environment, for a pip without network."""
    folder = tmp_path_factory.mktemp("links")
    for name in ("setuptools", "wheel", "ninja", "packaging"):
        repack(name, folder)
    return folder


@pytest.fixture(scope="module")
def ccache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ccache")


@pytest.fixture
def tools(python: Path, links: Path, ccache: Path, tmp_path: Path) -> Toolbox:
    version = "{}.{}.{}".format(*sys.version_info[:3])
    return Toolbox(
        platform=Platform((), ("gfx90a",), "--gfx", parse_rocm("5.2.3"), "/usr", "/usr", ()),
        target=TargetEnv(str(python), version, "venv", str(python.parents[1]), (str(site_packages(python)),), "--python"),
        torch=TORCH,
        pip_argv=(str(python), "-m", "pip"),
        pip_env={"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(links), "PIP_CONFIG_FILE": os.devnull},
        user_env={**os.environ, "CCACHE_DIR": str(ccache)},
        wheelhouse=Wheelhouse(tmp_path / "state" / "wheelhouse"),
        logs=tmp_path / "logs",
    )


def recipe(*gfx: str, digest: str = "d1", **changes: object) -> ResolvedRecipe:
    made = ResolvedRecipe(
        "hip-extension", "1.0", "shipped", "x.toml", digest, requires=("setuptools", "wheel"), memory_per_job=2.0,
        env=(Value("PYTORCH_ROCM_ARCH", ";".join(gfx), "c"),), verify=Verify("hip_extension", True),
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def make(tools: Toolbox, *gfx: str, source: Path = EXTENSION, **changes: object) -> Made:
    tools = replace(tools, platform=replace(tools.platform, gfx_targets=gfx))
    return build_package(Package("hip-extension", "1.0", recipe(*gfx, **changes), source), tools)  # type: ignore[arg-type]


def library(wheel: Path, folder: Path) -> Path:
    """The extension's shared library, unpacked."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(one for one in archive.namelist() if one.endswith(".so"))
        return Path(archive.extract(name, folder))


def test_the_stale_trap(tools: Toolbox, python: Path, tmp_path: Path) -> None:
    """Whatever is asked for, the library's code objects are that; the first one asked again comes back at once."""
    first = make(tools, "gfx90a")
    assert first.built and examine_wheel(first.stored.path).gfx == ("gfx90a",)

    # It installs and imports in the environment it was built for, and runs its host part.
    argv = [str(python), "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--disable-pip-version-check", "--target",
            str(tmp_path / "installed"), str(first.stored.path)]  # fmt: skip
    subprocess.run(argv, check=True, capture_output=True)
    code = "import torch, hip_extension; print(hip_extension.answer(), torch.version.hip)"
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    told = subprocess.run([str(python), "-W", "ignore", "-c", code], env=env, capture_output=True, text=True, check=True)
    assert told.stdout.split()[0] == "42"
    installed = next((tmp_path / "installed").glob("*.so"))
    assert {one.target for one in code_objects(installed)} == {"gfx90a"}
    assert any(name.startswith("libamdhip64.so") for name in needed(installed))

    # pip and uv hand back the gfx90a wheel here.
    second = make(tools, "gfx1030")
    assert second.built and examine_wheel(second.stored.path).gfx == ("gfx1030",)
    assert "its GPUs were gfx90a, now gfx1030" in second.because
    assert second.stored.filename == first.stored.filename and second.stored.path != first.stored.path
    both = make(tools, "gfx90a", "gfx1030")
    assert both.built and examine_wheel(both.stored.path).gfx == ("gfx1030", "gfx90a")

    for changed, words in (
        (make(replace(tools, torch="2.13.0+rocm6.4"), "gfx90a"), "torch was 2.13.0+rocm7.2, now 2.13.0+rocm6.4"),
        (make(tools, "gfx90a", digest="d2"), "the recipe changed"),
    ):
        assert changed.built and words in changed.because
        assert examine_wheel(changed.stored.path).gfx == ("gfx90a",)
        assert changed.stored.fingerprint != first.stored.fingerprint

    logs = sorted(tools.logs.iterdir())
    again = make(tools, "gfx90a")
    assert not again.built and again.stored.fingerprint == first.stored.fingerprint
    assert sorted(tools.logs.iterdir()) == logs, "no build ran"
    assert tools.wheelhouse.find(first.stored.fingerprint, "hip-extension") == again.stored


def test_nothing_entered_the_target_and_the_record_is_true(tools: Toolbox, python: Path) -> None:
    before = sorted(path.name for path in site_packages(python).iterdir())
    made = make(tools, "gfx90a")
    assert sorted(path.name for path in site_packages(python).iterdir()) == before
    inputs = made.stored.provenance.inputs
    assert (inputs.torch, inputs.gfx, inputs.rocm) == (TORCH, ("gfx90a",), "5.2.3")
    assert "HIP version" in inputs.compiler and made.stored.provenance.code_objects == ("gfx90a",)
    assert made.log is not None and "gfx90a" in made.log.read_text()


def broken(tools: Toolbox, tmp_path: Path, *gfx: str, code: str = "", **changes: object) -> BuildFailed:
    source = tmp_path / "broken"
    shutil.copytree(EXTENSION, source)
    if code:
        (source / "add.cu").write_text(code + (source / "add.cu").read_text())
    with pytest.raises(BuildFailed) as caught:
        make(tools, *gfx, source=source, **changes)
    problem = caught.value
    assert problem.exit_code == 41
    log = next(tools.logs.glob("*.log"))
    assert str(log) in problem.hint and log.stat().st_size > 0
    assert tools.wheelhouse.list() == ()
    return problem


def test_a_missing_header(tools: Toolbox, tmp_path: Path) -> None:
    problem = broken(tools, tmp_path, "gfx90a", code="#include <no_such_header.h>\n")
    assert "fatal error: 'no_such_header.h' file not found" in problem.why


def test_an_arch_that_the_compiler_does_not_know(tools: Toolbox, tmp_path: Path) -> None:
    """gfx942 is newer than Debian's hipcc."""
    problem = broken(tools, tmp_path, "gfx942")
    assert "gfx942" in problem.why and "error" in problem.why


HUGE = """
#include <utility>
template <class T> struct holder {};
holder<std::make_index_sequence<60000000>> too_much;
"""


def test_a_memory_limit(tools: Toolbox, tmp_path: Path) -> None:
    """The compiler is told that there is no memory: the words say so and advise fewer jobs."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    # The whole tree inherits it: enough for pip, torch's import and small sources.
    resource.setrlimit(resource.RLIMIT_AS, (1_400 << 20, before[1]))
    try:
        problem = broken(replace(tools, jobs=2), tmp_path, "gfx90a", code=HUGE)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert "out of memory" in problem.why and "fewer jobs than 2" in problem.hint


def test_with_all_of_torchs_headers(tools: Toolbox, tmp_path: Path) -> None:
    source = tmp_path / "whole"
    shutil.copytree(EXTENSION, source)
    text = (source / "bind.cpp").read_text()
    (source / "bind.cpp").write_text(text.replace("<pybind11/pybind11.h>", "<torch/extension.h>"))
    made = make(tools, "gfx90a", "gfx1030", source=source)
    report = examine_wheel(made.stored.path)
    assert report.gfx == ("gfx1030", "gfx90a") and "libtorch_cpu.so" in report.links and report.cuda_links == ()


def test_a_build_that_sees_no_gpu_code(tools: Toolbox, tmp_path: Path) -> None:
    """The device part left out, as torch-scatter does where it sees no GPU: success, and refused all the same."""
    source = tmp_path / "cpu-only"
    shutil.copytree(EXTENSION, source)
    text = (source / "setup.py").read_text()
    (source / "setup.py").write_text(text.replace("CUDAExtension", "CppExtension").replace(', "add.cu"', ""))
    with pytest.raises(BuildFailed, match="said success, but its wheel holds no device code at all"):
        make(tools, "gfx90a", source=source)
    assert tools.wheelhouse.list() == ()
