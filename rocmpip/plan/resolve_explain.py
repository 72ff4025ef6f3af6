"""A failed resolution in words: who asked for what, what there was, what would help."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rocmpip.model.errors import NoPlan
from rocmpip.plan.listing import Listing
from rocmpip.plan.provider import PYTHON, Choice, Provider, Source
from rocmpip.plan.requirements import Need

if TYPE_CHECKING:
    from rocmpip.plan.resolve import Pin

_SHOWN = 8


class Conflict(NoPlan):
    """A NoPlan that knows which projects it is about (``names``), and the one whose candidates alone are at fault."""

    def __init__(
        self,
        message: str,
        *,
        names: Iterable[str],
        alone: str = "",
        why: str = "",
        hint: str = "",
        details: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message, why=why, hint=hint, details=details)
        self.names = set(names)
        self.alone = alone


def impossible(causes: Collection[Any], provider: Provider, source: Source) -> Conflict:
    """resolvelib's causes (requirement, parent) → the whole story. ``names`` holds every project it touches."""
    grouped: dict[str, list[tuple[Need, Choice | None]]] = {}
    for cause in causes:
        grouped.setdefault(cause.requirement.name, []).append((cause.requirement, cause.parent))
    details: list[str] = []
    hints: list[str] = []
    names: set[str] = set()
    whys: list[str] = []
    unusable = grouped.pop(PYTHON, [])
    for name, asked in grouped.items():
        names.add(name)
        names.update(parent.name for _, parent in asked if parent is not None)
        details.extend(_who(wanted, parent) for wanted, parent in asked)
        details.extend(
            f"  a constraint holds {bound} ({bound.line.origin if bound.line else 'constraint'})"
            for bound in provider.policy.constraints.get(name, ())
        )
        what, hint = _what_there_was(name, asked, provider, source)
        details.append(f"  there is {what}")
        if hint:
            hints.append(hint)
        whys.append(_short(name, asked, provider, what))
    for wanted, parent in unusable:
        if parent is not None:
            names.add(parent.name)
            details.append(f"{parent.name} {parent.candidate.version} cannot be used: {wanted.reason}")
            whys.append(f"{parent.name} {parent.candidate.version}: {wanted.reason}")
    details.extend(_passed_over(names, provider))
    subject = " and ".join(sorted(grouped)[:3]) or "the requirements"
    alone = ""
    if len(grouped) == 1 and _absent(subject, source):
        alone = subject
        message = f"no such project: {subject}"
    elif len(grouped) == 1 and len(grouped[subject]) == 1 and not provider.policy.constraints.get(subject):
        alone = subject if grouped[subject][0][1] is None else ""
        message = f"no version of {subject} fits"
    else:
        message = f"these requirements on {subject} cannot be met together" if grouped else "no candidate can be used"
    hints = hints or _relax(grouped, provider)
    return Conflict(
        message,
        names=names,
        alone=alone,
        why="; ".join(dict.fromkeys(whys)),
        hint="; ".join(dict.fromkeys(hints)),
        details=tuple(dict.fromkeys(details)),
    )


def _who(wanted: Need, parent: Choice | None) -> str:
    if parent is not None:
        return f"{parent} asks for {wanted}"
    origin = wanted.line.origin if wanted.line else "the command"
    return f"you ask for {wanted} ({origin})"


def _short(name: str, asked: Sequence[tuple[Need, Choice | None]], provider: Provider, what: str) -> str:
    pieces = [
        f"{wanted} (asked for by {parent.name + ' ' + str(parent.candidate.version) if parent else 'you'})"
        for wanted, parent in asked
    ]
    pieces += [
        f"{bound} (held by {bound.line.origin if bound.line else 'a constraint'})"
        for bound in provider.policy.constraints.get(name, ())
    ]
    return f"{' and '.join(dict.fromkeys(pieces))}, but there is {what}"


def _absent(name: str, source: Source) -> bool:
    listing = source.candidates(name)
    return not len(listing) and not listing.dropped and not listing.because


def _what_there_was(
    name: str, asked: Sequence[tuple[Need, Choice | None]], provider: Provider, source: Source
) -> tuple[str, str]:
    """What candidates exist (a phrase after "there is"), and the hint that follows from it."""
    if any(wanted.url for wanted, _ in asked):
        return "a URL that stands for this project alone", "ask for one URL, or drop the other requirements on it"
    listing = source.candidates(name)
    where = f" ({listing.because})" if listing.because else ""
    if not len(listing):
        return _nothing(name, listing, provider, where)
    versions = [str(one.version) for one in listing]
    shown = ", ".join(versions[:_SHOWN]) + (f" … {versions[-1]} ({len(versions)} versions)" if len(versions) > _SHOWN else "")
    needs = [wanted.spec for wanted, _ in asked] + [one.spec for one in provider.policy.constraints.get(name, ())]
    fitting = [one for one in listing if all(bound.contains(one.version) for bound in needs)]
    hint = ""
    if fitting and all(one.version.pre for one in fitting):
        hint = f"only pre-releases of {name} fit: add --pre, or ask for {name}=={fitting[0].version}"
    elif fitting and all(one.yanked is not None for one in fitting):
        hint = f"only yanked versions of {name} fit: ask for {name}=={fitting[0].version} yourself if you accept that"
    elif not fitting:
        hint = _elsewhere(name, needs, listing)
    return f"{name} {shown}{where}", hint


def _nothing(name: str, listing: Listing, provider: Provider, where: str) -> tuple[str, str]:
    dropped = listing.dropped
    if not dropped:
        places = ", ".join(listing.places)
        looked = f" on {places}" if places else ""
        if "--only-binary" in where:
            return f"no ready wheel of {name}{where}", f"allow its build: leave --only-binary out, or add --no-binary {name}"
        return (
            f"nothing named {name}{looked or where}",
            "check the spelling, or name the index that has it (--extra-index-url)",
        )
    rules = provider.policy.rules
    reasons, hints = [], []
    for reason, items in dropped.items():
        sample = items[-1]
        if reason == "tags":
            reasons.append(f"{len(items)} wheels for other platforms or Pythons ({sample})")
            hints.append(f"{name} has no wheel and no source for Python {rules.python} on this platform")
        elif reason == "python":
            reasons.append(f"versions for another Python ({sample})")
            hints.append("use another Python (--python, --python-version)")
        elif reason == "only-binary":
            reasons.append(f"source only ({sample})")
            hints.append(f"allow its source: --no-binary {name}, or leave --only-binary out")
        elif reason == "no-binary":
            reasons.append(f"wheels only ({sample})")
            hints.append(f"allow its wheels: --only-binary {name}, or leave --no-binary out")
        elif reason == "hash":
            reasons.append("files with other hashes than the ones given")
            hints.append("the files on the index are not the ones that were locked: lock again")
        else:
            reasons.append(f"{len(items)} files that are not this project's ({sample})")
    return f"no usable {name}: {', '.join(reasons)}{where}", "; ".join(dict.fromkeys(hints))


def _elsewhere(name: str, needs: Sequence[Any], listing: Listing) -> str:
    """Versions that would have fitted but were set aside for this target."""
    python = [text for text in listing.dropped.get("python", ()) if _fits_text(text.split(" ", 1)[0], needs)]
    if python:
        return f"{name} {python[-1]}: use another Python (--python, --python-version)"
    tags = [text for text in listing.dropped.get("tags", ()) if _fits_text(text.split("-")[1], needs)]
    if tags:
        return f"{name} has fitting versions only for other platforms or Pythons ({tags[-1]})"
    sources = listing.dropped.get("only-binary", ())
    if sources:
        return f"{name} may have fitting sources, which --only-binary leaves out"
    return ""


def _fits_text(version: str, needs: Sequence[Any]) -> bool:
    from rocmpip.plan.versions import release

    try:
        return all(bound.contains(release(version)) for bound in needs)
    except ValueError:
        return False


def _passed_over(names: Iterable[str], provider: Provider) -> list[str]:
    lines = []
    for name in sorted(names):
        reasons = list(dict.fromkeys(provider.unusable.get(name, ())))
        lines += [f"passed over: {name} {reason}" for reason in reasons[:3]]
        if len(reasons) > 3:
            lines.append(f"passed over: {len(reasons) - 3} more versions of {name}")
    return lines


def _relax(grouped: Mapping[str, Sequence[tuple[Need, Choice | None]]], provider: Provider) -> list[str]:
    """What a person can change: their own requirement first, then a constraint, then who pulls it in."""
    hints = []
    for name, asked in grouped.items():
        own = [wanted for wanted, parent in asked if parent is None]
        askers = sorted({parent.name for _, parent in asked if parent is not None})
        bounds = provider.policy.constraints.get(name, ())
        if own:
            hints.append(f"loosen {own[0]} ({own[0].line.origin if own[0].line else 'the command'})")
        elif bounds:
            hints.append(f"loosen {bounds[0]} ({bounds[0].line.origin if bounds[0].line else 'a constraint'})")
        elif len(askers) > 1:
            hints.append(f"ask for other versions of {' or '.join(askers[:3])} so that they agree on {name}")
        elif askers:
            hints.append(f"ask for another version of {askers[0]}")
    return hints


def too_deep(rounds: int, provider: Provider, *, proven: bool = False) -> Conflict:
    """The search was given up, or that for words was, where it is ``proven`` that nothing satisfies the requirements."""
    worst = sorted(provider._conflicts.items(), key=lambda item: (-item[1], item[0]))[:5]
    subject = ", ".join(name for name, _ in worst) or "the requirements"
    return Conflict(
        "no versions satisfy all requirements" if proven else f"gave up after {rounds} rounds of search",
        names={name for name, _ in worst},
        why=f"the requirements on {subject} keep contradicting each other",
        hint=f"pin some of {subject} to narrow the search",
    )


def refuse_forbidden(pins: Mapping[str, Pin]) -> None:
    """Raise for a CUDA runtime package in the answer, with the chain of who asked down to the user."""
    for pin in pins.values():
        if pin.candidate.origin != "forbidden":
            continue
        chain = chain_to(pin.name, pins)
        asker = chain[-2] if len(chain) > 1 else "you"
        raise Conflict(
            f"{pin.name} is part of the CUDA runtime and is never installed: {asker} asks for it",
            names={pin.name, *(chain[:-1])},
            why=pin.candidate.recipe,
            hint=f"ask for another version or build of {asker}" if len(chain) > 1 else f"leave {pin.name} out",
            details=(" → ".join(("you", *chain)),),
        )


def chain_to(name: str, pins: Mapping[str, Pin]) -> list[str]:
    """The shortest way from a direct requirement to ``name``, both included, deterministic."""
    ways: dict[str, list[str]] = {name: [name]}
    queue = [name]
    for current in queue:
        pin = pins[current]
        if pin.direct:
            return ways[current]
        for parent in pin.parents:
            if parent.name and parent.name in pins and parent.name not in ways:
                ways[parent.name] = [parent.name, *ways[current]]
                queue.append(parent.name)
    return ways[name]
