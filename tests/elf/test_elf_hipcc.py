"""What a real compiler wrote, read by us and by LLVM's and binutils' own tools."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from rocmpip.elf import code_objects, examine_file, needed
from tests.support.hipcc import compile_kernel, llvm

pytestmark = pytest.mark.hipcc


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One library for three targets, one of them with a feature."""
    folder = tmp_path_factory.mktemp("hip")
    return compile_kernel(folder, "--offload-arch=gfx90a:xnack-", "--offload-arch=gfx1030", "--offload-arch=gfx906")


def bundler_list(bundle: Path) -> list[str]:
    text = subprocess.run(
        [llvm("clang-offload-bundler"), "--list", "--type=o", f"--input={bundle}"], check=True, capture_output=True, text=True
    ).stdout
    return [line.rpartition("--")[2] for line in text.split() if not line.startswith("host-")]


def test_the_bundler_lists_the_same(library: Path, tmp_path: Path) -> None:
    section = tmp_path / "fatbin"
    subprocess.run(["objcopy", "-O", "binary", "--only-section=.hip_fatbin", str(library), str(section)], check=True)
    ours = [str(one) for one in code_objects(library)]
    assert sorted(ours) == sorted(bundler_list(section)) == ["gfx1030", "gfx906", "gfx90a:xnack-"]
    assert sorted(str(one) for one in code_objects(section)) == sorted(ours)


def test_readelf_sees_the_same_links(library: Path) -> None:
    text = subprocess.run(["readelf", "-dW", str(library)], check=True, capture_output=True, text=True).stdout
    assert list(needed(library)) == re.findall(r"\(NEEDED\).*\[(.+)\]", text)
    assert any(name.startswith("libamdhip64.so") for name in needed(library))


@pytest.mark.parametrize("target", ["gfx90a", "gfx90a:xnack-", "gfx90a:sramecc+:xnack+", "gfx1030", "gfx906", "gfx900"])
def test_loose_code_objects_as_llvm_reads_their_flags(target: str, tmp_path: Path) -> None:
    """--genco writes a bundle; the code object inside tells its target by e_flags, as llvm-readobj prints them."""
    packed = compile_kernel(tmp_path, "--genco", f"--offload-arch={target}", name="kernel.hsaco")
    assert [str(one) for one in code_objects(packed)] == [target]
    loose = tmp_path / "loose.co"
    subprocess.run(
        [llvm("clang-offload-bundler"), "--unbundle", "--type=o", f"--targets=hipv4-amdgcn-amd-amdhsa--{target}",
         f"--input={packed}", f"--output={loose}"],
        check=True, capture_output=True,
    )  # fmt: skip
    found = code_objects(loose)
    argv = [llvm("llvm-readobj"), "--file-header", str(loose)]
    text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    name, *features = target.split(":")
    assert f"EF_AMDGPU_MACH_AMDGCN_{name.upper()} " in text
    assert (found[0].target, found[0].features) == (name, tuple(features))
    for feature in ("XNACK", "SRAMECC"):
        for word, sign in (("ON", "+"), ("OFF", "-")):
            theirs = f"EF_AMDGPU_FEATURE_{feature}_{word}_V4" in text
            assert theirs == (f"{feature.lower()}{sign}" in found[0].features)


def test_several_units_in_one_library(tmp_path: Path) -> None:
    """Each translation unit brings a bundle; the linker lays them one after the other."""
    parts = []
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        source = folder / "unit.hip"
        source.write_text(
            "#include <hip/hip_runtime.h>\n"
            f"__global__ void k{number}(float* v) {{ v[threadIdx.x] *= {number}; }}\n"
            f"void go{number}(float* v) {{ hipLaunchKernelGGL(k{number}, dim3(1), dim3(64), 0, 0, v); }}\n"
        )
        parts.append(source)
    from tests.support.hipcc import environment, need_hipcc

    output = tmp_path / "all.so"
    argv = [
        need_hipcc(),
        "--offload-arch=gfx90a",
        "--offload-arch=gfx1030",
        "-fPIC",
        "-shared",
        *map(str, parts),
        "-o",
        str(output),
    ]
    subprocess.run(argv, env=environment(), check=True, capture_output=True)
    report = examine_file(output)
    assert report.gfx == ("gfx1030", "gfx90a")
    assert len(report.code_objects) == 6 and report.problem == ""
