"""``rocmpip diagnose``: a log → its first real cause, with advice for this machine, and what the journal knows of it."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from rocmpip.diagnose.lines import read_lines
from rocmpip.diagnose.match import Diagnosis, Finding, MachineContext, diagnose
from rocmpip.diagnose.rules import load_rules
from rocmpip.model.errors import InputError, RocmpipError, UsageError
from rocmpip.model.record import Struct
from rocmpip.model.redact import redact
from rocmpip.report.say import printable

if TYPE_CHECKING:
    from rocmpip.model.machine import InstalledDist, Platform
    from rocmpip.store.journal_entry import Entry

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_DEVICE_BYTES = 64 * 1024 * 1024
"""What is read of a device (a terminal, /dev/zero), at most."""
_INSTALLERS = (("apt-get", "apt"), ("dnf", "dnf"), ("zypper", "zypper"), ("pacman", "pacman"))


class Told(Struct, frozen=True):
    """The outcome of one diagnosis. ``earlier`` is the journal's entry that looks like it."""

    diagnosis: Diagnosis
    earlier: Entry | None = None

    def as_json(self) -> dict[str, object]:
        found = self.diagnosis
        earlier = self.earlier
        return {
            "findings": [{**one.as_json(), "evidence": redact(one.evidence)} for one in found.findings],
            "worth": [{"line": number, "text": redact(text)} for number, text in found.worth],
            "lines": found.lines,
            "ends_well": found.ends_well,
            "earlier": None if earlier is None else earlier.as_json(),
        }


def diagnose_log(source: str, *, env: Mapping[str, str], package: str = "", rules: Sequence[str] = ()) -> Told:
    """Read the log ``source`` (``-``: standard input) and say what is wrong. Changes nothing.

    Raises InputError for a file that cannot be read, UsageError for a bad ``package``, BadConfiguration for bad ``rules``.
    """
    if package and not _NAME.fullmatch(package):
        raise UsageError(f"{package!r} is not the name of a package", hint="--package flash-attn")
    book = load_rules(tuple(rules))
    context = machine_context(env, package)
    if source == "-":
        found = diagnose(read_lines(sys.stdin.buffer), book, context)
    else:
        with _opened(Path(source)) as stream:
            found = diagnose(read_lines(stream, _size(stream)), book, context)
    return Told(found, _earlier(found, package, env))


def _opened(path: Path) -> BinaryIO:
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder", hint="name the log file in it, or - for standard input")
        return path.open("rb")
    except FileNotFoundError:
        raise InputError(f"there is no file {path}", hint="name a log file, or - for standard input") from None
    except (OSError, ValueError) as problem:
        raise InputError(f"{path} cannot be read", why=getattr(problem, "strerror", None) or str(problem)) from None


def _size(stream: BinaryIO) -> int | None:
    info = os.fstat(stream.fileno())
    if stat.S_ISCHR(info.st_mode):
        return _DEVICE_BYTES
    return info.st_size or None


def machine_context(env: Mapping[str, str], package: str = "") -> MachineContext:
    """This machine, as the advice needs it. A machine that cannot be read gives placeholders, never an error."""
    from rocmpip.app.detect import detect_platform

    try:
        platform, _, dists = detect_platform(env=env, programs=False)
    except (RocmpipError, OSError):
        return MachineContext(package=package)
    return context_of(platform, dists, package)


def context_of(platform: Platform, dists: Sequence[InstalledDist] = (), package: str = "", torch: str = "") -> MachineContext:
    """The same for a platform that is known already. ``torch`` with its label; default: the one in ``dists``."""
    return MachineContext(
        gfx=platform.gfx_targets,
        rocm=str(platform.rocm or ""),
        torch=torch or next((dist.version for dist in dists if dist.name == "torch"), ""),
        package=package,
        wsl=platform.wsl,
        container=platform.container,
        rocm_path=platform.rocm_root if re.fullmatch(r"[\w./+-]*", platform.rocm_root) else "",
        installer=next((name for program, name in _INSTALLERS if shutil.which(program)), ""),
    )


def best(found: Diagnosis) -> Finding | None:
    """The cause to tell: the first finding, if it is more than a guess."""
    first = found.findings[0] if found.findings else None
    return first if first is not None and first.confidence != "low" else None


def _earlier(found: Diagnosis, package: str, env: Mapping[str, str]) -> Entry | None:
    line = found.findings[0].evidence if found.findings else found.worth[0][1] if found.worth else ""
    if not line:
        return None
    from rocmpip.app.journal import open_journal

    try:
        return open_journal(env).similar(line, package=package)
    except (RocmpipError, OSError):
        return None  # A broken settings file or journal must not hide the diagnosis.


def words(told: Told) -> str:
    """The diagnosis as text for stdout."""
    found = told.diagnosis
    first = best(found)
    rows = _cause(first) if first is not None else _unknown(found)
    for other in [one for one in found.findings if one is not first and one.confidence != "low"][:3]:
        rows += ["", f"also     line {other.line}: {other.kind}: {other.cause}"]
    if told.earlier is not None:
        rows += ["", *_before(told.earlier)]
    return redact(printable("\n".join(rows))) + "\n"


def _cause(one: Finding) -> list[str]:
    rows = [
        f"line {one.line}: {one.evidence}",
        "",
        f"cause    {one.cause}",
        f"kind     {one.kind} ({one.family}, {one.confidence} confidence)",
    ]
    rows += [f"{'do' if number == 0 else '':<9}{command}" for number, command in enumerate(one.fix)]
    return [*rows, f"source   {one.source}"]


def _unknown(found: Diagnosis) -> list[str]:
    rows = []
    if found.ends_well:
        rows.append("no failure found: the log ends well")
    elif found.findings:
        rows.append("no cause found that is more than a guess")
    else:
        rows.append("unknown: no rule knows this failure")
    for one in found.findings:
        rows.append(f"maybe    line {one.line}: {one.kind}: {one.cause}")
    if found.worth and not found.ends_well:
        rows += ["", "lines worth reading:", *(f"{number:>7}  {text}" for number, text in found.worth)]
    elif not found.lines:
        rows.append("the log is empty")
    return rows


def _before(entry: Entry) -> list[str]:
    what = " ".join(part for part in (entry.package, entry.version) if part) or "a failure"
    rows = [
        f"seen before: {what}, {entry.at[:10]}{f' ({entry.origin})' if entry.origin else ''}; rocmpip journal show {entry.id}"
    ]
    rows += [f"what helped: {text}" for text in entry.did[-2:]]
    return rows + [f"note: {text}" for text in entry.notes[-2:]]
