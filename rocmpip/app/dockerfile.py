"""``rocmpip dockerfile LOCK``: a Dockerfile from a lock, its .dockerignore, and the line that runs the image here."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rocmpip import __version__
from rocmpip.app.context import Context, gather
from rocmpip.lock import dockerfile, pylock, text
from rocmpip.lock.text import Written
from rocmpip.model.errors import InputError
from rocmpip.report import envelope, say

_DEVICES = ("/dev/kfd", "/dev/dri")


def make(lock: str, *, output: str, base: str, tag: str, as_json: bool) -> int:
    """Write the Dockerfile (to stdout without ``output``). Raises InputError for what is no lock of ours."""
    path = Path(lock)
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{lock} cannot be read", why=getattr(problem, "strerror", "") or str(problem)) from None
    toml = pylock.is_pylock(lock)
    written = pylock.read(content, lock) if toml else text.read(content)
    if not written.coordinates.get("python"):
        raise InputError(
            f"{lock} does not say which Python it is for",
            why="it was not written by rocmpip lock",
            hint="make a lock: rocmpip lock -r requirements.in -o requirements.lock",
        )
    context = gather("lock", [])
    image = dockerfile.Image(
        lock=path.name,
        python=written.coordinates["python"],
        rocm=written.coordinates.get("rocm", ""),
        gfx=tuple(word.strip() for word in written.coordinates.get("gfx", "").split(",") if word.strip()),
        base=base,
        builds=tuple(sorted(written.builds)),
        torch="torch" in written.pins and bool(written.coordinates.get("gfx")),
        env=_runtime(written, context),
        no_deps=" --no-deps" in written.coordinates.get("install", ""),
        any_python=" --ignore-requires-python" in written.coordinates.get("install", ""),
        rocmpip=__version__,
        pylock=toml,
        folders=written.folders,
    )
    made = dockerfile.write(image)
    ignore = dockerfile.ignore_file(path.name, written.folders)
    lines = [dockerfile.run_line(tool, tag, devices=_devices(), groups=_groups()) for tool in ("docker", "podman")]
    if output:
        _write(Path(output), made)
        beside = _ignore_file(Path(output), path)
        _write(beside, ignore)
        say.step(f"{output} and {beside} are written")
    if as_json:
        envelope.write(
            "dockerfile", {"dockerfile": made, "dockerignore": ignore, "run": lines, "base": dockerfile.base_image(image)}
        )
        return 0
    if not output:
        sys.stdout.write(made)
    say.step(f"build it: docker build -t {tag} {f'-f {output} ' if output else '-f - '}{path.parent}")
    for line in lines:
        say.step(f"run it here: {line}")
    return 0


def _ignore_file(output: Path, lock: Path) -> Path:
    """Where builders look for it: in the build context, which is the lock's folder, or beside a Dockerfile under its name."""
    in_context = output.absolute().parent == lock.absolute().parent
    return output.with_name(".dockerignore") if in_context and output.name == "Dockerfile" else Path(f"{output}.dockerignore")


def _runtime(written: Written, context: Context) -> dict[str, str]:
    """Variables that recipes say their packages need at run time."""
    values: dict[str, str] = {}
    for name in (*written.builds, *written.pins):
        if context.book.get(name) is None:
            continue
        resolved = context.book.resolve(name, written.pins.get(name, ""), context.recipe_context())
        values.update({value.key: value.value for value in resolved.runtime})
    return values


def _devices() -> tuple[str, ...]:
    return _DEVICES


def _groups() -> tuple[int, ...]:
    """Numeric groups of the device files of this machine; none where there are none."""
    found: list[int] = []
    places = [Path("/dev/kfd")]
    if Path("/dev/dri").is_dir():
        places += sorted(Path("/dev/dri").glob("renderD*")) + sorted(Path("/dev/dri").glob("card*"))
    for place in places:
        try:
            found.append(os.stat(place).st_gid)  # noqa: PTH116 - one of many
        except OSError:
            continue
    return tuple(dict.fromkeys(number for number in found if number))


def _write(path: Path, content: str) -> None:
    try:
        path.write_text(content, encoding="utf-8", newline="\n")
    except OSError as problem:
        raise InputError(f"{path} cannot be written", why=problem.strerror or str(problem)) from None
