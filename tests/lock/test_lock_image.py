"""The Dockerfiles that ``rocmpip dockerfile`` writes, built for real by buildah on a base image made of this machine's files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rocmpip.demo.sysroot import write_rocm
from tests.support.commands import rocmpip
from tests.support.mini_root import make_mini_root
from tests.support.own_wheels import own_wheels
from tests.support.real_sources import WheelFile
from tests.support.replica import Replica

pytestmark = [pytest.mark.pip, pytest.mark.skipif(shutil.which("buildah") is None, reason="buildah is not installed")]

BASE = "localhost/base"
AT_HOME = "localhost/at-home"
"""The base image, in which pip and rocmpip look at the replica."""
PYTHON = ".".join(map(str, sys.version_info[:2]))


class Buildah:
    """buildah with a storage of its own. It isolates by chroot, which works inside containers too, and so shares our network."""

    def __init__(self, folder: Path) -> None:
        self._words = ["buildah", "--root", str(folder / "storage"), "--runroot", str(folder / "run")]
        self._env = {**os.environ, "STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot", "HOME": str(folder)}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self._words, *words], env=self._env, capture_output=True, text=True, timeout=300, check=False)

    def told(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def image(self, name: str, start: str, files: Path | None = None, **env: str) -> None:
        """An image ``name``: that of ``start`` with files and variables more."""
        container = self.told("from", *(("--pull-never",) if start != "scratch" else ()), start)
        if files is not None:
            self.told("copy", "--quiet", container, str(files), "/")
        self.told("config", *(word for key, value in env.items() for word in ("--env", f"{key}={value}")), container)
        self.told("commit", "--quiet", container, name)
        self.told("rm", container)

    def build(self, dockerfile: Path, context: Path) -> subprocess.CompletedProcess[str]:
        return self.run("bud", "--pull-never", "--tag", "made", "-f", str(dockerfile), str(context))

    def inside(self, *words: str) -> str:
        """What a command prints in a container of the image, as the image's user.

        By way of a file: on a busy machine buildah may end before it has passed on what a quick command printed.
        """
        container = self.told("from", "--pull-never", "made")
        try:
            self.told("run", container, "--", "sh", "-c", '"$@" >/var/tmp/printed', "sh", *words)
            return Path(self.told("mount", container), "var/tmp/printed").read_text().strip()
        finally:
            self.told("rm", container)


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    folder = tmp_path_factory.mktemp("buildah")
    root = folder / "root"
    root.mkdir()
    make_mini_root(root)
    made = Buildah(folder)
    made.image(BASE, "scratch", root, PATH="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
    yield made
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> list[WheelFile]:
    """rocmpip, what it needs, a pip that reads pylock files, and what an old setuptools builds wheels with."""
    return own_wheels(tmp_path_factory.mktemp("own"), "wheel")


Write = Callable[..., Path]


@pytest.fixture
def write(replica: Replica, venv: Callable[..., Path], tmp_path: Path) -> Write:
    """``write("torch")`` → the folder with a lock for gfx942 and the Dockerfile of it."""
    (tmp_path / "machine").mkdir()
    context = tmp_path / "context"
    context.mkdir()
    python = venv()
    env = replica.env(ROCMPIP_SYSROOT=str(tmp_path / "machine"), ROCMPIP_GFX="gfx942", ROCMPIP_ROCM="6.4")

    def make(*names: str, lock: str = "requirements.lock", base: str = BASE) -> Path:
        (context / "unrelated.txt").write_text("must not go into the image")
        for words in (
            ("lock", "--python", str(python), *names, "-o", lock),
            ("dockerfile", lock, "-o", "Dockerfile", "--base", base),
        ):
            done = rocmpip(*words, env=env, cwd=context)
            assert done.returncode == 0, done.stderr
        return context

    return make


@pytest.mark.parametrize("lock", ["requirements.lock", "pylock.toml"])
def test_an_image_of_ready_wheels(buildah: Buildah, write: Write, replica: Replica, own: list[WheelFile], lock: str) -> None:
    replica.add(*own)
    buildah.image(AT_HOME, BASE, PIP_INDEX_URL=f"{replica.pypi.url}/simple")
    context = write("torch", "requests", lock=lock, base=AT_HOME)
    done = buildah.build(context / "Dockerfile", context)
    assert done.returncode == 0, done.stdout + done.stderr
    program = "import os, torch, requests; print(torch.__version__, os.environ['PYTORCH_ROCM_ARCH'], os.getuid() != 0)"
    assert buildah.inside("python", "-c", program) == "2.9.1+rocm6.4 gfx942 True"
    assert "render" in buildah.inside("id", "-nG")
    assert buildah.inside("ls", "/opt/lock") == lock


def test_an_image_with_a_build_has_two_stages(
    buildah: Buildah, write: Write, replica: Replica, own: list[WheelFile], tmp_path: Path
) -> None:
    """rocmpip builds in the first and does not come into the second."""
    replica.add(*own)
    places = {key: value for key, value in replica.env(tmp_path).items() if key.startswith("ROCMPIP_") and key.endswith("_URL")}
    write_rocm(tmp_path / "files/opt/rocm", "6.4.0", tools=("hipcc", "amdclang++", "c++"))
    path = "/opt/rocm/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    buildah.image(AT_HOME, BASE, tmp_path / "files", PATH=path, PIP_INDEX_URL=f"{replica.pypi.url}/simple", **places)
    context = write("torch", "flash-attn", base=AT_HOME)
    assert (context / "Dockerfile").read_text().count("\nFROM ") == 2
    done = buildah.build(context / "Dockerfile", context)
    assert done.returncode == 0, done.stdout + done.stderr
    assert buildah.inside("python", "-c", "import flash_attn, torch; print(torch.version.hip is not None)") == "True"
    assert buildah.inside("ls", "/opt").split() == ["rocm", "venv"]


def test_a_cuda_torch_slipped_in_fails_at_the_check(buildah: Buildah, write: Write, replica: Replica) -> None:
    """Someone's extra line after the install, as it happens: the next ``pip install`` brings CUDA's torch."""
    context = write("torch")
    dockerfile = context / "Dockerfile"
    text = dockerfile.read_text()
    install = next(line for line in text.splitlines() if "pip install --require-hashes" in line)
    index = f"{replica.pypi.url}/simple/"
    slipped = f"RUN /opt/venv/bin/python -m pip install --no-deps --force-reinstall --index-url {index} torch"
    dockerfile.write_text(text.replace(install, f"{install}\n{slipped}"))
    done = buildah.build(dockerfile, context)
    assert done.returncode != 0
    assert "is no ROCm build: torch.version.hip is None" in done.stdout + done.stderr


def test_a_torch_for_another_gpu_fails_at_the_check(buildah: Buildah, write: Write) -> None:
    context = write("torch")
    dockerfile = context / "Dockerfile"
    dockerfile.write_text(dockerfile.read_text().replace("/tmp/check.py gfx942", "/tmp/check.py gfx942 gfx1153"))
    done = buildah.build(dockerfile, context)
    assert done.returncode != 0
    assert "has no kernels for gfx1153" in done.stdout + done.stderr


def test_a_wheel_that_is_not_the_locked_one_fails(buildah: Buildah, write: Write) -> None:
    context = write("requests")
    lock = context / "requirements.lock"
    text = lock.read_text()
    lock.write_text(_spoilt(text))
    done = buildah.build(context / "Dockerfile", context)
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stdout + done.stderr


def _spoilt(text: str) -> str:
    """The lock with every hash changed in its first digit."""
    head, *rest = text.split("--hash=sha256:")
    return head + "".join(f"--hash=sha256:{'1' if one[0] != '1' else '2'}{one[1:]}" for one in rest)
