"""The pips of one run: the target's pip behind a router that serves the plan, and the lines it is given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rocmpip.app.context import Context, user_indexes
from rocmpip.app.family import alias_for, rocm_environment
from rocmpip.app.lines import line_text
from rocmpip.app.policy import pinned_route
from rocmpip.app.session import Session
from rocmpip.index.default import DEFAULT_INDEX
from rocmpip.model.packages import File
from rocmpip.model.plan import Plan, PlanItem
from rocmpip.model.record import Struct, field, replace
from rocmpip.model.redact import redact
from rocmpip.model.request import IndexOptions
from rocmpip.model.temporary import TemporaryFolder

if TYPE_CHECKING:
    from rocmpip.app.explain import PipFailure

_DROPPED = frozenset(("--no-deps", "--upgrade", "-U", "--force-reinstall", "--require-hashes", "--dry-run"))
_WITH_VALUE = frozenset(("--uploaded-prior-to",))
"""What the plan has decided already; with their value."""


class Pip(Struct):
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
        env.update(rocm_environment(context, self.session.policy.family.made))
        env.update(spoken(context))
        env.update(extra or {})
        return env

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
            transcript=self.transcript,
            ready=self.session.ready if command == "install" else None,
        )

    @property
    def transcript(self) -> Path:
        """What the last pip of this run said, if it failed."""
        return self.folder / "said.txt"

    def failure(self, code: int) -> PipFailure | None:
        """The last pip's failure, explained."""
        from rocmpip.app.explain import read_pip

        return read_pip(code, self.transcript, self.session.context)

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


def spoken(context: Context) -> dict[str, str]:
    """What pip is to say of where it looks, instead of the router's address: see ``target/watched.py``."""
    index = context.request.index
    said = {"ROCMPIP_LOOKING": looking(index)}
    if context.request.verbose and len(indexes := user_indexes(context)) == 1:
        said["ROCMPIP_PLACE"] = redact(indexes[0].rstrip("/"))
        said["ROCMPIP_ELSEWHERE"] = " ".join((*context.catalogue.routed_names, *context.book.names()))
    return said


def looking(index: IndexOptions) -> str:
    """pip's line about where it looks, for the user's own places; "" when those are the default ones, as in pip."""
    main = index.index_url or (DEFAULT_INDEX if index.extra_index_urls else "")
    places = ", ".join(redact(url) for url in (main, *index.extra_index_urls) if url)
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
    route = pinned_route(files, synthetic, session.policy.route, real=not metadata)
    with TemporaryFolder(prefix="rocmpip-act-") as folder, session.router(route) as router:
        yield Pip(session, Path(folder), router.url, json), files


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
