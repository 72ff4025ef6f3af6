"""Run the rules over lines: collect what each pattern hits, then decide which rules hold and which comes first."""

from __future__ import annotations

from collections.abc import Iterable

from rocmpip.diagnose.outcome import Outcome, Probes
from rocmpip.diagnose.rules import CONFIDENCE, Rule, RuleBook
from rocmpip.diagnose.text import bare
from rocmpip.model.record import Struct, field, replace


class MachineContext(Struct, frozen=True):
    """What fits the advice to this machine. Empty fields are shown as placeholders such as ``<gfx>``."""

    gfx: tuple[str, ...] = ()
    rocm: str = ""
    torch: str = ""
    package: str = ""
    wsl: bool = False
    container: bool = False
    rocm_path: str = ""
    """The root that wins; "" means /opt/rocm."""
    installer: str = ""
    """apt, dnf, zypper or pacman: advice for the others is left out where there is one for this."""


class Finding(Struct, frozen=True):
    """One cause. ``line`` counts from 1; ``evidence`` is that line without control characters, cut to 300 characters."""

    kind: str
    family: str
    confidence: str
    line: int
    evidence: str
    cause: str
    fix: tuple[str, ...]
    source: str
    weight: int = 0

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


class Diagnosis(Struct, frozen=True):
    """Findings best first; ``worth`` are lines worth reading when nothing is known: (number, text)."""

    findings: tuple[Finding, ...]
    worth: tuple[tuple[int, str], ...] = ()
    lines: int = 0
    ends_well: bool = False
    package: str = ""
    """What was being built or looked for when it failed, as the log says."""


_NO_DIGITS = str.maketrans("0123456789", "0000000000")


class _Hit(Struct):
    line: int
    text: str
    groups: set[str] = field(default_factory=set)


class _Search:
    """Where each pattern was found first."""

    # A pattern that was tried in vain on this many long lines is not tried on long lines again: no log can make it run long.
    PATIENCE = 2000
    LONG = 400
    # A build log repeats one line a thousand times with other numbers in it. A shape that brought nothing this often is dull:
    # only texts with digits are looked for in it.
    ENOUGH = 8
    SHAPES = 50_000

    def __init__(self, book: RuleBook) -> None:
        self.hits: dict[int, _Hit] = {}
        self._book = book
        self._vain: dict[int, int] = {}
        self._index = book.index
        self._dull: dict[str, int] = {}

    def look(self, number: int, text: str, whole: str, *, probe: bool = False) -> None:
        """Try every pattern whose literal stands in ``text``; the evidence is ``whole``."""
        shape = text.translate(_NO_DIGITS)
        dull = self._dull.get(shape, 0) >= self.ENOUGH
        index, before = self._index, len(self.hits)
        for literal, candidates in index.with_digits if dull else index.candidates(text):
            if literal in text:
                for one in candidates:
                    self._try(one, number, text, whole, probe)
        if dull:
            return
        for one in index.without_literal:
            self._try(one, number, text, whole, probe)
        if len(self.hits) == before and len(self._dull) < self.SHAPES:
            self._dull[shape] = self._dull.get(shape, 0) + 1

    def look_across(self, number: int, before: str, text: str) -> None:
        """Try the patterns whose literal stands only in the two lines together: messages are wrapped at the window's width."""
        both = f"{before} {text}"
        for literal, candidates in self._index.candidates(both):
            if " " in literal and literal in both and literal not in before and literal not in text:
                for one in candidates:
                    self._try(one, number, both, both, False)

    def _try(self, one: int, number: int, text: str, whole: str, probe: bool) -> None:
        book = self._book
        hit = self.hits.get(one)
        if (hit is not None and one not in book.grouped) or (probe and one not in book.probing):
            return
        if len(text) > self.LONG and self._vain.get(one, 0) > self.PATIENCE:
            return
        match = book.patterns[one].regex.search(text)
        if match is None:
            self._vain[one] = self._vain.get(one, 0) + 1
            return
        if hit is None:
            hit = self.hits[one] = _Hit(number, whole)
        if one in book.grouped and match.re.groups and match.group(1) and len(hit.groups) < 100:
            hit.groups.update(match.group(1).replace(";", " ").replace(",", " ").split())


def diagnose(lines: Iterable[tuple[int, str]], book: RuleBook, context: MachineContext | None = None) -> Diagnosis:
    """Look at (number, clean text) lines once and say what is wrong."""
    context = context or MachineContext()
    search, outcome, probes = _Search(book), Outcome(), Probes()
    count = 0
    before = ""
    for number, whole in lines:
        count = number
        text = bare(whole)
        if not text:
            before = ""
            continue
        probe = probes.see(text)
        search.look(number, text, whole, probe=probe)
        if before and not probe and len(text) < 160 and whole[0] in " \t|│":
            search.look_across(number, before, text.lstrip())
        outcome.see(number, text, probe=probe)
        before = text.rstrip() if not probe and 50 < len(text) < 160 else ""
    ends_well = outcome.ends_well
    context = context if context.package else replace(context, package=outcome.package)
    held = [rule for rule in book.rules if _holds(rule, search.hits, context)]
    if ends_well or any(rule.confidence != CONFIDENCE[0] for rule in held):
        held = [rule for rule in held if not rule.guess]
    findings = [_finding(rule, search.hits, context, ends_well) for rule in held]
    findings.sort(key=_order)
    unique: dict[str, Finding] = {}
    for one in findings:
        unique.setdefault(one.kind, one)
    return Diagnosis(tuple(unique.values()), outcome.worth, count, ends_well, outcome.package)


def _order(finding: Finding) -> tuple[bool, int, int]:
    # A rule of low confidence never stands before a better one, whatever its weight.
    return finding.confidence == CONFIDENCE[0], -finding.weight, finding.line


def _holds(rule: Rule, hits: dict[int, _Hit], context: MachineContext) -> bool:
    if not any(number in hits for number in rule.line):
        return False
    if any(number not in hits for number in rule.also) or any(number in hits for number in rule.unless):
        return False
    if rule.differs is not None:
        first, second = (hits.get(number) for number in rule.differs)
        if first is None or second is None or not first.groups or not second.groups or first.groups & second.groups:
            return False
    gfx = rule.when.get("gfx")
    if gfx is not None and context.gfx and not set(gfx) & set(context.gfx):
        return False
    facts = {"wsl": context.wsl, "container": context.container}
    return all(rule.when.get(key, value) == value for key, value in facts.items())


def _finding(rule: Rule, hits: dict[int, _Hit], context: MachineContext, ends_well: bool) -> Finding:
    # A rule names its most telling pattern first; the others are there for logs that lack that line.
    hit = next(hits[number] for number in rule.line if number in hits)
    return Finding(
        kind=rule.kind,
        family=rule.family,
        confidence=CONFIDENCE[0] if ends_well and not rule.success else rule.confidence,
        line=hit.line,
        evidence=hit.text.strip()[:300],
        cause=fill(rule.cause, context),
        fix=tuple(fill(one, context) for one in fitting(rule.fix, context.installer)),
        source=rule.source,
        weight=rule.weight,
    )


_INSTALLERS = ("apt", "dnf", "zypper", "pacman")


def fitting(fix: tuple[str, ...], installer: str) -> tuple[str, ...]:
    """``fix`` without the commands of other distributions, if it has one for this."""
    mine = f"sudo {installer} "
    if not installer or not any(mine in one for one in fix):
        return fix
    others = tuple(f"sudo {one} " for one in _INSTALLERS if one != installer)
    return tuple(one for one in fix if not one.startswith(others))


def fill(text: str, context: MachineContext) -> str:
    """Put this machine's facts into a text: ``{gfx}``, ``{gfx;}``, ``{rocm}``, ``{rocm_path}``, ``{torch}``, ``{package}``."""
    major_minor = ".".join(context.rocm.split(".")[:2])
    for key, value in (
        ("{gfx}", context.gfx[0] if context.gfx else "<gfx>"),
        ("{gfx;}", ";".join(context.gfx) or "<gfx>"),
        ("{rocm}", major_minor or "<ROCm version>"),
        ("{rocm_path}", context.rocm_path or "/opt/rocm"),
        ("{torch}", context.torch.partition("+")[0] or "<torch version>"),
        ("{package}", context.package or "<package>"),
    ):
        text = text.replace(key, value)
    return text
