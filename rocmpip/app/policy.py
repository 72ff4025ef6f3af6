"""Which route each name takes in one run: the rules of the router, wired to this machine and request."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from rocmpip.app.context import Context, gather, user_indexes
from rocmpip.model.errors import NoPlan
from rocmpip.model.filenames import version_of
from rocmpip.model.packages import Absent, File, Page
from rocmpip.model.plan import FamilyChoice
from rocmpip.model.recipe import Conflict
from rocmpip.model.record import Struct, field, replace
from rocmpip.model.rocm import rocm_of_label
from rocmpip.model.routing import Route, Synthetic
from rocmpip.plan.asked import Asked

_DEVICE = re.compile(r"-device-(gfx[0-9a-f]+|all)$")


class Pages(Protocol):
    """The part of the index client that a policy uses."""

    def page(self, index_url: str, name: str) -> Page | Absent: ...

    def find_links(self, place: str) -> tuple[File, ...]: ...


class Without(Struct, frozen=True):
    """The client, without the torch of the families that were left out."""

    client: Pages
    left_out: Mapping[str, str]

    def page(self, index_url: str, name: str) -> Page | Absent:
        if name == "torch" and index_url in self.left_out:
            return Absent(name, index_url, self.left_out[index_url])
        return self.client.page(index_url, name)

    def find_links(self, place: str) -> tuple[File, ...]:
        return self.client.find_links(place)


class Family(Struct):
    """The choice of torch's build, made once per run and only when something asks for it."""

    choose: Callable[[], FamilyChoice]
    _choice: FamilyChoice | None = None
    _error: NoPlan | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def made(self) -> FamilyChoice | None:
        return self._choice

    def get(self) -> FamilyChoice:
        with self._lock:
            if self._error is not None:
                raise self._error
            if self._choice is None:
                try:
                    self._choice = self.choose()
                except NoPlan as problem:
                    self._error = problem
                    raise
            return self._choice


class Policy:
    """``policy.route(name)`` for the router and the resolver. Thread-safe; each name is decided once by its caller."""

    def __init__(
        self,
        context: Context,
        asked: Asked,
        client: Pages,
        *,
        extra: Mapping[str, SpecifierSet] | None = None,
        held: Mapping[str, str] | None = None,
        left_out: Mapping[str, str] | None = None,
        virtual: bool = True,
        steering: Mapping[str, str] | None = None,
    ) -> None:
        self.context = context
        self.asked = asked
        self.client = client
        self.extra = dict(extra or {})
        self.held = dict(held or {})
        self.family = Family(self._choose)
        self.sources: dict[str, dict[str, File]] = {}
        """Recipe name → version → the sdist that a virtual wheel stands for."""
        self.steering: dict[str, str] = dict(steering or {})
        """Recipe → version of builds that only come along and whose torch conflicts count in the choice too."""
        self.left_out: dict[str, str] = dict(left_out or {})
        """Index URL of a family that could not satisfy the whole set → why."""
        self.virtual = virtual
        """True while planning: sources stand in with static metadata. False where a pip fetches the files themselves."""

    # -- the choice of torch -------------------------------------------------------------------------------------

    def _choose(self) -> FamilyChoice:
        context = self.context
        if context.platform.state == "rocm":
            raise NoPlan(
                f"ROCm {context.platform.rocm} is installed, but no GPU is known to install torch for",
                why="no GPU is visible here and no gfx target was given",
                hint="say which GPU it is for: rocmpip install --gfx gfx942 … (or set ROCMPIP_GFX)",
            )
        from rocmpip.app.family import choose

        conflicts = self.conflicts()
        try:
            choice = choose(
                context,
                self.asked,
                Without(self.client, self.left_out),
                extra=self.extra,
                held=self.held,
                conflicts=conflicts,
            )
        except NoPlan as problem:
            asked = (line for line in self.asked.plain if line.name in self.asked.family and line.specifier)
            problem.details = (*problem.details, *(f"asked for: {line.text} ({line.origin})" for line in asked))
            raise
        steering = tuple(f"no torch{conflict.torch}: {conflict.message}" for conflict in conflicts if conflict.torch)
        return replace(choice, because=(*choice.because, *dict.fromkeys(steering)))

    def conflicts(self) -> tuple[Conflict, ...]:
        """What the requested recipes forbid of torch, for the newest version of each that the user's words allow."""
        from rocmpip.app.sources import newest_version

        found: list[Conflict] = []
        asked = {name: newest_version(self, name, specifier) for name, specifier in self.asked.recipes.items()}
        for name, version in {**self.steering, **asked}.items():
            if version:
                found.extend(self.context.book.torch_conflicts(name, version, self.context.recipe_context(name=name)))
        return tuple(found)

    def torch_seen(self) -> str:
        """The torch that builds of this run will see, as far as it is known yet."""
        made = self.family.made
        return self.held.get("torch", "") or (made.pins.get("torch", "") if made else "")

    def python_fits(self, requires_python: str) -> bool:
        """Whether the target's Python lies in a file's requires-python; what cannot be read counts as fitting, as in pip."""
        try:
            bounds = SpecifierSet(requires_python)
        except InvalidSpecifier:
            return True
        return bounds.contains(self.context.python, prereleases=True)

    # -- routes --------------------------------------------------------------------------------------------------

    def route(self, name: str) -> Route:
        """The route of one normalised name. Raises NoPlan where the torch family cannot be had."""
        context = self.context
        reason = context.catalogue.forbidden(name)
        if context.platform.state != "none":
            if reason:
                return Route(name, "forbidden", because=reason)
            if context.catalogue.is_family(name):
                return self._family_route(name)
            if name in self.asked.recipes or context.book.get(name) is not None:
                return self._recipe_route(name)
        return Route(name, "plain", indexes=user_indexes(context), find_links=context.request.index.find_links)

    def _family_route(self, name: str) -> Route:
        if self.context.request.index.no_index:
            places = self.context.request.index.find_links
            return Route(
                name,
                "family",
                find_links=places,
                keep=self._local_filter(name),
                because="--no-index: ROCm wheels there",
            )
        choice = self.family.get()
        from rocmpip.app.family import alias_for, rocm_page

        alias = alias_for(name, choice)
        if alias is not None:
            return Route(name, "family", synthetic=(alias,), because=f"{name} is provided by {choice.family}'s own triton")
        device = _DEVICE.search(name)
        if device and device.group(1) not in self.context.platform.gfx_targets:
            return Route(name, "family", because=f"{name} is for another GPU")
        if name == "rocm" and self.virtual:
            return rocm_page(choice, self.context, self.client)
        return Route(
            name,
            "family",
            indexes=(choice.index_url,),
            keep=self._family_filter(name, choice),
            because=f"torch-family names come from {choice.family} alone",
        )

    def _family_filter(self, name: str, choice: FamilyChoice) -> Callable[[File], bool]:
        """Files of the chosen ROCm only; torch itself also must have kernels for every target."""
        labelled = name.startswith(("torch", "triton", "pytorch"))
        catalogue, targets = self.context.catalogue, self.context.platform.gfx_targets
        held = self.held.get(name)

        def keep(file: File) -> bool:
            version = version_of(file.filename)
            if version is None:
                return False
            if held is not None:
                return version == Version(held)
            rocm = rocm_of_label(str(version))
            if rocm is None:
                return not labelled or name.endswith("triton-rocm")
            if rocm.minor != choice.rocm.minor:
                return False
            return name != "torch" or not any(catalogue.lacks_kernels(str(version), gfx) for gfx in targets)

        return keep

    def _local_filter(self, name: str) -> Callable[[File], bool]:
        """Under --no-index: builds of one ROCm with kernels for every target; names that never carry a label come as they are."""
        catalogue, targets = self.context.catalogue, self.context.platform.gfx_targets
        chosen = self._local_rocm()

        def keep(file: File) -> bool:
            version = version_of(file.filename)
            if version is None:
                return False
            rocm = rocm_of_label(str(version))
            if rocm is None:
                return not name.startswith("torch")
            if chosen is not None and rocm.minor != chosen:
                return False
            return name != "torch" or not any(catalogue.lacks_kernels(str(version), gfx) for gfx in targets)

        return keep

    def _local_rocm(self) -> tuple[int, int] | None:
        """The ROCm whose torch is taken from --find-links: the order of ROCm versions decides, never that of labels as text."""
        from packaging.utils import InvalidWheelFilename, parse_wheel_filename

        from rocmpip.plan.family_order import place

        context = self.context
        catalogue, targets, tags = context.catalogue, context.platform.gfx_targets, frozenset(context.tags)
        bounds = self.asked.family.get("torch", SpecifierSet()) & self.asked.family_constraints.get("torch", SpecifierSet())
        found: set[tuple[int, int]] = set()
        for where in context.request.index.find_links:
            for file in self.client.find_links(where):
                if not file.filename.startswith("torch-") or not file.filename.endswith(".whl"):
                    continue
                try:
                    _, version, _, fits = parse_wheel_filename(file.filename)
                except InvalidWheelFilename:
                    continue
                rocm = rocm_of_label(str(version))
                if rocm is None or not bounds.contains(version, prereleases=True) or tags.isdisjoint(map(str, fits)):
                    continue
                if not any(catalogue.lacks_kernels(str(version), gfx) for gfx in targets):
                    found.add(rocm.minor)
        return min(found, key=lambda minor: place(minor, context.platform.rocm), default=None)

    def real_file(self, name: str, version: str) -> File | None:
        """The file behind one that only the router has: ``rocm``'s sdist; None for an alias."""
        choice = self.family.made
        if name != "rocm" or choice is None:
            return None
        page = self.client.page(choice.index_url, name)
        files = () if isinstance(page, Absent) else page.files
        return next((file for file in files if str(version_of(file.filename)) == version), None)

    def _recipe_route(self, name: str) -> Route:
        from rocmpip.app.sources import recipe_route

        return recipe_route(self, name)


def pinned_route(
    files: Mapping[str, File], synthetic: Mapping[str, Synthetic], fallback: Callable[[str], Route], *, real: bool = True
) -> Callable[[str], Route]:
    """Routes for the act: a planned name has exactly its planned file; every other name (build requirements) takes ``fallback``.

    ``real``: without the wheels that stand in for a build while it is planned. pip would install one as if it were the package.
    """

    def route(name: str) -> Route:
        if name in synthetic:
            return Route(name, "pinned", synthetic=(synthetic[name],), because="planned")
        if name in files:
            return Route(name, "pinned", files=(files[name],), because="planned")
        found = fallback(name)
        if real and found.kind == "recipe" and found.synthetic:
            return replace(found, synthetic=(), because="it is not built yet")
        return found

    return route


def standalone_context(env: Mapping[str, str]) -> Context:
    """A context with an empty request, for the router served alone and for ``rocmpip run``."""
    return gather("install", [], env=env, empty=True)


def standalone_policy(context: Context, client: Pages) -> Policy:
    """The routing of ``rocmpip router`` and ``rocmpip run``: this machine's truth for any request.

    The right torch that the target already has is held; recipe packages come as ready wheels, wheelhouse builds or source.
    """
    from rocmpip.app.family import held_family

    asked = Asked()
    return Policy(context, asked, client, held=held_family(context, asked), virtual=False)
