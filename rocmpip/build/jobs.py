"""How many compile jobs this machine bears: cores, free memory and control-group limits against memory for each job."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from rocmpip.model.record import Struct

_GIB = 1 << 30
_UNLIMITED = 1 << 60
"""A control group's "no limit" is a huge number in version 1."""
_SPARE = 0.5 * _GIB
"""Left to everything else on the machine."""


class Limits(Struct, frozen=True):
    """``cores`` usable (a fraction under a quota), ``memory`` in bytes free for us, and where each came from."""

    cores: float
    memory: int | None
    cores_source: str = ""
    memory_source: str = ""


class Jobs(Struct, frozen=True):
    """The number, and why."""

    count: int
    because: str


def read_limits(root: Path = Path("/"), affinity: int | None = None) -> Limits:
    """Read this process's limits under ``root`` (another one only in tests). What cannot be read does not limit."""
    cores: float = affinity if affinity is not None else len(os.sched_getaffinity(0))
    cores_source = "CPU affinity"
    memory, memory_source = _mem_available(root), "free RAM"
    for folder, version in _groups(root):
        quota = _cpu_quota(folder, version)
        if quota is not None and quota < cores:
            cores, cores_source = quota, "the control group's CPU quota"
        left = _memory_left(folder, version)
        if left is not None and (memory is None or left < memory):
            memory, memory_source = left, "the control group's memory limit"
    return Limits(cores, memory, cores_source, memory_source if memory is not None else "")


def decide_jobs(limits: Limits, memory_per_job: float, *, asked: int = 0, env: Mapping[str, str] | None = None) -> Jobs:
    """``asked`` (``--jobs``) wins, then a user's MAX_JOBS, then the machine. ``memory_per_job`` in GiB; never below 1."""
    if asked > 0:
        return Jobs(asked, "--jobs")
    exported = (env or {}).get("MAX_JOBS", "").strip()
    if exported.isdigit() and int(exported) > 0:
        return Jobs(int(exported), "your MAX_JOBS")
    by_cores = max(1, int(limits.cores))
    if limits.memory is None or memory_per_job <= 0:
        return Jobs(by_cores, limits.cores_source)
    by_memory = max(1, int((limits.memory - _SPARE) / (memory_per_job * _GIB)))
    if by_memory < by_cores:
        return Jobs(by_memory, f"{limits.memory_source}: {limits.memory / _GIB:.1f} GiB at {memory_per_job:g} GiB a job")
    return Jobs(by_cores, limits.cores_source)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _number(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdigit() else None


def _mem_available(root: Path) -> int | None:
    for line in _text(root / "proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            kib = _number(line.split()[1])
            return kib * 1024 if kib is not None else None
    return None


def _groups(root: Path) -> list[tuple[Path, int]]:
    """(folder, version) of this process's control groups and all above them: any of them may limit."""
    found: list[tuple[Path, int]] = []
    mount = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if ".." in path:
            continue  # outside this container's view
        if not controllers:
            bases = [(mount, 2)]
        else:
            # cpu may be mounted as cpu, cpuacct,cpu or cpu,cpuacct; the folder is named like the list.
            wanted = {"cpu", "memory"} & set(controllers.split(","))
            bases = [(mount / name, 1) for name in dict.fromkeys([controllers, *sorted(wanted)]) if wanted]
        for base, version in bases:
            parts = [part for part in path.split("/") if part]
            # Inside a container the path may be the host's: then only the mount itself is there.
            found.extend((base.joinpath(*parts[:depth]), version) for depth in range(len(parts), -1, -1))
    return [(folder, version) for folder, version in dict.fromkeys(found) if folder.is_dir()]


def _cpu_quota(folder: Path, version: int) -> float | None:
    if version == 2:
        quota, _, period = _text(folder / "cpu.max").partition(" ")
    else:
        quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
    amount, every = _number(quota), _number(period)
    return amount / every if amount and every and amount > 0 else None


def _memory_left(folder: Path, version: int) -> int | None:
    """Limit minus what is used, page cache that can be dropped counted as free."""
    names = ("memory.max", "memory.current", "inactive_file")
    if version == 1:
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    limit, used = _number(_text(folder / names[0])), _number(_text(folder / names[1]))
    if limit is None or limit >= _UNLIMITED:
        return None
    droppable = 0
    for line in _text(folder / "memory.stat").splitlines():
        key, _, value = line.partition(" ")
        if key == names[2]:
            droppable = _number(value) or 0
    return max(0, limit - max(0, (used or 0) - droppable))
