"""Carry out a plan: PyPI's triton out of the way, the torch family, the builds, the rest; pip speaks to the terminal itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rocmpip.app.explain import full_places
from rocmpip.app.pip_child import Pip, pinned_pip, plan_lines
from rocmpip.app.session import Session
from rocmpip.model.errors import Interrupted, RocmpipError
from rocmpip.model.packages import File
from rocmpip.model.plan import Plan, PlanItem
from rocmpip.model.record import Struct, field
from rocmpip.model.redact import redact
from rocmpip.model.system import system_error
from rocmpip.report import say


class Outcome(Struct):
    """What an install did. ``code`` is the process's exit code."""

    code: int = 0
    done: list[str] = field(default_factory=list)
    built: list[str] = field(default_factory=list)
    problem: RocmpipError | None = None
    failed: str = ""
    """The package that pip failed at, where its words tell."""


def act(session: Session, plan: Plan, *, json: bool = False) -> Outcome:
    """Do it. pip's own failures end with pip's code; what was done before stays, and the same command resumes."""
    import gc

    gc.enable()  # builds take their time, and so does what they say
    outcome = Outcome()
    context = session.context
    todo = [item for item in plan.items if item.action != "keep"]
    torch_family = [item for item in todo if context.catalogue.is_family(item.name)]
    builds = [item for item in todo if item.recipe]
    rest = [item for item in todo if item not in torch_family and item not in builds]
    with pinned_pip(session, plan, json=json) as (pip, files):
        if torch_family and not _install_family(pip, plan, torch_family, outcome):
            return _explained(pip, outcome)
        built = _build_all(pip, plan, builds, files, outcome)
        if outcome.code:
            return outcome
        _install_rest(pip, plan, [*built, *rest], outcome)
        if context.request.report and not outcome.code:
            from rocmpip.app.reports import write_report

            write_report(pip, plan)
        return _explained(pip, outcome)


def _explained(pip: Pip, outcome: Outcome) -> Outcome:
    """With the cause of pip's own failure, as far as its words tell."""
    if outcome.code and outcome.problem is not None:
        from rocmpip.app.explain import explain_pip

        failure = pip.failure(outcome.code)
        explain_pip(outcome.problem, failure, pip.session.context)
        outcome.failed = failure.package if failure is not None else ""
    return outcome


def _force(pip: Pip) -> list[str]:
    return ["--force-reinstall"] if pip.session.context.request.force_reinstall else []


def pip_failed(outcome: Outcome, items: Sequence[PlanItem] = (), places: Sequence[str] = ()) -> RocmpipError:
    """pip's own failure, with what it was about: its words name neither package nor place of a download that is not what it should be."""
    names = ", ".join(f"{item.name} {item.version}" for item in items[:6]) + (" …" if len(items) > 6 else "")
    done = f"already installed and kept: {', '.join(outcome.done)}; " if outcome.done else ""
    full = full_places(places)
    reason = f"; there is next to no room left in {', '.join(full)}" if full else ""
    advice = "make room, or give pip another place with TMPDIR=…; " if full else ""
    problem = RocmpipError(
        f"pip could not install {names}" if names else "pip could not do it",
        why=f"it ended with exit code {outcome.code}; its own words are above{reason}",
        hint=f"{advice}{done}the same command goes on from here; rocmpip diagnose explains what pip printed (… 2>&1 | rocmpip diagnose -)",
        details=tuple(f"{item.name}: {redact(item.file.url)}" for item in items[:6] if item.file is not None and item.file.url),
    )
    problem.exit_code = outcome.code
    problem.slug = "pip"
    return problem


def _install_family(pip: Pip, plan: Plan, items: Sequence[PlanItem], outcome: Outcome) -> bool:
    if any(item.name == "triton" or item.name.endswith(("triton-rocm",)) for item in items) and foreign_triton(pip.session):
        say.step("removing PyPI's triton first: it and the ROCm triton share one folder")
        outcome.code = pip.uninstall(["triton"])
        if outcome.code:
            return False
    torch = next((item for item in items if item.name == "torch"), None)
    if torch is not None:
        say.step(f"torch {torch.version} from {plan.choice.family if plan.choice else 'the index'}")
    # An sdist of the family (rocm) builds for the GPU at hand: pip's cache of built wheels knows nothing of that.
    sources = [item for item in items if item.file is not None and not item.file.filename.endswith(".whl")]
    for part, flags in (([one for one in items if one not in sources], []), (sources, ["--no-cache-dir"])):
        if part:
            outcome.code = pip.install(plan_lines(pip, part), flags=["--no-deps", *flags, *_force(pip)])
            if outcome.code:
                outcome.problem = pip_failed(outcome, part, pip.session.context.target.site_packages)
                return False
            outcome.done.extend(f"{item.name} {item.version}" for item in part)
    return True


def foreign_triton(session: Session) -> bool:
    """True when the target holds a triton distribution with files of its own (not our alias, not a ROCm build)."""
    from rocmpip.target.environment import installed

    for dist in installed(session.context.target.site_packages, ["triton"]):
        if "rocm" in dist.version:
            return False
        try:
            record = (Path(dist.path) / "RECORD").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return True
        return any(line.startswith("triton/") for line in record.splitlines())
    return False


def _build_all(pip: Pip, plan: Plan, builds: Sequence[PlanItem], files: dict[str, File], outcome: Outcome) -> list[PlanItem]:
    """Build (or take from the wheelhouse) each item; its wheel's file goes into ``files``, so that the router serves it."""
    ready: list[PlanItem] = []
    if not builds:
        return ready
    from rocmpip.app.builds import build_item

    for item in builds:
        try:
            made = build_item(pip, plan, item)
        except Interrupted:
            raise
        except (RocmpipError, OSError) as failure:
            problem = failure if isinstance(failure, RocmpipError) else system_error(failure)
            if problem is None:
                raise
            outcome.code, outcome.problem = problem.exit_code, problem
            done = ", ".join(outcome.done)
            if done:
                problem.hint = (
                    problem.hint + "; " if problem.hint else ""
                ) + f"already installed and kept: {done}; the same command resumes"
            return ready
        wheel = made.stored.path
        files[item.name] = File(filename=wheel.name, url=wheel.as_uri(), index="wheelhouse")
        if made.built:
            outcome.built.append(f"{item.name} {item.version}")
        ready.append(item)
    return ready


def _install_rest(pip: Pip, plan: Plan, items: Sequence[PlanItem], outcome: Outcome) -> None:
    kept = [f"{item.name}=={item.version}" for item in plan.items if item.action == "keep" and item.direct and not item.file]
    places = pip.session.context.target.site_packages
    again = [item for item in items if item.recipe and item.installed_version == item.version]
    usual = [item for item in items if item not in again]
    if again:
        outcome.code = pip.install(plan_lines(pip, again), flags=["--no-deps", "--force-reinstall"])
        if outcome.code:
            outcome.problem = pip_failed(outcome, again, places)
            return
    if usual or kept:
        outcome.code = pip.install([*plan_lines(pip, usual), *kept], flags=["--no-deps", *_force(pip)])
        if outcome.code:
            outcome.problem = pip_failed(outcome, usual, places)
            return
    outcome.done.extend(f"{item.name} {item.version}" for item in items)
    loose = pip.session.asked.loose
    if loose:
        from rocmpip.app.loose import install_loose

        outcome.code = install_loose(pip, plan, loose)
        if outcome.code:
            outcome.problem = pip_failed(outcome, places=places)
