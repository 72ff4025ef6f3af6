"""``rocmpip shim``: a real ``pip`` for scripts and CI that call it by name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rocmpip.app.shell_init import own_program
from rocmpip.model.errors import InputError, Refused, UsageError
from rocmpip.store import shim


def install(folder: str, env: Mapping[str, str], cwd: str, *, force: bool = False) -> dict[str, object]:
    """Put the shims into ``folder`` (made when it is not there): all or none. Raises UsageError, Refused and InputError."""
    from rocmpip.target.environment import find_environment

    place = _absolute(folder, cwd)
    program = own_program()
    if program is None:
        raise Refused(
            "rocmpip has no command of its own here, and a shim needs one to start",
            hint="install rocmpip as a package (pipx install rocmpip, or pip install rocmpip)",
        )
    names = shim.names_for(find_environment(env=env, cwd=cwd).version)
    with _told(place):
        place.mkdir(parents=True, exist_ok=True)
        if program.parent.resolve() == place.resolve() and not force:
            raise Refused(
                f"{place} holds rocmpip's own pip",
                why="the shim would take its place there",
                hint="choose another folder that comes earlier on PATH",
            )
        others = [found.path for name in names if (found := shim.look(place / name)) is not None and not found.ours]
        if others and not force:
            raise Refused(
                f"another pip stands in {place}",
                why=", ".join(others),
                hint="choose another folder, or put the shim in its place with --force (shim remove brings it back)",
            )
        for name in names:
            shim.put(place / name, shim.text_of(name, [str(program)], place))
    return {
        "folder": str(place),
        "shims": [str(place / name) for name in names],
        "kept": [path + shim.KEPT for path in others],
        "program": str(program),
        "first": _first(env) == str(place / "pip"),
    }


def remove(folder: str, cwd: str) -> dict[str, object]:
    """Take our shims out of ``folder`` and put back what they stood for; what is another's stays."""
    place = _absolute(folder, cwd)
    if not place.is_dir():
        raise UsageError(f"{place} is not a folder")
    removed, restored = [], []
    with _told(place):
        for found in shim.pips_in(place):
            if found.ours:
                removed.append(found.path)
                if shim.take_away(Path(found.path)):
                    restored.append(found.path)
    return {"folder": str(place), "removed": removed, "restored": restored}


def status(env: Mapping[str, str]) -> dict[str, object]:
    """Every pip on PATH in its order, which are ours, and whether ``pip`` means rocmpip."""
    rows = []
    folders = dict.fromkeys(os.path.abspath(folder) for folder in _path(env))  # noqa: PTH100 - links stay as on PATH
    for folder in folders:
        for found in shim.pips_in(Path(folder)):
            rows.append({"path": found.path, "shim": found.ours, "program": found.program, "works": found.works})
    first = next((row for row in rows if Path(str(row["path"])).name == "pip"), None)
    return {"active": bool(first and first["shim"] and first["works"]), "pips": rows}


def _absolute(folder: str, cwd: str) -> Path:
    return Path(os.path.normpath(Path(cwd) / Path(folder).expanduser()))


def _path(env: Mapping[str, str]) -> list[str]:
    return [folder for folder in env.get("PATH", os.defpath).split(os.pathsep) if folder]


def _first(env: Mapping[str, str]) -> str:
    """The path that ``pip`` means in this environment, "" for none."""
    import shutil

    return shutil.which("pip", path=env.get("PATH", os.defpath)) or ""


@contextmanager
def _told(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise InputError(
            f"{problem.filename or place}: {problem.strerror or problem}", hint="choose a folder that you may write to"
        ) from None
