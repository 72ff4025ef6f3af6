"""A world in memory for resolver tests: projects written as tables, a Source that serves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rocmpip.model.packages import File
from rocmpip.plan.gather import make_listing
from rocmpip.plan.listing import Candidate, Listing, Metadata, Rules
from rocmpip.plan.markers import target_environment
from rocmpip.plan.requirements import Need, lines_of
from rocmpip.plan.resolve import Options, Resolution, resolve

PYTHON = "3.12.1"
TAGS = {tag: rank for rank, tag in enumerate(("cp312-cp312-linux_x86_64", "py3-none-any"))}


class World:
    """``World({"a": {"1.0": ["b>=1"]}})``; a version's value is its Requires-Dist, or a dict with more.

    Keys of the dict: ``needs``, ``python``, ``yanked`` (reason), ``files`` (file names; default one pure wheel),
    ``extras``, ``hashes`` (of every file).
    """

    def __init__(self, projects: Mapping[str, Mapping[str, Any]]) -> None:
        self.metadata_of: dict[tuple[str, str], Metadata] = {}
        self.rows: dict[str, list[File]] = {}
        self.asked: list[str] = []
        self.rules = Rules(TAGS, PYTHON)
        self.urls: dict[str, Candidate] = {}
        for name, versions in projects.items():
            rows = self.rows[name] = []
            for version, about in versions.items():
                about = about if isinstance(about, Mapping) else {"needs": about}
                self.metadata_of[name, version] = Metadata(
                    tuple(about.get("needs", ())), about.get("python", ""), frozenset(about.get("extras", ()))
                )
                for filename in about.get("files", (f"{name.replace('-', '_')}-{version}-py3-none-any.whl",)):
                    rows.append(
                        File(
                            filename,
                            f"https://files.example/{filename}",
                            hashes=about.get("hashes", {}),
                            requires_python=about.get("python", ""),
                            yanked=about.get("yanked"),
                        )
                    )

    def candidates(self, name: str) -> Listing:
        return make_listing(name, self.rows.get(name, ()), self.rules, places=("https://pypi.example/simple",))

    def metadata(self, candidate: Candidate) -> Metadata:
        self.asked.append(f"{candidate.name} {candidate.version}")
        return self.metadata_of[candidate.name, candidate.version.text]

    def direct(self, wanted: Need) -> Candidate:
        return self.urls[wanted.url]

    def prefetch(self, name: str, text: str = "", extras: frozenset[str] = frozenset()) -> None:
        return None


def solve(
    world: World | Mapping[str, Mapping[str, Any]],
    *requirements: str,
    constraints: Sequence[str] = (),
    rules: Rules | None = None,
    options: Options | None = None,
    python: str = PYTHON,
    **more: Any,
) -> Resolution:
    place = world if isinstance(world, World) else World(world)
    if rules is not None:
        place.rules = rules
    cache: dict[str, Listing] = {}
    fresh = place.candidates
    place.candidates = lambda name: cache[name] if name in cache else cache.setdefault(name, fresh(name))  # type: ignore[method-assign]
    return resolve(
        lines_of(requirements),
        lines_of(constraints, "constraints.txt:1"),
        source=place,
        environment=target_environment(python),
        rules=place.rules,
        options=options,
        **more,
    )


def pins(found: Resolution) -> dict[str, str]:
    return {name: pin.version for name, pin in found.pins.items()}
