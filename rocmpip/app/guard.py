"""``rocmpip guard``: hold an environment's ROCm torch family for whatever pip runs there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rocmpip.argv.config import PipConfig, Sections
from rocmpip.model.errors import InputError, Refused
from rocmpip.model.machine import TargetEnv
from rocmpip.model.record import Struct
from rocmpip.model.rocm import rocm_of_label
from rocmpip.store import guard as files

if TYPE_CHECKING:
    from rocmpip.app.context import Context
    from rocmpip.catalogue.catalogue import Catalogue

_HEAD = """\
# Written by `rocmpip guard on`: the ROCm torch family of this environment, as it is installed.
# rocmpip keeps it up to date; `rocmpip guard off` removes it.
"""
_ROLES = ("torch", "pair", "triton")
_PARTNERS = ("torchvision", "torchaudio", "triton", "pytorch-triton")
"""Names that a plain pip would fetch as CUDA builds when they are not there yet."""


class Guarded(Struct, frozen=True):
    """The guard of one environment, as found."""

    places: files.Files
    configured: bool
    """pip.conf names the constraints file."""
    holds: tuple[str, ...] | None
    """The lines of the constraints file, None when there is none."""

    @property
    def on(self) -> bool:
        return self.configured and self.holds is not None


def look(target: TargetEnv) -> Guarded:
    """Read the guard of ``target``. Raises InputError when its pip.conf is broken."""
    places = files.Files(Path(target.prefix))
    text = files.read(places.conf)
    sections = files.sections_of(text, places.conf) if text else {}
    configured = any(files.names_guard(values.get(files.KEY, ""), places.reference) for values in sections.values())
    constraints = files.read(places.constraints)
    holds = None if constraints is None else tuple(line for line in constraints.splitlines() if line and line[0] != "#")
    return Guarded(places, configured, holds)


def wanted(target: TargetEnv, catalogue: Catalogue) -> tuple[str, ...]:
    """The constraints that hold the installed ROCm torch family; () without a ROCm torch."""
    from rocmpip.target.environment import installed

    versions = {dist.name: dist.version for dist in installed(target.site_packages)}
    torch = versions.get("torch", "")
    rocm = rocm_of_label(torch)
    if rocm is None:
        return ()
    lines = [f"{name}=={version}" for name, version in versions.items() if _held(name, version, catalogue)]
    label = f"+rocm{rocm}"
    pairing = catalogue.pairing(torch)
    for name in _PARTNERS:
        if name in versions:
            continue
        listed: Sequence[str] = ()
        if pairing is not None:
            listed = {"torchvision": pairing.torchvision, "torchaudio": pairing.torchaudio}.get(name, pairing.triton)
        # No public index has this version: a plain pip stops instead of fetching the CUDA build.
        lines.append(f"{name}=={listed[0] if listed else '0'}{label}")
    return tuple(sorted(lines))


def _held(name: str, version: str, catalogue: Catalogue) -> bool:
    member = catalogue.member(name)
    if member is None:
        return False
    # A pair without a ROCm label is a CUDA or CPU build: nothing to hold on to.
    return member.role in ("torch", "triton", "sdk", "device") or rocm_of_label(version) is not None


def on(target: TargetEnv, env: Mapping[str, str], catalogue: Catalogue) -> Guarded:
    """Write both files. Raises Refused without a ROCm torch, InputError when a file cannot be read or written."""
    lines = wanted(target, catalogue)
    if not lines:
        raise Refused(
            f"{target.prefix} holds no ROCm torch, so there is nothing to guard",
            hint="rocmpip install torch, then rocmpip guard on",
        )
    places = files.Files(Path(target.prefix))
    text = files.read(places.conf)
    present = files.without_guard(text, places.reference) if text is not None else None
    sections = files.sections_for(present, places.reference, _below(target, env, places, present), places.conf)
    changed = files.with_guard(present, places.reference, sections, places.conf)
    files.write(places.constraints, _HEAD + "".join(f"{line}\n" for line in lines))
    if changed != text:
        files.write(places.conf, changed)
    return look(target)


def _below(target: TargetEnv, env: Mapping[str, str], places: files.Files, present: str | None) -> Sections:
    """What the environment's own pip.conf (``present``) and the files that it goes before say together."""
    from rocmpip.argv.config import merge, parse_pip_config
    from rocmpip.target.config import config_files

    # Whatever PIP_CONFIG_FILE says now, the guard is for a pip that is started without it.
    env = {name: value for name, value in env.items() if name != "PIP_CONFIG_FILE"}
    parsed: list[tuple[str, Sections]] = []
    for path in config_files(env, target.prefix):
        if path == places.conf:
            parsed.append((str(path), files.sections_of(present or "", path)))
            break
        text = files.read(path) if path.is_file() else None
        if text:
            parsed.append((str(path), parse_pip_config(text, str(path))))
    return merge(parsed).sections


def off(target: TargetEnv) -> bool:
    """Take both files' traces away; False when there were none. Raises InputError."""
    places = files.Files(Path(target.prefix))
    text = files.read(places.conf)
    changed = False
    if text is not None:
        rest = files.without_guard(text, places.reference)
        if rest != text:
            changed = True
            if rest is None:
                files.remove(places.conf)
            else:
                files.write(places.conf, rest)
    if places.constraints.exists():
        changed = True
        files.remove(places.constraints)
    return changed


def refresh(context: Context) -> bool:
    """Bring a guard that is on up to date after an install; True when what it holds has changed. Never raises for its files."""
    try:
        guarded = look(context.target)
        if not guarded.on:
            return False
        lines = wanted(context.target, context.catalogue)
        if lines == guarded.holds:
            return False
        files.write(guarded.places.constraints, _HEAD + "".join(f"{line}\n" for line in lines))
    except InputError as problem:
        from rocmpip.report import say

        say.warning(f"the guard of {context.target.prefix} was not brought up to date: {problem.message}")
        return False
    return True


def without(config: PipConfig, prefix: str) -> PipConfig:
    """``config`` for rocmpip's own planning: without the guard's constraints file, which follows what rocmpip installs."""
    reference = files.Files(Path(prefix)).reference
    if not any(files.names_guard(values.get(files.KEY, ""), reference) for values in config.sections.values()):
        return config
    sections = {name: dict(values) for name, values in config.sections.items()}
    for values in sections.values():
        if files.KEY in values:
            values[files.KEY] = " ".join(word for word in values[files.KEY].split() if word != reference)
    return PipConfig(sections, config.files)


def state(target: TargetEnv, env: Mapping[str, str], catalogue: Catalogue) -> dict[str, object]:
    """What ``guard status`` tells."""
    guarded = look(target)
    held = guarded.holds or ()
    notes: list[str] = []
    if guarded.configured and guarded.holds is None:
        notes.append(f"{guarded.places.constraints} is gone, and pip fails without it: rocmpip guard on (or off)")
    if not guarded.configured and guarded.holds is not None:
        notes.append(f"{guarded.places.conf} no longer names {guarded.places.constraints}: rocmpip guard on (or off)")
    if guarded.on:
        notes += _why_not_read(env, target, guarded.places)
        now = wanted(target, catalogue)
        if now != held:
            notes.append("what is installed is not what the guard holds: rocmpip guard on")
    return {
        "on": guarded.on,
        "effective": guarded.on and not _why_not_read(env, target, guarded.places),
        "python": target.python,
        "conf": str(guarded.places.conf),
        "constraints": str(guarded.places.constraints),
        "holds": list(held),
        "notes": notes,
    }


def _why_not_read(env: Mapping[str, str], target: TargetEnv, places: files.Files) -> list[str]:
    """What keeps pip from reading the guard as things are."""
    if env.get("PIP_CONSTRAINT"):
        return ["PIP_CONSTRAINT is set, and pip reads no other constraints while it is"]
    from rocmpip.target.config import read_config

    config = read_config(env, target.prefix)
    if str(places.conf) not in config.files:
        return ["PIP_CONFIG_FILE keeps pip from reading the environment's own pip.conf"]
    overall = config.sections.get("global", {}).get(files.KEY, "")
    return [
        f"another configuration file has a constraint for pip {command}: rocmpip guard on"
        for command in files.COMMANDS
        if not files.names_guard(config.sections.get(command, {}).get(files.KEY) or overall, places.reference)
    ]


def target_of(python: str, env: Mapping[str, str], cwd: str) -> TargetEnv:
    from rocmpip.target.environment import find_environment

    return find_environment(python, env=env, cwd=cwd)
