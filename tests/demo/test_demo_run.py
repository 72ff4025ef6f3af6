"""The demo is no recording: it plays on the embedded data, and other data gives another outcome."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmpip.demo import embedded
from rocmpip.demo.show import Story, show
from rocmpip.model.errors import CheckFailed
from tests.support import commands

pytestmark = [pytest.mark.pip, pytest.mark.slow]


def demo(*argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    return commands.rocmpip("demo", *argv, env={**os.environ, **env})


def play(lines: list[str] | None = None) -> Story:
    return show((lines if lines is not None else []).append)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``data("index.toml", old, new)``: play on a copy of the data with one text changed."""
    folder = tmp_path / "data"
    shutil.copytree(embedded.DATA, folder)
    monkeypatch.setattr(embedded, "DATA", folder)

    def change(name: str, old: str, new: str) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new), encoding="utf-8")

    return change


def test_the_command_tells_the_story_and_leaves_nothing(tmp_path: Path) -> None:
    done = demo(
        TMPDIR=str(tmp_path), PIP_INDEX_URL="http://127.0.0.1:9/not-to-be-asked", ROCMPIP_GFX="gfx1100", ROCMPIP_ROCM="7.0"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("gfx942", "torch 2.14.1, a CUDA build", "2.9.1+rocm6.4", "checks passed", "nothing is CUDA"):
        assert words in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_envelope_and_kept_folder(tmp_path: Path) -> None:
    done = demo("--json", "--keep", TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    answer = commands.envelope(done)
    assert (answer["command"], answer["ok"]) == ("demo", True)
    result = answer["result"]
    assert result["installed"]["torch"] == "2.9.1+rocm6.4"
    assert result["installed"]["flash-attn"] == "2.8.3.post2"
    assert all(check["ok"] for check in result["checks"])
    assert len(result["checks"]) >= 10
    assert [row["name"] for row in result["plan"] if row["action"] == "build"] == ["flash-attn"]
    assert result["seconds"] > 0
    folder = Path(result["folder"])
    assert folder.parent == tmp_path
    assert (folder / "env/bin/python").exists()


def test_another_torch_in_the_index_is_another_outcome(data: Callable[..., None]) -> None:
    data("index.toml", '"2.9.0+rocm6.4", "2.9.1+rocm6.4"', '"2.9.0+rocm6.4"')
    assert play().installed["torch"] == "2.9.0+rocm6.4"


def test_another_gpu_is_another_build(data: Callable[..., None]) -> None:
    data("node.toml", "gfx_target_version = 90402", "gfx_target_version = 110000")
    data("node.toml", "device_id = 29857", "device_id = 29772")
    story = play()
    assert story.platform["gfx_targets"] == ["gfx1100"]
    assert "Triton back end" in [check.found for check in story.checks]


def test_no_rocm_build_in_the_index_fails_in_words(data: Callable[..., None]) -> None:
    data("index.toml", 'index = "whl/rocm', 'index = "elsewhere/rocm')
    lines: list[str] = []
    with pytest.raises(CheckFailed) as caught:
        play(lines)
    assert caught.value.exit_code == 43
    result = caught.value.result  # type: ignore[attr-defined]
    assert result["plain_pip"] == "torch 2.14.1"
    assert "40" in str(caught.value)


def test_a_lying_wheel_is_caught(data: Callable[..., None]) -> None:
    """A wheel with a ROCm label and CUDA inside: only the checks of the environment can tell."""
    data("index.toml", 'rocm = "6.4"\n', 'cuda = "12.8"\n')
    with pytest.raises(CheckFailed, match=r"failed|exit code"):
        play()


def test_a_full_disk_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rocmpip.demo.show.write_node", full)
    with pytest.raises(CheckFailed, match="could not go on") as caught:
        play()
    assert "No space left" in caught.value.why


def test_a_reader_that_goes_away_ends_it_quietly(tmp_path: Path) -> None:
    line = f"{sys.executable} -m rocmpip demo | head -n 1"
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode in (0, 1), done.stderr) == (True, "")
    assert done.stdout.startswith("1. The machine")
    assert list(tmp_path.iterdir()) == []


def test_sigterm_leaves_no_folder_and_no_process(tmp_path: Path) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "rocmpip", "demo"], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("$ pip install"):
                break
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        assert process.wait(60) == 143, rest
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in rest
    assert list(tmp_path.iterdir()) == []
