"""The ratio of the matrix (recipes × gfx × ROCm × torch × Python) stands in the summary of every run."""

from __future__ import annotations

from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    rows = [
        value for report in terminalreporter.stats.get("passed", []) for key, value in report.user_properties if key == "recipe"
    ]
    if not rows:
        return
    planned, ready, refused = (sum(column) for column in zip(*rows, strict=True))
    total = planned + ready + refused
    terminalreporter.write_line(
        f"recipes: of {total} combinations of {len(rows)} recipes {planned} can be built ({planned / total:.0%}), {ready} come as ready "
        f"wheels alone ({ready / total:.0%}), {refused} are refused with a reason ({refused / total:.0%})"
    )
