"""Start-up: rocmpip against the pip that it becomes, as medians of pairs in one run.

    python bench/startup.py [--rounds N] [--json]

Prints one row a command: the median of ours, the median of pip's (or of ``python -c pass``), and the median ratio of the
pairs with its goal. Exit code 1 when a goal is missed. Trust ratios, not milliseconds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

COMMANDS = (("list",), ("freeze",), ("--version",), ("show", "pip"))
OWN_GOAL, OTHER_GOAL, HELP_GOAL = 1.05, 1.15, 5.0


@dataclass(frozen=True)
class Row:
    """One comparison. Times in milliseconds."""

    what: str
    ours: float
    theirs: float
    ratio: float
    goal: float

    @property
    def met(self) -> bool:
        return self.ratio <= self.goal


def milliseconds(command: Sequence[str], env: Mapping[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - start) * 1000


def pairs(what: str, ours: Sequence[str], theirs: Sequence[str], goal: float, rounds: int, env: Mapping[str, str]) -> Row:
    """Alternate the two, so that what else the machine does falls on both; one unmeasured pair first."""
    milliseconds(ours, env), milliseconds(theirs, env)
    mine, other, ratios = [], [], []
    for turn in range(rounds):
        order = (ours, theirs) if turn % 2 == 0 else (theirs, ours)
        times = {id(command): milliseconds(command, env) for command in order}
        mine.append(times[id(ours)])
        other.append(times[id(theirs)])
        ratios.append(mine[-1] / other[-1])
    return Row(what, statistics.median(mine), statistics.median(other), statistics.median(ratios), goal)


def measure(rounds: int) -> list[Row]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "ROCMPIP_", "CONDA_"))}
    env.update(PIP_CONFIG_FILE=os.devnull, PIP_DISABLE_PIP_VERSION_CHECK="1")
    env.pop("VIRTUAL_ENV", None)
    rocmpip = str(Path(sys.executable).with_name("rocmpip"))
    pip = str(Path(sys.executable).with_name("pip"))
    rows = []
    for words in COMMANDS:
        rows.append(pairs(f"{' '.join(words)}, own environment", [rocmpip, *words], [pip, *words], OWN_GOAL, rounds, env))
    with tempfile.TemporaryDirectory(prefix="rocmpip-bench-") as folder:
        venv.create(folder, with_pip=True)
        there = {**env, "VIRTUAL_ENV": folder}
        other = str(Path(folder) / "bin" / "pip")
        for words in COMMANDS:
            rows.append(
                pairs(f"{' '.join(words)}, other environment", [rocmpip, *words], [other, *words], OTHER_GOAL, rounds, there)
            )
    bare = [sys.executable, "-c", "pass"]
    rows.append(pairs("--help against python -c pass", [rocmpip, "--help"], bare, HELP_GOAL, rounds, env))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="pairs a command (default 15)")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    options = parser.parse_args()
    rows = measure(options.rounds)
    if options.json:
        print(json.dumps([{**asdict(row), "met": row.met} for row in rows], indent=2))
    else:
        for row in rows:
            mark = "ok" if row.met else "MISSED"
            print(f"{row.what:34} {row.ours:7.1f} ms {row.theirs:7.1f} ms  x{row.ratio:.2f} (goal {row.goal:.2f}) {mark}")
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
