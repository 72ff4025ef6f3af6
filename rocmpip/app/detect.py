"""``rocmpip detect``: environment → probe → judge → report.

The whole process may take little more than the imports of argparse, dataclasses and json (see bench/detect.py), so
nothing heavier is imported on the way (pathlib would be: hence os.path).
"""

# ruff: noqa: PTH109, PTH110, PTH112, PTH118, PTH120
from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from rocmpip.machine.judge import judge
from rocmpip.machine.probe import probe
from rocmpip.model.errors import BadConfiguration, RocmpipError
from rocmpip.model.machine import InstalledDist, Platform, RocmRoot, TargetEnv
from rocmpip.model.regular import regular
from rocmpip.model.rocm import parse_rocm
from rocmpip.report.platform import platform_result, python_result, torch_result

# Type checkers take the name for typing's own, whose import would cost 2 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rocmpip.catalogue.gfx import GfxTable
    from rocmpip.model.settings import Settings

__all__ = ["detect_platform", "detect_result", "fast_main", "platform_result", "python_result", "show", "torch_result"]

TORCH_FAMILY = (
    "torch",
    "torchvision",
    "torchaudio",
    "torchtext",
    "triton",
    "triton-rocm",
    "pytorch-triton-rocm",
    "pytorch-triton",
)
"""What ``result.torch[]`` lists when it is installed, in this order."""

_SDK = "rocm-sdk-core"
_SDK_FOLDER = "_rocm_sdk_core"


def detect_platform(
    *,
    env: Mapping[str, str],
    gfx: Sequence[str] = (),
    rocm: str = "",
    python: str = "",
    programs: bool = True,
    gfx_source: str = "--gfx",
    rocm_source: str = "--rocm",
    cwd: str = "",
    catalogue: Sequence[str] = (),
) -> tuple[Platform, TargetEnv | None, tuple[InstalledDist, ...]]:
    """The machine, the environment to install into, and what that holds of the torch family.

    ``gfx`` and ``rocm`` come from ``gfx_source`` and ``rocm_source``; empty ones fall back to ROCMPIP_GFX and ROCMPIP_ROCM
    in ``env``. ``catalogue`` are extra catalogue files. ``programs=False`` runs no helper program. Raises UsageError for
    bad options, BadConfiguration for bad variables, and what ``find_environment`` raises for a bad ``python``.
    """
    if not any(value.strip() for value in gfx) and env.get("ROCMPIP_GFX", "").strip():
        gfx, gfx_source = (env["ROCMPIP_GFX"],), "ROCMPIP_GFX"
    if not rocm.strip() and env.get("ROCMPIP_ROCM", "").strip():
        rocm, rocm_source = env["ROCMPIP_ROCM"], "ROCMPIP_ROCM"
    target, dists, notes = _environment(python, env, cwd or _here())
    table = _table(catalogue)
    evidence = probe(
        sysroot=_sysroot(env),
        env=env,
        programs=programs,
        gfx_of_pci=table.gfx_of_pci,
        pip_roots=_pip_roots(dists),
        conda=target.prefix if target and target.kind == "conda" else "",
    )
    platform = judge(
        evidence,
        gfx=gfx,
        gfx_source=gfx_source,
        rocm=rocm,
        rocm_source=rocm_source,
        names=table.name,
        known_gfx=table.known,
        integrated=table.integrated,
    )
    if notes:
        from rocmpip.model.record import replace

        platform = replace(platform, notes=(*platform.notes, *notes))
    return platform, target, tuple(dist for dist in dists if dist.name in TORCH_FAMILY)


def _table(overrides: Sequence[str]) -> GfxTable:
    from rocmpip.catalogue.gfx import load_gfx

    return load_gfx(tuple(overrides))


def _sysroot(env: Mapping[str, str]) -> str | None:
    root = env.get("ROCMPIP_SYSROOT", "")
    if root and not os.path.isdir(root):
        raise BadConfiguration(
            f"ROCMPIP_SYSROOT says {root}, which is not a folder",
            hint="name a folder that holds sys, proc, dev, opt, usr and etc, or unset it",
        )
    return root or None


def _environment(
    python: str, env: Mapping[str, str], cwd: str
) -> tuple[TargetEnv | None, tuple[InstalledDist, ...], tuple[str, ...]]:
    """The target, its torch family and ROCm SDK. One that nobody named but cannot be read is a note, not the end."""
    from rocmpip.target.environment import find_environment, installed

    try:
        target = find_environment(python, env=env, cwd=cwd)
    except RocmpipError as problem:
        if python:
            raise
        return None, (), (f"no target environment: {problem.message}",)
    found = {dist.name: dist for dist in installed(target.site_packages, names=frozenset((*TORCH_FAMILY, _SDK)))}
    return target, tuple(found[name] for name in (*TORCH_FAMILY, _SDK) if name in found), ()


def _pip_roots(dists: Sequence[InstalledDist]) -> tuple[RocmRoot, ...]:
    """ROCm that pip installed into the target: its version is that of the distribution."""
    for dist in dists:
        path = os.path.join(os.path.dirname(dist.path), _SDK_FOLDER)
        if dist.name == _SDK and os.path.isdir(path):
            try:
                return (RocmRoot(parse_rocm(dist.version), path, dist.path, "pip"),)
            except ValueError:
                return ()
    return ()


def detect_result(
    *, env: Mapping[str, str], gfx: Sequence[str] = (), rocm: str = "", python: str = "", programs: bool = True
) -> dict[str, Any]:
    """All of ``detect --json``'s result. Options here, then ROCMPIP_GFX and kin, then settings files."""
    cwd = _here()
    settings = _settings(env, cwd)
    more: dict[str, Any] = {}
    if settings is not None:
        if not gfx and not env.get("ROCMPIP_GFX", "").strip() and settings.gfx:
            gfx, more["gfx_source"] = settings.gfx, settings.where["gfx"]
        if not rocm and not env.get("ROCMPIP_ROCM", "").strip() and settings.rocm:
            rocm, more["rocm_source"] = settings.rocm, settings.where["rocm"]
        python = python or settings.python
        more["catalogue"] = settings.catalogue_path
    platform, target, dists = detect_platform(env=env, gfx=gfx, rocm=rocm, python=python, programs=programs, cwd=cwd, **more)
    result = platform_result(platform)
    notes = [*result.pop("notes"), *(settings.notes if settings else ())]
    return {**result, "python": python_result(target), "torch": torch_result(dists), "notes": notes}


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"  # The working directory was removed under us; detection does not need it.


def _settings(env: Mapping[str, str], cwd: str) -> Settings | None:
    """The settings, where a file or variable beyond ROCMPIP_GFX, _ROCM and _PYTHON says something; else None, for speed."""
    site = "/etc/rocmpip/config.toml"
    user = env.get("ROCMPIP_CONFIG") or os.path.join(
        env.get("XDG_CONFIG_HOME") or os.path.join(env.get("HOME", ""), ".config"), "rocmpip", "config.toml"
    )
    said = env.get("ROCMPIP_CATALOGUE_PATH") or os.path.exists(site) or os.path.exists(user) or _project_speaks(cwd)
    if not said:
        return None
    from rocmpip.store.settings import load_settings

    # What detection reads from the environment by itself is left to it: its errors name the option to use.
    rest = {name: value for name, value in env.items() if name not in ("ROCMPIP_GFX", "ROCMPIP_ROCM", "ROCMPIP_PYTHON")}
    settings = load_settings({}, rest, cwd)
    if env.get("ROCMPIP_PYTHON"):
        from rocmpip.model.record import replace

        settings = replace(settings, python="")
    return settings


def _project_speaks(cwd: str) -> bool:
    """Does the nearest pyproject.toml have a word for rocmpip?"""
    folder = cwd
    while True:
        try:
            with open(os.path.join(folder, "pyproject.toml"), "rb", opener=regular) as stream:
                return b"tool.rocmpip" in stream.read(1 << 20)
        except OSError:
            parent = os.path.dirname(folder)
            if parent == folder:
                return False
            folder = parent


def show(result: Mapping[str, Any], as_json: bool) -> None:
    """Print the result on stdout: the envelope, or text."""
    if as_json:
        from rocmpip.report import envelope

        envelope.write("detect", result)
        return
    from rocmpip.report.detected import render

    text = render(result)
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()


def fast_main(argv: Sequence[str]) -> int | None:
    """``detect`` with its plain options, without click. None: click is to see to it (help, errors in the options)."""
    options = _options(argv)
    if options is None:
        return None
    try:
        result = detect_result(env=os.environ, gfx=options["gfx"], rocm=options["rocm"], python=options["python"])
        show(result, options["json"])
    except RocmpipError as problem:
        return _fail(problem, options["json"])
    except KeyboardInterrupt:
        from rocmpip.model.errors import Interrupted

        return _fail(Interrupted("interrupted"), options["json"])
    except BrokenPipeError:
        from rocmpip.report.ending import drop_stdout

        drop_stdout()
        return 0
    except Exception as problem:
        from rocmpip.report.ending import last_net

        return _fail(last_net(problem), options["json"])
    return 0


def _options(argv: Sequence[str]) -> dict[str, Any] | None:
    """The options of a plain command line, with or without the command's own name; None for any other line."""
    found: dict[str, Any] = {"json": False, "python": "", "gfx": [], "rocm": ""}
    waiting = list(argv)[::-1]
    named = False
    while waiting:
        word = waiting.pop()
        option, equals, value = word.partition("=")
        if word == "detect" and not named:
            named = True
        elif word == "--json":
            found["json"] = True
        elif option in ("--python", "--gfx", "--rocm"):
            if not equals:
                if not waiting or waiting[-1].startswith("-"):
                    return None
                value = waiting.pop()
            if option == "--gfx":
                found["gfx"].append(value)
            else:
                found[option[2:]] = value
        else:
            return None
    return found


def _fail(problem: RocmpipError, as_json: bool) -> int:
    from rocmpip.report.ending import fail

    return fail("detect", as_json, problem)
