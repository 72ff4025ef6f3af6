"""Build requirements in a folder of their own, seen together with the target's site-packages and never installed into it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from rocmpip.build.firsterror import first_error
from rocmpip.build.run import Log, run_logged
from rocmpip.model.errors import BuildFailed
from rocmpip.model.record import Struct

# What the target must bring itself: these decide which GPU code is built, and a second copy would shadow the right one.
_TARGETS_OWN = re.compile(
    r"torch|torchvision|torchaudio|triton|pytorch-triton.*|triton-rocm|rocm|rocm-sdk-.*|amd-torch-.*|"
    r"nvidia-(?!ml-py).*|cuda-.*"
)
_BY_DEFAULT = ("setuptools", "wheel")
_LIMIT_OF_REPORT = 64 << 20


class Overlay(Struct, frozen=True):
    """``folder`` goes first in PYTHONPATH, ``folder/bin`` first in PATH."""

    folder: Path
    installed: tuple[str, ...]
    """``name==version`` of what stands in it."""


def targets_own(name: str) -> bool:
    """True for torch's family and CUDA packages: they never enter an overlay."""
    return _TARGETS_OWN.fullmatch(canonicalize_name(name)) is not None


def requirements_for(recipe: Sequence[str], source: Sequence[str], backend: str, *, torch: bool) -> tuple[str, ...]:
    """What the overlay needs: the recipe's list, else the source's own without the torch family. ``torch``: the build sees
    one, so ninja comes along (without it torch's extensions compile one file at a time)."""
    texts = [text for text in (recipe or source) if not _is_targets_own(text)]
    names = {_name(text) for text in texts}
    if backend.startswith("setuptools"):
        texts += [name for name in _BY_DEFAULT if name not in names]
    if torch and "ninja" not in names:
        texts.append("ninja")
    return tuple(texts)


def _name(text: str) -> str:
    try:
        return canonicalize_name(Requirement(text).name)
    except InvalidRequirement:
        return ""


def _is_targets_own(text: str) -> bool:
    return targets_own(_name(text) or text)


def make_overlay(
    requirements: Sequence[str],
    *,
    folder: Path,
    pip_argv: Sequence[str],
    env: Mapping[str, str],
    work: Path,
    log: Log,
    constraints: Sequence[str] = (),
    on_beat: Callable[[str, tuple[int, int] | None], None] | None = None,
) -> Overlay:
    """Install ``requirements`` into ``folder`` with the target's pip. Raises BuildFailed when pip cannot.

    Two steps: pip resolves against what the target holds (so an installed torch satisfies a requirement that wants one),
    then exactly the packages that are missing go into the folder without dependencies.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not requirements:
        return Overlay(folder, ())
    report = work / "requirements.json"
    wanted = work / "requirements.txt"
    wanted.write_text("\n".join(requirements) + "\n", encoding="utf-8")
    held = work / "constraints.txt"
    held.write_text("\n".join(constraints) + "\n", encoding="utf-8")
    quiet = ("--disable-pip-version-check", "--no-input", "--no-color", "--progress-bar", "off")
    resolve = ["install", "--dry-run", "--report", str(report), "-r", str(wanted), "-c", str(held), *quiet]
    _pip([*pip_argv, *resolve], env=env, work=work, log=log, on_beat=on_beat)
    pins = _pins(report)
    family = [pin for pin in pins if targets_own(pin.partition("==")[0])]
    if family:
        raise BuildFailed(
            f"a build requirement wants another {family[0].partition('==')[0]} than the one installed: {', '.join(family)}",
            why=f"the build requirements are {', '.join(requirements)}",
            hint="take a version of the package that fits the installed torch, or bound the requirement in a recipe of your own",
        )
    if pins:
        wanted.write_text("\n".join(pins) + "\n", encoding="utf-8")
        install = ["install", "--no-deps", "--target", str(folder), "-r", str(wanted), *quiet]
        _pip([*pip_argv, *install], env=env, work=work, log=log, on_beat=on_beat)
    return Overlay(folder, pins)


def _pip(
    argv: list[str],
    *,
    env: Mapping[str, str],
    work: Path,
    log: Log,
    on_beat: Callable[[str, tuple[int, int] | None], None] | None,
) -> None:
    log.write(f"rocmpip: {' '.join(argv)}")
    lines: list[str] = []

    def beat(line: str, count: tuple[int, int] | None) -> None:
        if on_beat is not None:
            on_beat(line, count)

    log.flush()
    start = log.path.stat().st_size
    code = run_logged(argv, env=env, cwd=work, log=log, on_beat=beat)
    if code == 0:
        return
    with log.path.open(encoding="utf-8", errors="replace") as stream:
        stream.seek(start)
        lines = stream.read().splitlines()
    raise BuildFailed(
        "the build requirements could not be installed",
        why=first_error(line for line in lines if not line.startswith("rocmpip: ")),
        hint=f"the full log is in {log.path}",
    )


def _pins(report: Path) -> tuple[str, ...]:
    """``name==version`` (or ``name @ url``) of everything pip would install."""
    try:
        if report.stat().st_size > _LIMIT_OF_REPORT:
            raise ValueError("too large")
        rows = json.loads(report.read_text(encoding="utf-8"))["install"]
        pins = []
        for row in rows:
            meta, url = row["metadata"], row.get("download_info", {}).get("url", "")
            direct = f"{meta['name']} @ {url}" if row.get("is_direct") and url else ""
            pins.append(direct or f"{meta['name']}=={meta['version']}")
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise BuildFailed("pip's report on the build requirements cannot be read", why=str(problem)) from problem
    return tuple(pins)
