"""A real build against taking its wheel from the wheelhouse, and the whole demo.

    python bench/build.py

Needs Debian's hipcc and what ``python -m tests.support.hip_torch`` and ``python -m tests.support.real_sources`` fetch.
Goals: what was built before comes from the wheelhouse at least 100 times faster than building; the demo takes less than a minute.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rocmpip.store.wheelhouse import Wheelhouse
from tests.support.build_machine import Machine, index_site
from tests.support.hip_torch import hip_environment

GOAL_RATIO, GOAL_DEMO = 100, 60.0
# flash-attn for a GPU of its Triton back end: Composable Kernel takes hours.
PACKAGES = {"hip-extension==1.0": "gfx90a", "flash-attn==2.8.3.post2": "gfx1100", "deepspeed==0.19.8": "gfx90a"}


def build(machine: Machine, requirement: str, gfx: str) -> tuple[float, float, float]:
    """Seconds of (the build, the look-up with its checks of the wheel, the whole second command)."""
    first = machine.told("build", requirement, "-w", "wheels", ROCMPIP_GFX=gfx)["result"]["wheels"][0]
    assert first["origin"] == "build"
    started = time.perf_counter()
    second = machine.told("build", requirement, "-w", "wheels", ROCMPIP_GFX=gfx)["result"]["wheels"][0]
    whole = time.perf_counter() - started
    assert second["origin"] == "wheelhouse"
    house = Wheelhouse(machine.wheelhouse)
    started = time.perf_counter()
    assert house.find(first["fingerprint"], first["name"]) is not None
    return first["seconds"], time.perf_counter() - started, whole


def main() -> int:
    missed = 0
    with tempfile.TemporaryDirectory(prefix="rocmpip-bench-") as name:
        folder = Path(name)
        site = index_site().start()
        machine = Machine(folder, site.url, hip_environment(), folder / "ccache")
        for requirement, gfx in PACKAGES.items():
            built, found, whole = build(machine, requirement, gfx)
            good = built >= GOAL_RATIO * found
            missed += not good
            words = f"built in {built:6.1f} s, found in {found * 1000:6.2f} ms (x{built / found:.0f}), command {whole:.1f} s"
            print(f"{requirement:<26} {words}  {'ok' if good else 'MISSED'}")
        site.stop()
        done = subprocess.run(
            [sys.executable, "-m", "rocmpip", "demo", "--json"], capture_output=True, text=True, check=True, cwd=folder,
            env=dict(os.environ),
        )  # fmt: skip
        took = json.loads(done.stdout)["result"]["seconds"]
        missed += took > GOAL_DEMO
        print(f"{'rocmpip demo':<26} {took:.1f} s  {'ok' if took <= GOAL_DEMO else 'MISSED'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
