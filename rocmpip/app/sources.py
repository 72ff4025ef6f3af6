"""Where a recipe package comes from: ready ROCm wheels, the wheelhouse, or its source standing in with static metadata."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from rocmpip.app.context import user_indexes
from rocmpip.model.errors import Refused
from rocmpip.model.filenames import version_of
from rocmpip.model.packages import Absent, File, normalise
from rocmpip.model.provenance import UNKNOWN
from rocmpip.model.recipe import ReadyWheels
from rocmpip.model.rocm import rocm_of_label
from rocmpip.model.routing import Route, Synthetic

if TYPE_CHECKING:
    from rocmpip.app.policy import Policy

_NEWEST = 12
"""Source versions offered to the resolver, newest first: more only cost pages, and old ones seldom build."""


def source_files(policy: Policy, name: str) -> dict[Version, File]:
    """Version → source, newest first: sdists on the user's indexes, or a recipe's git releases. Wheels there are CUDA's."""
    found: dict[Version, File] = {}
    for release in policy.context.book.releases(name):
        found[Version(release.version)] = File(filename=f"{name}-{release.version}.tar.gz", url="", index="git")
    if found:
        return dict(sorted(found.items(), reverse=True))
    for index in user_indexes(policy.context):
        page = policy.client.page(index, name)
        if isinstance(page, Absent):
            continue
        for file in page.files:
            version = None if file.filename.endswith(".whl") else version_of(file.filename)
            if version is not None and file.yanked is None and policy.python_fits(file.requires_python):
                found.setdefault(version, file)
    return dict(sorted(found.items(), reverse=True))


def newest_version(policy: Policy, name: str, specifier: SpecifierSet) -> str:
    """The newest source version that ``specifier`` allows (final releases unless only others fit), or ""."""
    versions = list(source_files(policy, name))
    allowed = list(specifier.filter(versions, prereleases=policy.context.request.pre or None))
    return str(max(allowed)) if allowed else ""


def _places(policy: Policy, ready: ReadyWheels) -> tuple[str, ...]:
    """The index URLs that a recipe's row means."""
    if ready.index == "default":
        return user_indexes(policy.context)
    if ready.index == "family":
        return (policy.family.get().index_url,)
    return (ready.index,)


def ready_files(policy: Policy, name: str) -> Iterator[File]:
    """Ready ROCm wheels of ``name`` for this machine, as its recipe's rows tell, best row first."""
    specifier = policy.asked.recipes.get(name, SpecifierSet())
    exact = next((one.version for one in specifier if one.operator in ("==", "===") and "*" not in one.version), None)
    context = policy.context.recipe_context(torch=policy.torch_seen(), name=name)
    for ready in policy.context.book.ready_wheels(name, context, exact):
        if ready.name and normalise(ready.name) != name:
            continue
        bounds = SpecifierSet(ready.specifier)
        for index in _places(policy, ready):
            page = policy.client.page(index, name)
            for file in () if isinstance(page, Absent) else page.files:
                version = version_of(file.filename)
                if not file.filename.endswith(".whl") or version is None:
                    continue
                if not bounds.contains(version, prereleases=True) or not specifier.contains(version, prereleases=True):
                    continue
                if _label_fits(version, ready, policy):
                    yield file


def _label_fits(version: Version, ready: ReadyWheels, policy: Policy) -> bool:
    """The label that the row names; otherwise no CUDA or CPU label, and a ROCm label only of the chosen torch's ROCm."""
    local = version.local or ""
    if ready.local:
        return local == ready.local
    if local.startswith(("cu", "cpu")):
        return False
    rocm = rocm_of_label(str(version))
    made = policy.family.made
    mine = made.rocm if made is not None else policy.context.platform.rocm
    return rocm is None or mine is None or rocm.minor == mine.minor


def wants_source(policy: Policy, name: str) -> bool:
    """True when the user wants this package built: --no-binary, --rebuild."""
    request = policy.context.request
    rebuild = {normalise(one) for one in policy.context.ours.rebuild}
    return name in request.no_binary or ":all:" in request.no_binary or name in rebuild


def may_build(policy: Policy, name: str) -> bool:
    """False when the user wants no source of this package: --only-binary."""
    request = policy.context.request
    return name not in request.only_binary and (":all:" not in request.only_binary or name in request.no_binary)


def recipe_route(policy: Policy, name: str) -> Route:
    """Ready wheels if any fits the user's words, else the sources with their static metadata as virtual wheels."""
    if not wants_source(policy, name):
        files = tuple(_unique(ready_files(policy, name)))
        if files:
            return Route(name, "recipe", files=files, because="ready ROCm wheels")
    if not may_build(policy, name):
        return Route(
            name,
            "recipe",
            files=_kept(policy, name),
            because="--only-binary allows no build, and there is no ready ROCm wheel",
        )
    if policy.context.ours.only_ready:
        return Route(name, "recipe", because="--only-ready allows no build, and there is no ready ROCm wheel")
    if not policy.virtual:
        files = (*_kept(policy, name), *source_files(policy, name).values())
        return Route(name, "recipe", files=tuple(file for file in files if file.url), because="wheelhouse builds and sources")
    synthetic, plain = _virtual(policy, name)
    return Route(name, "recipe", synthetic=synthetic, files=plain, because=f"its sources: {name} is built by its recipe")


def _unique(files: Iterator[File]) -> Iterator[File]:
    seen: set[str] = set()
    for file in files:
        if file.filename not in seen:
            seen.add(file.filename)
            yield file


def _kept(policy: Policy, name: str) -> tuple[File, ...]:
    """Builds in the wheelhouse that are what would be made now: every input of their fingerprint is as it is today.

    A source counts by the hash that its index gives. One that is listed nowhere any more, or without a hash, is taken to be
    what it was: a version's archive does not change.
    """
    from rocmpip.app.build_package import Package, kept_wheel, listed_digest
    from rocmpip.app.builds import toolbox

    context = policy.context
    torch = policy.torch_seen() or context.installed_versions.get("torch", "")
    tools = toolbox(context, (), {}, torch)
    built = {(one.provenance.inputs.version, one.provenance.inputs.source) for one in tools.wheelhouse.candidates(name)}
    # What was built from a folder of the user's is no release of this project.
    built = {(version, digest) for version, digest in built if version != UNKNOWN}
    if not built:
        return ()
    listed = {str(version): file for version, file in source_files(policy, name).items()}
    found: dict[str, File] = {}
    for version, digest in sorted(built):
        try:
            recipe = context.book.resolve(name, version, context.recipe_context(torch=torch, name=name))
        except Refused:
            continue
        stored = kept_wheel(Package(name, version, recipe), tools, listed_digest(recipe, listed.get(version)) or digest)
        if stored is not None:
            found[stored.fingerprint] = stored.as_file()
    return tuple(found.values())


def _virtual(policy: Policy, name: str) -> tuple[tuple[Synthetic, ...], tuple[File, ...]]:
    """Virtual wheels for versions whose requirements the recipe knows; the plain sdists of the others."""
    from rocmpip.router.alias import static_metadata, virtual_wheel

    context = policy.context
    synthetic: list[Synthetic] = []
    plain: list[File] = []
    sources = policy.sources.setdefault(name, {})
    seen = policy.torch_seen()
    for version, file in list(source_files(policy, name).items())[:_NEWEST]:
        resolved = context.book.resolve(name, str(version), context.recipe_context(torch=seen, name=name))
        sources[str(version)] = file
        if resolved.requires_dist is None:
            plain.append(file)
            continue
        metadata = static_metadata(name, str(version), resolved.requires_dist, requires_python=file.requires_python or "")
        synthetic.append(virtual_wheel(name, str(version), metadata))
    return tuple(synthetic), tuple(plain)
