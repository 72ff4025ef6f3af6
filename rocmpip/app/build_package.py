"""From a package that needs a build to its wheel: out of the wheelhouse when the fingerprint is there, else built and kept."""

from __future__ import annotations

import os
import platform as machine
import sysconfig
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rocmpip import __version__
from rocmpip.build.engine import build
from rocmpip.build.environment import users_own
from rocmpip.build.git import git_digest
from rocmpip.build.job import BuildJob, Progress
from rocmpip.build.jobs import decide_jobs, read_limits
from rocmpip.build.sources import source_digest
from rocmpip.build.surroundings import compiler_identity, look_around
from rocmpip.model.machine import Platform, TargetEnv
from rocmpip.model.packages import File, normalise
from rocmpip.model.provenance import FingerprintInputs, Provenance
from rocmpip.model.recipe import RecipeContext, ResolvedRecipe
from rocmpip.model.record import Struct, replace
from rocmpip.model.temporary import TemporaryFolder
from rocmpip.store.wheelhouse import StoredWheel, Wheelhouse, fingerprint

if TYPE_CHECKING:
    from rocmpip.model.settings import Settings
    from rocmpip.recipe.book import RecipeBook


class Package(Struct, frozen=True):
    """One package to build: ``source`` is an sdist or a folder (None for a git source, which is fetched when needed)."""

    name: str
    version: str
    recipe: ResolvedRecipe
    source: Path | None = None


class Toolbox(Struct, frozen=True, dict=True):
    """What all builds of one run share."""

    platform: Platform
    target: TargetEnv
    torch: str
    """With its label: the torch that the builds see."""
    pip_argv: tuple[str, ...]
    pip_env: Mapping[str, str]
    user_env: Mapping[str, str]
    wheelhouse: Wheelhouse
    logs: Path
    jobs: int = 0
    keep_build: bool = False
    rebuild: frozenset[str] = frozenset()
    """Normalised names that are built even when the wheelhouse has them."""
    settings: Mapping[str, tuple[str, ...]] | None = None
    """Normalised name → the user's ``-C`` values."""
    constraints: tuple[str, ...] = ()
    diagnose: Callable[[str], str | None] | None = None

    @cached_property
    def compiler(self) -> str:
        """Device and host compiler, asked once: hipcc takes a quarter of a second to tell its version."""
        root = self.platform.rocm_root
        return compiler_identity(look_around(root, root, self.user_env, compile_cache=False).hipcc, self.user_env)


class Made(Struct, frozen=True):
    """A wheel that fits, and where it came from."""

    stored: StoredWheel
    built: bool
    seconds: float
    because: str
    log: Path | None = None
    notes: tuple[str, ...] = ()


def wheelhouse_of(settings: Settings, warn: Callable[[str], None] | None = None) -> Wheelhouse:
    """The wheelhouse of these settings: ``wheelhouse`` in the state folder."""
    return Wheelhouse(Path(settings.state_dir).expanduser() / "wheelhouse", warn=warn)


def fingerprint_inputs(package: Package, tools: Toolbox, source: str = "") -> FingerprintInputs:
    """Everything that will change this build's bytes. ``source``: its digest, where that is known without it."""
    recipe, platform = package.recipe, tools.platform
    own = (tools.settings or {}).get(normalise(package.name), ())
    if not source:
        source = git_digest(recipe.source) if package.source is None else source_digest(package.source)
    return FingerprintInputs(
        name=normalise(package.name),
        version=package.version,
        source=source,
        recipe=recipe.digest,
        gfx=platform.gfx_targets,
        rocm=str(platform.rocm or ""),
        torch=tools.torch,
        python_abi=python_abi(tools.target),
        platform=f"{sysconfig.get_platform()}-{'-'.join(machine.libc_ver())}",
        compiler=tools.compiler,
        backend=recipe.backend,
        # The user's alone: the recipe's are in its digest, where the number of jobs does not count.
        config_settings=own,
        env=users_own(recipe, tools.user_env),
    )


def kept_wheel(package: Package, tools: Toolbox, source: str) -> StoredWheel | None:
    """The wheel that was built here before for exactly this, from the source with that digest; nothing is downloaded."""
    inputs = fingerprint_inputs(package, tools, source)
    return tools.wheelhouse.find(fingerprint(inputs), inputs.name)


def listed_digest(recipe: ResolvedRecipe, file: File | None) -> str:
    """The digest of a source without a download: by the commit, or by the hash that its index gives; "" where neither is told."""
    if recipe.source.kind == "git":
        return git_digest(recipe.source)
    return f"sha256:{file.hashes['sha256']}" if file is not None and "sha256" in file.hashes else ""


def resolve_for_build(
    book: RecipeBook, name: str, version: str, context: RecipeContext, *, jobs: int, env: Mapping[str, str]
) -> ResolvedRecipe:
    """A recipe with ``{jobs}`` filled for this machine: how much memory a job takes is in the recipe itself.

    ``jobs`` is ``--jobs`` (0: from cores, memory, limits and the user's MAX_JOBS).
    """
    first = book.resolve(name, version, context)
    count = decide_jobs(read_limits(), first.memory_per_job, asked=jobs, env=env).count
    return book.resolve(name, version, replace(context, jobs=count)) if count != context.jobs else first


def python_abi(target: TargetEnv) -> str:
    """cp312, or cp313t for a free-threaded interpreter."""
    major, minor = target.version.split(".")[:2]
    free = any(part.endswith("t") for site in target.site_packages for part in Path(site).parts if part.startswith("python3"))
    return f"cp{major}{minor}{'t' if free else ''}"


def build_package(package: Package, tools: Toolbox, *, progress: Callable[[Progress], None] | None = None) -> Made:
    """The wheel of one package for this machine. Raises Refused (44), BuildFailed (41), NetworkError (42)."""
    name = normalise(package.name)
    inputs = fingerprint_inputs(package, tools)
    print_of_it = fingerprint(inputs)
    if name not in tools.rebuild:
        stored = tools.wheelhouse.find(print_of_it, name)
        if stored is not None:
            return Made(stored, False, 0.0, f"built here before for exactly this ({print_of_it[:12]})")
    because = "you asked for a rebuild" if name in tools.rebuild else why_not_stored(tools.wheelhouse, inputs)
    record = Provenance(
        print_of_it,
        inputs,
        rocmpip=__version__,
        recipe=f"{package.recipe.name} ({package.recipe.layer})",
        runtime={value.key: value.value for value in package.recipe.runtime},
    )
    # Two processes may build one package in the same second, for one GPU each.
    log = tools.logs / f"{name}-{package.version}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    with TemporaryFolder(prefix="rocmpip-wheel-") as folder:
        job = BuildJob(
            recipe=package.recipe,
            source=package.source,
            gfx=tools.platform.gfx_targets,
            rocm_root=tools.platform.rocm_root,
            hip_root=tools.platform.rocm_root,
            rocm=tools.platform.rocm,
            only_named=tools.platform.only_named,
            torch=tools.torch,
            target=tools.target,
            pip_argv=tools.pip_argv,
            pip_env=tools.pip_env,
            user_env=tools.user_env,
            out_dir=Path(folder),
            log_path=log,
            config_settings=(tools.settings or {}).get(name, ()),
            jobs=tools.jobs,
            keep_build=tools.keep_build,
            provenance=record,
            expected_seconds=tools.wheelhouse.expected_seconds(name, len(inputs.gfx)),
            constraints=tools.constraints,
        )
        made = build(job, progress=progress, diagnose=tools.diagnose)
        stored = tools.wheelhouse.put(
            made.path, record, seconds=made.seconds, replace=name in tools.rebuild, code_objects=made.report.gfx
        )
    return Made(stored, True, made.seconds, because, made.log, made.notes)


def why_not_stored(wheelhouse: Wheelhouse, inputs: FingerprintInputs) -> str:
    """Why the wheelhouse's nearest wheel of this package and version does not serve: what differs."""
    near = [one for one in wheelhouse.candidates(inputs.name) if one.provenance.inputs.version == inputs.version]
    if not near:
        return "there is no wheel of it for ROCm, and it was not built here before"
    lists = [differences(one.provenance.inputs, inputs) for one in near]
    best = min(lists, key=len)
    return f"the wheel built before does not fit: {'; '.join(best)}"


def differences(old: FingerprintInputs, new: FingerprintInputs) -> list[str]:
    """``torch was 2.9.1+rocm6.4, is 2.10.0+rocm7.1`` for each input that differs; hashes are only said to differ."""
    rows = []
    words = {
        "gfx": "its GPUs were", "rocm": "ROCm was", "torch": "torch was", "python_abi": "the Python was",
        "platform": "the platform was", "compiler": "the compiler was", "backend": "the back end was",
        "config_settings": "-C was", "env": "your variables were",
    }  # fmt: skip
    for key, text in words.items():
        before, now = getattr(old, key), getattr(new, key)
        if key == "gfx":
            before, now = tuple(sorted(set(before))), tuple(sorted(set(now)))
        if before != now:
            rows.append(f"{text} {_shown(before)}, now {_shown(now)}")
    for key, text in (("recipe", "the recipe changed"), ("source", "its source changed")):
        if getattr(old, key) != getattr(new, key):
            rows.append(text)
    return rows


def _shown(value: object) -> str:
    return (", ".join(value) if isinstance(value, tuple) else str(value)) or "none"
