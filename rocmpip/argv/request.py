"""pip's command line, environment, configuration and requirement files → one Request."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Protocol

from rocmpip.argv.config import PipConfig
from rocmpip.argv.files import FileReader, Read, Scope, is_remote
from rocmpip.argv.groups import group_requirements, script_requirements, split_group
from rocmpip.argv.labels import TORCH_FAMILY
from rocmpip.argv.render import options_for_pip
from rocmpip.argv.requirement import Kind, Reading, kind_on_disk, read_editable, read_requirement
from rocmpip.argv.table import NEWEST, Option, Version, command_grammar
from rocmpip.argv.values import NameSets, Values, is_pylock
from rocmpip.argv.words import Arity, Words, take_apart
from rocmpip.model.errors import InputError, UsageError
from rocmpip.model.packages import RequirementLine
from rocmpip.model.record import Struct, replace
from rocmpip.model.redact import redact
from rocmpip.model.request import IndexOptions, Request

# Paths are text here: pathlib would change what the user wrote before pip's messages can show it.
# ruff: noqa: PTH118


class Remote(Protocol):
    """Fetch a requirement file by http(s). May raise a RocmpipError or OSError."""

    def __call__(self, place: str, *, index: IndexOptions) -> str | bytes: ...


class Ours(Struct, frozen=True):
    """Our own options of install, download, wheel and lock. Empty means not given."""

    gfx: tuple[str, ...] = ()
    rocm: str = ""
    channel: str = ""
    json: bool = False
    recipe: tuple[str, ...] = ()
    """Recipe files (``--recipe FILE``), absolute."""
    jobs: int = 0
    keep_build: bool = False
    only_ready: bool = False
    rebuild: tuple[str, ...] = ()
    hsa_override: bool = False
    map_cuda_names: bool = False
    python: str = ""
    """``--python``, wherever it stood."""
    extra: tuple[tuple[str, str], ...] = ()
    """(dest, value) of the options a command added by ``extra``, in their order."""
    plain: tuple[str, ...] = ()
    """The words after the sub-command as plain pip would be given them: without our options and without ``--python``."""
    routed: tuple[str, ...] = ()
    """``plain`` without the options that say where packages come from."""


def parse_request(
    argv: Sequence[str],
    *,
    command: str,
    env: Mapping[str, str],
    config: PipConfig,
    cwd: str,
    read: Read,
    remote: Remote | None = None,
    kind: Kind = kind_on_disk,
    family: Collection[str] = TORCH_FAMILY,
    pip_version: Version = NEWEST,
    arity: Arity | None = None,
    extra: tuple[Option, ...] = (),
    python: str = "",
    python_fits: Callable[[str], bool] | None = None,
    told: Callable[[IndexOptions, int], None] = lambda index, quiet: None,
) -> tuple[Request, Ours]:
    """Read one command.

    ``argv``: the words after the sub-command (general options that stood before it may be put in front).
    ``command``: install, download, wheel or lock.
    ``read``: absolute path or URL → content of a requirement file, as str or bytes.
    ``remote``: the same for http(s) places, called with the index options of command line and configuration (a file cannot
    say itself how it is reached); without it ``read`` is asked.
    ``kind``: what is at an absolute path; the default looks.
    ``family``: normalised torch-family names, whose CUDA labels are dropped.
    ``pip_version``: the pip that will run: its options and abbreviations count.
    ``arity``: asked about options newer than the table; without it they are errors.
    ``extra``: further options of our own (``lock`` has some); they come back in ``Ours.extra``.
    ``python``: ``--python`` from before the sub-command.
    ``python_fits``: whether the target Python meets a requires-python (of a script); without it, yes.
    ``told``: called with the indexes of command line and configuration, and the number of -q, before any file is read.

    Raises UsageError and InputError, in pip's words where pip refuses the same.
    """
    grammar = command_grammar(command, pip_version, extra)
    words = take_apart(argv, grammar, arity=arity)
    values = Values()
    values.apply_configuration(config, env, grammar, isolated="--isolated" in argv)
    values.take_all(words.given)
    scope = _scope(values, env)
    reading = Reading(cwd=cwd, kind=kind, family=family)
    index = _index(values, scope, env)
    told(index, values.number("quiet"))
    fetch = None if remote is None else partial(remote, index=index)
    files = FileReader(read, env, reading, scope, pip_version, fetch=fetch)
    constraints, requirements, build_constraints = _requirements(values, words, files, python_fits)
    _finish(values, scope, requirements + constraints)
    python = values.text("python") or python
    request = _request(command, tuple(argv), values, scope, words, reading, files, python, env)
    return _with_lines(request, requirements, constraints, build_constraints), _ours(values, words, extra, python, cwd)


_LONGEST = 86400.0 * 365
"""More seconds than any server is waited for, and few enough for a socket."""

_NAMING = ("editables", "requirements", "groups", "scripts")


def need_requirements(request: Request) -> None:
    """Raise InputError in pip's words when the command names nothing to install."""
    if request.given:
        return
    places = " ".join(redact(place) for place in request.index.find_links)
    advice = f'(maybe you meant "pip {request.command} {places}"?)' if places else f'(see "pip help {request.command}")'
    raise InputError(f"You must give at least one requirement to {request.command} {advice}")


def _scope(values: Values, env: Mapping[str, str]) -> Scope:
    """What the command line and configuration say, before files change it."""
    if values.flag("pre") and (values.releases.first or values.releases.second):
        raise InputError("--pre cannot be used with --all-releases or --only-final.")
    no_index = values.flag("no_index")
    urls = [] if no_index else [values.text("index_url"), *values.many("extra_index_urls")]
    return Scope(
        index_urls=urls,
        find_links=[expand_user(place, env) for place in values.many("find_links")],
        no_index=no_index,
        trusted_hosts=list(values.many("trusted_hosts")),
        binary=values.binary,
        releases=values.releases,
        prefer_binary=values.flag("prefer_binary"),
        pre=values.flag("pre"),
        require_hashes=values.flag("require_hashes"),
        no_require_hashes=values.flag("no_require_hashes"),
        features=list(values.many("use_feature")),
    )


def _requirements(
    values: Values, words: Words, files: FileReader, python_fits: Callable[[str], bool] | None
) -> tuple[list[RequirementLine], list[RequirementLine], list[RequirementLine]]:
    """(constraints, requirements, build constraints), read in pip's order."""
    reading, settings = files.reading, values.many("config_settings")
    constraints = [line for place in values.many("constraints") for line in files.lines(place, constraint=True)]
    found = [
        read_requirement(word, "command line", reading, config_settings=settings) for word in words.positionals if word.strip()
    ]
    for group in values.many("groups"):
        path, name = split_group(group)
        if not is_pylock(path):
            texts = group_requirements(path, name, files.content)
            found += [read_requirement(text, f"{path}:{name}", reading) for text in texts]
    found += [read_editable(text, "command line", reading, config_settings=settings) for text in values.many("editables")]
    for place in values.many("requirements"):
        if not is_pylock(_without_extras(place)):
            lines = files.lines(place, constraint=False)
            found += [line for line in lines if not line.constraint]
            constraints += [line for line in lines if line.constraint]
    found += _script(values, files, python_fits)
    # Build constraints are read for planning builds; their option lines must not change this command's indexes.
    apart = replace(files, scope=Scope(), constraints_called="requirements")
    build = [line for place in values.many("build_constraints") for line in apart.lines(place, constraint=True)]
    return constraints, found, build


def _without_extras(place: str) -> str:
    return place[: place.rindex("[")] if place.endswith("]") and "[" in place else place


def _script(values: Values, files: FileReader, python_fits: Callable[[str], bool] | None) -> list[RequirementLine]:
    scripts = values.many("scripts")
    if len(scripts) > 1:
        raise InputError("--requirements-from-script can only be given once")
    if not scripts:
        return []
    script = scripts[0]
    texts, requires = script_requirements(script, files.content(script))
    if requires and python_fits is not None and not values.flag("ignore_requires_python") and not python_fits(requires):
        raise InputError(f"Script {script!r} requires a different Python: not in {requires!r}")
    return [read_requirement(text, script, files.reading) for text in texts]


def _finish(values: Values, scope: Scope, lines: list[RequirementLine]) -> None:
    """pip's last checks over everything read."""
    if scope.require_hashes and scope.no_require_hashes:
        raise InputError("--require-hashes and --no-require-hashes are mutually exclusive")
    if not scope.no_require_hashes and any(line.hashes for line in lines):
        scope.require_hashes = True
    if not lines and not values.many("requirements") and not values.many("groups"):
        return
    if values.flag("only_deps") and values.flag("no_deps"):
        raise InputError("Cannot use '--only-dependencies' in combination with '--no-deps'.")


def _request(
    command: str,
    argv: tuple[str, ...],
    values: Values,
    scope: Scope,
    words: Words,
    reading: Reading,
    files: FileReader,
    python: str,
    env: Mapping[str, str],
) -> Request:
    places = [_without_extras(place) for place in values.many("requirements")]
    places += [_without_extras(split_group(group)[0]) for group in values.many("groups")]
    return Request(
        command=command,
        requirements=(),
        constraints=(),
        index=_index(values, scope, env),
        argv=argv,
        options=(*options_for_pip(values, scope), *words.unknown),
        pre=scope.pre or ":all:" in scope.releases.first,
        no_binary=tuple(scope.binary.first),
        only_binary=tuple(scope.binary.second),
        prefer_binary=scope.prefer_binary,
        require_hashes=scope.require_hashes,
        no_deps=values.flag("no_deps"),
        upgrade=values.flag("upgrade"),
        upgrade_strategy=values.text("upgrade_strategy") or "only-if-needed",
        force_reinstall=values.flag("force_reinstall"),
        ignore_installed=values.flag("ignore_installed"),
        ignore_requires_python=values.flag("ignore_requires_python"),
        no_build_isolation=not values.flag("build_isolation", default=True),
        config_settings=values.many("config_settings"),
        dry_run=values.flag("dry_run"),
        report=values.text("report"),
        quiet=values.number("quiet"),
        verbose=values.number("verbose"),
        target=values.text("target"),
        prefix=values.text("prefix"),
        root=values.text("root"),
        user=values.flag("user"),
        isolated=values.flag("isolated"),
        cache_dir=expand_user(values.text("cache_dir"), env),
        no_cache=values.flag("no_cache_dir"),
        python=python,
        platforms=values.many("platforms"),
        python_version=values.text("python_version"),
        abis=values.many("abis"),
        implementation=values.text("implementation"),
        files=tuple(files.files),
        notes=tuple(reading.notes),
        places_in_files=scope.changed,
        given=bool(words.positionals) or any(values.many(dest) for dest in _NAMING),
        only_deps=values.flag("only_deps"),
        all_releases=tuple(scope.releases.first),
        only_final=tuple(scope.releases.second),
        uploaded_prior_to=values.text("uploaded_prior_to"),
        output=values.text("dest") or values.text("wheel_dir") or values.text("output"),
        requirement_files=_absolute(
            [one for one in values.many("requirements") if not is_pylock(_without_extras(one))], reading
        ),
        constraint_files=_absolute(values.many("constraints"), reading),
        build_constraint_files=_absolute(values.many("build_constraints"), reading),
        pylocks=_absolute([place for place in places if is_pylock(place)], reading),
    )


def _index(values: Values, scope: Scope, env: Mapping[str, str]) -> IndexOptions:
    first, *others = scope.index_urls or [""]
    return IndexOptions(
        index_url=first,
        extra_index_urls=tuple(dict.fromkeys(url for url in others if url)),
        find_links=tuple(dict.fromkeys(scope.find_links)),
        no_index=scope.no_index,
        trusted_hosts=tuple(dict.fromkeys(scope.trusted_hosts)),
        cert=expand_user(values.text("cert"), env),
        client_cert=expand_user(values.text("client_cert"), env),
        proxy=values.text("proxy"),
        timeout=_timeout(values),
        retries=values.number("retries") if values.given("retries") else 5,
        keyring_provider=values.text("keyring_provider") or "auto",
        no_input=values.flag("no_input"),
        no_proxy_env=values.flag("no_proxy_env"),
        refresh=_names(values.many("refresh_package")),
    )


def _names(texts: Sequence[str]) -> tuple[str, ...]:
    """Comma-separated names with ``:all:`` and ``:none:``, as pip adds them up."""
    names = NameSets()
    for text in texts:
        names.add(text, to_second=False)
    return tuple(names.first)


def _timeout(values: Values) -> float:
    """Seconds. pip fails inside for what no socket takes (0, a negative number, nan); it is a wrong command line."""
    seconds = float(values.text("timeout")) if values.given("timeout") else 15.0
    if not 0 < seconds <= _LONGEST:
        raise UsageError(f"option --timeout: must be a number of seconds above 0: {values.text('timeout')!r}")
    return seconds


def _absolute(places: Sequence[str], reading: Reading) -> tuple[str, ...]:
    return tuple(place if is_remote(place) else os.path.normpath(os.path.join(reading.cwd, place)) for place in places)


def expand_user(path: str, env: Mapping[str, str]) -> str:
    """``~`` and ``~/…`` by HOME of ``env``; other users' homes stay as written."""
    home = env.get("HOME", "")
    return home + path[1:] if home and (path == "~" or path.startswith("~/")) else path


def _with_lines(
    request: Request,
    requirements: list[RequirementLine],
    constraints: list[RequirementLine],
    build_constraints: list[RequirementLine],
) -> Request:
    return replace(
        request,
        requirements=tuple(requirements),
        constraints=tuple(constraints),
        build_constraints=tuple(build_constraints),
    )


def _ours(values: Values, words: Words, extra: tuple[Option, ...], python: str, cwd: str) -> Ours:
    jobs = values.number("jobs")
    if values.given("jobs") and jobs < 1:
        raise UsageError("option --jobs: must be at least 1")
    channel = values.text("channel")
    if channel not in ("", "stable", "test", "nightly"):
        raise UsageError(f"option --channel: invalid choice: {channel!r} (choose from 'stable', 'test', 'nightly')")
    return Ours(
        gfx=_comma(values.many("gfx")),
        rocm=values.text("rocm"),
        channel=channel,
        json=values.flag("json"),
        recipe=tuple(os.path.normpath(os.path.join(cwd, path)) for path in values.many("recipe")),
        jobs=jobs,
        keep_build=values.flag("keep_build"),
        only_ready=values.flag("only_ready"),
        rebuild=_comma(values.many("rebuild")),
        hsa_override=values.flag("hsa_override"),
        map_cuda_names=values.flag("map_cuda_names"),
        python=python,
        plain=words.plain,
        routed=words.routed,
        extra=tuple((given.option.dest, given.value or "") for given in words.given if given.option in extra),
    )


def _comma(values: Sequence[str]) -> tuple[str, ...]:
    """Repeated and comma-separated values as one tuple without repeats."""
    words = (word.strip() for value in values for word in value.replace(";", ",").split(","))
    return tuple(dict.fromkeys(word for word in words if word))
