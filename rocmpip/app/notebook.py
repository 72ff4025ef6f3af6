"""What an install or a build teaches goes into the journal by itself: failures with their cause, and what mended them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocmpip.report import say

if TYPE_CHECKING:
    from rocmpip.app.act import Outcome
    from rocmpip.app.context import Context
    from rocmpip.model.errors import RocmpipError
    from rocmpip.model.plan import Plan


def remember(context: Context, plan: Plan, outcome: Outcome) -> None:
    """Write down how an install ended, and say so when the same failure was seen before. Never raises for the journal's sake."""
    torch = next((item.version for item in plan.items if item.name == "torch"), "")
    command = context.request.command
    done = [text.partition(" ")[::2] for text in dict.fromkeys((*outcome.built, *outcome.done))]
    for package, version in done:
        remember_success(context, command=command, package=package, version=version, torch=torch)
    problem = outcome.problem
    if problem is None or not outcome.code:
        return
    finished = {package for package, _ in done}
    left = [item for item in plan.items if item.action != "keep" and item.name not in finished]
    # Builds come before the rest: what pip itself could not install is named only when it can be nothing else.
    failed = next((item for item in left if item.recipe), left[0] if len(left) == 1 else None)
    name, version = (failed.name, failed.version) if failed is not None else ("", "")
    remember_failure(context, problem, command=command, package=name, version=version, torch=torch)


def remember_success(context: Context, *, command: str, package: str, version: str, torch: str) -> None:
    """Note that this works now, where it failed before."""
    from rocmpip.app.journal import note_success

    mended = note_success(
        env=context.env,
        state_dir=context.settings.state_dir,
        command=command,
        package=package,
        version="" if version == "0" else version,
        platform=context.platform,
        installed=context.installed,
        torch=torch,
    )
    for identity in mended:
        say.note(f"{package}: what failed before works now; rocmpip journal show {identity}")


def remember_failure(context: Context, problem: RocmpipError, *, command: str, package: str, version: str, torch: str) -> None:
    """Write a failure down with what the rules found in its log, and tell an earlier one that looks like it."""
    from rocmpip.app.journal import note_failure, seen_before
    from rocmpip.diagnose.match import Finding

    finding = getattr(problem, "finding", None)
    earlier = note_failure(
        env=context.env,
        state_dir=context.settings.state_dir,
        command=command,
        error=problem.why or problem.message,
        package=package,
        version="" if version == "0" else version,
        platform=context.platform,
        installed=context.installed,
        torch=torch,
        python=context.target.version,
        finding=finding if isinstance(finding, Finding) else None,
    )
    if earlier is not None:
        say.note(seen_before(earlier))
