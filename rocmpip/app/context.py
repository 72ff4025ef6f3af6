"""Everything one command knows before it decides: settings, target, machine, request, catalogue, recipes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rocmpip.model.machine import InstalledDist, Platform, TargetEnv
from rocmpip.model.record import Struct, field
from rocmpip.model.request import Request
from rocmpip.model.settings import Settings

if TYPE_CHECKING:
    from rocmpip.argv.request import Ours
    from rocmpip.argv.table import Option
    from rocmpip.catalogue.catalogue import Catalogue
    from rocmpip.model.recipe import RecipeContext
    from rocmpip.recipe.book import RecipeBook
    from rocmpip.store.cache import PageCache


class Context(Struct, frozen=True, dict=True):
    """Frozen facts of one run. Expensive parts (catalogue, recipes, markers) are read when first asked for."""

    env: Mapping[str, str]
    cwd: str
    settings: Settings
    target: TargetEnv
    platform: Platform
    installed: tuple[InstalledDist, ...]
    request: Request
    ours: Ours
    recipe_files: tuple[str, ...] = field(default=())

    @cached_property
    def catalogue(self) -> Catalogue:
        from rocmpip.catalogue import load

        return load(self.settings)

    @cached_property
    def book(self) -> RecipeBook:
        from rocmpip.app.recipe import load_layers

        return load_layers(self.settings, self.env, self.cwd, self.recipe_files)

    @cached_property
    def markers(self) -> dict[str, str]:
        from rocmpip.target.environment import marker_environment

        return marker_environment(self.target, self._facts_cache)

    @cached_property
    def installed_versions(self) -> dict[str, str]:
        return {dist.name: dist.version for dist in self.installed}

    @cached_property
    def python(self) -> str:
        """The Python version that the request is for: "3.11.7", or what --python-version says ("3.14" for 314 too)."""
        text = self.request.python_version
        if text.isdigit() and len(text) > 1:
            return f"{text[0]}.{text[1:]}"
        return text or self.target.version

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """Wheel tags that the request is for, best first: the target's, or those of pip's --platform, --python-version and kin."""
        from rocmpip.target.environment import supported_tags

        request = self.request
        found = supported_tags(
            self.target,
            platforms=request.platforms,
            python_version=request.python_version,
            abis=request.abis,
            implementation=request.implementation,
            cache=self._facts_cache,
        )
        return tuple(found)

    @cached_property
    def _facts_cache(self) -> PageCache:
        """Where a target's markers and tags are kept between runs. Under --no-cache-dir nothing new is written."""
        from rocmpip.app.open_client import cache_folder
        from rocmpip.store.cache import PageCache

        return PageCache(cache_folder(self) / "pages", readonly=self.request.no_cache)

    def recipe_context(self, torch: str = "", *, name: str = "", backend: str = "") -> RecipeContext:
        """What recipes match on, with ``torch`` the version that the build will see.

        The back end of recipe ``name`` is ``backend``, else what the user's exported variables ask for.
        """
        from rocmpip.model.recipe import RecipeContext

        root = self.platform.rocm_root
        return RecipeContext(
            gfx=self.platform.gfx_targets,
            rocm=self.platform.rocm,
            torch=torch,
            python=".".join(self.target.version.split(".")[:2]),
            backend=backend or (self.book.backend_asked(name, self.env) if name else ""),
            rocm_path=root,
            hip_path=root,
            site_packages=self.target.site_packages[0] if self.target.site_packages else "",
        )


def user_indexes(context: Context) -> tuple[str, ...]:
    """The user's own indexes in pip's order; none under --no-index."""
    from rocmpip.index.default import DEFAULT_INDEX

    index = context.request.index
    if index.no_index:
        return ()
    return tuple(dict.fromkeys((index.index_url or DEFAULT_INDEX, *index.extra_index_urls)))


def gather(
    command: str,
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    extra: tuple[Option, ...] = (),
    empty: bool = False,
) -> Context:
    """Read everything for ``rocmpip COMMAND ARGV``; ``extra`` are the command's own options, ``empty`` allows no requirements.

    Raises UsageError, InputError and BadConfiguration.
    """
    from rocmpip.app.detect import detect_platform
    from rocmpip.app.request import read_request
    from rocmpip.store.settings import load_settings
    from rocmpip.store.trust import TrustStore, state_folder

    env = dict(os.environ if env is None else env)
    cwd = str(Path.cwd()) if cwd is None else cwd
    request, ours, target = read_request(command, argv, env=env, cwd=cwd, extra=extra, empty=empty)
    flags = {
        key: value
        for key, value in {
            "rocm": ours.rocm,
            "gfx": ours.gfx,
            "channel": ours.channel,
            "jobs": ours.jobs,
            "hsa_override": ours.hsa_override or None,
            "map_cuda_names": ours.map_cuda_names or None,
            "python": request.python,
        }.items()
        if value
    }
    trust = TrustStore(state_folder(env))
    settings = load_settings(flags, env, cwd, trusted=trust.trusts_project)
    platform, found, installed = detect_platform(
        env=env,
        gfx=settings.gfx,
        gfx_source=settings.where.get("gfx", "--gfx"),
        rocm=settings.rocm,
        rocm_source=settings.where.get("rocm", "--rocm"),
        python=request.python or settings.python,
        cwd=cwd,
        catalogue=settings.catalogue_path,
        # Who names the target has answered what a program would be asked.
        programs=not (settings.gfx and settings.rocm),
    )
    return Context(
        env=env,
        cwd=cwd,
        settings=settings,
        target=found or target,
        platform=platform,
        installed=installed,
        request=request,
        ours=ours,
        recipe_files=tuple(ours.recipe),
    )
