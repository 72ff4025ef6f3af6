"""Checks and findings as text: aligned, worst first, readable without colour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rocmpip.check.finding import LEVELS
from rocmpip.check.result import BROKEN, ORDER, SKIPPED, WARN, Check
from rocmpip.check.verify import Outcome
from rocmpip.model.redact import redact
from rocmpip.report.say import printable

_INDENT = "         "


def doctor(checks: Sequence[Check]) -> str:
    """The text for stdout: what is broken with its evidence and commands, then one line for each check that is fine."""
    lines: list[str] = []
    ordered = sorted(checks, key=lambda check: ORDER.index(check.verdict))
    width = max((len(check.title) for check in ordered if check.verdict not in (BROKEN, WARN)), default=0)
    for check in ordered:
        if check.verdict in (BROKEN, WARN):
            lines.append(f"{check.verdict:<8} {check.title}")
            lines += _block("seen", check.evidence)
            lines += _block("why", (check.why,) if check.why else ())
            lines += _block("mend", check.fix)
            lines.append("")
        else:
            told = check.why if check.verdict == SKIPPED else "; ".join(check.evidence)
            lines.append(f"{check.verdict:<8} {check.title:<{width}}  {told}".rstrip())
    lines += ["", _sum(checks)] if lines and lines[-1] else [_sum(checks)]
    return redact(printable("\n".join(lines))) + "\n"


def _block(label: str, rows: Iterable[str]) -> list[str]:
    return [f"{_INDENT}{label if number == 0 else '':<5} {row}" for number, row in enumerate(rows)]


def _sum(checks: Sequence[Check]) -> str:
    counts = [(verdict, sum(check.verdict == verdict for check in checks)) for verdict in ORDER]
    return ", ".join(f"{count} {verdict}" for verdict, count in counts if count)


def verify(outcome: Outcome) -> str:
    """The text for stdout: findings with evidence and commands, then the steps, then one line that sums up."""
    lines: list[str] = []
    for finding in outcome.findings:
        lines.append(f"{finding.level:<8} {finding.what}  [{finding.kind}]")
        lines += _block("seen", finding.evidence)
        lines += _block("why", (finding.why,) if finding.why else ())
        lines += _block("mend", finding.fix)
        lines.append("")
    for step in outcome.steps:
        lines.append(f"{step.verdict:<8} {step.step}" + (f": {step.detail}" if step.detail else ""))
    counts = [(level, sum(finding.level == level for finding in outcome.findings)) for level in LEVELS]
    told = ", ".join(f"{count} {level}{'s' if count != 1 else ''}" for level, count in counts if count) or "no findings"
    gpu = f"{len(outcome.gpu)} with GPU code" if outcome.gpu else "none with GPU code"
    lines += ["", f"{told} in {outcome.distributions} packages, {gpu}; for {', '.join(outcome.targets) or 'no known GPU'}"]
    return redact(printable("\n".join(lines))) + "\n"
