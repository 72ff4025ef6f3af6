"""A failed step of ours explained: its log read with the rules, or what the machine itself shows where there is no log."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rocmpip.model.record import Struct
from rocmpip.report import say

if TYPE_CHECKING:
    from rocmpip.app.context import Context
    from rocmpip.diagnose.match import Diagnosis, Finding, MachineContext
    from rocmpip.model.errors import BuildFailed, RocmpipError
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

        read = _read(Path(path), context_of(self._platform, torch=self._torch, package=self._package))
        self.found = best(read) if read is not None else None
        return in_words(self.found) if self.found is not None else None


def _read(path: Path, machine: MachineContext) -> Diagnosis | None:
    """The log ``path`` read with the shipped rules; None when it cannot be read."""
    from rocmpip.diagnose.lines import read_lines
    from rocmpip.diagnose.match import diagnose
    from rocmpip.diagnose.rules import load_rules

    try:
        with path.open("rb") as stream:
            return diagnose(read_lines(stream, os.fstat(stream.fileno()).st_size or None), load_rules(), machine)
    except OSError:
        return None


def in_words(found: Finding) -> str:
    """The evidence and what it means, in one line."""
    likely = "" if found.confidence == "high" else "most likely: "
    return f"{found.evidence.strip()} ({likely}{found.cause})"


def explain(problem: BuildFailed, reader: CauseReader) -> None:
    """Add what mends it to the error of a failed build, and the finding for the journal."""
    if reader.found is None:
        return
    problem.finding = reader.found
    problem.details = (*problem.details, *(f"do: {command}" for command in reader.found.fix))


class PipFailure(Struct, frozen=True):
    """What pip's own words tell of its failure."""

    error: str
    """The line that tells most."""
    package: str
    """What was being built or looked for, "" when that is not told."""
    finding: Finding | None


_INTERRUPTED = frozenset((120, 130, 143))
"""pip's codes when the reader of its stdout went away, and after Ctrl-C or SIGTERM: no failures."""


def read_pip(code: int, transcript: Path, context: Context) -> PipFailure | None:
    """What pip said before it ended with ``code``, read with the rules. None when it was told to end or got wrong options."""
    from rocmpip.app.diagnose import best, context_of

    if code in _INTERRUPTED:
        return None
    if code > 128:
        return PipFailure(f"pip was ended by signal {code - 128}", "", None)
    names = [line.name for line in context.request.requirements if line.name and not line.constraint]
    machine = context_of(context.platform, context.installed)
    read = _read(transcript, machine)
    if read is None:
        return None
    package = read.package or (names[0] if len(names) == 1 else "")
    found = best(read)
    # Behind the router an index lacks what the router leaves out: pip's own words say all there is to say.
    if found is None or found.family == "resolver":
        # pip ends with 2 after wrong options, which are nobody's failure, and after its own crash.
        if code == 2 or not read.worth:
            return None
        return PipFailure(read.worth[0][1], package, None)
    return PipFailure(found.evidence, package, found)


def commands_of(failure: PipFailure, context: Context) -> list[str]:
    """What mends it; not the command that has just failed."""
    if failure.finding is None:
        return []
    running = f"rocmpip {context.request.command} {failure.package}"
    return [command for command in failure.finding.fix if command != running]


def explain_pip(problem: RocmpipError, failure: PipFailure | None, context: Context) -> None:
    """Add the cause to the error about a pip that failed in the middle of a plan."""
    if failure is None:
        return
    problem.finding, problem.evidence = failure.finding, failure.error
    if failure.finding is not None:
        problem.why = in_words(failure.finding)
        problem.details = (*problem.details, *(f"do: {command}" for command in commands_of(failure, context)))


def tell_pip(failure: PipFailure | None, context: Context) -> None:
    """Say the cause after pip's own words, where pip alone speaks. What no rule is sure of is left to those words."""
    if failure is None or failure.finding is None:
        return
    say.note(in_words(failure.finding))
    for command in commands_of(failure, context):
        say.step(f"do: {command}")


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
