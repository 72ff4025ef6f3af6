"""``rocmpip install --dry-run --json`` against the replica of the real indexes: which torch, from where, with what beside it.

Expectations were written from what the indexes hold (pytorch.org's build matrix, AMD's release notes), not from the code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rocmpip.model.rocm import rocm_of_label
from tests.support.commands import rocmpip
from tests.support.replica import Replica

pytestmark = pytest.mark.pip

Plan = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def plan(replica: Replica, venv: Callable[..., Path], tmp_path: Path) -> Plan:
    """``plan("torch", gfx="gfx942", rocm="6.4")`` → exit code and envelope; nothing of the machine under the tests is seen."""
    (tmp_path / "machine").mkdir()
    python = venv()

    def run(*words: str, gfx: str = "", rocm: str = "", **env: str) -> tuple[int, dict[str, Any]]:
        more = {"ROCMPIP_SYSROOT": str(tmp_path / "machine"), **env}
        if gfx:
            more["ROCMPIP_GFX"] = gfx
        if rocm:
            more["ROCMPIP_ROCM"] = rocm
        done = rocmpip("install", "--dry-run", "--json", "--python", str(python), *words, env=replica.env(**more), cwd=tmp_path)
        assert "Traceback" not in done.stderr
        envelope = json.loads(done.stdout)
        assert set(envelope) == {"rocmpip", "schema", "command", "ok", "result", "errors"}
        return done.returncode, envelope

    return run


def versions(envelope: dict[str, Any]) -> dict[str, str]:
    return {row["name"]: row["version"] for row in envelope["result"]["plan"]}


def assert_clean(envelope: dict[str, Any], gfx: tuple[str, ...]) -> None:
    """What must hold of every plan: no CUDA, right labels, no device package of another GPU, no address of the router."""
    for row in envelope["result"]["plan"]:
        name, version = row["name"], row["version"]
        assert not re.match(r"nvidia-(?!ml-py)|cuda-", name), name
        assert "+cu" not in version and "+cpu" not in version, (name, version)
        if name in ("torch", "torchvision", "torchaudio"):
            assert rocm_of_label(version) is not None, (name, version)
        device = re.search(r"-device-(.+)$", name)
        assert device is None or device.group(1) in gfx, name
        if row["url"]:
            assert re.match(r"http://127\.0\.0\.1:\d+/(?![\w-]{20,}/)", row["url"]), row["url"]


ROWS = [
    # gfx, rocm, request, torch, index
    ("gfx942", "6.4", "torch", "2.9.1+rocm6.4", "whl/rocm6.4"),
    ("gfx90a", "6.4", "torch", "2.9.1+rocm6.4", "whl/rocm6.4"),
    ("gfx1100", "6.4", "torch", "2.9.1+rocm6.4", "whl/rocm6.4"),
    ("gfx90a", "6.2", "torch", "2.7.1+rocm6.2.4", "whl/rocm6.2.4"),
    ("gfx90a", "6.2", "torch==2.5.1", "2.5.1+rocm6.2", "whl/rocm6.2"),
    ("gfx90a", "6.2", "torch==2.6.0", "2.6.0+rocm6.2.4", "whl/rocm6.2.4"),
    ("gfx90a", "6.2", "torch==2.4.0", "2.4.0+rocm6.1", "whl/rocm6.1"),
    ("gfx942", "6.4", "torch==2.9.1", "2.9.1+rocm6.4", "whl/rocm6.4"),
    ("gfx942", "7.2", "torch==2.9.1", "2.9.1+rocm6.4", "whl/rocm6.4"),
    ("gfx942", "10.0", "torch==2.9.1", "2.9.1+rocm6.4", "whl/rocm6.4"),
    ("gfx942", "7.2", "torch", "2.13.0+rocm7.2", "whl/rocm7.2"),
    ("gfx942", "7.14", "torch", "2.14.1+rocm7.14", "whl/rocm7.14"),
    ("gfx942", "7.14", "torch==2.12.0", "2.12.0+rocm7.14.0", "whl-multi-arch"),
    ("gfx942", "10.0", "torch", "2.13.0+rocm10.0.0", "whl-next"),
    ("gfx1151", "7.2", "torch", "2.13.0+rocm7.2", "whl/rocm7.2"),
    ("gfx1151", "7.14", "torch==2.14.1", "2.14.1+rocm7.14", "whl/rocm7.14"),
    ("gfx906", "6.3", "torch", "2.9.1+rocm6.3", "whl/rocm6.3"),
    ("gfx906", "6.4", "torch", "2.9.1+rocm6.3", "whl/rocm6.3"),
    ("gfx906", "7.2", "torch", "2.9.1+rocm6.3", "whl/rocm6.3"),
    ("gfx942,gfx90a", "6.4", "torch", "2.9.1+rocm6.4", "whl/rocm6.4"),
]


@pytest.mark.parametrize(("gfx", "rocm", "request_", "torch", "index"), ROWS)
def test_the_torch_of_a_machine(plan: Plan, gfx: str, rocm: str, request_: str, torch: str, index: str) -> None:
    code, envelope = plan(request_, gfx=gfx, rocm=rocm)
    assert (code, envelope["errors"]) == (0, [])
    assert versions(envelope)["torch"] == torch
    row = next(row for row in envelope["result"]["plan"] if row["name"] == "torch")
    assert index in row["index"] and row["action"] == "install" and row["because"]
    assert_clean(envelope, tuple(gfx.split(",")))


@pytest.mark.parametrize("gfx", ["gfx1103", "gfx1031", "gfx1010"])
def test_gpus_without_kernels_in_their_rocms_wheels_get_amds_native_ones(plan: Plan, gfx: str) -> None:
    code, envelope = plan("torch", gfx=gfx, rocm="7.2")
    assert (code, envelope["errors"]) == (0, [])
    rows = {row["name"]: row for row in envelope["result"]["plan"]}
    assert "whl-multi-arch" in rows["torch"]["index"] or "whl-next" in rows["torch"]["index"]
    assert any(name.endswith(f"-device-{gfx}") for name in rows)
    assert_clean(envelope, (gfx,))


def test_a_gpu_nobody_knows_gets_no_plan_and_never_cpu(plan: Plan) -> None:
    code, envelope = plan("torch", gfx="gfx132f", rocm="7.2")
    assert code == 40 and envelope["ok"] is False
    error = envelope["errors"][0]
    assert error["code"] == 40 and "gfx132f" in error["message"] and error["hint"]


def test_torch_that_comes_along_is_rocms(plan: Plan) -> None:
    code, envelope = plan("accelerate", gfx="gfx942", rocm="6.4")
    assert code == 0
    assert versions(envelope)["torch"] == "2.9.1+rocm6.4"
    assert versions(envelope)["pytorch-triton-rocm"] == "3.5.1"
    assert_clean(envelope, ("gfx942",))


def test_a_cuda_package_is_an_error_that_names_who_asked(plan: Plan) -> None:
    code, envelope = plan("nvidia-cublas-cu12", gfx="gfx942", rocm="6.4")
    assert code == 40
    assert "nvidia-cublas-cu12" in envelope["errors"][0]["message"]


def test_rocm_without_a_gpu_stops_torch_and_lets_the_rest_go_on(plan: Plan) -> None:
    code, envelope = plan("torch", rocm="6.4")
    assert code == 40 and "--gfx" in envelope["errors"][0]["hint"]
    code, envelope = plan("requests", rocm="6.4")
    assert (code, envelope["errors"]) == (0, [])
    assert "requests" in versions(envelope)


def test_foreign_index_lines_do_not_bring_cuda(plan: Plan, replica: Replica, tmp_path: Path) -> None:
    pytorch = replica.env()["ROCMPIP_PYTORCH_URL"].rstrip("/")
    file = tmp_path / "requirements.txt"
    text = f"--extra-index-url {pytorch}/whl/cu121\ntorch>=2.5\neinops  # a comment\n"
    file.write_text(text)
    code, envelope = plan("-r", str(file), gfx="gfx942", rocm="6.4")
    assert (code, envelope["errors"]) == (0, [])
    assert versions(envelope)["torch"] == "2.9.1+rocm6.4"
    assert_clean(envelope, ("gfx942",))
    assert file.read_text() == text


def test_recipes_steer_torch(plan: Plan) -> None:
    """flash-attn up to 2.8.3 cannot be compiled against torch 2.14: an older torch is taken, and the plan says so."""
    code, envelope = plan("torch", "flash-attn", gfx="gfx942", rocm="7.14")
    assert (code, envelope["errors"]) == (0, [])
    torch = versions(envelope)["torch"]
    assert tuple(map(int, torch.split("+")[0].split(".")[:2])) < (2, 14)
    row = next(row for row in envelope["result"]["plan"] if row["name"] == "flash-attn")
    assert (row["action"], row["origin"]) == ("build", "build")
    assert "flash-attn" in json.dumps(envelope["result"]["family"]["because"])


def test_recipes_that_only_come_along_steer_torch_too(plan: Plan) -> None:
    code, envelope = plan("needs-flash-attn", gfx="gfx942", rocm="7.14")
    assert (code, envelope["errors"]) == (0, [])
    torch = versions(envelope)["torch"]
    assert tuple(map(int, torch.split("+")[0].split(".")[:2])) < (2, 14)
    assert "flash-attn" in versions(envelope)
    assert_clean(envelope, ("gfx942",))


def test_what_only_its_build_tells_has_rows_too(plan: Plan, tmp_path: Path) -> None:
    """A repository, an editable project and a folder without a name: at the end, without what nobody knows yet."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project/pyproject.toml").write_text(
        '[project]\nname = "My_Project"\nversion = "1"\ndependencies = ["einops"]\n'
    )
    (tmp_path / "old").mkdir()
    (tmp_path / "old/setup.py").write_text("from setuptools import setup\nsetup(name='computed')\n")
    repository = "git+https://me:secret@h.example/x/y.git@v1"
    words = ("torch", "-e", "./project", "./old", repository, f"{repository}#egg=Egg_Name", f"zed @ {repository}")
    code, envelope = plan(*words, gfx="gfx942", rocm="6.4")
    assert (code, envelope["errors"]) == (0, [])
    rows = envelope["result"]["plan"]
    loose = [row for row in rows if not row["version"]]
    assert rows[-5:] == loose and {row["name"] for row in loose} == {"my-project", "", "egg-name", "zed"}
    assert {"torch", "einops"} <= {row["name"] for row in rows}
    for row in loose:
        repository_row = row["origin"] == "url"
        assert row["url"] == ("git+https://h.example/x/y.git@v1" if repository_row else None)
        assert row["action"] == "build" and row["direct"] and row["because"]
        assert [row[key] for key in ("index", "sha256", "size", "filename", "recipe", "installed_version")] == [None] * 6
    assert "secret" not in json.dumps(envelope["result"])


def test_a_constraint_that_names_a_cuda_wheel_is_read_as_its_version(plan: Plan, tmp_path: Path) -> None:
    wheel = "torch-2.8.0%2Bcu128-cp312-cp312-linux_x86_64.whl"
    (tmp_path / "c.txt").write_text(f"torch @ https://me:secret@h.example/{wheel}\n")
    for words in (("torch",), ("accelerate",)):
        code, envelope = plan(*words, "-c", "c.txt", gfx="gfx942", rocm="6.4")
        assert (code, versions(envelope)["torch"]) == (0, "2.8.0+rocm6.4")
        [note] = [note for note in envelope["result"]["notes"] if "c.txt:1" in note]
        assert "read as torch==2.8.0" in note and "secret" not in note


def test_a_version_that_no_index_has_is_told_as_that(plan: Plan) -> None:
    code, envelope = plan("torch==99", gfx="gfx942", rocm="6.4")
    [error] = envelope["errors"]
    assert (code, error["code"]) == (40, 40)
    assert error["message"].startswith("no stable index has a ROCm build of torch==99: there are ROCm builds of torch 2.14.1, ")
    assert "2.9.1+rocm6.4" in error["hint"]


def test_usage_errors_are_envelopes_too(plan: Plan) -> None:
    code, envelope = plan("--no-such-option")
    assert code == 2
    assert envelope["errors"][0]["code"] == 2
    code, envelope = plan("-r", "missing.txt", gfx="gfx942", rocm="6.4")
    assert code == 1
    assert "Could not open requirements file" in envelope["errors"][0]["message"]
