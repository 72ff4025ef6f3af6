"""How quick is ``rocmpip detect``? Paired runs against the imports it may cost, and the detection call by itself.

    python bench/detect.py [RUNS]

Goals: the process at most 1.6 times ``python -c "import argparse, dataclasses, json"``, the call at most 5 ms.
Both are measured on sysfs trees: one card, eight MI300X, and the same eight in eight partitions each.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

GOAL_RATIO = 1.6
GOAL_CALL_MS = 5.0
GOAL_TABLE_MS = 10.0
YARDSTICK = [sys.executable, "-c", "import argparse, dataclasses, json"]

NODES = "sys/class/kfd/kfd/topology/nodes"
KEYS = """cpu_cores_count simd_count mem_banks_count caches_count io_links_count p2p_links_count cpu_core_id_base
simd_id_base max_waves_per_simd lds_size_in_kb gds_size_in_kb num_gws wave_front_size array_count simd_arrays_per_engine
cu_per_simd_array simd_per_cu max_slots_scratch_cu gfx_target_version vendor_id device_id location_id domain
drm_render_minor hive_id num_sdma_engines num_sdma_xgmi_engines num_sdma_queues_per_engine num_cp_queues
max_engine_clk_fcompute local_mem_size fw_version capability debug_prop sdma_fw_version unique_id num_xcc
max_engine_clk_ccompute""".split()
"""Every key of a node, in the kernel's order: reading them all is part of the work."""

MI300X = {
    "simd_count": 1216,
    "simd_per_cu": 4,
    "gfx_target_version": 90402,
    "vendor_id": 4098,
    "device_id": 29857,
    "location_id": 4096,
    "unique_id": 9895604649984,
    "capability": 671588992,
}
XTX = {**MI300X, "simd_count": 192, "simd_per_cu": 2, "gfx_target_version": 110000, "device_id": 29772}


def tree(root: Path, gpus: list[dict[str, int]]) -> str:
    """A machine with two CPU nodes, ``gpus`` and ROCm 6.4."""
    for number, values in enumerate([{"cpu_cores_count": 96}] * 2 + gpus):
        folder = root / NODES / str(number)
        folder.mkdir(parents=True)
        (folder / "properties").write_text("".join(f"{key} {values.get(key, 0)}\n" for key in KEYS))
        (folder / "gpu_id").write_text(f"{number * 1000 if 'simd_count' in values else 0}\n")
        (folder / "name").write_text("ip discovery\n")
    info = root / "opt/rocm-6.4.0/.info"
    info.mkdir(parents=True)
    (info / "version").write_text("6.4.0-47\n")
    (root / "opt/rocm").symlink_to("/opt/rocm-6.4.0")
    (root / "proc/sys/kernel").mkdir(parents=True)
    (root / "proc/sys/kernel/osrelease").write_text("6.8.0-45-generic\n")
    return str(root)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def process(command: list[str], env: dict[str, str]) -> float:
    return seconds(lambda: subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True))


def whole_process(sysroot: str, runs: int) -> tuple[float, float, float]:
    """Median seconds of detect and of the yardstick, and the median of the ratios of neighbouring runs."""
    env = {**os.environ, "ROCMPIP_SYSROOT": sysroot}
    detect = [sys.executable, "-m", "rocmpip", "detect", "--json"]
    for command in (detect, YARDSTICK):
        process(command, env)
    pairs = [(process(detect, env), process(YARDSTICK, env)) for _ in range(runs)]
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    return statistics.median(one for one, _ in pairs), statistics.median(other for _, other in pairs), ratio


def library_call(sysroot: str, runs: int) -> tuple[float, float]:
    """Milliseconds of probe + judge: the first call, and the median of ``runs`` later ones."""
    from rocmpip.catalogue.gfx import load_gfx
    from rocmpip.machine.judge import judge
    from rocmpip.machine.probe import probe

    table = load_gfx()

    def call() -> None:
        evidence = probe(sysroot=sysroot, env=os.environ, gfx_of_pci=table.gfx_of_pci)
        judge(evidence, names=table.name, known_gfx=table.known, integrated=table.integrated)

    first = seconds(call)
    return first * 1000, statistics.median(seconds(call) for _ in range(runs)) * 1000


def main() -> int:
    from rocmpip.catalogue import rows

    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    missed = 0
    machines = {
        "one card": [XTX],
        "8 x MI300X": [MI300X] * 8,
        "8 x MI300X in 8 partitions each": [{**MI300X, "location_id": 4096 + part} for part in range(8)] * 8,
    }
    for name, gpus in machines.items():
        with tempfile.TemporaryDirectory() as folder:
            sysroot = tree(Path(folder), gpus)
            ours, theirs, ratio = whole_process(sysroot, runs)
            first, call = library_call(sysroot, runs)
        missed += (ratio > GOAL_RATIO) + (call > GOAL_CALL_MS)
        print(f"{name}")
        print(f"  process  {ours * 1000:6.1f} ms, yardstick {theirs * 1000:.1f} ms, ratio {ratio:.2f} (goal {GOAL_RATIO})")
        print(f"  call     {call:6.2f} ms, the first {first:.2f} ms (goal {GOAL_CALL_MS:g})")
    table = statistics.median(seconds(lambda: rows.shipped("gfx.toml")) for _ in range(runs)) * 1000
    missed += table > GOAL_TABLE_MS
    print(f"reading the table of GPUs: {table:.2f} ms (goal {GOAL_TABLE_MS:g})")
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        print("note: PYTHONDONTWRITEBYTECODE is set: without .pyc files every start compiles rocmpip's sources again")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
