"""The replica answers as the real hosts do, and real pip falls into the real traps there."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urljoin

import pytest

from tests.support.environments import installed
from tests.support.replica import Replica

JSON = "application/vnd.pypi.simple.v1+json"


def get(url: str, **headers: str) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
        body: bytes = answer.read()
    return body


def links(page: bytes) -> list[str]:
    return re.findall(r'href="([^"]+)"', page.decode())


def pip(python: Path, *argv: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--python", str(python), *argv]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)


def test_pytorch_pages_link_to_another_port_with_hashes_and_metadata(replica: Replica) -> None:
    page = get(f"{replica.pytorch.url}/whl/rocm6.4/torch/")
    first = links(page)[-1]
    url, _, fragment = first.partition("#sha256=")
    assert url.startswith(replica.download.url)
    assert hashlib.sha256(get(url)).hexdigest() == fragment
    told = re.findall(r'data-core-metadata="sha256=([0-9a-f]{64})"', page.decode())[-1]
    metadata = get(url + ".metadata")
    assert hashlib.sha256(metadata).hexdigest() == told
    assert b"Requires-Dist: pytorch-triton-rocm==3.5.1 ;" in metadata


def test_rocm_7_14_is_the_thin_layout_and_its_sdk_lies_at_amd(replica: Replica) -> None:
    page = get(f"{replica.pytorch.url}/whl/rocm7.14/torch/")
    url = links(page)[-1].partition("#")[0]
    metadata = get(url + ".metadata").decode()
    assert "Requires-Dist: rocm[libraries,device-all]==7.14.*" in metadata
    assert "triton-rocm==3.8.0" in metadata
    sdk = links(get(f"{replica.pytorch.url}/whl/rocm7.14/rocm/"))
    assert all(link.startswith(replica.amd.url) and ".tar.gz" in link for link in sdk)


def test_missing_is_403_at_pytorch_and_amd_and_404_at_pypi(replica: Replica) -> None:
    for url, status in (
        (f"{replica.pytorch.url}/whl/rocm10.1/torch/", 403),
        (f"{replica.pytorch.url}/whl/rocm6.4/accelerate/", 403),
        (f"{replica.amd.url}/rocm/whl-next/accelerate/", 403),
        (f"{replica.pypi.url}/simple/no-such-project/", 404),
    ):
        with pytest.raises(urllib.error.HTTPError) as caught:
            get(url)
        assert caught.value.code == status


def test_nightly_has_no_hashes(replica: Replica) -> None:
    page = get(f"{replica.pytorch.url}/whl/nightly/rocm10.0/torch/")
    assert b"2.15.0.dev20261120%2Brocm10.0" in page
    assert b"sha256" not in page
    assert b'data-core-metadata="true"' in page


def test_amd_pages_link_relatively_and_torch_names_device_packages(replica: Replica) -> None:
    base = f"{replica.amd.url}/rocm/whl-multi-arch/torch/"
    link = links(get(base))[-1].partition("#")[0]
    assert link.startswith("../torch-")
    wheel = get(urljoin(base, link))
    assert wheel[:2] == b"PK"
    next_base = f"{replica.amd.url}/rocm/whl-next/torch/"
    metadata = get(urljoin(next_base, links(get(next_base))[-1].partition("#")[0]) + ".metadata").decode()
    assert 'Requires-Dist: rocm[device-gfx942]==10.1.0 ; extra == "device-gfx942"' in metadata
    assert 'Requires-Dist: amd-torch-device-gfx1151==2.14.0+rocm10.1.0 ; extra == "device-gfx1151"' in metadata
    assert "Provides-Extra: device-gfx90a" in metadata


def test_pypi_speaks_json_and_html(replica: Replica) -> None:
    answer = json.loads(get(f"{replica.pypi.url}/simple/torch/", Accept=JSON))
    assert "2.14.1" in answer["versions"]
    assert answer["files"][0]["url"].startswith(replica.files.url)
    assert get(f"{replica.pypi.url}/simple/torch/").startswith(b"<!DOCTYPE html>")


def test_ranges_and_the_record_of_requests(replica: Replica) -> None:
    url = links(get(f"{replica.pytorch.url}/whl/rocm6.4/torch/"))[0].partition("#")[0]
    whole = get(url)
    assert get(url, Range="bytes=0-9") == whole[:10]
    assert get(url, Range="bytes=-7") == whole[-7:]
    assert get(url, Range=f"bytes={len(whole) - 3}-") == whole[-3:]
    assert replica.requests()[0] == "pytorch:/whl/rocm6.4/torch/"
    assert {seen.status for seen in replica.download.requests} == {200, 206}


def test_a_host_in_trouble(replica: Replica) -> None:
    replica.pytorch.failures["/whl/rocm6.4/"] = 503
    with pytest.raises(urllib.error.HTTPError, match="503"):
        get(f"{replica.pytorch.url}/whl/rocm6.4/torch/")


@pytest.mark.pip
def test_plain_pip_takes_cuda_where_the_user_wanted_rocm(replica: Replica, venv: Callable[..., Path]) -> None:
    python = venv()
    extra = f"--extra-index-url={replica.pytorch.url}/whl/rocm6.4"
    done = pip(python, "install", "torch", extra, env=replica.env())
    assert done.returncode == 0, done.stderr
    found = installed(python)
    assert found["torch"] == "2.14.1"
    assert any(name.startswith("nvidia-") for name in found)


@pytest.mark.pip
def test_pip_installs_rocm_torch_from_its_index(replica: Replica, venv: Callable[..., Path]) -> None:
    python = venv()
    index = f"--index-url={replica.pytorch.url}/whl/rocm6.4"
    extra = f"--extra-index-url={replica.pypi.url}/simple"
    done = pip(python, "install", "torch==2.9.1+rocm6.4", index, extra, env=replica.env())
    assert done.returncode == 0, done.stderr
    found = installed(python)
    assert found["torch"] == "2.9.1+rocm6.4"
    assert found["pytorch-triton-rocm"] == "3.5.1"
    assert not [name for name in found if name.startswith("nvidia")]
    said = subprocess.run(
        [python, "-c", "import torch; print(torch.__version__, torch.version.hip, torch.version.cuda)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout.split()[0] == "2.9.1+rocm6.4"
    assert said.stdout.split()[1].startswith("6.4.")
    assert said.stdout.split()[2] == "None"


@pytest.mark.pip
def test_rocm_is_a_real_sdist_that_will_not_guess(replica: Replica, venv: Callable[..., Path], tmp_path: Path) -> None:
    argv = ("download", "--no-deps", "--no-binary=rocm", f"--index-url={replica.amd.url}/rocm/whl-multi-arch/", "rocm==7.14.1")
    target = f"--dest={tmp_path}"
    build = f"--find-links={replica.pypi.url}/simple/setuptools/"
    refused = pip(venv(), *argv, target, build, env=replica.env())
    assert refused.returncode == 1
    assert "ROCM_SDK_TARGET_FAMILY is not set" in refused.stdout + refused.stderr
    told = pip(venv(), *argv, target, build, env=replica.env(ROCM_SDK_TARGET_FAMILY="gfx94X-dcgpu"))
    assert told.returncode == 0, told.stderr


@pytest.mark.pip
@pytest.mark.parametrize(
    ("torch_from", "archs", "said"),
    [
        ("", "gfx942", "No module named 'torch'"),
        ("simple", "gfx942", "CUDA_HOME environment variable is not set"),
        ("rocm6.4", "native", "Torch not compiled with CUDA enabled"),
        ("rocm6.4", "gfx1100", "is invalid or not supported"),
        ("rocm6.4", "gfx90a;gfx942", ""),
    ],
)
def test_flash_attn_fails_and_builds_as_the_real_one(
    replica: Replica, venv: Callable[..., Path], tmp_path: Path, torch_from: str, archs: str, said: str
) -> None:
    python = venv()
    env = replica.env(GPU_ARCHS=archs, ROCM_PATH=str(tmp_path))
    names = ["setuptools", "wheel", "packaging", "psutil"]
    assert pip(python, "install", *names, env=env).returncode == 0
    if torch_from:
        index = f"{replica.pypi.url}/simple" if torch_from == "simple" else f"{replica.pytorch.url}/whl/{torch_from}"
        assert pip(python, "install", "--no-deps", "torch", f"--index-url={index}", env=env).returncode == 0
    done = pip(python, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), "flash-attn", env=env)
    if said:
        assert done.returncode == 1
        assert said in done.stdout + done.stderr
        return
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("flash_attn-*.whl")
    assert "-py3-none-any" not in wheel.name
    assert pip(python, "install", "--no-deps", str(wheel), env=env).returncode == 0
    code = "import json, importlib.resources as r; print((r.files('flash_attn') / 'build_seen.json').read_text())"
    seen = json.loads(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert seen["GPU_ARCHS"] == archs
    assert seen["torch"].endswith("+rocm6.4")
