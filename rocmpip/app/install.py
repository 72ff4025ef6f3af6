"""``rocmpip install``: read, plan, show, act, say what happened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

from rocmpip.app.command import guarded, passes_through, plain_pip, terminated_as_interrupt
from rocmpip.app.context import Context, gather
from rocmpip.model.errors import InputError, NetworkError, NoPlan, RocmpipError
from rocmpip.model.record import replace
from rocmpip.report import envelope, say

if TYPE_CHECKING:
    from rocmpip.app.session import Session
    from rocmpip.model.plan import Plan
    from rocmpip.target.ready import ReadyPip

COMMAND = "install"
_READER_GONE = 120
"""pip's code when the reader of its stdout went away (``| head``)."""


def main(argv: Sequence[str]) -> int:
    """Run ``rocmpip install ARGV`` and return the exit code: pip's own, or one of ours."""
    return guarded(COMMAND, "--json" in argv, lambda: _install(argv))


def _install(argv: Sequence[str]) -> int:
    context = gather(COMMAND, argv)
    as_json = context.ours.json
    if not as_json:
        if passes_through(context):
            plain_pip(context)
        if is_refused(context):
            refused_by_pip(context)
    with terminated_as_interrupt(), _pip_ahead(context) as ready:
        return plan_and_act(context, as_json=as_json, ready=ready)


@contextmanager
def _pip_ahead(context: Context) -> Iterator[ReadyPip | None]:
    """The target's pip, which loads itself while the plan is made; None for a request that shall only be shown."""
    from rocmpip.target.pip import pip_command
    from rocmpip.target.ready import ready_pip

    with ExitStack() as stack:
        ready = None
        if not context.request.dry_run:
            with suppress(RocmpipError):  # told by whoever runs pip
                ready = stack.enter_context(ready_pip(pip_command(context.target), context.env, context.cwd))
        yield ready


def is_refused(context: Context) -> bool:
    """True for an environment that PEP 668 keeps pip out of, unless the command says otherwise."""
    request = context.request
    elsewhere = request.dry_run or request.target or request.prefix or request.root
    return context.target.externally_managed and not (elsewhere or "--break-system-packages" in request.options)


def refused_by_pip(context: Context) -> NoReturn:
    """pip says it, in its words and those of the distribution. Should it not refuse after all, it has no index to go to."""
    from rocmpip.target.pip import become_pip

    env = {**context.env, "PIP_NO_INDEX": "1"}
    become_pip([context.request.command, *context.ours.plain], context.target, env)


def refused_lock(context: Context) -> int:
    """A lock that cannot be had: pip says so in its words; its exit code, 0 should it have the lock after all. Nothing is installed."""
    from rocmpip.target.pip import pip_command
    from rocmpip.target.run import run_pip

    words = [context.request.command, "--dry-run", *context.ours.plain]
    return run_pip(pip_command(context.target), words, env={**context.env, "PIP_NO_INDEX": "1"}, cwd=context.cwd)


def plan_and_act(context: Context, *, as_json: bool, ready: ReadyPip | None = None) -> int:
    from rocmpip.app.ahead import refuse_unready, unready_notes
    from rocmpip.app.behind import run_plain
    from rocmpip.app.plain import asks_for_ours, is_plain
    from rocmpip.app.planning import make_plan
    from rocmpip.app.request import sorted_request, warn_of_indexes
    from rocmpip.app.session import open_session
    from rocmpip.app.sizes import with_sizes
    from rocmpip.app.unkept import check_locks, refuse_unkept
    from rocmpip.plan.listing import Unusable

    warn_of_indexes(context.request.index, quiet=as_json or context.request.quiet > 1)
    try:
        check_locks(context)
    except NetworkError as unreached:
        code = 0 if as_json else refused_lock(context)
        if code:
            return code
        raise unreached
    asked = sorted_request(context)
    with open_session(context, asked, ready) as session:
        if context.request.uploaded_prior_to and not as_json and not asks_for_ours(session):
            # Only pip keeps to it, and asks all indexes for their upload times: a plan of ours would be refused below.
            return run_plain(session)
        try:
            plan = make_plan(session)
        except NetworkError as unreached:
            if as_json or asks_for_ours(session):
                raise
            if unreached.about_page:
                if context.request.verbose and run_plain(session) == 0:
                    return 0
                raise
            # Nothing of ours is asked for by name: pip tells why a file cannot be had, or has it by ways of its own.
            return run_plain(session)
        except Unusable as unreadable:
            # The metadata of an archive that the user named cannot be made: pip says why, as long as nothing of ours is asked for.
            if as_json or asks_for_ours(session):
                raise NoPlan(str(unreadable), hint="pip says more: rocmpip wheel --no-deps and the archive") from None
            return run_plain(session)
        except (NoPlan, InputError) as conflict:
            if as_json or ours_to_tell(session, conflict):
                raise
            # Nothing of ours is in the way: pip tells such a conflict in its own words, with its own exit code.
            return run_plain(session)
        session.expected = tuple(item.name for item in plan.items if item.action != "keep")
        plain = is_plain(session, plan)
        refuse_unkept(context, plain=plain)
        if not as_json and plain:
            return run_plain(session)
        if context.target.kind == "system" and not context.platform.container:
            say.warning(f"{context.target.python} is neither a virtual environment nor a container")
        if context.request.dry_run:
            plan = replace(with_sizes(plan, session.client.size), notes=(*plan.notes, *unready_notes(session, plan)))
            if context.request.report:
                from rocmpip.app.act import Outcome, pip_failed
                from rocmpip.app.reports import report_plan

                code = report_plan(session, plan, json=as_json)
                if code:
                    raise pip_failed(Outcome(code))
                if context.request.report == "-" and not as_json:
                    return 0
            return show(context, plan, as_json=as_json)
        refuse_unready(session, plan)
        _announce(context, plan)
        from rocmpip.app.act import act

        outcome = act(session, plan, json=as_json)
    from rocmpip.app.notebook import remember

    remember(context, plan, outcome)
    if outcome.done:
        from rocmpip.app.guard import refresh

        refresh(context)
    problem = outcome.problem
    if as_json:
        envelope.write(COMMAND, result(context, plan, built=outcome.built, done=outcome.done), (problem,) if problem else ())
    elif problem is not None:
        if outcome.code != _READER_GONE:
            say.error(problem)
    elif outcome.code == 0:
        _closing(plan, outcome.built)
    return outcome.code


def ours_to_tell(session: Session, problem: RocmpipError) -> bool:
    """True when the error is about the torch family, a recipe or a CUDA package; plain conflicts are pip's to tell."""
    from rocmpip.app.plain import asks_for_ours

    names = set(getattr(problem, "names", ()))
    if isinstance(problem, InputError) and not names:
        return False
    if not names:
        return asks_for_ours(session) or session.policy.family.made is not None or bool(session.policy.held)
    context = session.context
    return any(
        context.catalogue.is_family(name) or context.catalogue.forbidden(name) or context.book.get(name) is not None
        for name in names
    )


def result(context: Context, plan: Plan, **more: object) -> dict[str, object]:
    """``result`` of the JSON envelope: plan, family, and platform as ``detect`` gives it."""
    from rocmpip.app.detect import platform_result, python_result, torch_result
    from rocmpip.report.plan import plan_json

    platform = {
        **platform_result(context.platform),
        "python": python_result(context.target),
        "torch": torch_result(context.installed),
    }
    return {**plan_json(plan), "platform": platform, **more}


def show(context: Context, plan: Plan, *, as_json: bool) -> int:
    """Print the plan: it is the data asked for, so it goes to stdout."""
    if as_json:
        envelope.write(COMMAND, result(context, plan))
        return 0
    from rocmpip.report.plan import plan_lines

    for note in plan.notes:
        say.note(note)
    print("\n".join(plan_lines(plan)))  # noqa: T201 - the plan is the output
    return 0


def _announce(context: Context, plan: Plan) -> None:
    if context.request.quiet:
        return
    from rocmpip.report.plan import own_reasons

    for note in plan.notes:
        say.note(note)
    choice = plan.choice
    if choice is not None and any(item.action != "keep" and item.name in choice.pins for item in plan.items):
        for reason in choice.because:
            say.step(reason)
    for item in plan.items:
        if item.action in ("replace", "build") and (item.recipe or (choice and item.name in choice.pins)):
            say.step(f"{item.name} {item.version}: " + "; ".join(own_reasons(plan, item)))


def _closing(plan: Plan, built: Sequence[str]) -> None:
    if built:
        say.step("built and kept: " + ", ".join(built))
    if plan.leftovers:
        say.note(
            "these CUDA packages are still installed and nothing needs them: "
            + ", ".join(plan.leftovers)
            + "; remove them with: pip uninstall "
            + " ".join(plan.leftovers)
        )
