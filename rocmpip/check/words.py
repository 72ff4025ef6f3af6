"""Checks and findings as text: aligned, worst first, readable without colour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rocmpip.check.result import BROKEN, ORDER, SKIPPED, WARN, Check
from rocmpip.model.redact import redact
from rocmpip.report.say import printable

_INDENT = "         "


def doctor(checks: Sequence[Check]) -> str:
    """The text for stdout: what is broken with its evidence and commands, then one line for each check that is fine."""
    lines: list[str] = []
    for check in sorted(checks, key=lambda check: ORDER.index(check.verdict)):
        lines.append(f"{check.verdict:<8} {check.title}")
        if check.verdict in (BROKEN, WARN):
            lines += _block("seen", check.evidence)
            lines += _block("why", (check.why,) if check.why else ())
            lines += _block("mend", check.fix)
            lines.append("")
        else:
            told = check.why if check.verdict == SKIPPED else "; ".join(check.evidence)
            lines[-1] += f": {told}" if told else ""
    lines += ["", _sum(checks)] if lines and lines[-1] else [_sum(checks)]
    return redact(printable("\n".join(lines))) + "\n"


def _block(label: str, rows: Iterable[str]) -> list[str]:
    return [f"{_INDENT}{label if number == 0 else '':<5} {row}" for number, row in enumerate(rows)]


def _sum(checks: Sequence[Check]) -> str:
    counts = [(verdict, sum(check.verdict == verdict for check in checks)) for verdict in ORDER]
    return ", ".join(f"{count} {verdict}" for verdict, count in counts if count)
