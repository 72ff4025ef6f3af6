"""A root file system for containers, of this machine's own files: a shell, the account tools, and the Python that runs the tests.

It stands in for the base images of the Dockerfiles that we write, without a registry. Some 100 MB.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

TOOLS = ("sh", "env", "id", "getent", "groupadd", "useradd", "rm", "ln", "mkdir", "cat", "ls")
# What the wheels of any base image may count on (PEP 600).
LIBRARIES = ("libpthread.so.0", "libdl.so.2", "librt.so.1", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libz.so.1")
_LEFT_OUT = shutil.ignore_patterns(
    "test", "tests", "site-packages", "dist-packages", "__pycache__", "idlelib", "config-*", "*.a"
)


def make_mini_root(root: Path) -> None:
    """Fill the empty folder ``root``."""
    for folder in (
        "etc/default",
        "home",
        "opt",
        "proc",
        "root",
        "run",
        "sys",
        "dev",
        "tmp",
        "usr/bin",
        "usr/local/bin",
        "var/tmp",
    ):
        (root / folder).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        here = Path("/", name)
        if here.is_symlink():  # one tree below /usr, as on most systems today
            (root / "usr" / name).mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(here.readlink())
        else:
            (root / name).mkdir()
    for name in ("tmp", "var/tmp"):
        (root / name).chmod(0o1777)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\nvideo:x:44:\n")
    (root / "etc/shadow").write_text("root:*:19000:0:99999:7:::\n")
    (root / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    for name in ("etc/login.defs", "etc/default/useradd", "etc/pam.d", "etc/security"):
        _copy(root, Path("/", name))
    programs = [Path(found) for tool in TOOLS if (found := shutil.which(tool)) is not None]
    python = Path(os.path.realpath(sys.executable))
    library = Path(sysconfig.get_paths(vars={"base": sys.base_prefix, "platbase": sys.base_prefix})["stdlib"])
    shutil.copytree(library, root / library.relative_to("/"), ignore=_LEFT_OUT, symlinks=True)
    _copy(root, Path("/usr/share/python-wheels"))  # Debian's ensurepip has its wheels there
    extensions = sorted(library.rglob("lib-dynload/*.so"))
    usual = [place for name in LIBRARIES for place in Path("/usr/lib").glob(f"*-linux-gnu/{name}")]
    usual += [place for name in LIBRARIES for place in Path("/lib64").glob(name)]
    for program in (*programs, python):
        _copy(root, program)
        _copy(root, Path(os.path.realpath(program)))
    for needed in sorted({*usual, *_libraries((*programs, python, *extensions))}):
        _copy(root, needed)
    (root / "usr/local/bin/python3").symlink_to(python)


def _libraries(files: Iterable[Path]) -> set[Path]:
    """What the loader takes for these, itself included."""
    told = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=False).stdout
    return {Path(path) for path in re.findall(r"(?:=>\s+|^\s+)(/\S+)\s+\(0x", told, re.MULTILINE)}


def _copy(root: Path, path: Path) -> None:
    target = root / path.relative_to("/")
    if not path.exists() or target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, target, symlinks=True)
    else:
        shutil.copy2(path, target)
