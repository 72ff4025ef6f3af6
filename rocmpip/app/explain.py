"""A failed step of ours explained: its log read with the rules, or what the machine itself shows where there is no log."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocmpip.diagnose.match import Finding
    from rocmpip.model.errors import BuildFailed
    from rocmpip.model.machine import Platform

_FULL = 256 * 1024 * 1024
"""Bytes free below which a file system counts as full: these wheels take gigabytes."""


class CauseReader:
    """Reads the log of one package's failed build; ``found`` is the cause, fitted to this machine."""

    def __init__(self, platform: Platform, torch: str, package: str) -> None:
        self.found: Finding | None = None
        self._platform, self._torch, self._package = platform, torch, package

    def __call__(self, path: str) -> str | None:
        """The cause in words, or None when no rule is sure. Never raises for a log that cannot be read."""
        from rocmpip.app.diagnose import best, context_of
        from rocmpip.diagnose.lines import read_lines
        from rocmpip.diagnose.match import diagnose
        from rocmpip.diagnose.rules import load_rules

        machine = context_of(self._platform, torch=self._torch, package=self._package)
        try:
            with Path(path).open("rb") as stream:
                self.found = best(
                    diagnose(read_lines(stream, os.fstat(stream.fileno()).st_size or None), load_rules(), machine)
                )
        except OSError:
            return None
        if self.found is None:
            return None
        likely = "" if self.found.confidence == "high" else "most likely: "
        return f"{self.found.evidence.strip()} ({likely}{self.found.cause})"


def explain(problem: BuildFailed, reader: CauseReader) -> None:
    """Add what mends it to the error of a failed build, and the finding for the journal."""
    if reader.found is None:
        return
    problem.finding = reader.found
    problem.details = (*problem.details, *(f"do: {command}" for command in reader.found.fix))


def full_places(places: Iterable[str]) -> list[str]:
    """Which of these folders, and pip's temporary one, have next to no room left."""
    full = []
    for place in dict.fromkeys((tempfile.gettempdir(), *places)):
        try:
            if place and shutil.disk_usage(place).free < _FULL:
                full.append(place)
        except OSError:
            continue
    return full
