"""``rocmpip build`` and ``rocmpip env`` against the replica: a real pip, a real sdist, nothing installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rocmpip.app.env import Needed, Variable, lines
from rocmpip.demo.sysroot import write_sysroot
from rocmpip.demo.torchlike import torch_wheel
from rocmpip.model.provenance import FingerprintInputs, Provenance
from tests.support.commands import rocmpip
from tests.support.environments import installed, put, site_packages
from tests.support.replica import Replica

pytestmark = pytest.mark.pip

Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def python(venv: Callable[..., Path]) -> Path:
    return venv(with_pip=True)


@pytest.fixture
def run(replica: Replica, python: Path, tmp_path: Path) -> Run:
    (tmp_path / "machine").mkdir()

    def call(*words: str, gfx: str = "gfx90a", **more: str) -> tuple[int, dict[str, Any]]:
        env = {"ROCMPIP_SYSROOT": str(tmp_path / "machine"), "ROCMPIP_ROCM": "6.4", **more}
        options = ["--gfx", gfx] if gfx else []
        done = rocmpip(*words, *options, "--json", "--python", str(python), env=replica.env(tmp_path, **env), cwd=tmp_path)
        assert "Traceback" not in done.stderr
        return done.returncode, json.loads(done.stdout)

    return call


def put_torch(python: Path, version: str = "2.9.1+rocm6.4") -> None:
    put(python, torch_wheel(version, "py3-none-any", rocm="6.4" if "rocm" in version else ""))


def test_a_wheel_for_each_gpu_and_nothing_installed(run: Run, python: Path, tmp_path: Path) -> None:
    """RDNA takes flash-attn's Triton back end: nothing is compiled, the wheel is pure."""
    put_torch(python)
    before = installed(python)
    code, told = run("build", "flash-attn", "-w", "wheels", gfx="gfx1100")
    assert code == 0, told["errors"]
    row = told["result"]["wheels"][0]
    path = Path(row["path"])
    assert path.parent == tmp_path / "wheels" and path.is_file()
    assert (row["origin"], row["gfx"], row["name"]) == ("build", ["gfx1100"], "flash-attn")
    assert Path(row["log"]).is_file() and "not built here before" in row["because"]
    with zipfile.ZipFile(path) as archive:
        record = json.loads(archive.read(next(one for one in archive.namelist() if one.endswith("rocmpip.json"))))
    assert (record["gfx"], record["torch"], record["fingerprint"]) == (["gfx1100"], "2.9.1+rocm6.4", row["fingerprint"])
    assert installed(python) == before

    code, again = run("build", "flash-attn", "-w", "wheels", gfx="gfx1100")
    assert again["result"]["wheels"][0] | {"because": "", "seconds": 0} == row | {
        "origin": "wheelhouse", "because": "", "seconds": 0, "log": None,
    }  # fmt: skip
    code, other = run("build", "flash-attn", "-w", "other", gfx="gfx1101")
    assert other["result"]["wheels"][0]["origin"] == "build"
    assert "its GPUs were gfx1100, now gfx1101" in other["result"]["wheels"][0]["because"]
    code, rebuilt = run("build", "flash-attn", "--rebuild", "flash-attn", "-w", "wheels", gfx="gfx1100")
    assert rebuilt["result"]["wheels"][0]["because"] == "you asked for a rebuild"
    assert len(list((tmp_path / "state/wheelhouse/flash-attn").iterdir())) == 2


@pytest.mark.parametrize("version", ["", "2.9.1+cpu", "2.9.1+cu128"])
def test_without_a_rocm_torch(version: str, run: Run, python: Path, tmp_path: Path) -> None:
    if version:
        put_torch(python, version)
    code, told = run("build", "deepspeed", "-w", "wheels")
    assert code == 40 and "no ROCm torch" in told["errors"][0]["message"]
    assert "rocmpip install torch" in told["errors"][0]["hint"] and told["result"] == {"wheels": []}
    assert not (tmp_path / "wheels").exists()


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("no-such-project",), 40, "no source"),
        (("deepspeed==99",), 40, "no source"),
        (("./none",), 1, ""),
        (("natten",), 44, ""),
        (("git+https://git.example/x",), 2, "names, folders"),
        ((), 1, ""),
    ],
)
def test_what_cannot_be_built(words: tuple[str, ...], code: int, text: str, run: Run, python: Path) -> None:
    put_torch(python)
    got, told = run("build", *words)
    assert got == code, told
    assert text in told["errors"][0]["message"] and told["ok"] is False


def test_a_rocm_that_is_only_named_is_never_built_by_another(run: Run, python: Path, tmp_path: Path) -> None:
    """CK's kernels are compiled, and the hipcc on PATH is not that of the ROCm that was named: torch would not load the result."""
    put_torch(python)
    hipcc = tmp_path / "bin/hipcc"
    hipcc.parent.mkdir()
    hipcc.write_text("#!/bin/sh\necho HIP version: 5.2.21153-0\n")
    hipcc.chmod(0o755)
    shutil.rmtree(tmp_path / "machine")
    write_sysroot(tmp_path / "machine", [], "5.2.3")
    code, told = run("build", "flash-attn", "--rocm", "6.4", PATH=f"{hipcc.parent}:{os.environ['PATH']}")
    assert code == 44, told
    (error,) = told["errors"]
    assert "flash-attn 2.8.3" in error["message"] and "hipcc of ROCm 6.4 (here: that of ROCm 5.2)" in str(error)
    assert not (tmp_path / "state/logs").exists()


def test_no_gpu_to_build_for(run: Run) -> None:
    code, told = run("build", "deepspeed", gfx="")
    assert code == 40 and "--gfx" in told["errors"][0]["hint"]


# ---- env


def give_record(python: Path, name: str, runtime: dict[str, str]) -> None:
    inputs = FingerprintInputs(name, "1.0", "s", "r", ("gfx90a",), "6.4")
    info = site_packages(python) / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "RECORD").write_text("")
    (info / "rocmpip.json").write_text(json.dumps(Provenance("f", inputs, runtime=runtime).as_json()))


def test_env_reads_the_records(replica: Replica, python: Path, tmp_path: Path) -> None:
    put_torch(python)
    give_record(python, "alpha", {"FLASH_ATTENTION_TRITON_AMD_ENABLE": "TRUE", "SPACED": "a b'c"})
    give_record(python, "beta", {"FLASH_ATTENTION_TRITON_AMD_ENABLE": "FALSE"})
    env = replica.env(tmp_path, ROCMPIP_SYSROOT=str(tmp_path), ROCMPIP_GFX="gfx90a", ROCMPIP_ROCM="6.4", SHELL="/bin/bash")
    done = rocmpip("env", "--python", str(python), env=env, cwd=tmp_path)
    assert done.returncode == 0 and "beta needs FLASH_ATTENTION_TRITON_AMD_ENABLE=FALSE" in done.stderr
    script = f'{done.stdout}printf \'%s|%s\' "$FLASH_ATTENTION_TRITON_AMD_ENABLE" "$SPACED"'
    assert subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True).stdout == "TRUE|a b'c"
    told = json.loads(rocmpip("env", "--json", "--python", str(python), env=env, cwd=tmp_path).stdout)
    assert [row["package"] for row in told["result"]["variables"]] == ["alpha", "alpha"]


def test_env_reads_the_recipes_of_what_is_installed(replica: Replica, python: Path, tmp_path: Path) -> None:
    """flash-attn's Triton back end (gfx1100 has no CK kernels) is chosen again at run time, by the same variable."""
    put_torch(python)
    info = site_packages(python) / "flash_attn-2.8.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: flash_attn\nVersion: 2.8.3\n")
    env = replica.env(tmp_path, ROCMPIP_SYSROOT=str(tmp_path), ROCMPIP_GFX="gfx1100", ROCMPIP_ROCM="6.4", SHELL="/bin/sh")
    done = rocmpip("env", "--python", str(python), env=env, cwd=tmp_path)
    assert "export FLASH_ATTENTION_TRITON_AMD_ENABLE=TRUE\n" in done.stdout


@pytest.mark.parametrize("shell", ["sh", "fish", "csh"])
def test_a_hostile_record_runs_nothing(shell: str, tmp_path: Path) -> None:
    """Records travel inside wheels: their values are quoted, odd names left out."""
    rows = (
        Variable("GOOD", f"'; touch {tmp_path}/ran; $(touch {tmp_path}/ran) `touch {tmp_path}/ran` \\", "p", "s"),
        Variable("BAD; touch x", "1", "p", "s"),
        Variable("LINES", "a\nb", "p", "s"),
        Variable("ESC", "\x1b[2J", "p", "s"),
    )
    text = lines(Needed(rows, ()), shell)
    assert text.count("\n") == 1 and "BAD" not in text and "\x1b" not in text
    if shell == "sh":
        done = subprocess.run(["/bin/sh", "-c", text + 'printf %s "$GOOD"'], capture_output=True, text=True)
        assert done.stdout == rows[0].value
    assert not (tmp_path / "ran").exists()
