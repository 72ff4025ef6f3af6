"""Jobs from cores, memory and control groups of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocmpip.build.jobs import Limits, decide_jobs, read_limits

GIB = 1 << 30


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


MEMINFO = "MemTotal:       65536000 kB\nMemFree:  1000 kB\nMemAvailable:   33554432 kB\n"


def test_a_plain_machine(tmp_path: Path) -> None:
    limits = read_limits(tree(tmp_path, {"proc/meminfo": MEMINFO}), affinity=16)
    assert (limits.cores, limits.memory) == (16, 32 * GIB)
    # 32 GiB, half a GiB spared, 5 GiB a job.
    assert decide_jobs(limits, 5).count == 6
    assert decide_jobs(limits, 1).count == 16 and decide_jobs(limits, 1).because == "CPU affinity"
    assert "free RAM" in decide_jobs(limits, 5).because


def test_cgroup_2_in_a_container(tmp_path: Path) -> None:
    """Inside a container the path is the host's and only the mount itself is there."""
    root = tree(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "0::/system.slice/docker-abc.scope\n",
            "sys/fs/cgroup/cpu.max": "250000 100000\n",
            "sys/fs/cgroup/memory.max": f"{8 * GIB}\n",
            "sys/fs/cgroup/memory.current": f"{3 * GIB}\n",
            "sys/fs/cgroup/memory.stat": f"anon 1\ninactive_file {1 * GIB}\n",
        },
    )
    limits = read_limits(root, affinity=16)
    assert (limits.cores, limits.memory) == (2.5, 6 * GIB)
    assert "control group" in limits.cores_source and "control group" in limits.memory_source
    assert decide_jobs(limits, 2).count == 2


def test_cgroup_2_a_parent_limits_too(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            "proc/self/cgroup": "0::/slurm/job_7/step_0\n",
            "sys/fs/cgroup/slurm/job_7/memory.max": f"{4 * GIB}\n",
            "sys/fs/cgroup/slurm/job_7/memory.current": "0\n",
            "sys/fs/cgroup/slurm/job_7/step_0/memory.max": "max\n",
            "sys/fs/cgroup/slurm/job_7/step_0/cpu.max": "max 100000\n",
        },
    )
    assert read_limits(root, affinity=4) == Limits(4, 4 * GIB, "CPU affinity", "the control group's memory limit")


def test_cgroup_1(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "5:cpu,cpuacct:/job\n4:memory:/job\n1:name=systemd:/\n",
            "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "150000\n",
            "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": f"{2 * GIB}\n",
            "sys/fs/cgroup/memory/job/memory.usage_in_bytes": f"{1 * GIB}\n",
            "sys/fs/cgroup/memory/job/memory.stat": f"total_inactive_file {GIB // 2}\n",
        },
    )
    limits = read_limits(root, affinity=8)
    assert (limits.cores, limits.memory) == (1.5, 3 * GIB // 2)


def test_cgroup_1_without_a_limit(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/\n5:cpu:/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
    )
    assert read_limits(root, affinity=8) == Limits(8, None, "CPU affinity", "")


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"proc/meminfo": "", "proc/self/cgroup": ""},
        {"proc/meminfo": "MemAvailable: lots\n", "proc/self/cgroup": "nonsense\n0::/../../x\n::::\n"},
        {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "0 0\n", "sys/fs/cgroup/memory.max": "\xff"},
    ],
)
def test_what_cannot_be_read_does_not_limit(files: dict[str, str], tmp_path: Path) -> None:
    assert decide_jobs(read_limits(tree(tmp_path, files), affinity=2), 4).count == 2


def test_never_below_one() -> None:
    assert decide_jobs(Limits(0.2, GIB // 4), 8).count == 1


def test_the_order_of_words() -> None:
    limits = Limits(8, 64 * GIB, "CPU affinity", "free RAM")
    assert decide_jobs(limits, 1, asked=5, env={"MAX_JOBS": "3"}).count == 5
    assert decide_jobs(limits, 1, env={"MAX_JOBS": "3"}).count == 3
    # Not digits: torch ignores it, and so do we.
    assert decide_jobs(limits, 1, env={"MAX_JOBS": "3.5"}).count == 8
    assert decide_jobs(limits, 1, env={"MAX_JOBS": "0"}).count == 8


def test_this_machine() -> None:
    limits = read_limits()
    assert limits.cores > 0 and limits.memory is not None and limits.memory > 0
