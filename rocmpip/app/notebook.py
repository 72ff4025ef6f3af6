"""What an install teaches goes into the journal by itself: failures with their first error, and what mended them."""

from __future__ import annotations

from rocmpip.app.act import Outcome
from rocmpip.app.context import Context
from rocmpip.model.plan import Plan
from rocmpip.report import say


def remember(context: Context, plan: Plan, outcome: Outcome) -> None:
    """Write down how an install ended, and say so when the same failure was seen before. Never raises for the journal's sake."""
    from rocmpip.app.journal import note_failure, note_success, seen_before

    torch = next((item.version for item in plan.items if item.name == "torch"), "")
    state, command = context.settings.state_dir, context.request.command
    done = [text.partition(" ")[::2] for text in dict.fromkeys((*outcome.built, *outcome.done))]
    for package, version in done:
        mended = note_success(
            env=context.env,
            state_dir=state,
            command=command,
            package=package,
            version=version,
            platform=context.platform,
            installed=context.installed,
            torch=torch,
        )
        for identity in mended:
            say.note(f"{package}: what failed before works now; rocmpip journal show {identity}")
    problem = outcome.problem
    if problem is None or not outcome.code:
        return
    finished = {package for package, _ in done}
    failed = next((item for item in plan.items if item.recipe and item.name not in finished), None)
    earlier = note_failure(
        env=context.env,
        state_dir=state,
        command=command,
        error=problem.why or problem.message,
        package=failed.name if failed else "",
        version=failed.version if failed else "",
        platform=context.platform,
        installed=context.installed,
        torch=torch,
        python=context.target.version,
    )
    if earlier is not None:
        say.note(seen_before(earlier))
