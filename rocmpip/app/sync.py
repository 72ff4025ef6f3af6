"""``rocmpip sync LOCK``: the environment becomes what the lock says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rocmpip.app.context import Context, gather
from rocmpip.lock import pylock, text
from rocmpip.lock.text import Written
from rocmpip.model.errors import BuildFailed, InputError, Refused, RocmpipError
from rocmpip.model.machine import InstalledDist
from rocmpip.model.packages import Absent
from rocmpip.model.record import Struct, field
from rocmpip.model.rocm import parse_rocm
from rocmpip.model.temporary import TemporaryFolder
from rocmpip.plan.versions import release
from rocmpip.report import envelope, say

COMMAND = "sync"
_TOOLS = frozenset(("pip", "setuptools", "wheel", "rocmpip"))
"""What an environment has without a lock: never removed."""


class Difference(Struct, frozen=True):
    """What separates an environment from a lock. All names are normalised."""

    install: Mapping[str, str] = field(default_factory=dict)
    """Name → version (or URL) of what is missing or has another version and comes as a ready file."""
    build: Mapping[str, str] = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    """Installed and not in the lock."""


def sync(
    path: str,
    *,
    argv: Sequence[str] = (),
    remove: bool = False,
    anyway: bool = False,
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Raises Refused for a lock of another machine, InputError for what is no lock; pip's exit code passes through."""
    content = _content(path)
    written = pylock.read(content, path) if pylock.is_pylock(path) else text.read(content)
    if not written.pins and not written.urls:
        raise InputError(f"{path} locks nothing", hint="make a lock: rocmpip lock -r requirements.in -o requirements.lock")
    context = gather("lock", list(argv))
    problems = list(misfits(written, context))
    if problems and not anyway:
        raise Refused(
            f"{path} is not for this environment",
            why="; ".join(problems),
            hint="lock for this machine (rocmpip lock), or take it as it is with --anyway",
            details=tuple(problems),
        )
    for problem in problems:
        say.warning(problem)
    difference = compare(written, context)
    if not dry_run:
        _carry_out(path, written, context, difference, remove=remove, as_json=as_json)
    _tell(path, difference, remove=remove, dry_run=dry_run, as_json=as_json)
    return 0


def _content(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path} cannot be read", why=getattr(problem, "strerror", "") or str(problem)) from None


def misfits(written: Written, context: Context) -> Iterator[str]:
    """Why the lock is not for this environment: Python, ROCm and GPUs. What either side does not say is no reason."""
    said = written.coordinates
    python = ".".join(context.target.version.split(".")[:2])
    if said.get("python") and said["python"] != python:
        yield f"the lock is for Python {said['python']}, {context.target.prefix} has {python}"
    targets = context.platform.gfx_targets
    locked = tuple(word.strip() for word in said.get("gfx", "").split(",") if word.strip())
    missing = [gfx for gfx in targets if locked and gfx not in locked]
    if missing:
        yield f"the lock is for {', '.join(locked)}, this machine has {', '.join(missing)}"
    here = context.platform.rocm
    if said.get("rocm") and here is not None:
        try:
            there = parse_rocm(said["rocm"])
        except ValueError:
            return
        if there.minor != here.minor:
            yield f"the lock is for ROCm {there}, this machine has {here}"


def compare(written: Written, context: Context) -> Difference:
    """What has to be done. Versions are compared with their local labels: 2.9.1+cpu is not 2.9.1+rocm6.4."""
    installed = {dist.name: dist.version for dist in _installed(context)}
    install: dict[str, str] = {}
    build: dict[str, str] = {}
    keep: list[str] = []
    for name, version in written.pins.items():
        if _same(installed.get(name, ""), version):
            keep.append(name)
        elif name in written.builds:
            build[name] = version
        else:
            install[name] = version
    for name, url in written.urls.items():
        if name not in written.pins:
            install[name] = url
    wanted = {*written.pins, *written.urls}
    spared = _TOOLS | (_own(installed, context) if context.target.own else frozenset())
    extra = tuple(sorted(name for name in installed if name not in wanted and name not in spared))
    return Difference(install, build, tuple(sorted(keep)), extra)


def _installed(context: Context) -> tuple[InstalledDist, ...]:
    from rocmpip.target.environment import installed

    return installed(context.target.site_packages)


def _own(installed: Mapping[str, str], context: Context) -> frozenset[str]:
    """rocmpip and all it stands on, in the environment that runs it."""
    from rocmpip.app.graphs import environment_graph

    graph = environment_graph(context)
    reached: set[str] = set()
    queue = ["rocmpip"]
    while queue:
        name = queue.pop()
        if name in graph.nodes and name not in reached:
            reached.add(name)
            queue.extend(child for child, _ in graph.nodes[name].needs)
    return frozenset(reached)


def _same(one: str, other: str) -> bool:
    if not one:
        return False
    try:
        return release(one).key == release(other).key
    except ValueError:
        return one == other


def _carry_out(path: str, written: Written, context: Context, difference: Difference, *, remove: bool, as_json: bool) -> None:
    extra = difference.extra if remove else ()
    # PyPI's triton and the ROCm one share a folder: the old one goes in a step of its own, or its files win.
    clash = (
        ["triton"] if "triton" in difference.extra and any(name.endswith("triton-rocm") for name in difference.install) else []
    )
    gone = tuple(dict.fromkeys((*clash, *extra)))
    if gone:
        say.step(f"removing {', '.join(gone)}")
        _pip(context, ["uninstall", "-y", *gone], as_json=as_json)
    if difference.install:
        say.step(f"installing {len(difference.install)} packages from {path}")
        with _ReadyPart(path, written, difference.install) as file:
            _pip(context, ["install", "--no-deps", "--require-hashes", "-r", str(file)], as_json=as_json)
    if difference.build:
        _check_sources(written, context, difference.build)
        _build(context, difference.build, as_json=as_json)


class _ReadyPart:
    """A requirements file of the lock's index lines and the entries that are to be installed."""

    def __init__(self, path: str, written: Written, install: Mapping[str, str]) -> None:
        self._folder = TemporaryFolder(prefix="rocmpip-sync-")
        lines = _index_lines(path, written)
        for name, version in install.items():
            first = f"{name} @ {version}" if name in written.urls else f"{name}=={version}"
            hashes = written.hashes.get(name, ())
            if not hashes:
                raise InputError(f"{name} has no hash in {path}", hint="lock again: every entry of a lock has its hashes")
            lines.append(" \\\n    ".join((first, *(f"--hash={one}" for one in hashes))))
        self._file = Path(self._folder.name) / "sync.txt"
        self._file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def __enter__(self) -> Path:
        return self._file

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


def _index_lines(path: str, written: Written) -> list[str]:
    if pylock.is_pylock(path):
        places = dict.fromkeys(written.indexes)
        first, *others = places or ("",)
        lines = [f"--index-url {first}"] if first else []
        lines += [f"--extra-index-url {one}" for one in others]
        return [*lines, *(_from_anywhere(f"--find-links {folder}", path) for folder in written.folders)]
    starts = ("--index-url ", "--extra-index-url ", "--find-links ", "--no-index")
    return [_from_anywhere(line, path) for line in _content(path).splitlines() if line.startswith(starts)]


def _from_anywhere(line: str, path: str) -> str:
    """A folder is named as seen from the lock; the part that pip is given lies elsewhere."""
    option, _, place = line.partition(" ")
    if option != "--find-links" or "://" in place:
        return line
    return f"{option} {Path(path).absolute().parent / place}"


def _pip(context: Context, arguments: Sequence[str], *, as_json: bool) -> None:
    from rocmpip.target.pip import pip_command
    from rocmpip.target.run import run_pip

    code = run_pip(
        pip_command(context.target), list(arguments), env=_environment(context), cwd=context.cwd, stdout_to_stderr=as_json
    )
    if code:
        problem = RocmpipError(f"pip ended with exit code {code}", hint="its own words are above; what was done before stays")
        problem.exit_code = code
        problem.slug = "pip"
        raise problem


def _environment(context: Context) -> dict[str, str]:
    """The user's environment without what would add indexes or constraints to the lock's own."""
    dropped = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_CONSTRAINT", "PIP_REQUIREMENT")
    return {key: value for key, value in context.env.items() if key not in dropped}


def _check_sources(written: Written, context: Context, build: Mapping[str, str]) -> None:
    """A source that is to be built must still be the locked one."""
    from rocmpip.app.context import user_indexes
    from rocmpip.app.open_client import open_client
    from rocmpip.plan.gather import source_version

    for name in build:
        if name in written.urls:
            _check_commit(written, context, name)
    with open_client(context) as client:
        for name, version in build.items():
            if name in written.urls:
                continue
            allowed = set(written.hashes.get(name, ()))
            seen: set[str] = set()
            for index in user_indexes(context):
                page = client.page(index, name)
                if isinstance(page, Absent):
                    continue
                for file in page.files:
                    if _same(source_version(file.filename, name), version):
                        seen.update(f"{algorithm}:{digest}" for algorithm, digest in file.hashes.items())
            if seen and not seen & allowed:
                raise Refused(
                    f"the source of {name} {version} is not the one that was locked",
                    why="its hash on the index is another one",
                    hint="find out why before building it; lock again to accept the new one",
                )


def _check_commit(written: Written, context: Context, name: str) -> None:
    matched = context.recipe_context(torch=written.pins.get("torch", ""), name=name)
    source = context.book.resolve(written.builds[name], written.pins[name], matched).source
    if written.urls[name] != f"git+{source.url}@{source.commit}":
        raise Refused(
            f"the source of {name} {written.pins[name]} is not the one that was locked",
            why=f"the lock has {written.urls[name]}, the recipe has {source.url} at {source.commit or 'no commit'}",
            hint="find out why before building it; lock again to accept the new one",
        )


def _build(context: Context, build: Mapping[str, str], *, as_json: bool) -> None:
    """Builds go the road of ``rocmpip install``: recipe, wheelhouse, examination, journal."""
    from rocmpip.app.act import act
    from rocmpip.app.ahead import refuse_unready
    from rocmpip.app.notebook import remember
    from rocmpip.app.planning import make_plan
    from rocmpip.app.request import sorted_request
    from rocmpip.app.session import open_session

    lines = [f"{name}=={version}" for name, version in build.items()]
    words = ["--no-deps", "--python", context.target.python, *(f"--gfx={gfx}" for gfx in context.platform.gfx_targets)]
    if context.platform.rocm is not None:
        words.append(f"--rocm={context.platform.rocm}")
    say.step(f"building {', '.join(lines)}")
    context = gather("install", [*words, *lines], env=context.env)
    with open_session(context, sorted_request(context)) as session:
        plan = make_plan(session)
        refuse_unready(session, plan)
        outcome = act(session, plan, json=as_json)
    remember(context, plan, outcome)
    if outcome.problem is not None:
        raise outcome.problem
    if outcome.code:
        raise BuildFailed(f"{', '.join(lines)} could not be built", hint="the reason is above; the same command resumes")


def _tell(path: str, difference: Difference, *, remove: bool, dry_run: bool, as_json: bool) -> None:
    if as_json:
        envelope.write(
            COMMAND,
            {
                "lock": path,
                "installed": dict(difference.install),
                "built": dict(difference.build),
                "kept": list(difference.keep),
                "removed": list(difference.extra) if remove else [],
                "extra": [] if remove else list(difference.extra),
                "dry_run": dry_run,
            },
        )
        return
    word = "would be " if dry_run else ""
    done = len(difference.install) + len(difference.build)
    say.step(f"{done} packages {word}installed, {len(difference.keep)} kept")
    if dry_run:
        for name, version in sorted({**difference.install, **difference.build}.items()):
            say.step(f"  {name} {version}{' (built)' if name in difference.build else ''}")
    if difference.extra and not remove:
        say.note(f"not in the lock and left alone: {', '.join(difference.extra)} (--remove-extras removes them)")
