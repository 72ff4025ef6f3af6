"""Whatever lies where doctor, detect and verify look: a pipe, a device, a circle of links, garbage. They answer, and soon."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from rocmpip.app.detect import detect_platform
from rocmpip.model.errors import RocmpipError
from tests.check.check_machines import answers, environment, healthy
from tests.check.check_packages import library, outcome, register, site, torch
from tests.support.environments import make_venv

LIMIT = 10
"""Seconds within which each command answers."""


class TooLong(AssertionError):
    pass


@contextmanager
def soon() -> Iterator[None]:
    def over(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"no answer within {LIMIT} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _socket(path: Path) -> None:
    # The name of a socket may not be long: it is bound by a short one and moved.
    short = Path(f"/tmp/rocmpip-{os.getpid()}.sock")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(short))
    shutil.move(short, path)


def _big(path: Path) -> None:
    with path.open("wb") as stream:
        stream.write(b"A: 1\n" * 1000)
        stream.truncate(100 * 1024 * 1024)


FORMS: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: None,
    "empty": lambda path: path.write_bytes(b""),
    "folder": lambda path: path.mkdir(),
    "pipe": lambda path: os.mkfifo(path, 0o755),
    "socket": _socket,
    "leads nowhere": lambda path: path.symlink_to("/nowhere/at/all"),
    "circle": lambda path: path.symlink_to(path.name),
    "climbs out": lambda path: path.symlink_to("../" * 40 + "etc/passwd"),
    "garbage": lambda path: path.write_bytes(random.Random(5).randbytes(20_000)),
    "bad words": lambda path: path.write_bytes(b"\xff\xfe\xc3\x28 9999999999999999999999 -1 \x1b]0;x\x07 \0/a:\n" * 50),
    "100 MB": _big,
}


@contextmanager
def replaced(path: Path, form: Callable[[Path], object], aside: Path) -> Iterator[None]:
    path.rename(aside)
    try:
        form(path)
        yield
    finally:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        aside.rename(path)


MACHINE = (
    "dev/kfd",
    "dev/dri",
    "etc/group",
    "etc/ld.so.conf",
    "etc/ld.so.conf.d/10-rocm.conf",
    "etc/os-release",
    "etc/passwd",
    "opt/rocm",
    "opt/rocm-6.4.0/.info/version",
    "opt/rocm-6.4.0/bin/hipcc",
    "opt/rocm-6.4.0/lib/cmake/hip/hip-config.cmake",
    "opt/rocm-6.4.0/lib/libamdhip64.so.6",
    "proc/meminfo",
    "sys/class/kfd/kfd/topology/nodes",
    "sys/class/kfd/kfd/topology/nodes/1/properties",
    "sys/class/kfd/kfd/topology/nodes/1/gpu_id",
    "usr/bin/cmake",
    "usr/bin/g++",
    "usr/include/c++/13/cmath",
    "usr/lib/gcc/x86_64-linux-gnu/13",
    "usr/lib/x86_64-linux-gnu/libc.so.6",
    "usr/lib/x86_64-linux-gnu/libstdc++.so.6",
)


@pytest.mark.parametrize("form", FORMS)
def test_the_machine(tmp_path: Path, venv: Callable[..., Path], form: str) -> None:
    root = healthy(tmp_path / "root")
    env = environment(root, venv().parent.parent)
    for path in MACHINE:
        with replaced(root / path, FORMS[form], tmp_path / "aside"), soon():
            assert len(answers(env)) > 20, path
            assert detect_platform(env=env)[0] is not None, path


def test_a_zero_byte_in_a_path(tmp_path: Path, venv: Callable[..., Path]) -> None:
    root = healthy(tmp_path / "root")
    (root / "etc/ld.so.conf").write_bytes(b"/opt/ro\0cm/lib\n/x\0\ninclude /etc/\0*.conf\n")
    assert len(answers(environment(root, venv().parent.parent))) > 20


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    python = make_venv(tmp_path_factory.mktemp("packages") / "venv")
    torch(python)
    library(site(python) / "my_ext/_C.so", gfx=("gfx942",))
    register(python, "my-ext", "1.0", requires=["torch"])
    info = site(python) / "my_ext-1.0.dist-info"
    for name in ("top_level.txt", "WHEEL", "direct_url.json", "rocmpip.json"):
        (info / name).write_text("{}")
    return python


@pytest.mark.parametrize("form", FORMS)
def test_the_installed(tmp_path: Path, packages: Path, clean_env: dict[str, str], form: str) -> None:
    (tmp_path / "empty").mkdir()
    env = {**clean_env, "ROCMPIP_SYSROOT": str(tmp_path / "empty")}
    place = site(packages)
    names = ("METADATA", "RECORD", "WHEEL", "top_level.txt", "direct_url.json", "rocmpip.json")
    paths = [*(place / "my_ext-1.0.dist-info" / name for name in names), place / "my_ext/_C.so", place / "torch/version.py"]
    for path in [*paths, place / "torch/lib/libc10.so", packages.parent.parent / "pyvenv.cfg"]:
        with replaced(path, FORMS[form], tmp_path / "aside"), soon():
            try:
                assert outcome(packages, env=env).steps is not None
            except RocmpipError as problem:
                assert str(problem)
