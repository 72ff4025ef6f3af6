"""How quick is diagnosis, and how much memory does it take? A 200 MB build log with one cause in the middle.

    python bench/diagnose.py [MB]

Goals: 200 MB in at most 3 s and 100 MB of resident memory, process start included; a log of 1 MB in at most 0.8 s;
no pattern spends more than 0.5 s on a handful of lines that almost match it again and again.
"""

from __future__ import annotations

import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rocmpip.diagnose.pattern import Pattern
from rocmpip.diagnose.rules import load_rules
from rocmpip.diagnose.text import LONGEST

GOAL_SECONDS, GOAL_MB = 3.0, 100
GOAL_SMALL = 0.8
GOAL_PATTERN = 0.5
CAUSE = b"/w/csrc/a.hip:1:10: fatal error: 'cmath' file not found\n"
WORDS = "error handler kernel gemm attn rocm hip undefined_fn cannot_open not_found assert softmax layer_norm wave".split()

CHILD = """
import resource, sys
from rocmpip.diagnose.lines import read_lines
from rocmpip.diagnose.match import diagnose
from rocmpip.diagnose.rules import load_rules
with open(sys.argv[1], "rb") as stream:
    found = diagnose(read_lines(stream), load_rules())
print(found.findings[0].kind, found.findings[0].line, found.lines, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def step(rng: random.Random) -> str:
    one, two, three = rng.choice(WORDS), rng.choice(WORDS), rng.choice(WORDS)
    number = rng.randrange(10**6)
    return rng.choice(
        (
            f"[{number}/999999] /opt/rocm/bin/hipcc -Wall -Werror -Wno-error={one} --offload-arch=gfx942 -c csrc/{two}/{three}.hip -o {three}_{number}.o",
            f"/w/csrc/{one}/{two}.hip:{number}:7: warning: unused variable '{three}' [-Wunused-variable]",
            f"{number % 9} warnings generated when compiling for gfx942.",
            f"-- Performing Test HAVE_{one.upper()}_{number} - Failed",
            f"  {number} | static inline int {one}_{two}(int {three});",
        )
    )


def write_log(path: Path, size: int) -> None:
    rng = random.Random(1)
    block = "".join(step(rng) + "\n" for _ in range(100_000)).encode()
    with path.open("wb") as stream:
        done = 0
        while done < size:
            stream.write(block[: size - done])
            if done <= size * 6 // 10 < done + len(block):
                stream.write(b"\n" + CAUSE)
            done += len(block)


def measure(path: Path) -> tuple[float, int]:
    """(seconds, MB): the best of three runs."""
    seconds, memory = [], 0
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=True)
        seconds.append(time.perf_counter() - start)
        kind, _line, _lines, mb = done.stdout.split()
        assert kind == "libstdcxx-dev-missing", done.stdout
        memory = max(memory, int(mb))
    return min(seconds), memory


def adversaries(pattern: Pattern) -> list[str]:
    """Lines made of the pattern's own texts over and over, which almost match again and again."""
    pieces = [*pattern.literals, *re.findall(r"[A-Za-z_:'./ -]{2,}", pattern.text)][:8]
    rows = [(piece * LONGEST)[:LONGEST] for piece in pieces if piece]
    return [*rows, (" ".join(pieces) * LONGEST)[:LONGEST], "a" * LONGEST, "_Z" * (LONGEST // 2), "gfx1" * (LONGEST // 4)]


def slowest_pattern() -> tuple[float, str]:
    """(seconds, pattern) of the pattern that takes longest on its adversaries."""
    spent = []
    for pattern in load_rules().patterns:
        start = time.process_time()
        for line in adversaries(pattern):
            pattern.regex.search(line)
        spent.append((time.process_time() - start, pattern.text))
    return max(spent)


def main() -> int:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for mb, goal in ((1, GOAL_SMALL), (size, GOAL_SECONDS * max(size, 50) / 200)):
            path = Path(folder) / "log"
            write_log(path, mb * 1_000_000)
            seconds, memory = measure(path)
            fits = seconds <= goal and memory <= GOAL_MB
            good = good and fits
            print(f"{mb:>5} MB: {seconds:.2f} s (goal {goal:.1f}), {memory} MB (goal {GOAL_MB}): {'ok' if fits else 'MISSED'}")
    seconds, text = slowest_pattern()
    good = good and seconds <= GOAL_PATTERN
    print(f"slowest pattern: {seconds:.2f} s (goal {GOAL_PATTERN}): {'ok' if seconds <= GOAL_PATTERN else 'MISSED'}: {text}")
    return 0 if good else 1


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    raise SystemExit(main())
