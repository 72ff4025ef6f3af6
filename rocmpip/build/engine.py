"""One build, from source to an examined wheel."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rocmpip.build.environment import BuildEnvironment, build_environment, config_settings
from rocmpip.build.firsterror import first_error, out_of_memory
from rocmpip.build.git import fetch_git
from rocmpip.build.identity import another
from rocmpip.build.job import BuildJob, BuiltWheel, Progress
from rocmpip.build.jobs import decide_jobs, read_limits
from rocmpip.build.overlay import make_overlay, requirements_for
from rocmpip.build.preflight import missing_needs, refuse_missing
from rocmpip.build.record import write_record
from rocmpip.build.run import Log, run_logged, sigterm_raises
from rocmpip.build.sources import build_system, make_modern, project_folder, unpack
from rocmpip.build.surroundings import look_around
from rocmpip.elf import ElfError, WheelReport, examine_wheel
from rocmpip.model.errors import BuildFailed
from rocmpip.model.recipe import ResolvedRecipe
from rocmpip.model.record import replace

Tell = Callable[[Progress], None]
Diagnose = Callable[[str], "str | None"]

_ROOM = 4 << 30
"""Bytes a work folder should have free: an unpacked source, objects, two wheels."""


def build(job: BuildJob, *, progress: Tell | None = None, diagnose: Diagnose | None = None) -> BuiltWheel:
    """Build one wheel into ``job.out_dir``.

    ``progress`` hears about four times a second how far it is. ``diagnose`` gets the path of the log of a failed build and
    may name its first real cause; without an answer our own reading of the log is told.

    Raises Refused (44) before any work when something of ``[system]`` is missing, BuildFailed (41) when the build fails or
    its wheel is not what was asked for; the log is kept in both cases of the latter. Interrupted builds leave nothing but
    the log.
    """
    # The template builds under its own name; people know the package.
    named = replace(job.recipe, name=job.provenance.inputs.name) if job.provenance else job.recipe
    refuse_missing(
        named,
        missing_needs(
            job.recipe,
            rocm_root=job.rocm_root,
            hip_root=job.hip_root,
            env=job.user_env,
            target_prefix=job.target.prefix,
            only_named=job.only_named,
        ),
    )
    with sigterm_raises(), _work_folder(job) as (work, notes):
        return _Build(job, work, notes, progress, diagnose).run()


@contextlib.contextmanager
def _work_folder(job: BuildJob) -> Iterator[tuple[Path, list[str]]]:
    """A private folder for one build, removed afterwards unless ``keep_build``; and the notes it gave rise to."""
    notes: list[str] = []
    parent = job.work_dir or _place_with_room(job.user_env, notes)
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"rocmpip-build-{job.recipe.name}-", dir=parent))
    if job.keep_build:
        notes.append(f"the build folder is kept: {folder}")
    try:
        yield folder, notes
    finally:
        if not job.keep_build:
            try:
                shutil.rmtree(folder, ignore_errors=True)
            except BaseException:  # an interrupt: a source tree and its objects must not stay behind
                shutil.rmtree(folder, ignore_errors=True)
                raise


def _place_with_room(env: Mapping[str, str], notes: list[str]) -> Path:
    """The first temporary place with room, the user's TMPDIR first; the roomiest, with a note, when none has enough."""
    places = dict.fromkeys(place for place in (env.get("TMPDIR", ""), tempfile.gettempdir(), "/var/tmp") if place)  # noqa: S108
    free: dict[str, int] = {}
    for place in places:
        with contextlib.suppress(OSError):
            if os.access(place, os.W_OK | os.X_OK):
                free[place] = shutil.disk_usage(place).free
        if free.get(place, 0) >= _ROOM:
            if place != next(iter(places)):
                notes.append(f"building in {place}: {next(iter(places))} has too little room")
            return Path(place)
    if not free:
        raise BuildFailed("there is no temporary folder to build in", hint="set TMPDIR to a folder with some GiB of room")
    best = max(free, key=lambda place: free[place])
    notes.append(f"building in {best} with only {free[best] / (1 << 30):.1f} GiB of room: set TMPDIR to a roomier place")
    return Path(best)


class _Build:
    """The steps of one build, with what they share."""

    def __init__(self, job: BuildJob, work: Path, notes: list[str], progress: Tell | None, diagnose: Diagnose | None) -> None:
        self.job = job
        self.work = work
        self.notes = notes
        self.started = time.monotonic()
        self._progress = progress
        self._diagnose = diagnose
        self._stage = "unpack"
        self._count = (0, 0)

    def run(self) -> BuiltWheel:
        job, recipe = self.job, self.job.recipe
        overlay = self.work / "overlay"
        temporary = self.work / "tmp"
        temporary.mkdir()
        environment = self._environment(overlay, temporary)
        settings, said = config_settings(recipe, job.config_settings)
        self.notes += [*environment.said, *said]
        log = Log(job.log_path, environment.secrets)
        try:
            self._head(log, environment, settings)
            self.stage("unpack")
            project = self._source(environment, log)
            for step in recipe.prepare:
                self._prepare(step, project, environment, log)
            make_modern(project)
            if not recipe.isolation:
                self.stage("requirements")
                self._overlay(project, overlay, environment, log)
            self.stage("compile")
            made = self._wheel(project, environment, settings, log)
            self.stage("examine")
            report = self._examine(made, log)
            kept = self._keep(made, report)
            seconds = time.monotonic() - self.started
            log.write(f"rocmpip: built {kept.name} in {seconds:.1f} s")
        finally:
            log.close()
        return BuiltWheel(kept, report, seconds, job.log_path, tuple(self.notes))

    # ---- telling

    def stage(self, name: str) -> None:
        self._stage, self._count = name, (0, 0)
        self.beat("", None)

    def beat(self, line: str, count: tuple[int, int] | None) -> None:
        self._count = count or self._count
        if self._progress is not None:
            elapsed = time.monotonic() - self.started
            done, total = self._count
            self._progress(Progress(self._stage, elapsed, done, total, self.job.expected_seconds, line))

    def _head(self, log: Log, environment: BuildEnvironment, settings: tuple[str, ...]) -> None:
        """What steers the build, at the top of its log: what we set, never the user's whole environment."""
        job = self.job
        log.write(f"rocmpip: {job.recipe.name} {job.recipe.version} for {', '.join(job.gfx) or 'no GPU'}")
        log.write(
            f"rocmpip: recipe {job.recipe.name} ({job.recipe.layer}), ROCm {job.rocm} in {job.rocm_root}, torch {job.torch}"
        )
        for note in self.notes:
            log.write(f"rocmpip: {note}")
        for key, value in sorted(environment.set_by_us.items()):
            log.write(f"rocmpip: {key}={value}")
        for setting in settings:
            log.write(f"rocmpip: -C {setting}")

    def failed(self, what: str, log: Log, code: int, start: int = 0) -> BuildFailed:
        """The error of a failed step: its first real line (from byte ``start`` of the log on), and where the log is."""
        log.flush()
        cause = self._diagnose(str(log.path)) if self._diagnose is not None else None
        with log.path.open(encoding="utf-8", errors="replace") as stream:
            stream.seek(start)
            line = first_error(text for text in stream if not text.startswith("rocmpip: "))
        ended = f"it was ended by signal {-code}" if code < 0 else f"exit code {code}"
        hint = f"the full log is in {log.path}"
        if out_of_memory(line) or code in (-9, 137):
            fewer = f"with fewer jobs than {self.jobs.count} (--jobs)" if self.jobs.count > 1 else "where there is more memory"
            hint = f"it ran out of memory: try again {fewer}; {hint}"
        return BuildFailed(
            f"{self.job.recipe.name} {self.job.recipe.version} could not be built ({what}, {ended})",
            why=cause or log.mask(line),
            hint=hint,
            details=(log.mask(line),) if cause and line and line not in cause else (),
        )

    # ---- steps

    def _environment(self, overlay: Path, temporary: Path) -> BuildEnvironment:
        job = self.job
        self.jobs = decide_jobs(read_limits(), job.recipe.memory_per_job, asked=job.jobs, env=job.user_env)
        self.notes.append(f"{self.jobs.count} job{'s' if self.jobs.count > 1 else ''}: {self.jobs.because}")
        around = look_around(job.rocm_root, job.hip_root, job.user_env, compile_cache=job.compile_cache)
        return build_environment(
            user=job.user_env,
            pip=job.pip_env,
            recipe=job.recipe,
            around=around,
            gfx=job.gfx,
            rocm_root=job.rocm_root,
            hip_root=job.hip_root,
            torch=job.torch,
            jobs=self.jobs.count,
            python_bin=str(Path(job.target.python).parent),
            overlay="" if job.recipe.isolation else str(overlay),
            temporary=str(temporary),
        )

    def _source(self, environment: BuildEnvironment, log: Log) -> Path:
        recipe = self.job.recipe
        if self.job.source is not None:
            return unpack(self.job.source, self.work / "source", recipe.source.subdirectory)
        if recipe.source.kind != "git":
            raise BuildFailed(f"{recipe.name} {recipe.version} has no source here")
        checkout = fetch_git(
            recipe.source, self.work / "source" / recipe.name, env=environment.variables, log=log, on_beat=self.beat
        )
        return project_folder(checkout, recipe.source.subdirectory, recipe.source.url)

    def _overlay(self, project: Path, overlay: Path, environment: BuildEnvironment, log: Log) -> None:
        job = self.job
        backend, own = build_system(project)
        wanted = requirements_for(job.recipe.requires, own, backend, torch=bool(job.torch))
        made = make_overlay(
            wanted, folder=overlay, pip_argv=job.pip_argv, env=environment.variables, work=self.work, log=log,
            constraints=job.constraints, on_beat=self.beat,
        )  # fmt: skip
        log.write(f"rocmpip: build requirements: {', '.join(made.installed) or 'all there'}")

    def _prepare(self, step: tuple[str, ...], project: Path, environment: BuildEnvironment, log: Log) -> None:
        argv = [self.job.target.python if step[0] == "python" else step[0], *step[1:]]
        log.write(f"rocmpip: {' '.join(argv)}")
        log.flush()
        start = log.path.stat().st_size
        code = run_logged(argv, env=environment.variables, cwd=project, log=log, on_beat=self.beat)
        if code:
            raise self.failed(f"its step {' '.join(step)}", log, code, start)

    def _wheel(self, project: Path, environment: BuildEnvironment, settings: tuple[str, ...], log: Log) -> Path:
        out = self.work / "wheel"
        argv = [*self.job.pip_argv, "wheel", "-v", "--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--no-input"]
        argv += ["--no-color", "--progress-bar", "off", "-w", str(out)]
        if not self.job.recipe.isolation:
            argv.append("--no-build-isolation")
        for setting in settings:
            argv += ["--config-settings", setting]
        argv.append(str(project))
        log.write(f"rocmpip: {' '.join(argv)}")
        log.flush()
        start = log.path.stat().st_size
        code = run_logged(
            argv, env=environment.variables, cwd=self.work, log=log, ulimits=self.job.recipe.ulimits, on_beat=self.beat
        )
        if code:
            raise self.failed("pip wheel", log, code, start)
        wheels = sorted(out.glob("*.whl")) if out.is_dir() else []
        if len(wheels) != 1:
            raise self.failed(f"it made {len(wheels)} wheels instead of one", log, code, start)
        return wheels[0]

    def _examine(self, wheel: Path, log: Log) -> WheelReport:
        try:
            report = examine_wheel(wheel)
        except ElfError as problem:
            raise self._unfit(f"its wheel cannot be read: {problem}", log) from problem
        log.write(f"rocmpip: code objects: {', '.join(report.gfx) or 'none'}; links: {', '.join(report.links) or 'none'}")
        record = self.job.provenance
        other = another(wheel, report, record.inputs, self.job.target) if record is not None else ""
        for reason in (*filter(None, (other,)), *verdict(report, self.job.recipe, self.job.gfx)):
            raise self._unfit(reason, log)
        return report

    def _unfit(self, reason: str, log: Log) -> BuildFailed:
        return BuildFailed(
            f"the build of {self.job.recipe.name} {self.job.recipe.version} said success, but {reason}",
            hint=f"nothing was kept or installed; the full log is in {log.path}",
        )

    def _keep(self, wheel: Path, report: WheelReport) -> Path:
        """Write the record and move the wheel into place in one step."""
        job = self.job
        job.out_dir.mkdir(parents=True, exist_ok=True)
        final = job.out_dir / wheel.name
        half = job.out_dir / f".{wheel.name}.{os.getpid()}.part"
        try:
            if job.provenance is None:
                shutil.copyfile(wheel, half)
            else:
                write_record(wheel, half, replace(job.provenance, code_objects=report.gfx))
            half.replace(final)
        finally:
            half.unlink(missing_ok=True)
        return final


def verdict(report: WheelReport, recipe: ResolvedRecipe, gfx: tuple[str, ...]) -> tuple[str, ...]:
    """Why a wheel is not what was asked for; () when it is. Worst first."""
    reasons = []
    forbidden = report.forbidden_links(recipe.verify.must_not_link)
    if forbidden:
        links = ", ".join(f"{Path(file).name} links {library}" for file, library in forbidden[:5])
        reasons.append(f"its wheel is a CUDA build: {links}")
    if recipe.verify.device_code:
        missing = report.missing(gfx)
        if missing and not report.gfx:
            reasons.append(f"its wheel holds no device code at all; asked for {', '.join(gfx)}")
        elif missing:
            reasons.append(f"its wheel holds no device code for {', '.join(missing)} (it has {', '.join(report.gfx)})")
        reasons += [f"part of its wheel cannot be read: {problem}" for problem in report.problems]
    return tuple(reasons)
