"""``rocmpip lock --wheelhouse DIR``: wheels that were built before stand in for the sources that recipes would build."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rocmpip.app.policy import Policy
from rocmpip.app.sources import wants_source
from rocmpip.model.filenames import belongs, version_of
from rocmpip.model.packages import File
from rocmpip.model.provenance import stale_because
from rocmpip.model.record import replace
from rocmpip.model.routing import Route, Synthetic
from rocmpip.report import say


class BuiltWheels:
    """The wheels of some folders, as far as they fit the GPUs, the ROCm and the torch of a lock."""

    def __init__(self, policy: Policy, folders: Iterable[Path]) -> None:
        self._policy = policy
        self._files = [file for folder in folders for file in policy.client.find_links(str(folder))]
        self._known: dict[str, tuple[File, ...]] = {}
        self._told: set[str] = set()
        self.preferred: dict[str, str] = {}
        """Recipe name → the newest version that is built: taken while it fits, though a newer source may exist."""

    def route(self, name: str) -> Route:
        """The policy's route of ``name`` with the built wheels in it: a recipe's source gives way to a wheel of its version."""
        route = self._policy.route(name)
        if route.kind not in ("plain", "recipe") or not self._files or wants_source(self._policy, name):
            return route
        mine = self._fitting(name, recipe=route.kind == "recipe")
        if not mine:
            return route
        versions = {version for file in mine if (version := version_of(file.filename)) is not None}
        if route.kind == "recipe" and versions:
            self.preferred[name] = str(max(versions))
        names = {file.filename for file in mine}
        return replace(
            route,
            files=(*mine, *(file for file in route.files if file.filename not in names)),
            synthetic=tuple(one for one in route.synthetic if _version(one) not in versions),
            because=f"{route.because}; built wheels" if route.because else "built wheels",
        )

    def _fitting(self, name: str, *, recipe: bool) -> tuple[File, ...]:
        known = self._known.get(name)
        if known is None:
            found = [file for file in self._files if file.filename.endswith(".whl") and belongs(file.filename, name)]
            known = self._known[name] = tuple(file for file in found if self._fits(file, recipe=recipe))
        return known

    def _fits(self, file: File, *, recipe: bool) -> bool:
        """A wheel's own record decides. Without one only a package that is no recipe's may come from here."""
        from rocmpip.elf.record import read_wheel

        try:
            record = read_wheel(Path(unquote(urlsplit(file.url).path)))
        except (OSError, ValueError) as problem:
            return self._refuse(file, str(problem))
        if record is None:
            return not recipe or self._refuse(file, "it does not say which GPU and torch it was built for")
        platform, made = self._policy.context.platform, self._policy.family.made
        rocm = platform.rocm or (made.rocm if made else None)
        reasons = stale_because(
            record, torch=self._policy.torch_seen(), gfx=platform.gfx_targets, rocm=str(rocm) if rocm else ""
        )
        return not reasons or self._refuse(file, "; ".join(reasons))

    def _refuse(self, file: File, why: str) -> bool:
        if file.filename not in self._told:
            self._told.add(file.filename)
            say.note(f"{file.filename} is not taken from the wheelhouse: {why}")
        return False


class Preferred(Mapping[str, str]):
    """``first``, and below it the built versions, which are known as routes are asked for."""

    def __init__(self, first: Mapping[str, str], built: BuiltWheels) -> None:
        self._first = first
        self._built = built

    @property
    def _now(self) -> dict[str, str]:
        return {**self._built.preferred, **self._first}

    def __getitem__(self, name: str) -> str:
        return self._now[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now)

    def __len__(self) -> int:
        return len(self._now)


def _version(one: Synthetic) -> object:
    return version_of(one.filename)
