"""One build: preflight, environment, overlay, compile, examination of the result."""

from rocmpip.build.engine import build, verdict
from rocmpip.build.job import BuildJob, BuiltWheel, Progress
from rocmpip.build.record import read_installed, read_wheel
from rocmpip.build.sources import source_digest

__all__ = [
    "BuildJob",
    "BuiltWheel",
    "Progress",
    "build",
    "read_installed",
    "read_wheel",
    "source_digest",
    "verdict",
]
