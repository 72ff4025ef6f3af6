"""A whole healthy machine as a folder, ways to break one thing of it, and a shell that runs a fix inside it."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rocmpip.app import doctor
from rocmpip.check.result import Check
from rocmpip.demo.sysroot import write_rocm, write_sysroot
from rocmpip.recipe.allowed import groups
from tests.support.kfd import GPUS

RENDER = 109 if os.geteuid() == 0 else os.getegid()
"""Only root may give a file to another group."""


def program(root: Path, path: str, says: str, code: int = 0) -> Path:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\necho '{says}'\nexit {code}\n")
    file.chmod(0o755)
    return file


def text(root: Path, path: str, content: str = "") -> Path:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    return file


def libstdcxx(root: Path, path: str, newest: int) -> Path:
    """What the check reads of a C++ runtime: its version names."""
    names = b"\0".join(b"GLIBCXX_3.4.%d" % number for number in range(newest + 1))
    file = text(root, path)
    file.write_bytes(b"\x7fELF" + b"\0" * 60 + names + b"\0")
    return file


def other_rocm(root: Path, version: str = "6.2.0") -> Path:
    folder = root / f"opt/rocm-{version}"
    write_rocm(folder, f"{version}-66")
    text(root, f"opt/rocm-{version}/lib/libamdhip64.so.6")
    text(root, f"opt/rocm-{version}/lib/cmake/hip/hip-config.cmake")
    return folder


def healthy(root: Path, gpus: Sequence[str] = ("mi300x",), *, driver: str = "") -> Path:
    """A machine that builds: GPU, permissions, ROCm 6.4 with its development files, GCC 13, CMake, ninja."""
    write_sysroot(root, [GPUS[name] for name in gpus], "6.4.0-47", driver=driver)
    text(root, "etc/os-release", 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n')
    text(root, "etc/passwd", "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n")
    text(root, "etc/group", f"root:x:0:\nvideo:x:44:alice\nrender:x:{RENDER}:alice\nalice:x:1000:\n")
    text(root, "sys/class/kfd/kfd/dev", "243:0\n")
    text(root, "proc/meminfo", "MemTotal: 131072000 kB\nMemFree: 9000000 kB\nMemAvailable: 120000000 kB\nSwapFree: 0 kB\n")
    devices = [root / "dev/kfd", *(root / "dev/dri").iterdir()]
    for device in devices:
        device.chmod(0o660)
        if os.geteuid() == 0:
            os.chown(device, 0, RENDER)
    opt = root / "opt/rocm-6.4.0"
    for package in groups()["torch"]:
        text(root, f"opt/rocm-6.4.0/lib/cmake/{package}/{package}-config.cmake")
    text(root, "opt/rocm-6.4.0/lib/libamdhip64.so.6")
    text(root, "etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
    text(root, "etc/ld.so.conf.d/10-rocm.conf", "/opt/rocm/lib\n")
    assert (opt / "bin/hipcc").exists()
    for name in ("g++", "c++", "gcc"):
        program(root, f"usr/bin/{name}", "g++ (Ubuntu 13.2.0-23ubuntu4) 13.2.0")
    program(root, "usr/bin/cmake", "cmake version 3.28.3")
    program(root, "usr/bin/ninja", "1.11.1")
    text(root, "usr/lib/gcc/x86_64-linux-gnu/13/crtbegin.o")
    text(root, "usr/include/c++/13/cmath")
    libstdcxx(root, "usr/lib/x86_64-linux-gnu/libstdc++.so.6", 33)
    (root / "usr/lib/x86_64-linux-gnu/libc.so.6").write_bytes(
        b"GNU C Library (Ubuntu GLIBC 2.39) stable release version 2.39.\n"
    )
    return root


def environment(root: Path, venv: Path, **more: str) -> dict[str, str]:
    """The variables of alice's shell on that machine."""
    return {
        "PATH": "/opt/rocm/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": os.environ["HOME"],
        "USER": "alice",
        "ROCMPIP_SYSROOT": str(root),
        "VIRTUAL_ENV": str(venv),
        **more,
    }


def answers(env: Mapping[str, str], **options: object) -> dict[str, Check]:
    look = doctor.look_at(env=env, cwd="/", **options)  # type: ignore[arg-type]
    return {check.id: check for check in doctor.checks(look)}


def troubles(env: Mapping[str, str], **options: object) -> dict[str, Check]:
    """The checks that are neither ok nor skipped."""
    return {name: check for name, check in answers(env, **options).items() if check.verdict in ("warn", "broken")}


_STUB = """#!{python} -S
import json, os, shutil, sys
root, whole = {root!r}, {whole!r}
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
group = root + "/etc/group"
rows = [line.split(":") for line in open(group).read().splitlines()]
if name == "usermod":
    for row in rows:
        if row[0] in words[words.index("-aG") + 1].split(","):
            row[3] = ",".join(filter(None, [row[3], words[-1]]))
elif name == "groupadd":
    number = words[words.index("-g") + 1] if "-g" in words else "109"
    rows.append([words[-1], "x", number, ""])
elif name == "chgrp":
    number = next(int(row[2]) for row in rows if row[0] == words[0])
    if os.geteuid() == 0:
        os.chown(words[1], -1, number)
elif name == "mknod":
    open(words[words.index("-m") + 2], "w").close()
    os.chmod(words[words.index("-m") + 2], int(words[words.index("-m") + 1], 8))
elif name in ("apt-get", "modprobe", "python3"):
    print(" ".join(words), file=open(root + "/installed", "a"))
    for below in json.load(open(root + "/brings.json")):
        for base, folders, files in os.walk(whole + "/" + below):
            for file in files:
                source = os.path.join(base, file)
                target = root + source[len(whole):]
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copy2(source, target)
        if os.path.isfile(whole + "/" + below):
            os.makedirs(os.path.dirname(root + "/" + below), exist_ok=True)
            shutil.copy2(whole + "/" + below, root + "/" + below)
open(group, "w").write("".join(":".join(row) + chr(10) for row in rows))
"""
_PATHS = re.compile(r"(?<![\w/.-])/(etc|opt|dev|usr|lib|sys|proc)(?=/)")


def mend(check: Check, root: Path, env: Mapping[str, str], whole: Path, brings: Sequence[str] = ()) -> dict[str, str]:
    """Run the commands of a check in one shell inside ``root`` and return the variables it ends with.

    File commands meet the root's files. Package and account tools are stand-ins: apt-get, modprobe and pip bring the files
    of ``brings`` from the ``whole`` machine.
    """
    tools = root.parent / f"{root.name}-tools"
    tools.mkdir(exist_ok=True)
    (root / "brings.json").write_text(json.dumps(list(brings)))
    for name in ("usermod", "groupadd", "chgrp", "mknod", "apt-get", "modprobe", "python3", "ldconfig", "udevadm"):
        stub = tools / name
        stub.write_text(_STUB.format(python=sys.executable, root=str(root), whole=str(whole)))
        stub.chmod(0o755)
    lines = []
    for command in check.fix:
        if command.startswith(("export ", "unset ")):
            lines.append(command)
        else:
            lines.append(f"PATH={tools}:{os.defpath} " + _PATHS.sub(lambda found: f"{root}/{found[1]}", command))
    script = "\n".join(["set -e", *lines, "/usr/bin/env -0"])
    done = subprocess.run(["/bin/sh", "-c", script], cwd=root, env=dict(env), capture_output=True, check=False)
    assert done.returncode == 0, (check.fix, done.stderr.decode())
    shell = ("_", "PWD", "SHLVL", "OLDPWD")
    rows = [row.partition("=") for row in done.stdout.decode().split("\0") if row]
    return {key: value for key, _, value in rows if key not in shell}


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def snapshot(*folders: Path) -> dict[str, tuple[int, int, bytes]]:
    """Path → (mode, time of the last change, content) of everything below the folders."""
    found: dict[str, tuple[int, int, bytes]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            state = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(state.st_mode) else b""
            found[str(path)] = (state.st_mode, state.st_mtime_ns, content)
    return found
