"""Find the target environment and read it from disk; an interpreter is only run when its folders do not tell."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence

from rocmpip.model.errors import InputError
from rocmpip.model.machine import TargetEnv
from rocmpip.model.regular import regular
from rocmpip.target.choose import choose, is_own
from rocmpip.target.installed import installed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rocmpip.target.facts import Blobs

# `rocmpip detect` is as quick as a bare interpreter with three imports; pathlib is not needed for that.
# ruff: noqa: PTH100, PTH110, PTH112, PTH113, PTH118, PTH120, PTH208

__all__ = ["find_environment", "installed", "marker_environment", "supported_tags"]

_LIB = re.compile(r"^(?:python|pypy)(\d+\.\d+)t?$")


def find_environment(python: str = "", *, env: Mapping[str, str], cwd: str = ".", ask: bool = False) -> TargetEnv:
    """The environment to install into.

    ``python``: an interpreter, an environment folder, or a command on PATH; "" means the active environment.
    ``ask``: run the interpreter even where its folders tell enough (its true version, links of shims resolved).

    Virtual and conda environments are read from disk; others are asked once, with a time limit. Raises InputError when
    there is no such environment or its interpreter does not run.
    """
    interpreter, prefix, source = choose(python, env, cwd)
    if not interpreter:
        raise _missing(python, prefix, source, env)
    own = is_own(interpreter, prefix)
    found = None if ask else _from_disk(interpreter, prefix or _prefix_of(interpreter), source, own)
    if found is not None:
        return found
    if own and not ask:
        return _ours(source, env)
    return _asked(interpreter, source, env)


def _missing(python: str, prefix: str, source: str, env: Mapping[str, str]) -> InputError:
    named = python or env.get(source, "") or prefix
    if source in ("--python", "PIP_PYTHON", "ROCMPIP_PYTHON"):
        return InputError(
            f"Could not locate Python interpreter {named}",
            why="" if source == "--python" else f"{source} names it",
            hint="give an interpreter, or the folder of an environment that has one",
        )
    why = "the folder does not exist" if not os.path.isdir(prefix) else "the folder has no Python interpreter"
    return InputError(
        f"the active environment {named} cannot be used",
        why=f"{source} names it, but {why}",
        hint=f"activate another environment, unset {source}, or give --python",
    )


def _prefix_of(interpreter: str) -> str:
    """The folder of the environment an interpreter belongs to, by where it lies (links are not followed: a venv's is one)."""
    return os.path.dirname(os.path.dirname(interpreter))


def _from_disk(interpreter: str, prefix: str, source: str, own: bool) -> TargetEnv | None:
    """The environment as its folders tell, or None when they do not tell enough."""
    configuration = _read_pyvenv(os.path.join(prefix, "pyvenv.cfg"))
    if configuration is not None:
        if configuration.get("include-system-site-packages", "").lower() == "true":
            return None
        kind, version = "venv", configuration.get("version_info") or configuration.get("version", "")
    elif os.path.isdir(os.path.join(prefix, "conda-meta")):
        kind, version = "conda", _conda_python(prefix)
    else:
        return None
    version = ".".join(version.split(".")[:3])
    sites = _site_packages(prefix, version)
    if not sites or not version or not _runs(interpreter):
        return None
    marker = os.path.join(os.path.dirname(sites[0]), "EXTERNALLY-MANAGED")
    return TargetEnv(
        python=interpreter,
        version=version,
        kind=kind,
        prefix=os.path.abspath(prefix),
        site_packages=sites,
        source=source,
        has_pip=has_pip(sites),
        own=own,
        externally_managed=kind == "conda" and os.path.isfile(marker),
    )


def _runs(interpreter: str) -> bool:
    return os.path.isfile(interpreter) and os.access(interpreter, os.X_OK)


def _read_pyvenv(path: str) -> dict[str, str] | None:
    """The keys of pyvenv.cfg in lower case, or None when there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace", opener=regular) as stream:
            text = stream.read(65536)
    except OSError:
        return None
    rows = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip().lower(): value.strip() for key, _, value in rows}


def _conda_python(prefix: str) -> str:
    """The version of the python package in a conda environment, from conda-meta/python-3.12.1-….json."""
    for name in _names(os.path.join(prefix, "conda-meta")):
        found = re.match(r"^python-(\d+\.\d+\.\d+)[^-]*-[^-]+\.json$", name)
        if found:
            return found[1]
    return ""


def _site_packages(prefix: str, version: str) -> tuple[str, ...]:
    """purelib, then platlib where it is a folder of its own (lib64 of some distributions)."""
    wanted = ".".join(version.split(".")[:2])
    found: list[str] = []
    for lib in ("lib", "lib64"):
        base = os.path.join(prefix, lib)
        for name in _names(base):
            match = _LIB.match(name)
            folder = os.path.join(base, name, "site-packages")
            if match and match[1] == wanted and os.path.isdir(folder):
                folder = os.path.abspath(folder)
                if not any(os.path.realpath(folder) == os.path.realpath(other) for other in found):
                    found.append(folder)
    if not found and os.path.isdir(os.path.join(prefix, "Lib", "site-packages")):
        found.append(os.path.abspath(os.path.join(prefix, "Lib", "site-packages")))
    return tuple(found)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def has_pip(sites: Sequence[str]) -> bool:
    """True when one of the site-packages folders holds pip, or the metadata of one that is installed editable."""
    if any(os.path.isfile(os.path.join(site, "pip", "__main__.py")) for site in sites):
        return True
    return any(re.match(r"^pip-\d[^-]*\.dist-info$", name) for site in sites for name in _names(site))


def in_container() -> bool:
    """True inside Docker, Podman, or what sets the ``container`` variable as systemd-nspawn does."""
    return os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv") or bool(os.environ.get("container"))  # noqa: SIM112


def _ours(source: str, env: Mapping[str, str]) -> TargetEnv:
    """The interpreter that runs rocmpip, asked from within."""
    import sysconfig

    paths = sysconfig.get_paths()
    visible = [path for path in sys.path if path.endswith(("site-packages", "dist-packages")) and os.path.isdir(path)]
    sites = tuple(dict.fromkeys([paths["purelib"], paths["platlib"], *visible]))
    virtual = sys.prefix != sys.base_prefix
    return TargetEnv(
        python=sys.executable,
        version=".".join(map(str, sys.version_info[:3])),
        kind=_kind(sys.prefix, virtual),
        prefix=sys.prefix,
        site_packages=sites,
        source=source,
        has_pip=has_pip(sites),
        own=True,
        externally_managed=not virtual and os.path.isfile(os.path.join(paths["stdlib"], "EXTERNALLY-MANAGED")),
    )


def _kind(prefix: str, virtual: bool) -> str:
    if virtual:
        return "venv"
    if os.path.isdir(os.path.join(prefix, "conda-meta")):
        return "conda"
    return "container" if in_container() else "system"


def _asked(interpreter: str, source: str, env: Mapping[str, str]) -> TargetEnv:
    """An environment whose folders do not tell: run its interpreter (a shim too) and believe what it says."""
    from rocmpip.target.interpreter import ask

    facts = ask(interpreter, env)
    sites = tuple(dict.fromkeys([facts.purelib, facts.platlib, *facts.visible]))
    return TargetEnv(
        python=facts.executable or interpreter,
        version=facts.version,
        kind=_kind(facts.prefix, facts.virtual),
        prefix=facts.prefix,
        site_packages=sites,
        source=source,
        has_pip=has_pip(sites),
        own=os.path.realpath(facts.prefix) == os.path.realpath(sys.prefix),
        externally_managed=facts.externally_managed,
    )


def marker_environment(target: TargetEnv, cache: Blobs | None = None) -> dict[str, str]:
    """PEP 508 marker variables of the target's interpreter (without ``extra``)."""
    from rocmpip.target.facts import target_facts

    return dict(target_facts(target, cache).markers)


def supported_tags(
    target: TargetEnv,
    *,
    platforms: Sequence[str] = (),
    python_version: str = "",
    abis: Sequence[str] = (),
    implementation: str = "",
    cache: Blobs | None = None,
) -> list[str]:
    """Wheel tags the target takes, best first (``cp311-cp311-manylinux_2_28_x86_64``), also for pip's foreign targets."""
    from rocmpip.target.facts import target_facts

    native = target_facts(target, cache).tags
    if not (platforms or python_version or abis or implementation):
        return list(native)
    from rocmpip.target.tags import supported

    return supported(
        target,
        native,
        platforms=tuple(platforms),
        python_version=python_version,
        abis=tuple(abis),
        implementation=implementation,
    )
