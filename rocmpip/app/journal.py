"""The journal at work: what failed and what mended it is written down by itself; ``rocmpip journal`` shows and shares it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rocmpip.model.errors import InputError, RocmpipError
from rocmpip.model.record import replace
from rocmpip.report.say import printable
from rocmpip.store.journal_file import FILE

if TYPE_CHECKING:
    from rocmpip.diagnose.match import Finding
    from rocmpip.model.machine import InstalledDist, Platform
    from rocmpip.store.journal import Journal
    from rocmpip.store.journal_entry import Entry


def open_journal(env: Mapping[str, str], state_dir: str = "") -> Journal:
    """The journal of this user: ``state_dir``, else the one of the settings. Raises BadConfiguration for bad settings."""
    from rocmpip.store.journal import Journal

    if not state_dir:
        from rocmpip.store.settings import load_settings

        state_dir = load_settings({}, env, str(Path.cwd())).state_dir
    return Journal(state_dir, home=env.get("HOME", ""))


def note_failure(
    *,
    env: Mapping[str, str],
    state_dir: str,
    command: str,
    error: str,
    package: str = "",
    version: str = "",
    platform: Platform | None = None,
    installed: Sequence[InstalledDist] = (),
    torch: str = "",
    python: str = "",
    finding: Finding | None = None,
) -> Entry | None:
    """Write down a failed build or install; the earlier entry that looks like it, or None.

    ``error`` is the line that tells the cause (a finding's evidence, a build's first error, pip's ERROR line). Never raises: a
    journal that cannot be written must not change what a command does.
    """
    try:
        _, earlier = open_journal(env, state_dir).record(
            command=command,
            error=finding.evidence if finding is not None else error,
            package=package,
            version=version,
            diagnosis=finding.kind if finding is not None else "",
            family=finding.family if finding is not None else "",
            cause=finding.cause if finding is not None else "",
            fix=finding.fix if finding is not None else (),
            gfx=platform.gfx_targets if platform is not None else (),
            rocm=str(platform.rocm or "") if platform is not None else "",
            driver=platform.driver or platform.kernel if platform is not None else "",
            torch=torch or next((dist.version for dist in installed if dist.name == "torch"), ""),
            python=python,
            env=env,
        )
    except (RocmpipError, OSError):
        return None
    return earlier


def failed_before(env: Mapping[str, str], state_dir: str) -> tuple[str, ...]:
    """Packages whose last failure here nothing mended. Costs nothing where there is no journal. Never raises."""
    if state_dir and not Path(state_dir, FILE).expanduser().exists():
        return ()
    try:
        journal = open_journal(env, state_dir)
        if not journal.path.exists():
            return ()
        return tuple(
            dict.fromkeys(one.package for one in journal.entries() if one.package and not one.worked and not one.origin)
        )
    except (RocmpipError, OSError):
        return ()


def note_success(
    *,
    env: Mapping[str, str],
    state_dir: str,
    command: str,
    package: str,
    version: str = "",
    platform: Platform | None = None,
    installed: Sequence[InstalledDist] = (),
    torch: str = "",
) -> tuple[str, ...]:
    """What failed before works now: write that and what was different this time; ids of the entries that it mends.

    Costs nothing where there is no journal. Never raises.
    """
    try:
        journal = open_journal(env, state_dir)
        if not journal.path.exists():
            return ()
        mended = journal.open_failures(package)[-5:]
        torch = torch or next((dist.version for dist in installed if dist.name == "torch"), "")
        rocm = str(platform.rocm or "") if platform is not None else ""
        for entry in mended:
            changed = _changed(entry, version=version, rocm=rocm, torch=torch, env=env)
            journal.mended(entry.id, "; ".join((command, *changed)))
    except (RocmpipError, OSError):
        return ()
    return tuple(entry.id for entry in mended)


def _changed(entry: Entry, *, version: str, rocm: str, torch: str, env: Mapping[str, str]) -> list[str]:
    """What was different from the failure, in words."""
    from rocmpip.store.journal_text import kept_variables

    rows = [
        f"{name} {old} → {new}"
        for name, old, new in (("version", entry.version, version), ("ROCm", entry.rocm, rocm), ("torch", entry.torch, torch))
        if old and new and old != new
    ]
    now = kept_variables(env, env.get("HOME", ""))
    for name in sorted({*now, *entry.env}):
        if now.get(name, "") != entry.env.get(name, ""):
            rows.append(f"{name}={now[name]}" if name in now else f"{name} unset")
    return rows


def seen_before(entry: Entry) -> str:
    """One line for a person: this failed before, and what is known of it."""
    helped = f"; what helped then: {entry.did[-1]}" if entry.did else f"; note: {entry.notes[-1]}" if entry.notes else ""
    return f"this looks like {entry.package or 'a failure'} of {entry.at[:10]} (rocmpip journal show {entry.id}){helped}"


# The commands


def row(entry: Entry) -> str:
    """One line: what failed, why, and whether it was mended."""
    what = " ".join(part for part in (entry.package, entry.version) if part) or "-"
    state = "mended" if entry.worked else "open"
    times = f" x{entry.seen}" if entry.seen > 1 else ""
    origin = f"  ({entry.origin})" if entry.origin else ""
    return printable(f"{entry.id}  {entry.at[:10]}  {state:<6}  {what}{times}  {entry.diagnosis or entry.error[:80]}{origin}")


def words(entry: Entry) -> str:
    """Everything about one entry. Its commands are for reading: nothing here is ever run."""
    rows = [
        ("entry", entry.id),
        ("when", entry.at),
        ("from", entry.origin),
        ("package", " ".join(part for part in (entry.package, entry.version) if part)),
        ("command", entry.command),
        ("error", entry.error),
        ("diagnosis", f"{entry.diagnosis} ({entry.family})" if entry.diagnosis else "unknown"),
        ("cause", entry.cause),
        ("GPUs", ", ".join(entry.gfx)),
        ("ROCm", entry.rocm),
        ("driver", entry.driver),
        ("torch", entry.torch),
        ("Python", entry.python),
        ("seen", f"{entry.seen} times" if entry.seen > 1 else ""),
        *(("variable", f"{key}={value}") for key, value in entry.env.items()),
        *(("proposed", text) for text in entry.fix),
        *(("done", text) for text in entry.did),
        ("state", "mended" if entry.worked else "open"),
        *(("note", text) for text in entry.notes),
    ]
    return printable("\n".join(f"{name:<11}{value}" for name, value in rows if value)) + "\n"


def export(journal: Journal, target: str) -> tuple[int, str]:
    """(number of entries, TOML text); the text is written to the file ``target`` unless that is ``-``. Raises InputError."""
    from rocmpip.store.journal_share import to_toml

    entries = journal.entries()
    text = to_toml(entries)
    if target != "-":
        _write(Path(target), text)
    return len(entries), text


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
            # A file to share, unlike the journal itself: as the user's umask has it.
            mask = os.umask(0)
            os.umask(mask)
            Path(name).chmod(0o666 & ~mask)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise InputError(f"{path} cannot be written", why=problem.strerror or str(problem)) from None


def import_file(journal: Journal, source: Path) -> tuple[int, int]:
    """(entries taken, entries known already). Raises InputError, or BadConfiguration with every fault of the file."""
    from rocmpip.store.journal_share import LARGEST, from_toml

    try:
        with source.open("rb") as stream:
            content = stream.read(LARGEST + 1)
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{source} is not UTF-8 text") from None
    except (OSError, ValueError) as problem:
        raise InputError(f"{source} cannot be read", why=getattr(problem, "strerror", None) or str(problem)) from None
    if len(content) > LARGEST:
        raise InputError(f"{source} is too large", why=f"more than {LARGEST} bytes")
    entries = from_toml(text, source.name)
    known = {one.id: one.error for one in journal.entries()}
    fresh = []
    for entry in entries:
        # Ids are eight digits that anybody may write: another failure under a known id gets one of its own, the same each time.
        named = entry if _same(known.get(entry.id, entry.error), entry.error) else replace(entry, id=_own_id(entry))
        if named.id not in known:
            fresh.append(named)
            known[named.id] = named.error
    for entry in fresh:
        journal.add(entry)
    return len(fresh), len(entries) - len(fresh)


def _same(written: str, error: str) -> bool:
    """Is it the same text, as the journal writes it down? A very long entry loses the ends of its texts there."""
    return written == error or (len(written) >= 60 and error.startswith(written))


def _own_id(entry: Entry) -> str:
    import hashlib

    return hashlib.sha256(f"{entry.id}\n{entry.error}".encode()).hexdigest()[:8]
