"""Whether a built wheel is of the package, version and Python that was asked for: a build may say success and make another."""

from __future__ import annotations

import os
from pathlib import Path

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from rocmpip.elf import WheelReport
from rocmpip.model.machine import TargetEnv
from rocmpip.model.provenance import UNKNOWN, FingerprintInputs
from rocmpip.plan.tags import tags_for


def another(wheel: Path, report: WheelReport, inputs: FingerprintInputs, target: TargetEnv) -> str:
    """What the wheel is instead of what ``inputs`` name, as the end of "it said success, but …"; "" when it is that.

    A local label (``+cu126``, a commit) is the build's own affair. The version of a git checkout is too: it is made from
    tags, which a checkout of one commit has none of.
    """
    try:
        name, version, _, tags = parse_wheel_filename(wheel.name)
    except (InvalidWheelFilename, InvalidVersion, ValueError):
        return f"{wheel.name!a} is not the name of a wheel"
    if canonicalize_name(report.name) != name or _differ(report.version, str(version)):
        return f"its wheel is called {wheel.name} and says inside that it is {report.name} {report.version}"
    if inputs.version != UNKNOWN and name != canonicalize_name(inputs.name):
        return f"it made a wheel of {name}"
    if inputs.version != UNKNOWN and not inputs.source.startswith("git:") and _differ(inputs.version, version.public):
        return f"it made version {version}"
    python = inputs.python_abi.removeprefix("cp") or target.version
    machine = os.uname().machine
    fitting = [one for one in tags if one.platform == "any" or one.platform.endswith(f"_{machine}")]
    if any(tags_for(python, platforms=(one.platform,)).rank(str(one)) is not None for one in fitting):
        return ""
    return f"its wheel is for {', '.join(sorted(map(str, tags)))}, not for Python {target.version} on {machine}"


def _differ(one: str, other: str) -> bool:
    """Two versions that are not the same but for their local labels."""
    try:
        return Version(one).public != Version(other).public
    except InvalidVersion:
        return one != other
