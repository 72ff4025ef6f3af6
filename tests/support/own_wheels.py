"""rocmpip and all that it needs as wheels, from what is installed beside the tests: an index for environments of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from email.parser import HeaderParser
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from tests.support.real_sources import WheelFile
from tests.support.repack import repack

ROOT = Path(__file__).resolve().parents[2]


def own_wheels(folder: Path, *more: str) -> list[WheelFile]:
    """Wheels in ``folder``: rocmpip as it stands, its requirements in the versions that are installed here, and ``more``."""
    words = ["wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder), str(ROOT)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    ours = artifact(next(folder.glob("rocmpip-*.whl")))
    # What is installed may be an older state of the project.
    requires = HeaderParser().parsestr(ours.metadata.decode()).get_all("Requires-Dist") or []
    for name in _closure([*requires, *more]):
        assert repack(name, folder) is not None, f"{name} is not installed here"
    return [artifact(path) for path in sorted(folder.glob("*.whl"))]


def artifact(path: Path) -> WheelFile:
    name, version, _, _ = parse_wheel_filename(path.name)
    return WheelFile(name, str(version), path=path)


def _closure(requires: Sequence[str]) -> set[str]:
    found: set[str] = set()
    todo = list(requires)
    while todo:
        wanted = Requirement(todo.pop())
        name = canonicalize_name(wanted.name)
        if name in found or (wanted.marker is not None and not wanted.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        todo += metadata.distribution(name).requires or ()
    return found
