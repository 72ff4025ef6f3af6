"""Requests that break what only rewrites requirement lines: wrong indexes, labels, markers, names; each with its right outcome.

From reports of users of pip, uv, vLLM and ComfyUI (pip#8606 and #12233, pytorch#52571 and #95135, uv#18844, vllm#38614 and others).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rocmpip.demo.torchlike import torch_wheel
from rocmpip.demo.wheels import Wheel
from tests.acceptance.test_acceptance_matrix import nothing_cuda
from tests.support.commands import rocmpip
from tests.support.environments import installed, put
from tests.support.in_process import plan
from tests.support.replica import Replica, tag

pytestmark = pytest.mark.pip


class Desk:
    """One machine (gfx942 unless said otherwise) with one environment; ``ask`` plans, ``do`` really installs."""

    def __init__(self, replica: Replica, python: Path, folder: Path) -> None:
        self.replica, self.python, self.folder = replica, python, folder
        (folder / "machine").mkdir()
        self.env = replica.env(folder, ROCMPIP_SYSROOT=str(folder / "machine"))
        self.result: dict[str, Any] = {}
        self.errors: list[dict[str, Any]] = []

    def variables(self, rocm: str, gfx: str, more: dict[str, str]) -> dict[str, str]:
        return {**self.env, "ROCMPIP_ROCM": rocm, "ROCMPIP_GFX": gfx, **more}

    def ask(self, *words: str, rocm: str = "6.4", gfx: str = "gfx942", code: int = 0, **env: str) -> dict[str, str]:
        """Name → version of the whole plan."""
        got, told = plan("--python", str(self.python), *words, env=self.variables(rocm, gfx, env), cwd=self.folder)
        assert got == code, told["errors"] or told["result"]
        self.result, self.errors = told["result"], told["errors"]
        rows = {row["name"]: row for row in self.result.get("plan", ())}
        nothing_cuda(rows)
        return {name: row["version"] for name, row in rows.items()}

    def row(self, name: str) -> dict[str, Any]:
        return next(row for row in self.result["plan"] if row["name"] == name)

    def do(self, *words: str, rocm: str = "6.4", gfx: str = "gfx942", **env: str) -> dict[str, str]:
        """Install, and what the environment holds afterwards."""
        done = rocmpip("install", "--python", str(self.python), *words, env=self.variables(rocm, gfx, env), cwd=self.folder)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return installed(self.python)

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return name

    def index(self, name: str) -> str:
        return f"{self.replica.pytorch.url}/whl/{name}"


@pytest.fixture
def desk(replica: Replica, venv: Callable[..., Path], tmp_path: Path) -> Desk:
    return Desk(replica, venv(), tmp_path)


def this_python() -> str:
    import sys

    return f"cp{sys.version_info[0]}{sys.version_info[1]}"


def test_an_extra_index_is_no_priority(desk: Desk) -> None:
    found = desk.ask("torch", "einops", "--extra-index-url", desk.index("rocm6.4"))
    assert found["torch"] == "2.9.1+rocm6.4"
    assert desk.row("einops")["index"].startswith(desk.replica.pypi.url)


def test_the_wrong_build_does_not_satisfy(desk: Desk) -> None:
    put(desk.python, torch_wheel("2.9.1", tag(this_python(), "linux_x86_64"), requires=(), cuda="12.8"))
    assert desk.ask("torch==2.9.1")["torch"] == "2.9.1+rocm6.4"
    assert desk.row("torch")["action"] == "replace"
    assert any("CUDA" in reason for reason in desk.row("torch")["because"])


@pytest.mark.parametrize(
    ("line", "rocm", "torch"),
    [
        ("torch==2.5.1+cu121", "6.2", "2.5.1+rocm6.2"),
        ("torch>=1.7.1+cu110", "6.2", "2.7.1+rocm6.2.4"),
        ("torch~=2.5.0+cu121", "6.2", "2.5.1+rocm6.2"),
        ("torch==2.9.1+cpu", "6.4", "2.9.1+rocm6.4"),
        ("Torch (>=2.6,<2.9)", "6.4", "2.8.0+rocm6.4"),
    ],
)
def test_labels_of_cuda_mean_the_version(desk: Desk, line: str, rocm: str, torch: str) -> None:
    assert desk.ask("-r", desk.write("r.txt", line + "\n"), rocm=rocm)["torch"] == torch
    if "+" in line:
        assert any("+" in note and "torch" in note for note in desk.result["notes"])


def test_rocm_labels_are_compared_as_numbers(desk: Desk) -> None:
    """``+rocm10.0`` sorts before ``+rocm6.4`` as text."""
    links = desk.folder / "links"
    links.mkdir()
    for rocm in ("6.4", "7.2", "10.0"):
        wheel = torch_wheel(f"2.9.1+rocm{rocm}", tag(this_python(), "linux_x86_64"), requires=(), rocm=rocm)
        (links / wheel.filename).write_bytes(wheel.content)
    assert (
        desk.ask("torch==2.9.1", "--no-index", "--no-deps", "--find-links", str(links), rocm="10.0")["torch"]
        == "2.9.1+rocm10.0"
    )


@pytest.mark.parametrize("order", [("a.txt", "b.txt"), ("b.txt", "a.txt")])
def test_index_lines_of_nested_files_do_not_fight(desk: Desk, order: tuple[str, str]) -> None:
    desk.write("a.txt", f"--index-url {desk.replica.pypi.url}/simple\neinops\n")
    desk.write("b.txt", f"--index-url {desk.index('rocm6.4')}\n--extra-index-url {desk.replica.pypi.url}/simple\ntorch\n")
    desk.write("top.txt", "".join(f"-r {name}\n" for name in order))
    found = desk.ask("-r", "top.txt")
    assert found["torch"] == "2.9.1+rocm6.4" and "einops" in found


def test_indexes_of_the_environment_do_not_decide_torch(desk: Desk) -> None:
    config = desk.write("pip.conf", f"[global]\nextra-index-url = {desk.index('cu130')}\n")
    env = {"PIP_EXTRA_INDEX_URL": desk.index("cpu"), "PIP_CONFIG_FILE": str(desk.folder / config)}
    assert desk.ask("torch", "accelerate", **env)["torch"] == "2.9.1+rocm6.4"


def test_later_installs_keep_the_torch(desk: Desk) -> None:
    assert desk.do("torch==2.9.1")["torch"] == "2.9.1+rocm6.4"
    assert desk.ask("torchvision")["torchvision"] == "0.24.1+rocm6.4"
    assert desk.row("torch")["action"] == "keep"
    desk.ask("needs-torch-210", code=40)
    assert "torch>=2.10" in desk.errors[0]["message"] + str(desk.errors[0]["details"])
    assert "2.9.1+rocm6.4" in desk.errors[0]["message"]


def test_a_constraint_with_a_rocm_label_brings_its_index(desk: Desk) -> None:
    desk.write("c.txt", "torch==2.9.1+rocm6.4\n")
    assert desk.ask("accelerate", "-c", "c.txt", rocm="7.2")["torch"] == "2.9.1+rocm6.4"


def test_extras_markers_comments_and_hashes_survive(desk: Desk) -> None:
    text = """\
torch>=2.6,<3 ; platform_system=="Linux" and python_version<"3.20"  # the one that counts
torch>=99 ; sys_platform=="win32"
accelerate>=1.10 \\
    ; python_version>="3.8"
"""
    desk.write("r.txt", text)
    found = desk.ask("-r", "r.txt")
    assert (found["torch"], found["accelerate"]) == ("2.9.1+rocm6.4", "1.11.0")
    assert (desk.folder / "r.txt").read_text() == text


def test_hashes_of_cuda_files_are_left_out_and_told(desk: Desk) -> None:
    # A hash switches pip's hash mode on: every package of the set has one, torch's is that of PyPI's CUDA file.
    first = desk.ask("torch==2.9.1")
    hashes = [(name, version, desk.row(name)["sha256"]) for name, version in first.items()]
    lines = [f"torch==2.9.1 --hash=sha256:{'0' * 64}"]
    lines += [
        f"{name}=={version} --hash=sha256:{desk.row(name)['sha256']}" for name, version in first.items() if name != "torch"
    ]
    desk.write("r.txt", "\n".join(lines) + "\n")
    assert desk.ask("-r", "r.txt") == first
    assert any("hash" in note and "torch" in note for note in desk.result["notes"])
    # Who demands hashes gets no other ones; who has the right ones keeps them.
    desk.ask("--require-hashes", "-r", "r.txt", code=1)
    assert "ROCm build" in desk.errors[0]["message"] and "rocmpip lock" in desk.errors[0]["hint"]
    right = [f"{name}=={version} --hash=sha256:{desk_hash}" for name, version, desk_hash in hashes]
    desk.write("right.txt", "\n".join(right) + "\n")
    assert desk.ask("--require-hashes", "-r", "right.txt") == first
    assert not any("hash" in note for note in desk.result["notes"])


def test_triton_has_three_names(desk: Desk) -> None:
    """PyPI's triton and ROCm's share an import folder: only ROCm's is installed, whoever asks for which name."""
    found = desk.ask("needs-torch-and-triton")
    assert found["pytorch-triton-rocm"] == "3.5.1"
    assert found.get("triton") in (None, "3.5.1")
    held = desk.do("needs-torch-and-triton")
    assert held["pytorch-triton-rocm"] == "3.5.1"
    check = rocmpip("--python", str(desk.python), "check", env=desk.env)
    assert "No broken requirements" in check.stdout


@pytest.mark.parametrize(
    ("gfx", "rocm", "index"), [("gfx1151", "7.1.1", "rocm7.1"), ("gfx942", "7.9", "rocm7.2"), ("gfx942", "10.0", "whl-next")]
)
def test_a_rocm_newer_than_a_list_falls_back_in_order(desk: Desk, gfx: str, rocm: str, index: str) -> None:
    desk.ask("torch", gfx=gfx, rocm=rocm)
    assert index in desk.row("torch")["index"]


PROJECT = """\
[build-system]
requires = ["torch==2.9.1"]
build-backend = "backend"
backend-path = ["."]
[project]
name = "mine"
version = "1.0"
dependencies = ["einops"]
[project.optional-dependencies]
more = ["accelerate"]
"""
# A build back end in the project's own folder, which cannot do without torch.
BACKEND = """\
import pathlib, zipfile
import torch
assert torch.__version__ == "2.9.1+rocm6.4", torch.__version__
INFO = "mine-1.0.dist-info"
METADATA = "Metadata-Version: 2.1\\nName: mine\\nVersion: 1.0\\nRequires-Dist: einops\\nProvides-Extra: more\\n"
METADATA += "Requires-Dist: accelerate; extra == 'more'\\n"
def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "mine-1.0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as wheel:
        wheel.writestr(f"{INFO}/METADATA", METADATA)
        wheel.writestr(f"{INFO}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{INFO}/RECORD", "")
    return name
build_editable = build_wheel
"""


@pytest.mark.parametrize("words", [("-e", ".[more]"), (".",)])
def test_a_project_that_builds_with_torch_sees_the_installed_one(desk: Desk, words: tuple[str, ...]) -> None:
    desk.write("pyproject.toml", PROJECT)
    desk.write("backend.py", BACKEND)
    planned = desk.ask(*words)
    assert planned["torch"] == "2.9.1+rocm6.4" and "einops" in planned
    assert any("the project mine" in reason for reason in desk.row("torch")["because"])
    assert (planned["mine"], desk.row("mine")["action"]) == ("", "build")
    held = desk.do(*words)
    assert held["torch"] == "2.9.1+rocm6.4" and held["mine"] == "1.0" and "einops" in held
    assert ("accelerate" in held) is (words[0] == "-e")
    # What a project asks for is no word of the user's: a torch that is right stays, and the conflict is told.
    desk.write("pyproject.toml", PROJECT.replace("2.9.1", "2.8.0"))
    desk.ask(*words, code=40)
    assert "torch 2.9.1+rocm6.4 is installed and stays" in desk.errors[0]["message"]
    assert "the project mine" in str(desk.errors[0])
    assert not any(name.startswith("nvidia") for name in held)


def test_a_wheel_named_by_path_or_url_brings_rocm_torch(desk: Desk) -> None:
    wheel = Wheel("mine", "1.0", ("torch",))
    (desk.folder / wheel.filename).write_bytes(wheel.content)
    assert desk.ask(f"./{wheel.filename}")["torch"] == "2.9.1+rocm6.4"
    assert desk.row("mine")["origin"] == "url"
    assert desk.ask(f"mine @ {(desk.folder / wheel.filename).as_uri()}")["torch"] == "2.9.1+rocm6.4"
    cuda = torch_wheel("2.9.1", tag(this_python(), "linux_x86_64"), requires=(), cuda="12.8")
    (desk.folder / cuda.filename).write_bytes(cuda.content)
    desk.ask(f"./{cuda.filename}", code=40)
