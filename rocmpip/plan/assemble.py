"""From what was resolved to the plan: what happens to each package, in which order, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from rocmpip.model.packages import File
from rocmpip.model.plan import FamilyChoice, Plan, PlanItem
from rocmpip.model.record import Struct, field
from rocmpip.model.rocm import rocm_of_label
from rocmpip.plan.markers import Markers
from rocmpip.plan.requirements import Need, need


class Resolved(Struct, frozen=True):
    """One package that the resolver wants installed."""

    name: str
    """Normalised."""
    version: str
    file: File | None
    requires_dist: tuple[str, ...] = ()
    requested: bool = False
    direct_url: bool = False
    """Named by URL or path rather than found on an index."""
    extras: tuple[str, ...] = ()
    """Extras asked of it."""
    from_source: bool = False
    """An sdist, which pip (or a recipe) builds."""


class Installed(Struct, frozen=True):
    """One installed distribution with its requirements."""

    name: str
    version: str
    requires_dist: tuple[str, ...] = ()
    provides_extra: frozenset[str] = frozenset()
    """Normalised."""


class Facts(Struct, frozen=True):
    """What the assembly needs to know besides the resolution."""

    installed: Mapping[str, Installed]
    roots: Mapping[str, tuple[tuple[str, ...], str]]
    """Names asked for → (extras, origin such as "command line" or "requirements.txt:3")."""
    environment: Mapping[str, str]
    is_family: Callable[[str], bool]
    recipes: Mapping[str, str] = field(default_factory=dict)
    """Names that a recipe builds in this plan → recipe name."""
    wheelhouse: Mapping[str, File] = field(default_factory=dict)
    """Names whose build is already kept → its wheel."""
    choice: FamilyChoice | None = None
    held: Mapping[str, str] = field(default_factory=dict)
    rebuilt: Mapping[str, str] = field(default_factory=dict)
    """Installed names whose build no longer fits → why."""
    reasons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Extra words for a name."""


def requirements_of(requires_dist: Iterable[str], extras: Iterable[str], markers: Markers) -> list[Need]:
    """The requirements that hold for these extras (normalised); unreadable ones are passed over."""
    wanted = tuple(extras)
    result: list[Need] = []
    for text in requires_dist:
        try:
            found = need(text)
            if markers.holds(found.marker, wanted):
                result.append(found)
        except ValueError:
            continue
    return result


def closure(
    roots: Mapping[str, tuple[str, ...]],
    packages: Mapping[str, tuple[str, ...]],
    environment: Mapping[str, str],
    added: Mapping[str, tuple[str, ...]] | None = None,
) -> dict[str, list[str]]:
    """Every name reachable from ``roots`` (name → extras) through ``packages`` (name → requires_dist), with who asked.

    ``added`` are extras that a name has whoever asks for it. The value lists the names that require it, in the order they were met; a root that nobody requires has an empty list.
    """
    markers = Markers(environment)
    parents: dict[str, list[str]] = {name: [] for name in roots}
    seen: set[tuple[str, str]] = set()
    queue: list[tuple[str, tuple[str, ...]]] = list(roots.items())
    while queue:
        name, extras = queue.pop(0)
        todo = [extra for extra in dict.fromkeys(("", *extras, *(added or {}).get(name, ()))) if (name, extra) not in seen]
        seen.update((name, extra) for extra in todo)
        if not todo:
            continue
        for requirement in requirements_of(packages.get(name, ()), [extra for extra in todo if extra], markers):
            child = requirement.name
            asked = parents.setdefault(child, [])
            if name not in asked and name != child:
                asked.append(name)
            queue.append((child, tuple(sorted(requirement.extras))))
    return parents


def assemble(resolved: Sequence[Resolved], facts: Facts, *, kept: Sequence[str] = ()) -> Plan:
    """The plan in install order: torch family, builds, the rest. ``kept``: installed packages that the answer stands on."""
    by_name = {item.name: item for item in resolved}
    requires = {name: dist.requires_dist for name, dist in facts.installed.items()}
    requires.update({name: item.requires_dist for name, item in by_name.items()})
    roots = {name: extras for name, (extras, _) in facts.roots.items()}
    roots.update({item.name: item.extras for item in resolved if item.requested})
    added = {**(facts.choice.extras if facts.choice else {}), **{item.name: item.extras for item in resolved}}
    parents = closure(roots, requires, facts.environment, added)
    here = {*kept, *(name for name in parents if name in facts.installed)} - set(by_name)
    names = [*by_name, *sorted(name for name in here if name in facts.installed)]
    items = [_item(name, by_name.get(name), parents.get(name, []), facts) for name in names]
    items.sort(key=lambda item: (_rank(item, facts), item.name))
    return Plan(items=tuple(items), choice=facts.choice, notes=_notes(facts))


def _rank(item: PlanItem, facts: Facts) -> int:
    if item.name == "torch":
        return 0
    if facts.is_family(item.name):
        return 1
    return 2 if item.recipe else 3


def _item(name: str, resolved: Resolved | None, parents: Sequence[str], facts: Facts) -> PlanItem:
    current = facts.installed.get(name)
    installed_version = current.version if current else ""
    origin_text = facts.roots.get(name, ((), ""))[1]
    because: list[str] = []
    if origin_text:
        because.append(f"asked for ({origin_text})")
    if parents:
        because.append("required by " + ", ".join(parents[:5]) + (" …" if len(parents) > 5 else ""))
    because.extend(facts.reasons.get(name, ()))
    if resolved is None:
        assert current is not None
        if name in facts.held:
            because.append(f"held: {current.version} is the right build for this machine")
        else:
            because.append("already installed and fits")
        return PlanItem(name, current.version, "keep", "index", None, installed_version, tuple(because), bool(origin_text))
    recipe = facts.recipes.get(name, "")
    action, origin = "install", "url" if resolved.direct_url else "index"
    if name in facts.wheelhouse:
        origin = "wheelhouse"
        because.append(f"built here before for exactly this by the recipe {recipe}: no build is needed")
    elif recipe:
        action, origin = "build", "build"
        because.append(f"no ready ROCm wheel fits: built from source by the recipe {recipe}")
    if current is not None:
        same = current.version == resolved.version
        if name in facts.rebuilt:
            because.append(facts.rebuilt[name])
        elif facts.is_family(name) and rocm_of_label(current.version) != rocm_of_label(resolved.version):
            because.append(f"replaces {current.version}, which is {build_words(current.version)}")
        elif not same:
            because.append(f"replaces {current.version}")
        if action == "install":
            action = "replace"
    return PlanItem(
        name=name,
        version=resolved.version,
        action=action,
        origin=origin,
        file=facts.wheelhouse.get(name, resolved.file),
        installed_version=installed_version,
        because=tuple(because),
        direct=bool(origin_text),
        recipe=recipe,
    )


def build_words(version: str) -> str:
    """What a torch version's label says, in words: ``2.9.1+cu128`` → "a CUDA build"."""
    _, _, label = version.partition("+")
    if label.startswith("cpu"):
        return "a CPU build"
    if label.startswith("cu"):
        return "a CUDA build"
    rocm = rocm_of_label(version)
    if rocm is not None:
        return f"a build for ROCm {rocm}"
    return "not marked as a ROCm build" if label else "an unlabelled build (PyPI's are CUDA)"


def _notes(facts: Facts) -> tuple[str, ...]:
    return facts.choice.notes if facts.choice else ()


def leftovers(installed: Iterable[str], needed: Iterable[str], forbidden: Callable[[str], str | None]) -> tuple[str, ...]:
    """Installed CUDA packages that nothing of the plan needs any more: named, never removed unasked."""
    keep = set(needed)
    return tuple(sorted(name for name in installed if name not in keep and forbidden(name)))
