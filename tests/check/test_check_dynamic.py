"""The children of verify: what they say, that they end, and that a crash or a hang names its step."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest
from msgspec import structs

from rocmpip.app import verify as conductor
from rocmpip.check.dynamic import environment, import_names
from rocmpip.check.finding import Finding, Step
from rocmpip.check.verify import Outcome
from rocmpip.machine.files import Tree
from rocmpip.model.machine import Gpu, InstalledDist
from tests.check import fake_torch
from tests.check.check_packages import library, outcome, register, site


@pytest.fixture
def python(venv: Callable[..., Path]) -> Path:
    return venv()


@pytest.fixture
def env(clean_env: dict[str, str], tmp_path: Path) -> dict[str, str]:
    (tmp_path / "empty").mkdir()
    return {**clean_env, "ROCMPIP_SYSROOT": str(tmp_path / "empty")}


def steps(found: Outcome) -> dict[str, Step]:
    return {step.step: step for step in found.steps}


def faults(found: Outcome) -> dict[str, Finding]:
    return {finding.kind: finding for finding in found.faults}


def with_torch(python: Path, env: dict[str, str], mode: str, gfx: str = "gfx942", limit: float = 60) -> Outcome:
    fake_torch.install(site(python))
    return outcome(python, env={**env, "FAKE_TORCH": mode}, gfx=[gfx], run=True, limit=limit)


def test_without_a_gpu_each_step_says_why_not(python: Path, env: dict[str, str]) -> None:
    found = with_torch(python, env, "")
    told = steps(found)
    assert found.findings == ()
    assert told["import torch"] == Step("import torch", "ok", "2.9.1+rocm6.4")
    assert told["torch.version.hip"].verdict == "ok"
    for name in ("torch.cuda.get_arch_list()", "device visible", "matmul", "attention", "memory", "RCCL all-reduce"):
        assert told[name].verdict == "skipped"
        assert told[name].detail


def test_on_one_gpu(python: Path, env: dict[str, str]) -> None:
    found = with_torch(python, env, "gpu")
    told = steps(found)
    assert found.findings == ()
    for name in ("torch.cuda.get_arch_list()", "device visible", "matmul on GPU 0", "attention on GPU 0", "memory on GPU 0"):
        assert told[name].verdict == "ok"
    assert told["RCCL all-reduce"] == Step("RCCL all-reduce", "skipped", "there is one GPU")


def test_on_two_gpus(python: Path, env: dict[str, str]) -> None:
    told = steps(with_torch(python, env, "gpus"))
    assert told["matmul on GPU 1"].verdict == "ok"
    assert told["RCCL all-reduce"] == Step("RCCL all-reduce", "ok", "2 GPUs")


def test_a_gpu_that_miscalculates(python: Path, env: dict[str, str]) -> None:
    told = steps(with_torch(python, env, "gpu wrong"))
    assert told["matmul on GPU 0"].verdict == "fault"
    assert told["matmul on GPU 0"].detail.startswith("differs from the CPU")
    assert told["memory on GPU 0"].verdict == "ok"


def test_memory_that_is_not_given_back(python: Path, env: dict[str, str]) -> None:
    told = steps(with_torch(python, env, "gpu leak"))
    assert "not given back" in told["memory on GPU 0"].detail


@pytest.mark.parametrize(
    ("mode", "step", "verdict", "detail"),
    [
        ("gpu nan", "matmul on GPU 0", "fault", "the result holds values that are no numbers (NaN)"),
        ("gpu oops", "matmul on GPU 0", "fault", "RuntimeError: HIP error: invalid device function"),
        ("gpu oops", "attention on GPU 0", "fault", "RuntimeError: HIP error: invalid device function"),
        ("gpu absent", "memory on GPU 0", "fault", "256 MiB were asked for and are not there"),
        ("gpu full", "memory on GPU 0", "skipped", "less than 512 MiB are free on this GPU"),
        ("gpu mute", "torch.cuda.get_arch_list()", "skipped", "get_arch_list() is empty"),
        (
            "gpus no-rccl",
            "RCCL all-reduce, rank 0",
            "fault",
            "RuntimeError: NCCL error in: NCCLUtils.hpp:275, unhandled cuda error",
        ),
        ("gpus rccl-wrong", "RCCL all-reduce, rank 1", "fault", "the sum is 4.0, not 3.0"),
        ("gpus rccl-dies", "RCCL all-reduce, rank 1", "fault", "the interpreter was ended by SIGSEGV"),
        ("gpu quits", "matmul on GPU 0", "fault", "the interpreter ended with exit code 3"),
    ],
)
def test_a_gpu_step_that_fails(python: Path, env: dict[str, str], mode: str, step: str, verdict: str, detail: str) -> None:
    found = with_torch(python, env, mode)
    assert steps(found)[step] == Step(step, verdict, detail)
    failing = next((one for one in found.steps if one.verdict == "fault"), None)
    assert [one.what for one in found.faults] == ([f"{failing.step}: {failing.detail}"] if failing else [])
    assert {(one.kind, one.name, one.fix) for one in found.faults} <= {("gpu-step-fails", "torch", ("rocmpip doctor",))}


@pytest.mark.parametrize(
    ("mode", "step", "detail", "lacking"),
    [
        ("gpu segv", "matmul on GPU 0", "the interpreter was ended by SIGSEGV", ["attention on GPU 0", "memory on GPU 0"]),
        ("gpus segv1", "matmul on GPU 1", "the interpreter was ended by SIGSEGV", ["attention on GPU 1", "memory on GPU 1"]),
        (
            "gpu stall",
            "matmul on GPU 0",
            "gave no answer within 10 s and was stopped",
            ["attention on GPU 0", "memory on GPU 0"],
        ),
    ],
)
def test_after_a_crash_the_steps_that_were_not_come_to_say_so(
    python: Path, env: dict[str, str], mode: str, step: str, detail: str, lacking: list[str]
) -> None:
    told = steps(with_torch(python, env, mode, limit=10 if "stall" in mode else 60))
    assert told[step] == Step(step, "fault", detail)
    for name in (*lacking, "RCCL all-reduce"):
        assert told[name] == Step(name, "skipped", f"not come to: {step} ended the interpreter")


def test_one_rank_that_stands_still_is_named(python: Path, env: dict[str, str]) -> None:
    told = steps(with_torch(python, env, "gpus rccl-stalls", limit=10))
    assert told["RCCL all-reduce, rank 1"].detail == "gave no answer within 10 s and was stopped"


def test_a_gpu_that_torch_does_not_see(python: Path) -> None:
    program = files("rocmpip.check").joinpath("child_program.py").read_text()
    fake_torch.install(site(python))
    progress = python.parent / "progress"
    asked = {"mode": "torch", "targets": {"gfx942": ["gfx942"]}, "seen": True, "progress": str(progress)}
    subprocess.run([python, "-c", program, json.dumps(asked)], env={"FAKE_TORCH": "blind"}, check=True, timeout=60)
    told = {row["step"]: row for row in map(json.loads, progress.read_text().splitlines())}
    assert told["device visible"]["verdict"] == "fault"
    assert "although this machine has an AMD GPU" in told["device visible"]["detail"]
    assert told["matmul"]["verdict"] == "skipped"


def test_the_gpu_that_torch_does_not_see_is_a_finding(python: Path, env: dict[str, str]) -> None:
    fake_torch.install(site(python))
    look = conductor.look_at((), env={**env, "FAKE_TORCH": "blind"}, gfx=("gfx942",), python=str(python), cwd="/")
    seen = structs.replace(look.platform, gpus=(Gpu(gfx="gfx942"),))
    here = structs.replace(look, platform=seen, tree=Tree())
    found = conductor.verify(here, run=True, time_limit=60)
    (one,) = found.faults
    assert (one.kind, one.level, one.fix) == ("no-device", "fault", ("rocmpip doctor",))
    for name in ("matmul", "attention", "memory", "RCCL all-reduce"):
        assert steps(found)[name] == Step(name, "skipped", "torch sees no GPU")


def test_a_process_that_a_module_leaves_behind_does_not_keep_verify(python: Path, env: dict[str, str]) -> None:
    (site(python) / "leaves").mkdir()
    (site(python) / "leaves/__init__.py").write_text("import subprocess\nsubprocess.Popen(['sleep', '600'])\n")
    register(python, "leaves", "1.0")
    found = outcome(python, "leaves", env=env, run=True, limit=8)
    assert steps(found)["import leaves"].verdict in ("ok", "fault")


def test_a_torch_that_is_no_rocm_build(python: Path, env: dict[str, str]) -> None:
    found = faults(with_torch(python, env, "cpu"))
    assert "hip is None" in found["wrong-torch"].what


def test_architectures(python: Path, env: dict[str, str]) -> None:
    assert "wrong-gfx" in faults(with_torch(python, env, "gpu", "gfx1201"))


def test_generic_architectures_cover(python: Path, env: dict[str, str]) -> None:
    assert steps(with_torch(python, env, "gpu", "gfx1103"))["torch.cuda.get_arch_list()"].verdict == "ok"


def test_a_crash_names_its_step(python: Path, env: dict[str, str]) -> None:
    found = faults(with_torch(python, env, "crash"))
    assert "SIGABRT" in found["import-fails"].what
    assert "import torch" in found["import-fails"].what


def test_a_hang_ends_at_its_limit(python: Path, env: dict[str, str]) -> None:
    found = faults(with_torch(python, env, "hang", limit=5))
    assert "5 s" in found["import-fails"].what


def test_imports(python: Path, env: dict[str, str]) -> None:
    for name, source in (("good", "__version__ = '7'"), ("bad", "import no_such_thing_at_all"), ("loud", "print('x' * 10**6)")):
        (site(python) / name).mkdir()
        (site(python) / name / "__init__.py").write_text(source + "\n")
        library(site(python) / name / "_C.so", gfx=["gfx942"])
        register(python, name, "1.0")
    found = outcome(python, env=env, run=True)
    assert steps(found)["import good"] == Step("import good", "ok", "7")
    assert steps(found)["import loud"].verdict == "ok"
    (one,) = found.faults
    assert (one.kind, one.name) == ("import-fails", "bad")
    assert "No module named 'no_such_thing_at_all'" in one.what


def test_a_module_that_ends_the_interpreter(python: Path, env: dict[str, str]) -> None:
    (site(python) / "ends").mkdir()
    (site(python) / "ends/__init__.py").write_text("import os\nos._exit(9)\n")
    register(python, "ends", "1.0")
    found = outcome(python, "ends", env=env, run=True)
    assert "exit code 9" in found.faults[0].what


def test_the_working_folder_is_not_imported(
    python: Path, env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site(python) / "good").mkdir()
    (site(python) / "good/__init__.py").write_text("")
    register(python, "good", "1.0")
    (tmp_path / "here").mkdir()
    for name in ("good", "json", "__future__", "importlib", "datetime"):
        (tmp_path / f"here/{name}.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path / "here")
    assert outcome(python, "good", env=env, run=True).faults == ()


def test_caches_go_to_the_folder_that_is_removed(tmp_path: Path) -> None:
    env = environment({"HOME": "/home/alice", "PATH": "/bin"}, tmp_path)
    for name in ("HOME", "XDG_CACHE_HOME", "TRITON_CACHE_DIR", "MIOPEN_USER_DB_PATH", "TORCHINDUCTOR_CACHE_DIR", "TMPDIR"):
        assert env[name].startswith(str(tmp_path))
    assert env["PYTHONUSERBASE"] == "/home/alice/.local"
    assert env["PYTHONDONTWRITEBYTECODE"] == "1"
    assert env["PATH"] == "/bin"


@pytest.mark.parametrize(
    ("name", "files", "expected"),
    [
        ("flash-attn", ["flash_attn/__init__.py", "flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so", "hopper/__init__.py"], ["flash_attn"]),
        ("pytorch-triton-rocm", ["triton/__init__.py"], ["triton"]),
        ("data-only", ["share/data.txt"], []),
        ("single", ["single.py"], ["single"]),
    ],
)  # fmt: skip
def test_import_names(tmp_path: Path, name: str, files: list[str], expected: list[str]) -> None:
    info = tmp_path / f"{name}.dist-info"
    info.mkdir()
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    assert import_names(InstalledDist(name, "1.0", str(info))) == expected
