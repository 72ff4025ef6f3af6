"""How quick is the reader of device code, and the wheelhouse's look-up?

    python bench/examine.py

Goals: a 500 MB library in at most 2 s and 100 MB of memory; one of 10,000 kept wheels found in at most 50 ms.
The library is examined as it is and inside a wheel (stored and deflated); its device code stands behind 490 MB of other data.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from msgspec import structs

sys.path.insert(0, str(Path(__file__).parents[1]))

from rocmpip.model.provenance import FingerprintInputs, Provenance
from rocmpip.store.wheelhouse import ENTRY, Wheelhouse, fingerprint
from tests.support.elf_files import bundle, compressed, elf

SIZE = 500 << 20
GOAL_SECONDS, GOAL_MEMORY, GOAL_LOOK_UP = 2.0, 100 << 10, 0.05

MEASURE = """
import sys, time
from rocmpip.elf import examine_file, examine_wheel
path = sys.argv[1]
started = time.perf_counter()
report = examine_wheel(path) if path.endswith(".whl") else examine_file(path)
took = time.perf_counter() - started
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(took, peak, len(report.gfx))
"""


def library() -> bytes:
    """Half a gigabyte: code that does not compress to nothing, then 200 translation units for three GPUs."""
    units = b""
    for number in range(200):
        unit = bundle({gfx: bytes([number]) * 9000 for gfx in ("gfx90a", "gfx942", "gfx1100")})
        unit = compressed(unit, version=3) if number % 2 else unit
        units += unit + b"\0" * (-len(unit) % 4096)
    text = (bytes(range(256)) * 4096)[: 1 << 20] * ((SIZE - len(units)) >> 20)
    return elf({".text": text, ".hip_fatbin": units}, needed=["libamdhip64.so.6"])


def examined(path: Path) -> tuple[float, int]:
    """(seconds, peak KiB) in a process of its own."""
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    seconds, peak, found = done.stdout.split()
    assert int(found) == 3
    return float(seconds), int(peak)


def look_ups(folder: Path) -> list[float]:
    """Seconds for some look-ups among 10,000 entries."""
    inputs = FingerprintInputs("kernels", "1.0", "sha256:0", "r", ("gfx90a",), "6.4")
    wheel = folder / "kernels-1.0-py3-none-any.whl"
    wheel.write_bytes(b"x" * 10_000)
    house = Wheelhouse(folder / "wheelhouse")
    stored = house.put(wheel, Provenance(fingerprint(inputs), inputs))
    data = json.loads((stored.path.parent / ENTRY).read_text())
    names = []
    for number in range(10_000):
        other = structs.replace(inputs, source=f"sha256:{number + 1}")
        names.append(fingerprint(other))
        entry = stored.path.parent.parent / names[-1]
        entry.mkdir()
        data["provenance"] |= {"fingerprint": names[-1], "source": other.source}
        (entry / ENTRY).write_text(json.dumps(data))
        (entry / wheel.name).hardlink_to(stored.path)
    times = []
    for name in names[::997]:
        started = time.perf_counter()
        assert Wheelhouse(house.root).find(name) is not None
        times.append(time.perf_counter() - started)
    return times


def main() -> int:
    missed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "big.so"
        path.write_bytes(library())
        places = [path]
        for label, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
            places.append(folder / f"{label}-1.0-py3-none-any.whl")
            with zipfile.ZipFile(places[-1], "w", method, compresslevel=1) as archive:
                archive.write(path, "big.so")
        for place in places:
            seconds, peak = examined(place)
            good = seconds <= GOAL_SECONDS and peak <= GOAL_MEMORY
            missed += not good
            print(f"{place.name:<32} {seconds:6.2f} s  {peak / 1024:6.1f} MB  {'ok' if good else 'MISSED'}")
        times = look_ups(folder)
        good = max(times) <= GOAL_LOOK_UP
        missed += not good
        print(f"{'one of 10,000 kept wheels':<32} {max(times) * 1000:6.1f} ms at most  {'ok' if good else 'MISSED'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
