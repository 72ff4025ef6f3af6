"""Carry out a plan: PyPI's triton out of the way, the torch family, the builds, the rest; pip speaks to the terminal itself."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from rocmpip.app.family import alias_for
from rocmpip.app.lines import line_text
from rocmpip.app.policy import pinned_route
from rocmpip.app.session import Session
from rocmpip.model.errors import Interrupted, RocmpipError
from rocmpip.model.packages import File
from rocmpip.model.plan import Plan, PlanItem
from rocmpip.model.redact import redact
from rocmpip.model.request import IndexOptions
from rocmpip.model.system import system_error
from rocmpip.report import say

_DROPPED = frozenset(("--no-deps", "--upgrade", "-U", "--force-reinstall", "--require-hashes", "--dry-run"))
_WITH_VALUE = frozenset(("--uploaded-prior-to",))
"""What the plan has decided already; with their value."""


@dataclass
class Outcome:
    """What an install did. ``code`` is the process's exit code."""

    code: int = 0
    done: list[str] = field(default_factory=list)
    built: list[str] = field(default_factory=list)
    problem: RocmpipError | None = None


@dataclass
class Pip:
    """Runs the target's pip behind one router with the plan's files."""

    session: Session
    folder: Path
    url: str
    json: bool
    number: int = 0
    reports: list[Path] = field(default_factory=list)
    """Where each pip's --report lies, when the user asked for one."""

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        from rocmpip.target.run import neutral_environment

        context = self.session.context
        empty = self.folder / "empty"
        empty.mkdir(exist_ok=True)
        env = neutral_environment(context.env, router_url=self.url, empty_folder=str(empty), index=context.request.index)
        env.update(self._rocm_environment())
        env["ROCMPIP_LOOKING"] = looking(context.request.index)
        env.update(extra or {})
        return env

    def _rocm_environment(self) -> dict[str, str]:
        choice = self.session.policy.family.made
        if choice is None:
            return {}
        from rocmpip.plan.family import rocm_build_env

        return dict(rocm_build_env(self.session.context.platform.gfx_targets))

    def install(
        self, lines: Sequence[str], *, flags: Sequence[str] = (), env: Mapping[str, str] | None = None, silent: bool = False
    ) -> int:
        """``pip install`` of exactly these lines; returns pip's exit code. ``silent``: stdout is kept for something else."""
        report: list[str] = []
        if self.session.context.request.report:
            path = self.folder / f"report-{len(self.reports)}.json"
            self.reports.append(path)
            report = ["--report", str(path)]
        return self.run("install", [*self._options(), *flags, *report, *self._words(lines)], env=env, silent=silent)

    def _options(self) -> list[str]:
        """The user's options, without those that the plan has answered."""
        kept: list[str] = []
        words = iter(self.session.context.request.options)
        for word in words:
            if word in _WITH_VALUE:
                next(words, "")
            elif word not in _DROPPED:
                kept.append(word)
        return kept

    def run(self, command: str, arguments: Sequence[str], *, env: Mapping[str, str] | None = None, silent: bool = False) -> int:
        """Any pip command on our terminal; returns pip's exit code."""
        from rocmpip.target.pip import pip_command
        from rocmpip.target.run import run_pip

        context = self.session.context
        return run_pip(
            pip_command(context.target),
            [command, *arguments],
            env=self.environment(env),
            cwd=context.cwd,
            stdout_to_stderr=self.json or silent,
        )

    def _words(self, lines: Sequence[str]) -> list[str]:
        """On the command line, so that pip's words name no file of ours; in a file when a line needs one or they are many."""
        if len(lines) <= 500 and not any(" " in line for line in lines):
            return list(lines)
        self.number += 1
        path = self.folder / f"step-{self.number}.txt"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return ["-r", str(path)]

    def uninstall(self, names: Sequence[str]) -> int:
        from rocmpip.argv.render import uninstall_options

        return self.run("uninstall", ["-y", *uninstall_options(self.session.context.request.options), *names])


def looking(index: IndexOptions) -> str:
    """pip's line about where it looks, for the user's own places; "" when those are the default ones, as in pip."""
    places = ", ".join(redact(url) for url in (index.index_url, *index.extra_index_urls) if url)
    links = ", ".join(redact(place) for place in index.find_links)
    lines = [f"Looking in indexes: {places}"] if places and not index.no_index else []
    if links:
        lines.append(f"Looking in links: {links}")
    return "\n".join(lines)


@contextmanager
def pinned_pip(session: Session, plan: Plan, *, json: bool, metadata: bool = False) -> Iterator[tuple[Pip, dict[str, File]]]:
    """A pip behind a router that serves exactly the plan; the returned dict may grow (built wheels).

    ``metadata``: pip may ask for metadata apart from the files (a dry run should not fetch those).
    """
    # pip reads the metadata in the wheel: without a dry run the .metadata file is one more thing that a server may lack.
    files = {
        item.name: item.file if metadata else replace(item.file, core_metadata=None)
        for item in plan.items
        if item.file is not None and item.action != "build"
    }
    synthetic = {}
    choice = plan.choice
    if choice is not None:
        alias = alias_for("triton", choice)
        if alias is not None:
            synthetic["triton"] = alias
            files.pop("triton", None)
    route = pinned_route(files, synthetic, session.policy.route)
    with tempfile.TemporaryDirectory(prefix="rocmpip-act-") as folder, session.router(route) as router:
        yield Pip(session, Path(folder), router.url, json), files


def act(session: Session, plan: Plan, *, json: bool = False) -> Outcome:
    """Do it. pip's own failures end with pip's code; what was done before stays, and the same command resumes."""
    outcome = Outcome()
    context = session.context
    todo = [item for item in plan.items if item.action != "keep"]
    torch_family = [item for item in todo if context.catalogue.is_family(item.name)]
    builds = [item for item in todo if item.recipe]
    rest = [item for item in todo if item not in torch_family and item not in builds]
    with pinned_pip(session, plan, json=json) as (pip, files):
        if torch_family and not _install_family(pip, plan, torch_family, outcome):
            return outcome
        built = _build_all(pip, plan, builds, files, outcome)
        if outcome.code:
            return outcome
        _install_rest(pip, plan, [*built, *rest], outcome)
        if context.request.report and not outcome.code:
            from rocmpip.app.reports import write_report

            write_report(pip, plan)
    return outcome


def _force(pip: Pip) -> list[str]:
    return ["--force-reinstall"] if pip.session.context.request.force_reinstall else []


def pip_failed(outcome: Outcome, items: Sequence[PlanItem] = ()) -> RocmpipError:
    """pip's own failure, with what it was about: its words name neither package nor place of a download that is not what it should be."""
    names = ", ".join(f"{item.name} {item.version}" for item in items[:6]) + (" …" if len(items) > 6 else "")
    done = f"already installed and kept: {', '.join(outcome.done)}; " if outcome.done else ""
    problem = RocmpipError(
        f"pip could not install {names}" if names else "pip could not do it",
        why=f"it ended with exit code {outcome.code}; its own words are above",
        hint=f"{done}the same command goes on from here",
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
                outcome.problem = pip_failed(outcome, part)
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


def plan_lines(pip: Pip, items: Sequence[PlanItem]) -> list[str]:
    """One line a package: exact pins; what was named by URL or path keeps the user's words; settings of -C stay with their line."""
    asked = pip.session.asked
    direct = {one.name: one for one in asked.direct if one.name}
    settings = {line.name: line.config_settings for line in asked.plain if line.config_settings}
    lines = []
    for item in items:
        if item.name in direct:
            lines.append(line_text(direct[item.name].line))
            continue
        text = f"{item.name}=={item.version}"
        for setting in settings.get(item.name, ()):
            text += f' --config-settings "{setting}"'
        lines.append(text)
    return lines


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
    again = [item for item in items if item.recipe and item.installed_version == item.version]
    usual = [item for item in items if item not in again]
    if again:
        outcome.code = pip.install(plan_lines(pip, again), flags=["--no-deps", "--force-reinstall"])
        if outcome.code:
            outcome.problem = pip_failed(outcome, again)
            return
    if usual or kept:
        outcome.code = pip.install([*plan_lines(pip, usual), *kept], flags=["--no-deps", *_force(pip)])
        if outcome.code:
            outcome.problem = pip_failed(outcome, usual)
            return
    outcome.done.extend(f"{item.name} {item.version}" for item in items)
    loose = pip.session.asked.loose
    if loose:
        from rocmpip.app.loose import install_loose

        outcome.code = install_loose(pip, plan, loose)
        if outcome.code:
            outcome.problem = pip_failed(outcome)
