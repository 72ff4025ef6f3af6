"""Run the rules over lines: collect what each pattern hits, then decide which rules hold and which comes first."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from rocmpip.diagnose.rules import CONFIDENCE, Rule, RuleBook


@dataclass(frozen=True)
class MachineContext:
    """What fits the advice to this machine. Empty fields are shown as placeholders such as ``<gfx>``."""

    gfx: tuple[str, ...] = ()
    rocm: str = ""
    torch: str = ""
    package: str = ""
    wsl: bool = False
    container: bool = False


@dataclass(frozen=True)
class Finding:
    """One cause. ``line`` counts from 1; ``evidence`` is that line without control characters, cut to 300 characters."""

    kind: str
    family: str
    confidence: str
    line: int
    evidence: str
    cause: str
    fix: tuple[str, ...]
    source: str
    weight: int = field(default=0, compare=False)

    def as_json(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "family": self.family,
            "confidence": self.confidence,
            "line": self.line,
            "evidence": self.evidence,
            "cause": self.cause,
            "fix": list(self.fix),
            "source": self.source,
        }


@dataclass(frozen=True)
class Diagnosis:
    """Findings best first; ``worth`` are lines worth reading when nothing is known: (number, text)."""

    findings: tuple[Finding, ...]
    worth: tuple[tuple[int, str], ...] = ()
    lines: int = 0
    ends_well: bool = False


@dataclass
class _Hit:
    first: int
    text: str
    last: int
    last_text: str
    group: str = ""


_GOOD = re.compile(
    r"^\s*(?:#\d+ [\d.]+ )?(?:Successfully (?:installed|built|tagged)\b|Build (?:succeeded|successful|complete)|BUILD SUCCESSFUL|"
    r"\[100%\] Built target|Installed \d+ packages?|Finished \S+ .*target\(s\)|=+ .*\d+ passed)"
)
_BAD = re.compile(
    r"^(?:\s*(?:\|\s*)?)(?:ERROR\b|error:|fatal:|FAILED\b|Traceback \(most recent call last\)|ninja: (?:error|build stopped)|make(?:\[\d+\])?: \*\*\*|"
    r"subprocess\.CalledProcessError|\S*(?:Error|Exception): |\S*: error: |\S+: fatal error: )|core dumped|Aborted\b|Segmentation fault|"
    r"returned non-zero|did not run successfully|undefined symbol|cannot open shared object"
)
_NOISE = re.compile(
    r"originates from a subprocess|subprocess-exited-with-error|metadata-generation-failed|Failed to build|ninja: build stopped|"
    r"returned non-zero|legacy-install-failure|exit (?:code|status)|failed-wheel-build|Command '\[|_NOT_FOUND|-Werror|\berror\.(?:o|c|cpp|h)\b|"
    r"\d+ warnings?|WARNING: |DeprecationWarning|UserWarning|end of output"
)
_WORTH = re.compile(r"\berror\b|\bfatal\b|Error:|Exception:|undefined symbol|cannot open|No such file|not found|Killed|Aborted|core dumped|错误|致命", re.IGNORECASE)


def diagnose(lines: Iterable[tuple[int, str]], book: RuleBook, context: MachineContext | None = None) -> Diagnosis:
    """Look at (number, clean text) lines once and say what is wrong."""
    context = context or MachineContext()
    hits: dict[int, _Hit] = {}
    worth: list[tuple[int, str]] = []
    good = bad = count = 0
    patterns = list(enumerate(book.patterns))
    for number, text in lines:
        count = number
        if not text:
            continue
        for index, pattern in patterns:
            if pattern.literal and pattern.literal not in text:
                continue
            match = pattern.regex.search(text)
            if match is None:
                continue
            group = match.group(1) if pattern.regex.groups and match.group(1) is not None else ""
            hit = hits.get(index)
            if hit is None:
                hits[index] = _Hit(number, text, number, text, group)
            else:
                hit.last, hit.last_text = number, text
        if _GOOD.search(text):
            good = number
        elif _BAD.search(text) and not _probe(text):
            bad = number
        if len(worth) < 200 and _WORTH.search(text) and not _NOISE.search(text):
            worth.append((number, text[:300]))
    ends_well = good > bad
    findings = [_finding(rule, hits, context, ends_well) for rule in book.rules if _holds(rule, hits, context)]
    findings.sort(key=lambda one: (-_rank(one), -one.weight, one.line))
    unique: dict[str, Finding] = {}
    for one in findings:
        unique.setdefault(one.kind, one)
    return Diagnosis(tuple(unique.values()), tuple(worth[:12]), count, ends_well)


def _probe(text: str) -> bool:
    return text.startswith(("-- ", "checking ", "[aiter]")) or "Performing Test" in text


def _rank(finding: Finding) -> int:
    # A rule of low confidence never stands before a better one, whatever its weight.
    return 0 if finding.confidence == "low" else 1


def _holds(rule: Rule, hits: dict[int, _Hit], context: MachineContext) -> bool:
    if not any(number in hits for number in rule.line):
        return False
    if any(number not in hits for number in rule.also) or any(number in hits for number in rule.unless):
        return False
    if rule.differs is not None:
        first, second = (hits.get(number) for number in rule.differs)
        if first is None or second is None or not first.group or first.group == second.group:
            return False
    gfx = rule.when.get("gfx")
    if gfx is not None and context.gfx and not set(gfx) & set(context.gfx):
        return False
    wanted = rule.when.get("wsl")
    return wanted is None or bool(wanted) == context.wsl


def _finding(rule: Rule, hits: dict[int, _Hit], context: MachineContext, ends_well: bool) -> Finding:
    found = [hits[number] for number in rule.line if number in hits]
    hit = max(found, key=lambda one: one.last) if rule.last else min(found, key=lambda one: one.first)
    line, text = (hit.last, hit.last_text) if rule.last else (hit.first, hit.text)
    confidence = rule.confidence
    if ends_well and not rule.success:
        confidence = CONFIDENCE[0]
    return Finding(
        kind=rule.kind,
        family=rule.family,
        confidence=confidence,
        line=line,
        evidence=text.strip()[:300],
        cause=fill(rule.cause, context),
        fix=tuple(fill(one, context) for one in rule.fix),
        source=rule.source,
        weight=rule.weight,
    )


def fill(text: str, context: MachineContext) -> str:
    """Put this machine's facts into a text: ``{gfx}``, ``{gfx;}``, ``{rocm}``, ``{torch}``, ``{package}``."""
    major_minor = ".".join(context.rocm.split(".")[:2])
    for key, value in (
        ("{gfx}", context.gfx[0] if context.gfx else "<gfx>"),
        ("{gfx;}", ";".join(context.gfx) or "<gfx>"),
        ("{rocm}", major_minor or "<ROCm version>"),
        ("{torch}", context.torch or "<torch version>"),
        ("{package}", context.package or "<package>"),
    ):
        text = text.replace(key, value)
    return text
