"""Which projects may bring recipes and say where code comes from: trust is given once, for this content and no other.

``trust.json`` in the state folder, mode 0600, written whole and renamed into place::

    {"schema": 1, "folders": {"/p/.rocmpip/recipes": {"foo.toml": "<sha256>"}}, "projects": {"/p/pyproject.toml": "<sha256>"}}

The folder depends on the environment alone (ROCMPIP_STATE_DIR, XDG_STATE_HOME, HOME): no settings file can move it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from rocmpip.model import toml
from rocmpip.model.errors import Refused
from rocmpip.model.record import Struct, field

SCHEMA = 1
FILE = "trust.json"
_LARGEST = 4 * 1024 * 1024
_PATIENCE = 20.0
"""Seconds to wait for another rocmpip that is writing."""


def state_folder(env: Mapping[str, str]) -> Path:
    """ROCMPIP_STATE_DIR, else XDG_STATE_HOME/rocmpip, else ~/.local/state/rocmpip, else one in the temporary folder."""
    if env.get("ROCMPIP_STATE_DIR"):
        return Path(env["ROCMPIP_STATE_DIR"])
    if env.get("XDG_STATE_HOME"):
        return Path(env["XDG_STATE_HOME"]) / "rocmpip"
    if env.get("HOME"):
        return Path(env["HOME"]) / ".local/state/rocmpip"
    import tempfile

    return Path(tempfile.gettempdir()) / f"rocmpip-{os.getuid()}" / "state"


def project_digest(pyproject: Path) -> str:
    """sha256 of a project's ``[tool.rocmpip]`` (nothing else in the file matters), or "" when it has none or cannot be read."""
    import hashlib
    import json

    try:
        with pyproject.open("rb") as stream:
            data = toml.loads(stream.read(_LARGEST).decode("utf-8"))
        table = data.get("tool", {}).get("rocmpip", {})
    except (OSError, ValueError, RecursionError, AttributeError):
        return ""
    if not table:
        return ""
    return hashlib.sha256(json.dumps(table, sort_keys=True, default=str).encode()).hexdigest()


class Trusted(Struct, frozen=True):
    """What ``trust.json`` holds. ``broken`` says why it counts for nothing."""

    folders: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    projects: Mapping[str, str] = field(default_factory=dict)
    broken: str = ""


class TrustStore:
    """The trust file of one user."""

    def __init__(self, state: Path) -> None:
        self.path = state / FILE

    def read(self) -> Trusted:
        """What is trusted; a file that is missing, broken or open to others gives nothing."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except FileNotFoundError:
            return Trusted()
        except OSError as problem:
            return Trusted(broken=f"{self.path} cannot be read: {problem.strerror}")
        with os.fdopen(handle, "rb") as stream:
            info = os.fstat(stream.fileno())
            if not stat.S_ISREG(info.st_mode):
                return Trusted(broken=f"{self.path} is not a regular file")
            if info.st_uid not in (os.getuid(), 0) or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return Trusted(broken=f"others may write {self.path}")
            content = stream.read(_LARGEST + 1)
        return _decode(content, self.path)

    def refuses(self, folder: Path, digests: Mapping[str, str]) -> str:
        """ "" when exactly these recipe files of ``folder`` are trusted, else why they do not count."""
        trusted = self.read()
        if trusted.broken:
            return f"{trusted.broken}, so nothing is trusted"
        known = trusted.folders.get(_key(folder))
        if known is None:
            return "a project's recipes count only when they are trusted (rocmpip recipe trust)"
        if dict(known) == dict(digests):
            return ""
        changed = sorted(name for name in {*known, *digests} if known.get(name) != digests.get(name))
        return f"changed since it was trusted: {', '.join(changed[:5])} (rocmpip recipe trust, after a look at them)"

    def trusts_project(self, pyproject: Path) -> bool:
        """True when this very ``[tool.rocmpip]`` is trusted."""
        digest = project_digest(pyproject)
        return bool(digest) and self.read().projects.get(_key(pyproject)) == digest

    def trust(
        self, *, folder: Path | None = None, digests: Mapping[str, str] | None = None, pyproject: Path | None = None
    ) -> None:
        """Trust a folder's recipes as ``digests`` tells them, and a project's ``[tool.rocmpip]`` as it stands."""
        with self._writing() as (folders, projects):
            if folder is not None:
                folders[_key(folder)] = dict(digests or {})
            if pyproject is not None:
                projects[_key(pyproject)] = project_digest(pyproject)

    def forget(self, path: Path) -> bool:
        """Take trust away from ``path`` and what is below it; True when there was any."""
        start = _key(path)
        gone = False
        with self._writing() as (folders, projects):
            for table in (folders, projects):
                for key in [key for key in table if key == start or key.startswith(start.rstrip("/") + "/")]:
                    del table[key]
                    gone = True
        return gone

    @contextlib.contextmanager
    def _writing(self) -> Iterator[tuple[dict[str, Mapping[str, str]], dict[str, str]]]:
        """The two tables to change; written back when the block ends well."""
        # Imported where it is used: reading the trust of a project is on every command's way.
        from filelock import FileLock, Timeout

        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with FileLock(f"{self.path}.lock", timeout=_PATIENCE, mode=0o600):
                now = self.read()
                folders, projects = dict(now.folders), dict(now.projects)
                yield folders, projects
                _replace(self.path, {"schema": SCHEMA, "folders": folders, "projects": projects})
        except Timeout:
            raise Refused(f"{self.path} is held by another rocmpip", hint="try again when it is done") from None
        except OSError as problem:
            raise Refused(
                f"{self.path} cannot be written: {problem.strerror}",
                hint="set ROCMPIP_STATE_DIR to a folder of your own",
            ) from None


def _key(path: Path) -> str:
    return os.path.realpath(path)


def _decode(content: bytes, path: Path) -> Trusted:
    import json

    try:
        data = json.loads(content.decode("utf-8"))
        folders, projects = data["folders"], data["projects"]
        proper = data["schema"] == SCHEMA and all(isinstance(digest, str) for digest in projects.values())
        proper = proper and all(isinstance(d, str) for files in folders.values() for d in files.values())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        proper = False
    return Trusted(folders, projects) if proper else Trusted(broken=f"{path} is damaged")


def _replace(path: Path, data: object) -> None:
    """Write ``data`` beside ``path`` (mode 0600) and rename it into place."""
    import json
    import tempfile

    handle, name = tempfile.mkstemp(prefix=f".{FILE}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(data, stream, indent=1, sort_keys=True)
            stream.write("\n")
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
