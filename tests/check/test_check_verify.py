"""verify on environments made for the purpose: each kind of wrong is named, right ones are left alone."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmpip.check import code
from rocmpip.check.linker import read_cache
from rocmpip.elf import CodeObject
from rocmpip.model.gfx import parse_gfx
from rocmpip.model.provenance import FingerprintInputs
from tests.check.check_machines import healthy, snapshot
from tests.check.check_packages import findings, kinds, library, outcome, register, site, stand_in, torch
from tests.support.commands import envelope, rocmpip


@pytest.fixture
def python(venv: Callable[..., Path]) -> Path:
    return venv()


@pytest.fixture
def env(clean_env: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """An empty machine: what counts is named with --gfx."""
    (tmp_path / "empty").mkdir()
    return {**clean_env, "ROCMPIP_SYSROOT": str(tmp_path / "empty")}


def extension(
    python: Path, name: str = "my-ext", *, symbol: str = "_ZN3c106answerEv", gfx: tuple[str, ...] = ("gfx942",)
) -> Path:
    """An extension as torch builds them: links libc10 by name, no path of its own."""
    folder = site(python) / name.replace("-", "_")
    links = [
        site(python) / "torch/lib" / one
        for one in ("libc10.so", "libamdhip64.so.6")
        if (site(python) / "torch/lib" / one).exists()
    ]
    return library(
        folder / "_C.so", f"extern int {symbol}(void); int use(void) {{ return {symbol}(); }}\n", needs=links, gfx=gfx
    )


# -- right environments ------------------------------------------------------------------------------------------------


def test_a_right_environment_has_no_finding(python: Path, env: dict[str, str]) -> None:
    torch(python)
    extension(python)
    made = FingerprintInputs("my-ext", "1.0", "sha256:0", "0", ("gfx942",), "6.4", torch="2.9.1+rocm6.4")
    register(python, "my-ext", "1.0", requires=["torch"], build=made)
    register(python, "nvidia-ml-py", "12.0")
    found = outcome(python, env=env)
    assert found.findings == ()
    assert set(found.gpu) == {"torch", "my-ext"}
    assert all(step.verdict in ("ok", "skipped") for step in found.steps)


def test_an_empty_environment(python: Path, env: dict[str, str]) -> None:
    found = outcome(python, env=env, gfx=())
    assert found.findings == ()
    assert {step.step: step.verdict for step in found.steps}["device code"] == "skipped"


# -- CUDA --------------------------------------------------------------------------------------------------------------


def test_a_cuda_only_package(python: Path, env: dict[str, str], tmp_path: Path) -> None:
    cudart = stand_in(tmp_path, "libcudart.so.12")
    library(site(python) / "cudathing/_C.so", needs=[cudart])
    register(python, "cudathing", "1.0")
    (found,) = findings(python, env=env)
    assert (found.kind, found.level, found.name) == ("cuda-only", "fault", "cudathing")
    assert "libcudart.so.12" in " ".join(found.evidence)
    # A build machine sees no GPU, and a CUDA build is as wrong there; --gfx none says that no AMD GPU is meant.
    assert kinds(python, env=env, gfx=()) == {("cuda-only", "fault")}
    assert kinds(python, env=env, gfx=["none"]) == {("cuda-only", "note")}


def test_a_package_that_holds_both(python: Path, env: dict[str, str], tmp_path: Path) -> None:
    cudart = stand_in(tmp_path, "libcudart.so.12")
    library(site(python) / "both/libboth_cuda124.so", needs=[cudart])
    library(site(python) / "both/libboth_rocm64.so", gfx=["gfx942"])
    register(python, "both", "1.0")
    assert kinds(python, env=env) == {("mixed", "note")}


def test_a_library_that_links_both(python: Path, env: dict[str, str], tmp_path: Path) -> None:
    cudart = stand_in(tmp_path, "libcublas.so.12")
    library(site(python) / "both/_C.so", needs=[cudart], gfx=["gfx942"])
    register(python, "both", "1.0")
    (found,) = findings(python, env=env)
    assert (found.kind, found.level, found.file) == ("cuda-link", "fault", "both/_C.so")


def test_only_the_variant_for_this_rocm_must_load(python: Path, env: dict[str, str], tmp_path: Path) -> None:
    here = library(site(python) / "both.libs/libhipblas.so.2")
    gone = stand_in(tmp_path, "libhipblas.so.3")
    library(site(python) / "both/libboth_rocm64.so", needs=[here], runpath="$ORIGIN/../both.libs", gfx=["gfx942"])
    library(site(python) / "both/libboth_rocm70.so", needs=[gone], gfx=["gfx942"])
    register(python, "both", "1.0")
    assert kinds(python, env=env) == set()


def test_a_cpu_library_is_no_alternative(python: Path, env: dict[str, str], tmp_path: Path) -> None:
    torch(python)
    c10 = site(python) / "torch/lib/libc10.so"
    gone = stand_in(tmp_path, "libamdhip64.so.7")
    library(site(python) / "spline/_basis_cpu.so", needs=[c10])
    library(site(python) / "spline/_basis_cuda.so", needs=[c10, gone], gfx=["gfx942"])
    register(python, "spline", "1.0")
    assert kinds(python, env=env) == {("missing-rocm-library", "warn")}


def test_cuda_packages_by_name(python: Path, env: dict[str, str]) -> None:
    register(python, "nvidia-cublas-cu12", "12.8.4.1")
    register(python, "onnxruntime-gpu", "1.22.0")
    found = findings(python, env=env)
    assert {(one.kind, one.name) for one in found} == {
        ("cuda-package", "nvidia-cublas-cu12"),
        ("cuda-package", "onnxruntime-gpu"),
    }


# -- torch, triton, pairing --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2.9.1+cu128", "2.9.1", "2.9.1+cpu"])
def test_a_torch_that_is_not_rocms(python: Path, env: dict[str, str], version: str) -> None:
    torch(python, version, hip="")
    assert ("wrong-torch", "fault") in kinds(python, env=env)


def test_a_label_that_lies(python: Path, env: dict[str, str]) -> None:
    torch(python, "2.9.1+rocm6.4", hip="")
    (found,) = [one for one in findings(python, env=env) if one.kind == "wrong-torch"]
    assert "hip = None" in found.what


def test_pairings(python: Path, env: dict[str, str]) -> None:
    torch(python)
    register(python, "torchvision", "0.20.1+rocm6.4")
    register(python, "torchaudio", "2.9.1")
    found = findings(python, env=env)
    assert {(one.kind, one.name) for one in found} == {("pairing", "torchvision"), ("pairing", "torchaudio")}


def test_two_tritons(python: Path, env: dict[str, str]) -> None:
    torch(python)
    (site(python) / "triton").mkdir()
    (site(python) / "triton/__init__.py").write_text("")
    register(python, "triton", "3.5.1")
    info = site(python) / "pytorch_triton_rocm-3.5.1.dist-info"
    register(python, "pytorch-triton-rocm", "3.5.1")
    with (info / "RECORD").open("a") as stream:
        stream.write("triton/__init__.py,,\n")
    found = findings(python, env=env)
    assert {(one.kind, one.name) for one in found} == {("two-tritons", "triton")}
    assert found[0].fix[0] == "rocmpip uninstall -y triton pytorch-triton-rocm"


def test_the_triton_of_the_public_index(python: Path, env: dict[str, str]) -> None:
    torch(python)
    (site(python) / "triton").mkdir()
    (site(python) / "triton/__init__.py").write_text("")
    register(python, "triton", "3.5.1")
    assert kinds(python, env=env) == {("wrong-triton", "fault")}


# -- device code -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "gfx", "expected"),
    [
        (("gfx90a", "gfx942"), "gfx942", set()),
        (("gfx90a",), "gfx942", {("wrong-gfx", "fault")}),
        (("gfx11-generic",), "gfx1103", set()),
        (("gfx9-generic",), "gfx90a", {("wrong-gfx", "fault")}),
        (("gfx9-4-generic",), "gfx942", set()),
        (("gfx90a:xnack+",), "gfx90a", {("wrong-feature", "fault")}),
        (("gfx90a:xnack+",), "gfx90a:xnack+", set()),
        (("gfx90a:xnack-",), "gfx90a", set()),
        (("gfx90a:sramecc-",), "gfx90a", {("wrong-feature", "fault")}),
        (("gfx906:sramecc+:xnack-",), "gfx906", set()),
    ],
)  # fmt: skip
def test_device_code(
    python: Path, env: dict[str, str], held: tuple[str, ...], gfx: str, expected: set[tuple[str, str]]
) -> None:
    library(site(python) / "kernels/_C.so", gfx=held)
    register(python, "kernels", "1.0")
    assert kinds(python, env=env, gfx=[gfx]) == expected


def test_xnack_by_variable(python: Path, env: dict[str, str]) -> None:
    library(site(python) / "kernels/_C.so", gfx=["gfx90a:xnack+"])
    register(python, "kernels", "1.0")
    (found,) = findings(python, env=env, gfx=["gfx90a"])
    assert found.fix == ("export HSA_XNACK=1",)
    assert kinds(python, env={**env, "HSA_XNACK": "1"}, gfx=["gfx90a"]) == set()


def test_the_override_is_what_the_runtime_asks_for(python: Path, env: dict[str, str]) -> None:
    library(site(python) / "kernels/_C.so", gfx=["gfx1030"])
    register(python, "kernels", "1.0")
    assert kinds(python, env=env, gfx=["gfx1031"]) == {("wrong-gfx", "fault")}
    assert kinds(python, env={**env, "HSA_OVERRIDE_GFX_VERSION": "10.3.0"}, gfx=["gfx1031"]) == set()
    (found,) = findings(python, env={**env, "HSA_OVERRIDE_GFX_VERSION": "11.0.0"}, gfx=["gfx1030"])
    assert found.fix == ("unset HSA_OVERRIDE_GFX_VERSION",)


def test_every_target_counts(python: Path, env: dict[str, str]) -> None:
    library(site(python) / "kernels/_C.so", gfx=["gfx942"])
    register(python, "kernels", "1.0")
    found = findings(python, env=env, gfx=["gfx942", "gfx1100"])
    assert [one.kind for one in found] == ["wrong-gfx"]
    assert "gfx1100" in found[0].what


def test_libraries_without_code_for_the_gpu_beside_those_with_it(python: Path, env: dict[str, str]) -> None:
    library(site(python) / "kernels/one.so", gfx=["gfx942"])
    library(site(python) / "kernels/two.so", gfx=["gfx90a"])
    register(python, "kernels", "1.0")
    (found,) = findings(python, env=env)
    assert (found.kind, found.level, found.file) == ("partly-covered", "note", "kernels/two.so")


def thin_torch(python: Path, *packs: str) -> None:
    """Libraries that refer to kernel packs, and a device package for each of ``packs``."""
    lib = library(site(python) / "torch/lib/libtorch_hip.so")
    mark = site(python) / "mark"
    mark.write_bytes(b"x" * 16)
    subprocess.run(["objcopy", "--add-section", f".rocm_kpack_ref={mark}", str(lib)], check=True)
    mark.unlink()
    register(python, "torch", "2.14.1+rocm7.14.0")
    for gfx in packs:
        folder = site(python) / f"amd_torch_device_{gfx}"
        folder.mkdir()
        (folder / f"torch_{gfx}.kpack").write_bytes(b"KPAK" + b"x" * 60)
        register(python, f"amd-torch-device-{gfx}", "2.14.1+rocm7.14.0")


@pytest.mark.parametrize(
    ("packs", "expected"),
    [
        (("gfx942",), set()),
        (("gfx942", "gfx1100"), set()),
        (("gfx1100",), {("wrong-gfx", "torch")}),
        ((), {("wrong-gfx", "torch")}),
    ],
)  # fmt: skip
def test_kernels_in_packages_of_their_own(
    python: Path, env: dict[str, str], packs: tuple[str, ...], expected: set[tuple[str, str]]
) -> None:
    thin_torch(python, *packs)
    found = findings(python, env=env)
    assert {(one.kind, one.name) for one in found} == expected
    assert all(one.fix == ("rocmpip install 'torch[device-gfx942]'",) for one in found)


def test_features_that_are_not_named_may_be_either_way() -> None:
    assert code.runs(CodeObject("gfx90a", (), 1), parse_gfx("gfx90a:xnack+"), "")
    assert code.runs(CodeObject("gfx1100", (), 1), parse_gfx("gfx1100"), "")
    assert not code.runs(CodeObject("gfx1100", (), 1), parse_gfx("gfx1101"), "")
    assert code.runs(CodeObject("amdgcnspirv", (), 1), parse_gfx("gfx1250"), "")


# -- links -------------------------------------------------------------------------------------------------------------


def test_an_extension_of_another_torch(python: Path, env: dict[str, str]) -> None:
    torch(python)
    extension(python, symbol="_ZN3c1010otherThingEv")
    register(python, "my-ext", "1.0")
    (found,) = findings(python, env=env)
    assert (found.kind, found.level, found.name) == ("wrong-torch-build", "fault", "my-ext")
    assert "_ZN3c1010otherThingEv" in found.evidence
    # The loader itself: the symbol is not there once torch is loaded.
    load = (
        f"import ctypes; ctypes.CDLL('{site(python)}/torch/lib/libc10.so', 256); ctypes.CDLL('{site(python)}/my_ext/_C.so', 2)"
    )
    done = subprocess.run([str(python), "-c", load], capture_output=True, text=True, check=False)
    assert "undefined symbol: _ZN3c1010otherThingEv" in done.stderr


def test_an_extension_built_for_another_torch_by_its_record(python: Path, env: dict[str, str]) -> None:
    torch(python)
    extension(python)
    made = FingerprintInputs("my-ext", "1.0", "sha256:0", "0", ("gfx942",), "6.4", torch="2.8.0+rocm6.4")
    register(python, "my-ext", "1.0", build=made)
    (found,) = findings(python, env=env)
    assert (found.kind, found.level) == ("wrong-torch-build", "fault")
    assert "2.8.0+rocm6.4" in found.what


def test_an_extension_without_torch(python: Path, env: dict[str, str]) -> None:
    torch(python)
    extension(python)
    register(python, "my-ext", "1.0")
    for path in sorted((site(python) / "torch").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    for path in sorted(site(python).glob("torch-*/*")):
        path.unlink()
    next(site(python).glob("torch-*")).rmdir()
    (found,) = findings(python, env=env)
    assert (found.kind, found.level, found.name) == ("torch-missing", "fault", "my-ext")


def test_two_hip_runtimes(python: Path, env: dict[str, str], tmp_path: Path) -> None:
    torch(python)
    newer = library(tmp_path / "rocm-7/lib/libamdhip64.so.7")
    library(
        site(python) / "my_ext/_C.so",
        needs=[site(python) / "torch/lib/libc10.so", newer],
        runpath=str(newer.parent),
        gfx=["gfx942"],
    )
    register(python, "my-ext", "1.0", requires=["torch"])
    (found,) = findings(python, env=env)
    assert (found.kind, found.level, found.name) == ("two-rocms", "fault", "my-ext")
    assert "libamdhip64" in " ".join(found.evidence)


def test_a_second_copy_by_the_search_path(python: Path, env: dict[str, str], tmp_path: Path) -> None:
    """LD_LIBRARY_PATH comes before RUNPATH: the system's libhsa beside torch's own HIP."""
    torch(python)
    rocm = tmp_path / "rocm-6.2/lib"
    library(rocm / "libhsa-runtime64.so.1")
    library(site(python) / "torch/lib/libhsa-runtime64.so.1")
    hip = site(python) / "torch/lib/libamdhip64.so.6"
    library(
        hip, "int hipMalloc(void) { return 0; }\n", needs=[site(python) / "torch/lib/libhsa-runtime64.so.1"], runpath="$ORIGIN"
    )
    assert kinds(python, env=env) == set()
    (found,) = findings(python, env={**env, "LD_LIBRARY_PATH": str(rocm)})
    assert found.kind == "two-rocms"
    assert found.fix == ("unset LD_LIBRARY_PATH",)


def test_rocm_libraries_that_are_not_there(python: Path, env: dict[str, str], tmp_path: Path) -> None:
    gone = stand_in(tmp_path, "libhipblas.so.2")
    library(site(python) / "kernels/_C.so", needs=[gone], gfx=["gfx942"])
    register(python, "kernels", "1.0")
    (found,) = findings(python, env=env)
    assert (found.kind, found.level) == ("missing-rocm-library", "warn")
    assert "libhipblas.so.2" in found.what


def test_any_other_library_that_is_not_there(python: Path, env: dict[str, str], tmp_path: Path) -> None:
    gone = stand_in(tmp_path, "libprofiler.so.9")
    library(site(python) / "kernels/_C.so", needs=[gone], gfx=["gfx942"])
    register(python, "kernels", "1.0")
    assert kinds(python, env=env) == {("missing-library", "fault")}


def test_a_symbol_that_nobody_defines(python: Path, env: dict[str, str]) -> None:
    library(
        site(python) / "kernels/_C.so", "extern int hipNewThing(void); int f(void) { return hipNewThing(); }\n", gfx=["gfx942"]
    )
    register(python, "kernels", "1.0")
    (found,) = findings(python, env=env)
    assert found.kind == "undefined-symbols"
    assert "HIP" in found.why


def test_pythons_own_symbols_are_there(python: Path, env: dict[str, str]) -> None:
    source = 'extern void *PyModule_New(const char *); void *PyInit__C(void) { return PyModule_New("x"); }\n'
    library(site(python) / "kernels/_C.so", source, gfx=["gfx942"])
    register(python, "kernels", "1.0")
    assert kinds(python, env=env) == set()


def test_an_older_cpp_runtime_in_front(python: Path, env: dict[str, str], tmp_path: Path) -> None:
    source = '#include <string>\n#include <stdexcept>\nstd::string f(int n) { if (n) throw std::runtime_error("x"); return std::to_string(n); }\n'
    library(site(python) / "kernels/_C.so", source, cplusplus=True, gfx=["gfx942"])
    register(python, "kernels", "1.0")
    assert kinds(python, env=env) == set()
    old = library(tmp_path / "conda/lib/libstdc++.so.6", script="GLIBCXX_3.4 { global: *; };\n")
    shadowed = {**env, "LD_LIBRARY_PATH": str(old.parent)}
    (found,) = findings(python, env=shadowed)
    assert (found.kind, found.level) == ("libstdcxx-shadowed", "fault")
    assert "GLIBCXX_3.4." in " ".join(found.evidence)
    assert found.fix == ("unset LD_LIBRARY_PATH",)
    done = subprocess.run(
        ["ldd", str(site(python) / "kernels/_C.so")], env=shadowed, capture_output=True, text=True, check=False
    )
    assert "not found (required by" in done.stdout + done.stderr
    assert read_cache()["libstdc++.so.6"]


@pytest.mark.parametrize(
    ("soname", "version", "kind", "fix"),
    [
        ("libc.so.6", "GLIBC_9.9", "glibc-old", "rocmpip install --force-reinstall --no-binary kernels kernels"),
        ("libstdc++.so.6", "GLIBCXX_9.9", "libstdcxx-old", "apt-get install -y libstdc++6"),
        ("libm.so.6", "GLIBC_9.9", "version-missing", "rocmpip install --force-reinstall kernels"),
    ],
)
def test_a_system_library_that_is_too_old(
    python: Path, env: dict[str, str], tmp_path: Path, soname: str, version: str, kind: str, fix: str
) -> None:
    newer = stand_in(
        tmp_path, soname, "int of_tomorrow(void) { return 1; }\n", script=f"{version} {{ global: of_tomorrow; }};\n"
    )
    source = "extern int of_tomorrow(void); int use(void) { return of_tomorrow(); }\n"
    library(site(python) / "kernels/_C.so", source, needs=[newer], gfx=["gfx942"])
    register(python, "kernels", "1.0")
    (found,) = findings(python, env=env)
    assert (found.kind, found.level, found.name, found.fix) == (kind, "fault", "kernels", (fix,))
    assert f"kernels/_C.so needs {version}" in found.evidence
    # The loader itself.
    done = subprocess.run(["ldd", str(site(python) / "kernels/_C.so")], capture_output=True, text=True, check=False)
    assert f"version `{version}' not found" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("release", "fix"),
    [
        ("ID=fedora\n", "dnf install -y libstdc++"),
        ('ID="almalinux"\nID_LIKE="rhel centos fedora"\n', "dnf install -y libstdc++"),
        ('ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', "zypper install -y libstdc++6"),
        ("ID=cachyos\nID_LIKE=arch\n", "pacman -S --noconfirm gcc-libs"),
        ("ID=linuxmint\nID_LIKE=ubuntu\n", "apt-get install -y libstdc++6"),
    ],
)
def test_a_newer_libstdcxx_comes_by_the_machines_package_tool(
    python: Path, env: dict[str, str], tmp_path: Path, release: str, fix: str
) -> None:
    (tmp_path / "empty/etc").mkdir()
    (tmp_path / "empty/etc/os-release").write_text(release)
    newer = stand_in(
        tmp_path, "libstdc++.so.6", "int of_tomorrow(void) { return 1; }\n", script="GLIBCXX_9.9 { global: of_tomorrow; };\n"
    )
    source = "extern int of_tomorrow(void); int use(void) { return of_tomorrow(); }\n"
    library(site(python) / "kernels/_C.so", source, needs=[newer], gfx=["gfx942"])
    register(python, "kernels", "1.0")
    (found,) = findings(python, env=env)
    assert (found.kind, found.fix) == ("libstdcxx-old", (fix,))


def test_a_build_for_another_rocm_by_its_record(python: Path, clean_env: dict[str, str], tmp_path: Path) -> None:
    env = {**clean_env, "ROCMPIP_SYSROOT": str(healthy(tmp_path / "root"))}
    library(site(python) / "kernels/_C.so", gfx=["gfx942"])
    register(python, "kernels", "1.0", build=FingerprintInputs("kernels", "1.0", "sha256:0", "0", ("gfx942",), "5.7.1"))
    (found,) = findings(python, env=env)
    assert (found.kind, found.level) == ("wrong-rocm-build", "note")
    assert "5.7.1" in found.what


def test_a_build_for_another_gpu_by_its_record(python: Path, env: dict[str, str]) -> None:
    library(site(python) / "kernels/_C.so", gfx=["gfx90a", "gfx942"])
    register(python, "kernels", "1.0", build=FingerprintInputs("kernels", "1.0", "sha256:0", "0", ("gfx90a",), "6.4"))
    (found,) = findings(python, env=env)
    assert (found.kind, found.level) == ("wrong-gfx", "fault")
    assert found.fix == ("rocmpip install --force-reinstall --no-deps kernels==1.0",)


def test_gpu_code_that_nobody_owns(python: Path, env: dict[str, str]) -> None:
    library(site(python) / "leftover/_C.so", gfx=["gfx942"])
    assert kinds(python, env=env) == {("unowned", "note")}


def test_broken_files_are_told(python: Path, env: dict[str, str]) -> None:
    good = library(site(python) / "kernels/_C.so", gfx=["gfx942"])
    good.write_bytes(good.read_bytes()[:3000])
    (site(python) / "kernels/empty.so").write_bytes(b"")
    (site(python) / "kernels/text.so").write_text("/* GNU ld script */\n")
    register(python, "kernels", "1.0")
    found = outcome(python, env=env)
    assert all(one.what for one in found.findings)


# -- the command -------------------------------------------------------------------------------------------------------


def test_names_choose(python: Path, env: dict[str, str]) -> None:
    library(site(python) / "one/_C.so", gfx=["gfx90a"])
    register(python, "one", "1.0")
    library(site(python) / "two/_C.so", gfx=["gfx90a"])
    register(python, "two", "1.0")
    assert {one.name for one in findings(python, env=env)} == {"one", "two"}
    assert {one.name for one in findings(python, "Two", env=env)} == {"two"}
    assert {(one.kind, one.name) for one in findings(python, "three", env=env)} == {("not-installed", "three")}


def test_exit_codes_and_the_envelope(python: Path, env: dict[str, str]) -> None:
    library(site(python) / "one/_C.so", gfx=["gfx942"])
    register(python, "one", "1.0")
    told = envelope(rocmpip("verify", "--no-run", "--json", "--gfx", "gfx942", "--python", str(python), env=env))
    assert told["result"]["findings"] == []
    assert told["result"]["checked"]["gpu_distributions"] == ["one"]
    done = rocmpip("verify", "--no-run", "--json", "--gfx", "gfx1100", "--python", str(python), env=env)
    assert done.returncode == 43
    (found,) = envelope(done)["result"]["findings"]
    assert set(found) == {"kind", "level", "name", "file", "what", "evidence", "why", "fix"}
    done = rocmpip("verify", "--no-run", "--gfx", "gfx1100", "--python", str(python), env=env)
    assert done.returncode == 43
    assert done.stdout.startswith("fault")
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("words", [("--gfx", "banana"), ("--python", "/nonexistent"), ("--time-limit", "0")], ids=" ".join)
def test_bad_input(env: dict[str, str], words: tuple[str, ...]) -> None:
    told = envelope(rocmpip("verify", "--no-run", *words, "--json", env=env))
    assert told["errors"][0]["code"] in (1, 2)


def test_the_gpu_of_the_machine_counts(python: Path, clean_env: dict[str, str], tmp_path: Path) -> None:
    env = {**clean_env, "ROCMPIP_SYSROOT": str(healthy(tmp_path / "root", ("rx7900xtx",)))}
    library(site(python) / "kernels/_C.so", gfx=["gfx942"])
    register(python, "kernels", "1.0")
    (found,) = findings(python, env=env, gfx=())
    assert "gfx1100" in found.what


def test_reading_and_running_change_nothing(python: Path, env: dict[str, str], tmp_path: Path) -> None:
    torch(python)
    extension(python)
    register(python, "my-ext", "1.0")
    package = site(python) / "plain"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import os, pathlib\npathlib.Path.home().joinpath('.plain').write_text('x')\n"
        "pathlib.Path(os.environ['TRITON_CACHE_DIR'], 'kernel').write_text('x')\n"
    )
    register(python, "plain", "1.0")
    home = tmp_path / "home"
    home.mkdir()
    before = snapshot(home, python.parent.parent)
    done = rocmpip("verify", "--gfx", "gfx942", "--python", str(python), "plain", env={**env, "HOME": str(home)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "import plain" in done.stdout
    done = rocmpip("verify", "--gfx", "gfx942", "--python", str(python), env={**env, "HOME": str(home)})
    assert (done.returncode, "2 faults in 3 packages" in done.stdout) == (43, True)
    assert snapshot(home, python.parent.parent) == before
