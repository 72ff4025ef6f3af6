"""Room on disk and in memory."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from rocmpip.check.look import Look
from rocmpip.check.result import BROKEN, OK, SKIPPED, WARN, Check

GIB = 1 << 30

WANTED = {"TMPDIR": 6, "cache": 6, "site-packages": 16}
"""GiB: a torch wheel with all of ROCm inside is 5 to 10 GB to download and up to 19 GB installed."""
WANTED_INSTALLED = {"TMPDIR": 2, "cache": 2, "site-packages": 2}
"""GiB once a ROCm torch is there."""
LEAST = 1
"""GiB below which nothing of the torch family can be installed."""
MEMORY = 4.0
"""GiB: one hipcc job, or loading torch with its kernels."""


def _free(folder: str) -> tuple[int, str]:
    """Free bytes for this user where ``folder`` is or will be, and the folder that exists. Raises OSError."""
    place = Path(folder)
    while not place.exists() and place != place.parent:
        place = place.parent
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize, str(place)


def disk(look: Look) -> Check:
    """Room where downloads, the cache and packages go."""
    name, title = "disk", "room on disk"
    torch = look.installed.get("torch")
    wanted = WANTED_INSTALLED if torch is not None and "rocm" in torch.version else WANTED
    evidence, short, fix = [], [], []
    worst = OK
    for what, folder in look.rooms:
        try:
            free, place = _free(folder)
        except OSError as problem:
            evidence.append(f"{what} {folder}: {problem.strerror}")
            continue
        gib = free / GIB
        evidence.append(f"{what} {folder}: {gib:.1f} GiB free")
        if gib < wanted[what]:
            evidence[-1] += f" of {wanted[what]} that a ROCm torch may need"
            short.append(what)
            worst = BROKEN if gib < LEAST else worst if worst == BROKEN else WARN
            fix += _more_room(look, what, place)
    if not evidence:
        return Check(name, title, SKIPPED, why="no folder is known")
    why = f"a download or an install may stop half-way: {', '.join(short)}" if short else ""
    return Check(name, title, worst, tuple(evidence), why, tuple(dict.fromkeys(fix)))


def _more_room(look: Look, what: str, place: str) -> list[str]:
    """Another folder with room where there is one, else what can be cleared."""
    home = look.env.get("HOME", "")
    for other in ("/var/tmp", "/tmp", home):  # noqa: S108
        try:
            roomy = bool(other) and os.access(other, os.W_OK) and _free(other)[0] > WANTED[what] * GIB
        except OSError:
            continue
        if roomy and what == "TMPDIR":
            return [f"export TMPDIR={shlex.quote(other)}"]
        if roomy and what == "cache":
            return [f"export ROCMPIP_CACHE_DIR={shlex.quote(f'{other}/rocmpip-cache')}"]
    if what == "cache":
        return ["rocmpip wheelhouse prune", "python3 -m pip cache purge"]
    return ["python3 -m pip cache purge", f"du -xsh {shlex.quote(place)}/* | sort -h | tail"]


def memory(look: Look) -> Check:
    """Memory for one compile job (of the recipe with --for)."""
    name, title = "memory", "memory for builds"
    fields = {}
    for line in look.text("/proc/meminfo").splitlines():
        key, _, value = line.partition(":")
        number = value.split()[:1]
        if number and number[0].isdigit():
            fields[key] = int(number[0]) * 1024
    if "MemTotal" not in fields:
        return Check(name, title, SKIPPED, why="/proc/meminfo does not tell")
    total = fields["MemTotal"]
    available = fields.get("MemAvailable", total) + fields.get("SwapFree", 0)
    evidence = [f"{total / GIB:.1f} GiB in all, {available / GIB:.1f} GiB available with swap (/proc/meminfo)"]
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        limit = look.text(file).strip()
        if limit.isdigit() and int(limit) < total:
            available = min(available, int(limit))
            evidence.append(f"limited to {int(limit) / GIB:.1f} GiB ({file})")
    need = look.recipe.memory_per_job if look.recipe is not None else MEMORY
    one_by_one = look.env.get("MAX_JOBS") == "1" and available >= need * GIB / 2
    if one_by_one:
        evidence.append("MAX_JOBS=1")
    if available < need * GIB and not one_by_one:
        whom = f"{look.recipe.name}: one job" if look.recipe is not None else "one hipcc job"
        why = f"{whom} takes about {need:g} GiB; the kernel would kill the compiler"
        swap = (f"fallocate -l {int(need) + 4}G /swapfile", "chmod 600 /swapfile", "mkswap /swapfile", "swapon /swapfile")
        fix = ("export MAX_JOBS=1",) if available >= need * GIB / 2 else swap
        return Check(name, title, WARN, tuple(evidence), why, fix)
    return Check(name, title, OK, tuple(evidence))
