"""What each log says: one log or more for every rule, recorded failures where they are at hand, and logs of successful builds."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path

import pytest

from rocmpip.diagnose.lines import read_lines
from rocmpip.diagnose.match import Diagnosis, diagnose
from rocmpip.diagnose.rules import load_rules
from tests.diagnose.mutate import mutated

DATA = Path(__file__).parent / "data"
CASES = Path(__file__).parents[3] / "shared/data/failure_cases.jsonl"
"""Recorded failures; they lie beside a checkout where they are used, and are no part of the project."""


def told(log: str) -> Diagnosis:
    return diagnose(read_lines(io.BytesIO(log.encode("utf-8", "surrogateescape"))), load_rules())


def first(log: str) -> str:
    findings = told(log).findings
    return findings[0].kind if findings else ""


@cache
def own_logs() -> tuple[tuple[str, str], ...]:
    """(kind, log)"""
    parts = ("\n" + (DATA / "logs.txt").read_text("utf-8")).split("\n#### ")[1:]
    return tuple((kind, log) for kind, _, log in (part.partition("\n") for part in parts))


@cache
def cases() -> tuple[dict[str, str], ...]:
    return tuple(json.loads(line) for line in CASES.read_text("utf-8").splitlines()) if CASES.exists() else ()


OWN = own_logs()


@pytest.mark.parametrize(("kind", "log"), OWN, ids=[f"{number}-{kind}" for number, (kind, _) in enumerate(OWN)])
def test_each_log_has_its_cause(kind: str, log: str) -> None:
    assert first(log) == kind


def test_every_kind_has_a_log() -> None:
    assert {rule.kind for rule in load_rules().rules} == {kind for kind, _ in OWN}


def test_other_paths_versions_and_noise_change_nothing() -> None:
    logs = [(kind, log) for kind, log in OWN if kind != "probe-noise"]
    wrong = [(kind, seed) for kind, log in logs for seed in range(4) if first(mutated(log, "", seed)) != kind]
    assert len(wrong) <= len(logs) * 4 * 0.03, wrong


GOOD = sorted((DATA / "good").glob("*.txt"))


@pytest.mark.parametrize("path", GOOD, ids=[path.stem for path in GOOD])
def test_a_build_that_works_has_no_finding(path: Path) -> None:
    sure = [one for one in told(path.read_text("utf-8")).findings if one.confidence != "low"]
    assert sure == []


NOISE = """\
checking for nvcc... no
-- Could NOT find CUDA (missing: CUDA_TOOLKIT_ROOT_DIR)
-- Could NOT find HIP (missing: HIP_DIR)
  Policy CMP0146 is not set: The FindCUDA module is removed.
/opt/rocm/bin/hipcc -Wall -Werror -Wno-error=deprecated --offload-arch=gfx942 -c csrc/error.hip -o error.o
csrc/error.hip:12:3: warning: unused variable 'undefined_symbol' [-Wunused-variable]
WARNING: nvcc not found, skipping CUDA extensions
UserWarning: CUDA initialization: Found no NVIDIA driver on your system.
test_invalid_device_function_is_reported ... ok
git submodule update --init done
"""


@pytest.mark.parametrize(
    "end",
    [
        "Successfully built x",
        "[ 100%] Linking CXX shared library libx.so",
        "[12/12] Linking HIP shared library x.so",
        "-- Installing: /usr/local/lib/libx.so",
        " + torch==2.9.1+rocm6.4",
        "*** Created x-1.0-cp312-cp312-linux_x86_64.whl",
        "BUILD SUCCESS",
        "Build finished.",
    ],
)
def test_a_noisy_build_may_end_well_in_many_words(end: str) -> None:
    assert [one for one in told(NOISE + end + "\n").findings if one.confidence != "low"] == []


def test_an_unknown_failure_is_unknown_and_the_lines_worth_reading_are_shown() -> None:
    log = "step 1\n" * 30 + "ValueError: the flux is not capacitated\n" + "error: subprocess-exited-with-error\n"
    found = told(log)
    assert found.findings == ()
    assert found.worth == ((31, "ValueError: the flux is not capacitated"),)


@pytest.mark.parametrize(
    ("line", "family"),
    [
        ("RuntimeError: HIP error: unspecified launch failure", "gpu-arch"),
        ("RuntimeError: HIPBLAS_STATUS_EXECUTION_FAILED when calling hipblasSgemm", "gpu-arch"),
        ("MIOpen Error: /src/ocl/tensor.cpp:12: wrong stride", "gpu-arch"),
        ("kfd: failed to create the queue", "device-access"),
        ("configure: error: cannot locate the hip runtime of ROCm", "toolkit-discovery"),
        ("clang++: error: no input for gfx942", "toolkit-version"),
        ("csrc/a_hip.hip:12:3: error: expected ';' after expression", "package-limits"),
        ("poetry: version solving failed.", "resolver"),
        ("curl: (56) recv failure: torch-2.9.1-cp312-none-any.whl", "download"),
        ("Radeon card, but: cuDNN is not available", "wrong-build"),
        ("hiprtc: Error: no such header", "jit-headers"),
        ("ROCm under WSL2: the GPU is Not there", "wsl"),
    ],
)
def test_what_no_rule_knows_is_guessed_by_family(line: str, family: str) -> None:
    found = told(f"step 1\n{line}\nerror: subprocess-exited-with-error\n")
    assert [(one.family, one.confidence) for one in found.findings][:1] == [(family, "low")]
    assert told(f"{line}\nSuccessfully installed torch-2.9.1+rocm6.4\n").findings == (), "a log that ends well"
    sure = "a.hip:1:10: fatal error: 'cmath' file not found"
    assert {one.confidence for one in told(f"{line}\n{sure}\n").findings} <= {"high", "medium"}, "a cause that is known"


@pytest.mark.parametrize(
    "line",
    [
        "src/main.c:12:3: error: expected ';' after expression",
        "error[E0308]: mismatched types",
        "npm ERR! code ELIFECYCLE",
        "AssertionError: 3 != 4",
        "CMake Error at CMakeLists.txt:3 (message): no flux",
        "collect2: error: ld returned 1 exit status",
        "mysql: connection to server failed",
    ],
)
def test_failures_that_are_not_ours_stay_unknown(line: str) -> None:
    assert told(f"step 1\n{line}\nmake: *** [all] Error 2\n").findings == ()


def test_the_confusable_ones_are_told_apart() -> None:
    cuda_home = "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.\n"
    assert first("torch.__version__  = 2.9.1+rocm6.4\n" + cuda_home) == "rocm-toolkit-not-found"
    overlay = 'File "/tmp/pip-build-env-x/overlay/lib/python3.12/site-packages/torch/utils/cpp_extension.py"\n'
    assert first(overlay + cuda_home) == "build-isolation-cuda-torch"
    for found in (*told(cuda_home).findings, *told(overlay + cuda_home).findings):
        assert not any("cuda" in command.lower() for command in found.fix), "never: install CUDA"
    tensile = "rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: No such file or directory"
    assert first(f"{tensile} for GPU arch : gfx906\n") == "arch-dropped-by-rocm"
    assert first(f"{tensile} for GPU arch : gfx1031\n") == "tensile-arch-missing"
    devices = "found 2 ROCm devices:\n  Device 0: AMD Radeon RX 7900 XTX, gfx1100\n  Device 1: AMD Radeon Graphics, gfx1036\n"
    assert first(f"{devices}{tensile} for GPU arch : gfx1036\n") == "igpu-selected"
    loaded = "rocBLAS error: Could not load /opt/rocm-6.0.0/lib/rocblas/library/TensileLibrary_lazy_gfx1030.dat\n"
    assert first(loaded) == "mixed-rocm-libraries"
    symbol = "ImportError: /v/ext.so: undefined symbol: "
    assert first(symbol + "_ZN3c105ErrorC2Ev\n") == "undefined-symbol-torch-abi"
    assert first(symbol + "_ZNSt6thread4joinEv\n") == "cxx-runtime-mismatch"
    assert first(symbol + "_Z13flash_fwd_hipv\n") == "undefined-symbol-upstream-bug"
    assert first(symbol + "hipGetDevicePropertiesR0600\n") == "mixed-rocm-libraries"


if cases():

    @pytest.mark.parametrize("case", cases(), ids=[case["id"] for case in cases()])
    def test_recorded_failures(case: dict[str, str]) -> None:
        found = told(case["log"]).findings[0]
        assert (found.kind, found.family) == (case["kind"], case["family"])

    def test_recorded_failures_in_other_words() -> None:
        seeds = range(3)
        wrong = [
            (case["id"], seed, got)
            for case in cases()
            for seed in seeds
            if (got := first(mutated(case["log"], case["package"], seed))) != case["kind"]
        ]
        assert len(wrong) <= len(cases()) * len(seeds) * 0.03, wrong
