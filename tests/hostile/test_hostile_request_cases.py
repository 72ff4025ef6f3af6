"""Requests from bug reports that break a naive rewriting of torch lines: one test a report, against the replica."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocmpip.demo.torchlike import torch_wheel
from tests.hostile.target import Target
from tests.support.replica import pure_wheels

pytestmark = pytest.mark.pip

PYTORCH = "whl/rocm6.4"


def test_an_extra_index_is_no_priority(target: Target) -> None:
    """pypa/pip#8606: PyPI's newer torch must not win over the ROCm index named beside it."""
    url = target.env["ROCMPIP_PYTORCH_URL"].rstrip("/") + "/whl/rocm6.4"
    assert target.plan("torch", "--extra-index-url", url)["torch"] == "2.9.1+rocm6.4"
    file = target.file("r.txt", f"--extra-index-url {url}\ntorch\nrequests\n")
    plan = target.plan("-r", file)
    assert plan["torch"] == "2.9.1+rocm6.4" and plan["requests"] == "2.32.5"


def test_a_wrong_build_is_not_already_satisfied(target: Target) -> None:
    """ComfyUI#8638: a CUDA torch of the asked version is replaced."""
    target.ok("install", "-q", "torch==2.9.1", "--no-deps", ROCMPIP_GFX="", ROCMPIP_ROCM="")
    assert target.installed()["torch"] == "2.9.1"
    rows = {row["name"]: row for row in target.json("--dry-run", "torch==2.9.1")["result"]["plan"]}
    assert (rows["torch"]["action"], rows["torch"]["installed_version"]) == ("replace", "2.9.1")
    target.ok("install", "-q", "torch==2.9.1")
    assert target.torch() == "2.9.1+rocm6.4"


@pytest.mark.parametrize(
    ("lines", "torch"),
    [
        ("torch>=1.7.1+cu110", "2.7.1+rocm6.2.4"),
        ("torch==2.5.1+cu121", "2.5.1+rocm6.2"),
        ("torch\ntorchvision ~= 0.20+cu121", "2.7.1+rocm6.2.4"),
        ("torch<2.6+cu121 ; python_version > '3'", "2.5.1+rocm6.2"),
    ],
)
def test_cuda_labels_and_ordered_operators(target: Target, lines: str, torch: str) -> None:
    """pytorch#52571: a local label is legal with == and != alone; what it names is not for this machine anyway."""
    told = target.json("--dry-run", "-r", target.file("r.txt", lines + "\n"), ROCMPIP_ROCM="6.2")
    assert {row["name"]: row["version"] for row in told["result"]["plan"]}["torch"] == torch
    assert any("local label" in note for note in told["result"]["notes"])


def test_rocm_versions_are_numbers(target: Target) -> None:
    """TheRock#7081: as PEP 440 text, +rocm10.0 sorts before +rocm6.4 and +rocm7.2."""
    shelf = target.cwd / "wheels"
    shelf.mkdir()
    for rocm in ("6.4", "7.2", "10.0"):
        wheel = torch_wheel(f"2.9.1+rocm{rocm}", "py3-none-any", requires=(), rocm=rocm)
        (shelf / wheel.filename).write_bytes(wheel.content)
    for pure in pure_wheels():
        (shelf / pure.filename).write_bytes(pure.content)
    for rocm in ("6.4", "7.2", "10.0"):
        plan = target.plan("torch==2.9.1", "--no-index", "--find-links", str(shelf), ROCMPIP_ROCM=rocm)
        assert plan["torch"] == f"2.9.1+rocm{rocm}"
    target.ok("install", "-q", "torch==2.9.1", "--no-index", "--find-links", str(shelf), ROCMPIP_ROCM="10.0")
    assert target.torch() == "2.9.1+rocm10.0"


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_index_options_in_nested_files(target: Target, order: str) -> None:
    """pypa/pip#12233: the last --index-url of all files wins in pip; here every name finds its place, whatever the order."""
    pytorch = target.env["ROCMPIP_PYTORCH_URL"].rstrip("/")
    target.file("sub/a.txt", f"--index-url {target.env['PIP_INDEX_URL']}\neinops\n")
    target.file("sub/b.txt", f"--extra-index-url {pytorch}/whl/rocm6.4\ntorch\n")
    top = target.file("sub/top.txt", "".join(f"-r {name}.txt\n" for name in order))
    before = {path.name: path.read_bytes() for path in (target.cwd / "sub").iterdir()}
    plan = target.plan("-r", top)
    assert plan["torch"] == "2.9.1+rocm6.4" and plan["einops"] == "0.8.1"
    assert {path.name: path.read_bytes() for path in (target.cwd / "sub").iterdir()} == before


def test_indexes_of_environment_and_configuration(target: Target) -> None:
    """pytorch/ci-infra#661: a CPU index in PIP_EXTRA_INDEX_URL or pip.conf must not bring a CPU torch."""
    cpu = target.env["ROCMPIP_PYTORCH_URL"].rstrip("/") + "/whl/cpu"
    assert target.plan("torch", PIP_EXTRA_INDEX_URL=cpu)["torch"] == "2.9.1+rocm6.4"
    target.file("pip.conf", f"[global]\nextra-index-url = {cpu}\n")
    target.ok("install", "-q", "torch", PIP_CONFIG_FILE=str(target.cwd / "pip.conf"))
    assert target.torch() == "2.9.1+rocm6.4"


def test_later_installs_keep_rocm(target: Target) -> None:
    """ComfyUI#5122: a later package must not swap the torch, and a conflict with it is told as one."""
    target.ok("install", "-q", "torch==2.8.0")
    assert target.plan("torchvision")["torchvision"] == "0.23.0+rocm6.4"
    error = target.json("--dry-run", "needs-torch-210", code=40)["errors"][0]
    assert "2.8.0+rocm6.4" in error["message"] and error["hint"]
    target.ok("install", "-q", "accelerate")
    assert target.torch() == "2.8.0+rocm6.4"


@pytest.mark.parametrize(
    ("constraint", "torch"),
    [
        ("torch==2.9.1+rocm6.4", "2.9.1+rocm6.4"),
        ("torch==2.8.0", "2.8.0+rocm6.4"),
        ("torch==2.8.0+cu128", "2.8.0+rocm6.4"),
        ("torch==2.8.0+rocm6.3", "2.8.0+rocm6.3"),
        ("torch<2.9", "2.8.0+rocm6.4"),
    ],
)
def test_a_constraint_reaches_a_torch_that_comes_along(target: Target, constraint: str, torch: str) -> None:
    """pytorch/benchmark#2626: -c with a label needs the index of that label; and it binds a torch that nobody named."""
    file = target.file("c.txt", constraint + "\n")
    assert target.plan("accelerate", "-c", file)["torch"] == torch
    assert target.plan("torch", "accelerate", "-c", file)["torch"] == torch
    done = target.run("download", "-q", "--dest", "got", "accelerate", "-c", file)
    assert done.returncode == 0, done.stderr
    assert [path.name.split("-")[1] for path in (target.cwd / "got").glob("torch-*")] == [torch]


def test_extras_and_markers_survive(target: Target) -> None:
    """uv#10712: names, extras, markers, comments and continuations as pip reads them; look-alikes are left alone."""
    text = (
        'torch[opt-einsum]>=2.6,<3; platform_system=="Linux" and python_version<"3.15"\n'
        'torch>=9 ; sys_platform=="win32"\nTorch (>=2.6)\ntorch>=2.6 # comment\ntorch \\\n  >=2.6\n'
    )
    assert target.plan("-r", target.file("r.txt", text))["torch"] == "2.9.1+rocm6.4"


def test_one_triton(target: Target) -> None:
    """uv#18844: PyPI's triton never lies beside ROCm's; whoever asks for it gets the ROCm one."""
    target.ok("install", "-q", "needs-torch-and-triton")
    found = target.installed()
    assert found["pytorch-triton-rocm"] == "3.5.1" and found["torch"] == "2.9.1+rocm6.4"
    import_folder = next((target.python.parent.parent / "lib").glob("python3*")) / "site-packages" / "triton"
    assert import_folder.is_dir()
    files = list(import_folder.parent.glob("triton-*.dist-info/RECORD"))
    assert not any(line.startswith("triton/") for file in files for line in file.read_text().splitlines())


def test_a_project_that_builds_against_torch(target: Target) -> None:
    """vllm#38614: torch in build-system.requires is checked against the ROCm torch, and no CUDA torch comes for the build."""
    project = target.cwd / "project"
    project.mkdir()
    (project / "local_ext.py").write_text("")
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools>=70", "packaging", "torch==2.9.1"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "local-ext"\nversion = "1.0"\ndependencies = ["torch"]\n'
    )
    (project / "setup.py").write_text(
        "import packaging, torch\nopen('seen.txt', 'w').write(torch.__version__)\nfrom setuptools import setup\nsetup()\n"
    )
    target.ok("install", "-q", "./project", "torch")
    assert target.installed()["local-ext"] == "1.0" and target.torch() == "2.9.1+rocm6.4"
    paths = target.replica.requests()
    assert not any("nvidia" in path or path.startswith("files:/packages/torch/") for path in paths)


@pytest.mark.parametrize(
    ("rocm", "torch"), [("7.1.1", "2.13.0+rocm7.1"), ("7.9", "2.13.0+rocm7.2"), ("10.0", "2.13.0+rocm10.0.0")]
)
def test_a_rocm_newer_than_any_table(target: Target, rocm: str, torch: str) -> None:
    """uv#16917: a tool's list of ROCm indexes gets stale; the highest that is not newer than the machine's is taken."""
    assert target.plan("torch", ROCMPIP_GFX="gfx1151", ROCMPIP_ROCM=rocm)["torch"] == torch


def test_files_of_other_builds_are_refused_by_name(target: Target) -> None:
    wheel = Path("torch-2.9.1+cpu-cp311-cp311-linux_x86_64.whl")
    target.file(wheel.name, b"x")
    url = "torch @ https://x.example/whl/cu121/torch-2.9.1%2Bcu121-cp311-cp311-linux_x86_64.whl"
    for word, label in ((url, "+cu121"), (f"./{wheel}", "+cpu")):
        error = target.json("--dry-run", word, code=40)["errors"][0]
        assert label in error["message"] and "torch==2.9.1" in error["hint"]
