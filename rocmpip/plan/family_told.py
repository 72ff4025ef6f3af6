"""The words of the choice: why this torch, what was tried, what would work instead."""

from __future__ import annotations

from collections.abc import Sequence

from rocmpip.model.plan import Tried
from rocmpip.model.redact import bare_url
from rocmpip.plan.family_offer import Fallen, Offer, Task, furthest


def tried(task: Task, answer: Offer | Fallen, chosen: Offer | None) -> Tried:
    """One row of the table."""
    name, url = index_name(answer), bare_url(answer.url)
    if isinstance(answer, Fallen):
        return Tried(name, url, "fell out", answer.reason, answer.torch)
    torch = answer.pins["torch"]
    if answer is chosen:
        return Tried(name, url, "chosen", f"torch {torch} has kernels for {', '.join(task.targets)}", torch)
    if chosen is not None and chosen.torch.public == answer.torch.public:
        return Tried(name, url, "not needed", f"the same torch; {chosen.family.name} is preferred", torch)
    return Tried(name, url, "not needed", f"torch {torch} fits too; {chosen.family.name if chosen else ''} is preferred", torch)


def index_name(answer: Offer | Fallen) -> str:
    """ "AMD 10.x (ROCm 10.1)" for an index that holds several ROCm versions."""
    if answer.family.rocm is not None or (isinstance(answer, Fallen) and answer.stage == "absent"):
        return answer.family.name
    return f"{answer.family.name} (ROCm {'.'.join(map(str, answer.minor))})"


def because(task: Task, offer: Offer, fallen: Sequence[Fallen], own: Sequence[Fallen]) -> tuple[str, ...]:
    """Why this build, most important first."""
    lines = [_rocm_line(task, offer, fallen, own)]
    gpus = ", ".join(task.targets)
    if offer.family.style == "device":
        extras = ",".join(offer.extras.get("torch", ()))
        lines.append(f"kernels of {gpus} alone: torch[{extras}], not the packages of every GPU")
    else:
        lines.append(f"its wheels have kernels for {gpus}")
    if offer.family.style == "thin":
        lines.append(f"ROCm comes as pip packages, with device-all narrowed to {gpus}")
    lines += offer.passed_over[:3]
    lines.append(f"{task.ask.torch_text}: the highest there for Python {task.tags.python} is {offer.pins['torch']}")
    return tuple(lines)


def _rocm_line(task: Task, offer: Offer, fallen: Sequence[Fallen], own: Sequence[Fallen]) -> str:
    machine = task.platform.rocm
    if machine is None:
        return f"no ROCm is installed: {offer.family.name} is the newest {task.channel} family with kernels for this GPU"
    if offer.rocm.minor == machine.minor:
        return f"ROCm {machine} is installed: {offer.family.name} is for it"
    lower = offer.rocm.minor < machine.minor
    kind = "highest lower" if lower else "lowest higher"
    near = [one for one in own if one.reason and one.stage != "absent"] or [one for one in own if one.reason]
    lacks = "; ".join(dict.fromkeys(f"{one.family.name}: {one.reason}" for one in near[:2]))
    reason = f" ({lacks})" if lacks else ""
    return f"ROCm {machine} is installed, and ROCm {offer.rocm} is the {kind} one whose wheels fit{reason}"


def warnings(task: Task, offer: Offer) -> list[str]:
    """What a person should know although it works."""
    found = [f"{gfx}: {note}" for gfx in task.targets if (note := task.catalogue.gfx.note(gfx)) and "kernel" in note]
    machine = task.platform.rocm
    if not offer.family.listed:
        found.append(f"{offer.family.name} is newer than the catalogue: kernels are judged by its older neighbour")
    if (
        machine is not None
        and offer.rocm.minor < machine.minor
        and not any(minor == machine.minor for minor in task.catalogue.rocm_minors)
    ):
        found.append(f"ROCm {machine} is not in the catalogue: wheels for ROCm {offer.rocm} bring their own ROCm libraries")
    if offer.family.frozen:
        found.append(f"{offer.family.name} is frozen: no new releases appear there")
    return found


def headline(task: Task, fallen: Sequence[Fallen]) -> str:
    """What happened, in one line."""
    if _no_such_version(task, fallen):
        channel = f"{task.channel} " if task.channel == "stable" and not task.ask.spec("torch").prereleases else ""
        return f"no {channel}index has a ROCm build of {task.ask.torch_text}"
    names = sorted(task.ask.wanted - {"torch"})
    others = f" with {', '.join(names)}" if names else ""
    rocm = f" and ROCm {task.platform.rocm}" if task.platform.rocm is not None else ""
    return (
        f"no ROCm build of {task.ask.torch_text}{others} fits {' and '.join(task.targets)}{rocm} for Python {task.tags.python}"
    )


def why(task: Task, fallen: Sequence[Fallen]) -> str:
    """The reason of the index that came nearest; where none has such a version, the versions that there are."""
    if _no_such_version(task, fallen):
        versions = list(map(str, sorted({version for one in fallen for version in one.have}, reverse=True)))
        shown = ", ".join(versions[:8]) + (f" … {versions[-1]}" if len(versions) > 8 else "")
        return f"there are ROCm builds of torch {shown}"
    told = [one for one in fallen if one.reason]
    if not told:
        return "no index could be asked"
    best = furthest(told)
    return f"{index_name(best)}: {best.reason}"


def _no_such_version(task: Task, fallen: Sequence[Fallen]) -> bool:
    """True when the bounds alone are at fault: indexes have torch, and none has one within them."""
    within = any(one.torch or (one.stage == "never" and not one.have) for one in fallen)
    return bool(task.ask.spec("torch")) and not within and any(one.have for one in fallen)


def table(rows: Sequence[Tried]) -> tuple[str, ...]:
    """What was tried, one line each, the same reason of neighbours told once."""
    lines: list[tuple[list[str], str]] = []
    for row in rows:
        if lines and lines[-1][1] == row.because:
            lines[-1][0].append(row.family)
        else:
            lines.append(([row.family], row.because))
    return tuple(f"{_names(names)}: {reason}" for names, reason in lines)


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} … {names[-1]} ({len(names)} indexes)"


def unknown_gfx(task: Task, unknown: Sequence[str]) -> str:
    """Advice for a GPU that neither the catalogue nor any index knows."""
    from difflib import get_close_matches

    near = get_close_matches(unknown[0], sorted(task.catalogue.gfx.known), n=2, cutoff=0.6)
    close = f" (the nearest that has wheels: {', '.join(near)}, but kernels do not run across targets)" if near else ""
    return (
        f"{', '.join(unknown)} is not known to rocmpip and no index has a device package for it{close}; check the name with "
        f"`rocmpip detect`, or name another GPU with --gfx, or add a catalogue file when wheels for it appear"
    )


def last_word(task: Task, fallen: Sequence[Fallen]) -> str:
    """When no lesser wish helps either."""
    platform = next((one.reason for one in fallen if one.stage == "platform"), "")
    if platform:
        return f"no index has ROCm builds for {task.tags.platform}: {platform}"
    return f"no published wheel has kernels for {' and '.join(task.targets)}; building torch from source is what is left"
