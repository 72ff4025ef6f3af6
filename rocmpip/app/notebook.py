"""What an install or a build teaches goes into the journal by itself: failures with their cause, and what mended them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rocmpip.model.errors import RocmpipError
from rocmpip.model.packages import normalise
from rocmpip.model.provenance import UNKNOWN
from rocmpip.report import say

if TYPE_CHECKING:
    from rocmpip.app.act import Outcome
    from rocmpip.app.context import Context
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
    # Builds come before the rest: what pip itself could not install is named when its words do, or when it can be nothing else.
    named = next((item for item in left if item.name == outcome.failed), left[0] if len(left) == 1 else None)
    failed = next((item for item in left if item.recipe), named)
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
        version="" if version == UNKNOWN else version,
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

    finding = problem.finding
    earlier = note_failure(
        env=context.env,
        state_dir=context.settings.state_dir,
        command=command,
        error=problem.evidence or problem.why or problem.message,
        package=package,
        version="" if version == UNKNOWN else version,
        platform=context.platform,
        installed=context.installed,
        torch=torch,
        python=context.target.version,
        finding=finding if isinstance(finding, Finding) else None,
    )
    if earlier is not None:
        say.note(seen_before(earlier))


class Watch:
    """A request that goes wholly to pip: written down when it fails, and when what failed before works now."""

    def __init__(self, context: Context) -> None:
        from rocmpip.app.journal import failed_before

        self._context = context
        self._before = self._versions(failed_before(context.env, context.settings.state_dir))

    def _versions(self, names: Iterable[str]) -> dict[str, str]:
        """Name → version installed in the target now, "" for none."""
        from rocmpip.target.environment import installed

        wanted = list(names)
        found = {dist.name: dist.version for dist in installed(self._context.target.site_packages, wanted)} if wanted else {}
        return {name: found.get(name, "") for name in wanted}

    def ended(self, code: int, transcript: Path, problem: RocmpipError | None = None) -> None:
        """Read and tell why pip failed, and write down how it ended. ``problem`` is ours and told in place of pip's words."""
        if not code:
            self._worked()
            return
        from rocmpip.app.explain import read_pip, tell_pip

        failure = read_pip(code, transcript, self._context)
        if problem is None:
            if failure is None:
                return
            tell_pip(failure, self._context)
            problem = RocmpipError(failure.error)
            problem.finding = failure.finding
        # A dry run is no failed install.
        if not self._context.request.dry_run:
            package = normalise(failure.package) if failure is not None else ""
            command = self._context.request.command
            remember_failure(self._context, problem, command=command, package=package, version="", torch="")

    def _worked(self) -> None:
        """Note what is mended: of what failed before, what was named, and what is there in another version now."""
        if not self._before or self._context.request.dry_run:
            return
        request = self._context.request
        named = {line.name for line in request.requirements if line.name and not line.constraint}
        now = self._versions(self._before)
        for name, version in self._before.items():
            if name in named or now[name] not in ("", version):
                remember_success(self._context, command=request.command, package=name, version=now[name], torch="")
