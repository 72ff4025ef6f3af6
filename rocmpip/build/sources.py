"""The source of a build: hashed, unpacked or copied into the work folder, and made ready."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from rocmpip.model import toml
from rocmpip.model.archives import broken_as
from rocmpip.model.errors import BuildFailed

_IGNORED = frozenset({".git", "__pycache__", ".hg", ".svn", "build", "dist", ".eggs"})
_MAX_UNPACKED = 64 << 30
_MAX_TAIL = 64 << 20
ARCHIVES = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar", ".zip")


def source_digest(source: Path) -> str:
    """``sha256:…`` of an archive's bytes, or of a folder's files (names, modes, bytes) without what builds and version
    control leave there. Raises OSError."""
    digest = hashlib.sha256()
    if source.is_file():
        with source.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
        return f"sha256:{digest.hexdigest()}"
    for path in sorted(_files(source)):
        info = path.lstat()
        digest.update(f"{path.relative_to(source).as_posix()}\0{info.st_mode & 0o111}\0".encode("utf-8", "surrogateescape"))
        if stat.S_ISLNK(info.st_mode):
            digest.update(os.fsencode(os.readlink(path)))  # noqa: PTH115 (bytes of the link, not a path)
        else:
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return f"sha256:{digest.hexdigest()}"


def _files(folder: Path) -> list[Path]:
    found = []
    for base, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _IGNORED and not name.endswith(".egg-info")]
        found += [Path(base) / name for name in names if not name.endswith((".pyc", ".o"))]
    return [path for path in found if not _special(path)]


def _special(path: Path) -> bool:
    """True for sockets, pipes and devices, which editors and tools leave in folders: reading one may never end."""
    mode = path.lstat().st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))


def _not_copied(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if name == "__pycache__" or _special(Path(folder, name))}


def unpack(source: Path, folder: Path, subdirectory: str = "") -> Path:
    """Unpack an archive (or copy a folder) into ``folder``; the folder that holds the project. Raises BuildFailed for a
    broken or hostile archive (members outside it, links that lead out, devices)."""
    folder.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        place = folder / (source.name or "source")
        try:
            shutil.copytree(source, place, symlinks=True, ignore=_not_copied)
        except shutil.Error as problem:
            first = problem.args[0][0] if problem.args and problem.args[0] else ("", "", problem)
            raise BuildFailed(
                f"{source} cannot be copied", why=str(first[2]), hint="every file in it must be readable"
            ) from problem
        top = place
    else:
        try:
            with broken_as(ValueError):
                _unpack_archive(source, folder)
        except (OSError, ValueError) as problem:
            full = isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT)
            hint = "set TMPDIR to a folder with some GiB of room" if full else "download it again"
            raise BuildFailed(f"{source.name} cannot be unpacked", why=str(problem), hint=hint) from problem
        entries = [entry for entry in folder.iterdir() if entry.name != "pax_global_header"]
        top = entries[0] if len(entries) == 1 and entries[0].is_dir() else folder
    return project_folder(top, subdirectory, source.name)


def project_folder(top: Path, subdirectory: str, name: str) -> Path:
    """``top/subdirectory`` when it is a Python project inside ``top``. Raises BuildFailed otherwise."""
    place = top / subdirectory if subdirectory else top
    if not place.resolve().is_relative_to(top.resolve()) or not place.is_dir():
        raise BuildFailed(f"{name} has no folder {subdirectory}")
    if not any((place / file).is_file() for file in ("pyproject.toml", "setup.py")):
        raise BuildFailed(f"{name} is no Python project", why="it has neither pyproject.toml nor setup.py")
    return place


def _unpack_archive(source: Path, folder: Path) -> None:
    if source.name.endswith(".zip"):
        with zipfile.ZipFile(source) as packed:
            _check_size(source, sum(entry.file_size for entry in packed.infolist()))
            for entry in packed.infolist():
                _inside(entry.filename)
                packed.extract(entry, folder)
                mode = entry.external_attr >> 16 & 0o777
                if mode and not entry.is_dir():
                    (folder / entry.filename).chmod(mode | 0o600)
        return
    with tarfile.open(source) as archive:
        members = archive.getmembers()
        _check_size(source, sum(member.size for member in members if member.isfile()))
        # The "data" filter refuses absolute names, "..", links that lead out and devices (PEP 706).
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, members, filter="data")
        else:
            for member in members:
                _inside(member.name)
                if not (member.isfile() or member.isdir()):
                    raise ValueError(f"{member.name} is neither a file nor a folder")
                archive.extract(member, folder, set_attrs=True)
        _to_the_end(archive)


def _to_the_end(archive: tarfile.TarFile) -> None:
    """Read what follows the last member: the checksum of the whole stands at the end, and tarfile takes a damaged header for it."""
    stream = archive.fileobj
    assert stream is not None
    left = _MAX_TAIL
    while block := stream.read(1 << 20):
        left -= len(block)
        if left < 0:
            raise ValueError(f"more than {_MAX_TAIL} bytes follow its last member")


def _check_size(source: Path, size: int) -> None:
    if size > _MAX_UNPACKED:
        raise ValueError(f"it would unpack to {size} bytes")


def _inside(name: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise ValueError(f"{name!r} lies outside the archive")


def make_modern(project: Path) -> None:
    """Give a project without pyproject.toml one that says what its absence means, so that every pip builds it the same way
    (up to 25.2 pip would run ``setup.py bdist_wheel`` and leave ``-C`` values unread)."""
    if not (project / "pyproject.toml").exists():
        (project / "pyproject.toml").write_text(
            '[build-system]\nrequires = ["setuptools>=40.8.0", "wheel"]\nbuild-backend = "setuptools.build_meta:__legacy__"\n',
            encoding="utf-8",
        )


def build_system(project: Path) -> tuple[str, tuple[str, ...]]:
    """(build backend, build requirements) as pyproject.toml says; setuptools' legacy backend without one.

    Raises BuildFailed when pyproject.toml cannot be read, or names as a requirement what is none.
    """
    path = project / "pyproject.toml"
    legacy = ("setuptools.build_meta:__legacy__", ("setuptools>=40.8.0", "wheel"))
    if not path.is_file():
        return legacy
    try:
        data: dict[str, Any] = toml.loads(path.read_text(encoding="utf-8"))
    except (toml.TomlError, UnicodeDecodeError) as problem:
        raise BuildFailed("pyproject.toml of the source cannot be read", why=str(problem)) from problem
    table = data.get("build-system")
    if not isinstance(table, dict):
        return legacy
    texts = _requirements(table.get("requires", []))
    backend = table.get("build-backend")
    return (backend if isinstance(backend, str) else legacy[0]), texts


def _requirements(requires: object) -> tuple[str, ...]:
    """``requires`` of [build-system]. They go into a requirements file, where an option (another index) would count too."""
    rows = requires if isinstance(requires, list) else [requires]
    for row in rows:
        try:
            if not isinstance(row, str) or not row.isprintable():
                raise InvalidRequirement
            Requirement(row)
        except (InvalidRequirement, RecursionError):
            raise BuildFailed(
                f"pyproject.toml of the source names {str(row)[:60]!a} as a build requirement",
                why="that is no requirement such as setuptools>=61",
                hint="the package's maintainers should know; [build] requires of a recipe of your own wins over it",
            ) from None
    return tuple(rows)
