"""What the evidence means: the GPUs that installs aim at, and the ROCm that wins. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from rocmpip.machine.variables import EXPORTED, OVERRIDE, VISIBLE
from rocmpip.model.errors import BadConfiguration, RocmpipError, UsageError
from rocmpip.model.gfx import parse_gfx
from rocmpip.model.machine import Evidence, Gpu, Platform, RocmRoot
from rocmpip.model.record import replace
from rocmpip.model.rocm import RocmVersion, parse_rocm

NONE = "none"
"""As --gfx or --rocm: act as if there were none."""

_SUFFIXES = ("-", "+", ".", "a", "b", "rc")
"""What may follow the numbers: 6.4.0-47, 10.1.0a20260828."""


def _no_name(gfx: str, pci_id: str) -> str:
    return ""


def judge(
    evidence: Evidence,
    *,
    gfx: Sequence[str] = (),
    gfx_source: str = "--gfx",
    rocm: str = "",
    rocm_source: str = "--rocm",
    names: Callable[[str, str], str] = _no_name,
    known_gfx: Collection[str] = (),
    integrated: Callable[[str, str], bool] | None = None,
) -> Platform:
    """The verdict.

    ``gfx`` and ``rocm`` override what was seen ("none" means none); ``gfx_source`` and ``rocm_source`` say who asked.
    ``names(gfx, pci_id)`` gives product names, ``integrated(gfx, pci_id)`` tells iGPUs of known chips; for unknown ones
    the probe's guess counts. ``known_gfx`` empty means that no table is at hand. Raises UsageError for a bad override of the
    command line, BadConfiguration for one of a variable or a file.
    """
    notes = list(evidence.notes)
    visible, told = _visible(evidence)
    notes += told
    gpus = tuple(_finished(gpu, index in visible, names, known_gfx, integrated) for index, gpu in enumerate(evidence.gpus))
    counted = [gpu for gpu in gpus if gpu.visible]
    notes += _shape_notes(counted)
    notes += _override_notes(evidence.env, counted)

    asked = read_gfx(gfx, gfx_source)
    targets, source, why = _targets(asked, gfx_source, counted, evidence.env)
    notes += why
    if known_gfx:
        notes += [
            f"{name} is not in the table of known GPUs (a newer one?): it stays a target"
            for name in targets
            if name not in known_gfx and not name.endswith("-generic")
        ]

    version, root, rocm_from, roots = _rocm(evidence.roots, rocm, rocm_source)
    if version is not None and not root and evidence.roots:
        there = ", ".join(f"{one.version or 'unknown'} in {one.path}" for one in evidence.roots)
        builds = "what needs its compiler cannot be built" if rocm_from.startswith("--") else "builds take the hipcc on PATH"
        notes.append(
            f"ROCm {version} is named by {rocm_from} and is not installed here (installed: {there}): wheels are chosen for it, "
            f"but {builds}"
        )
    return Platform(
        gpus=gpus,
        gfx_targets=targets,
        gfx_source=source,
        rocm=version,
        rocm_root=root,
        rocm_source=rocm_from,
        roots=roots,
        driver=evidence.driver,
        kernel=evidence.kernel,
        wsl=evidence.wsl,
        container=evidence.container,
        notes=tuple(dict.fromkeys(notes)),
        driver_source=evidence.driver_source,
        kfd=evidence.kfd,
        container_source=evidence.container_source,
    )


def read_gfx(values: Sequence[str], source: str) -> tuple[str, ...] | None:
    """Targets as written (each value may hold several, by ``;`` ``,`` or space), without features and repeats.

    None when nothing is asked for, () for "none". Raises UsageError or BadConfiguration naming the value and who said it.
    """
    words = [word for value in values for word in _split(value)]
    if not words:
        return None
    if [word.lower() for word in words] == [NONE]:
        return ()
    found: list[str] = []
    for word in words:
        try:
            found.append(parse_gfx(word).name)
        except ValueError as problem:
            raise _wrong(
                source, str(problem), "name the GPU's target, such as gfx942 or gfx1100, several as gfx942;gfx1100, or none"
            ) from None
    return tuple(dict.fromkeys(found))


def read_rocm(value: str, source: str) -> RocmVersion:
    """A version that someone asked for: numbers with at least major and minor. Raises UsageError or BadConfiguration."""
    bare = value.strip().lower().removeprefix("rocm").removeprefix("v")
    try:
        version = parse_rocm(bare)
    except ValueError:
        version = RocmVersion(())
    numbers = str(version)
    rest = bare[len(numbers) :]
    good = bare.startswith(numbers) and (not rest or rest.startswith(_SUFFIXES)) and bare.isascii() and " " not in bare
    if len(version.release) < 2 or version.release[0] > 99 or not good:
        raise _wrong(source, f"{value[:80]!r} is not a ROCm version", "write major.minor, such as 6.4 or 7.2.1, or none")
    return version


def _wrong(source: str, what: str, hint: str) -> RocmpipError:
    """What is wrong on the command line is wrong usage; what a variable or a file says is a wrong setting."""
    kind = UsageError if source.startswith("--") else BadConfiguration
    return kind(f"{source}: {what}", hint=hint)


def _visible(evidence: Evidence) -> tuple[Collection[int], Sequence[str]]:
    """Indexes of the GPUs that *_VISIBLE_DEVICES let through. Imported where used: most machines set none of them."""
    if not any(name in evidence.env for name in VISIBLE):
        return range(len(evidence.gpus)), ()
    from rocmpip.machine.visible import let_through

    return let_through(evidence.gpus, evidence.env)


def _override_notes(env: Mapping[str, str], counted: Sequence[Gpu]) -> Sequence[str]:
    if not any(name.startswith(OVERRIDE) for name in env):
        return ()
    from rocmpip.machine.override import override_notes

    return override_notes(env, [gpu.gfx for gpu in counted])


def _split(value: str) -> list[str]:
    return value.replace(";", " ").replace(",", " ").split()


def _finished(
    gpu: Gpu,
    visible: bool,
    names: Callable[[str, str], str],
    known_gfx: Collection[str],
    integrated: Callable[[str, str], bool] | None,
) -> Gpu:
    known = not known_gfx or gpu.gfx in known_gfx
    return replace(
        gpu,
        name=names(gpu.gfx, gpu.pci_id) or gpu.name,
        integrated=integrated(gpu.gfx, gpu.pci_id) if integrated and known else gpu.integrated,
        known=known,
        visible=visible,
    )


def _targets(
    asked: tuple[str, ...] | None, asked_by: str, counted: Sequence[Gpu], env: Mapping[str, str]
) -> tuple[tuple[str, ...], str, list[str]]:
    """Targets, where they come from, and what to say about it."""
    seen = tuple(dict.fromkeys(gpu.gfx for gpu in counted))
    if asked is not None:
        others = [gfx for gfx in seen if gfx not in asked]
        strange = asked and others and not set(asked) & set(seen)
        told = [f"{asked_by} says {', '.join(asked)}; seen here: {', '.join(others)}"] if strange else []
        return asked, asked_by, told
    if counted:
        cards = [gpu for gpu in counted if not gpu.integrated]
        targets = tuple(dict.fromkeys(gpu.gfx for gpu in cards)) or seen
        notes = [
            f"the integrated GPU {gpu.gfx}{_at(gpu)} is left out because a card is there; --gfx {gpu.gfx} takes it"
            for gpu in counted
            if cards and gpu.integrated
        ]
        exported, variable, _ = _exported(env)
        if exported and not set(exported) & set(targets):
            said, there = ", ".join(exported), ", ".join(targets)
            notes.append(f"{variable} says {said}, but {there} is seen, and that counts; --gfx chooses")
        return targets, "detected", notes
    exported, variable, notes = _exported(env)
    if exported:
        notes.append(f"no GPU is visible here: the target {', '.join(exported)} is taken from {variable}")
    return exported, variable, notes


def _exported(env: Mapping[str, str]) -> tuple[tuple[str, ...], str, list[str]]:
    """Targets of the first exported variable that names any. Foreign variables never raise; odd words are noted."""
    notes: list[str] = []
    for variable in EXPORTED:
        found: list[str] = []
        for word in _split(env.get(variable, "")):
            if word.lower() == "native":
                continue
            try:
                found.append(parse_gfx(word).name)
            except ValueError as problem:
                notes.append(f"{variable}: {problem}: ignored")
        if found:
            return tuple(dict.fromkeys(found)), variable, notes
    return (), "", notes


def _at(gpu: Gpu) -> str:
    return "" if gpu.node is None else f" (node {gpu.node})"


def _shape_notes(gpus: Sequence[Gpu]) -> list[str]:
    """Why there are more GPUs than cards: partitions share a PCI device, an MI250 has two dies."""
    places: dict[tuple[str, str], int] = {}
    for gpu in gpus:
        if gpu.location:
            key = (gpu.gfx, gpu.location.rpartition(".")[0])
            places[key] = places.get(key, 0) + 1
    notes = [f"{count} partitions of one {gfx} at {place}" for (gfx, place), count in places.items() if count > 1]
    dies = sum(1 for gpu in gpus if gpu.gfx == "gfx90a" and "MI250" in gpu.name)
    if dies > 1 and not notes:
        notes.append(f"an MI250 card has two dies, and each counts as a GPU: {dies} are seen")
    return notes


def _rocm(roots: tuple[RocmRoot, ...], asked: str, asked_by: str) -> tuple[RocmVersion | None, str, str, tuple[RocmRoot, ...]]:
    """Version, path and source of the ROCm that wins, and all rows with the winner first."""
    if asked.strip().lower() == NONE:
        return None, "", asked_by, roots
    if not asked.strip():
        if not roots:
            return None, "", "", ()
        return roots[0].version, roots[0].path, roots[0].source, roots
    version = read_rocm(asked, asked_by)
    for root in roots:
        if root.version is None or root.version.minor != version.minor:
            continue
        if len(version.release) == 2 or root.version == version:
            row = replace(root, source=f"{asked_by}, {root.source}")
            return root.version, root.path, asked_by, (row, *(other for other in roots if other is not root))
    row = RocmRoot(version, "", asked_by, "override")
    return version, "", asked_by, (row, *roots)
