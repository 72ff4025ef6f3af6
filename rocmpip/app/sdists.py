"""Requirements of source archives: static PKG-INFO, what torch extensions declare, else the build back end's own word."""

from __future__ import annotations

import json
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from packaging.utils import canonicalize_name

from rocmpip import __version__
from rocmpip.app.loose import Project, read_project
from rocmpip.app.session import Session
from rocmpip.model.archives import broken_as
from rocmpip.model.errors import RocmpipError
from rocmpip.model.packages import File
from rocmpip.model.temporary import TemporaryFolder
from rocmpip.plan.asked import read_filename
from rocmpip.plan.listing import Unusable
from rocmpip.plan.metadata import static_source
from rocmpip.router.alias import static_metadata

_BIGGEST = 4 * 1024 * 1024
_STATIC = __version__
"""The facts for metadata that the archive itself declares to be the same everywhere: a later version of ours may look closer."""


class SdistReader:
    """Downloads a source archive once, reads what it declares, and asks its back end only when that is not enough.

    ``need_torch`` names the projects that cannot be built without torch: the shipped template builds those.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._folder = TemporaryFolder(prefix="rocmpip-sdist-")
        self.need_torch: dict[str, Path] = {}

    def __enter__(self) -> SdistReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self._folder.cleanup()

    def metadata(self, file: File) -> bytes:
        """The core metadata of one archive. Raises Unusable when it cannot be told, NetworkError when it cannot be fetched.

        What an archive that needs no torch has told is kept between runs, as pip keeps the wheels it built.
        """
        client, facts = self._session.client, self._facts()
        for told in dict.fromkeys((_STATIC, facts)):
            kept = client.kept_source(file, told)
            if kept is not None:
                return kept
        place = Path(self._folder.name) / canonicalize_name(file.filename)
        place.mkdir(exist_ok=True)
        archive = client.whole(file)
        info = _member(archive, "PKG-INFO")
        name, version, _ = read_filename(file.filename)
        project = _project(archive, place)
        needs_torch = project is not None and project.needs_torch and bool(name)
        if needs_torch:
            self.need_torch[name] = archive
        if info and static_source(info):
            if not needs_torch:
                client.keep_source(file, _STATIC, info)
            return info
        if project is not None and needs_torch:
            return self._declared(name, version, archive, info, project)
        data = self._asked(archive, name)
        if facts != _STATIC:
            client.keep_source(file, facts, data)
        return data

    def _facts(self) -> str:
        """What a build back end's word may depend on; nothing is kept where that is the whole environment (no isolation)."""
        context = self._session.context
        if context.request.no_build_isolation:
            return _STATIC
        return "\n".join((__version__, context.target.version, *context.tags[:1], *context.request.config_settings))

    def _declared(self, name: str, version: str, archive: Path, info: bytes, project: Project) -> bytes:
        """A torch extension: [project] dependencies, else the egg-info's requires.txt, else what PKG-INFO says."""
        if project.dependencies is not None:
            return static_metadata(name, version, project.dependencies)
        requires = _member(archive, "requires.txt")
        if requires:
            return static_metadata(name, version, tuple(_egg_requirements(requires.decode("utf-8", "replace"))))
        return info or static_metadata(name, version, ())

    def _asked(self, archive: Path, name: str) -> bytes:
        """Ask the build back end, by a dry run of pip in its own isolated environment behind the router."""
        from rocmpip.target.pip import pip_command
        from rocmpip.target.run import neutral_environment, pip_output

        context = self._session.context
        with TemporaryFolder(prefix="rocmpip-ask-") as folder, self._session.router() as router:
            empty = Path(folder) / "empty"
            empty.mkdir()
            env = neutral_environment(context.env, router_url=router.url, empty_folder=str(empty), index=context.request.index)
            env["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
            report = Path(folder) / "report.json"
            done = pip_output(
                pip_command(context.target),
                [
                    "install",
                    "--dry-run",
                    "--no-deps",
                    "--ignore-installed",
                    "--quiet",
                    *(["--no-build-isolation"] if context.request.no_build_isolation else []),
                    *(word for setting in context.request.config_settings for word in ("--config-settings", setting)),
                    "--report",
                    str(report),
                    str(archive),
                ],
                env=env,
            )
            if done.code:
                errors = router.errors
                if errors:
                    raise errors[0]
                raise Unusable(f"its metadata cannot be made: {_last_error(done.stderr or done.stdout)}")
            rows = json.loads(report.read_text(encoding="utf-8"))["install"]
        metadata = rows[0]["metadata"]
        return static_metadata(
            str(metadata["name"]),
            str(metadata["version"]),
            tuple(metadata.get("requires_dist") or ()),
            provides_extra=tuple(metadata.get("provides_extra") or ()),
            requires_python=str(metadata.get("requires_python") or ""),
        )


def _last_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and "subprocess" not in line]
    errors = [line for line in lines if "rror" in line]
    return (errors or lines or ["pip gave no reason"])[-1][:300]


@contextmanager
def _members(archive: Path) -> Iterator[Iterator[tuple[str, int, object]]]:
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as opened:
            yield ((info.filename, info.file_size, lambda info=info: opened.read(info)) for info in opened.infolist())
        return
    with tarfile.open(archive) as tar:
        yield (
            (member.name, member.size, lambda member=member: (tar.extractfile(member) or _Nothing()).read())
            for member in tar
            if member.isfile()
        )


class _Nothing:
    def read(self) -> bytes:
        return b""


def _member(archive: Path, name: str) -> bytes:
    """The shallowest file called ``name``, b"" when there is none or it is too large to be what it says."""
    best: tuple[int, bytes] | None = None
    try:
        with broken_as(lambda why: Unusable(f"{archive.name} cannot be unpacked: {why}")), _members(archive) as members:
            for path, size, read in members:
                if path.rpartition("/")[2] == name and size <= _BIGGEST:
                    depth = path.count("/")
                    if best is None or depth < best[0]:
                        best = depth, read()  # type: ignore[operator]
    except OSError as problem:
        raise Unusable(f"{archive.name} cannot be unpacked: {problem}") from None
    return best[1] if best else b""


def _project(archive: Path, place: Path) -> Project | None:
    """pyproject.toml and setup.py of the archive's top folder, read as a local project is read."""
    folder = place / "top"
    folder.mkdir(exist_ok=True)
    for name in ("pyproject.toml", "setup.py"):
        data = _member(archive, name)
        if data:
            (folder / name).write_bytes(data)
    try:
        return read_project(str(folder))
    except RocmpipError:
        return None


def _egg_requirements(text: str) -> Iterator[str]:
    """egg-info's requires.txt as PEP 508 texts: ``[extra:marker]`` sections become markers."""
    marker = ""
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            extra, _, condition = line.strip("[]").partition(":")
            parts = [f"extra == '{extra}'"] if extra else []
            parts += [f"({condition})"] if condition else []
            marker = " and ".join(parts)
            continue
        yield f"{line} ; {marker}" if marker else line
