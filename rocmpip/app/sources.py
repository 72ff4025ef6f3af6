"""Where a recipe package comes from: ready ROCm wheels, the wheelhouse, or its source standing in with static metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from rocmpip.model.packages import Absent, File
from rocmpip.model.rocm import rocm_of_label
from rocmpip.model.routing import Route, Synthetic

if TYPE_CHECKING:
    from rocmpip.app.policy import Policy

_NEWEST = 12
"""Source versions offered to the resolver, newest first: more only cost pages, and old ones seldom build."""


def source_files(policy: Policy, name: str) -> dict[Version, File]:
    """Version → sdist on the user's indexes, newest first. Wheels there are CUDA's and are not looked at."""
    from rocmpip.app.policy import user_indexes, version_of

    found: dict[Version, File] = {}
    for index in user_indexes(policy.context):
        page = policy.client.page(index, name)
        if isinstance(page, Absent):
            continue
        for file in page.files:
            version = None if file.filename.endswith(".whl") else version_of(file.filename)
            if version is not None and file.yanked is None:
                found.setdefault(version, file)
    return dict(sorted(found.items(), reverse=True))


def newest_version(policy: Policy, name: str, specifier: SpecifierSet) -> str:
    """The newest source version that ``specifier`` allows (final releases unless only others fit), or ""."""
    versions = list(source_files(policy, name))
    allowed = list(specifier.filter(versions, prereleases=policy.context.request.pre or None))
    return str(max(allowed)) if allowed else ""


def ready_wheels(policy: Policy, name: str) -> tuple[str, ...]:
    """Indexes with ready ROCm wheels of ``name`` for this machine, as its recipe tells."""
    context = policy.context.recipe_context(torch=policy.held.get("torch", ""))
    return tuple(dict.fromkeys(ready.index for ready in policy.context.book.ready_wheels(name, None, context)))


def _is_rocm_wheel(file: File, policy: Policy) -> bool:
    """A wheel with a ROCm label of this machine's ROCm major, or one without a label from an index that holds ROCm wheels only."""
    from rocmpip.app.policy import version_of

    version = version_of(file.filename)
    if not file.filename.endswith(".whl") or version is None:
        return False
    if version.local and ("cu" in version.local.split(".")[0] or version.local.startswith("cpu")):
        return False
    rocm = rocm_of_label(str(version))
    mine = policy.context.platform.rocm
    return rocm is None or mine is None or rocm.release[0] == mine.release[0]


def recipe_route(policy: Policy, name: str) -> Route:
    """Ready wheels if any fits the user's words, else the sources with their static metadata as virtual wheels."""
    from rocmpip.app.policy import version_of

    specifier = policy.asked.recipes.get(name, SpecifierSet())
    rebuild = name in policy.context.request.no_binary or ":all:" in policy.context.request.no_binary
    rebuild = rebuild or name in policy.context.ours.rebuild
    if not rebuild:
        files: list[File] = []
        for index in ready_wheels(policy, name):
            page = policy.client.page(index, name)
            if not isinstance(page, Absent):
                files.extend(file for file in page.files if _is_rocm_wheel(file, policy))
        fitting = [f for f in files if (v := version_of(f.filename)) and specifier.contains(v, prereleases=True)]
        if fitting:
            return Route(name, "recipe", files=tuple(fitting), because="ready ROCm wheels")
    return Route(name, "recipe", **_virtual(policy, name), because="built from source by its recipe")


def _virtual(policy: Policy, name: str) -> dict[str, tuple[Synthetic, ...] | tuple[File, ...]]:
    from rocmpip.router.alias import static_metadata, virtual_wheel

    context = policy.context
    synthetic: list[Synthetic] = []
    plain: list[File] = []
    sources = policy.sources.setdefault(name, {})
    for version, file in list(source_files(policy, name).items())[:_NEWEST]:
        resolved = context.book.resolve(name, str(version), context.recipe_context())
        if resolved.requires_dist is None:
            plain.append(file)
            continue
        metadata = static_metadata(
            name, str(version), resolved.requires_dist, requires_python=file.requires_python or ""
        )
        synthetic.append(virtual_wheel(name, str(version), metadata))
        sources[str(version)] = file
    return {"synthetic": tuple(synthetic), "files": tuple(plain)}
