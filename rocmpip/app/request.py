"""Read a pip command line with everything that adds to it: configuration files, environment, requirement files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rocmpip.model.errors import InputError, Refused, UsageError
from rocmpip.model.packages import RequirementLine
from rocmpip.model.record import replace
from rocmpip.report import say

if TYPE_CHECKING:
    from rocmpip.app.context import Context
    from rocmpip.argv.request import Ours
    from rocmpip.argv.table import Option
    from rocmpip.model.machine import TargetEnv
    from rocmpip.model.request import IndexOptions, Request
    from rocmpip.plan.asked import Asked
    from rocmpip.target.pip import PipCommand


def read_request(
    command: str,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    extra: tuple[Option, ...] = (),
    empty: bool = False,
) -> tuple[Request, Ours, TargetEnv]:
    """The request, our own options and the environment it is for. Raises UsageError and InputError, in pip's words where pip refuses.

    ``empty``: it may name nothing to install.
    """
    from rocmpip.app.guard import without
    from rocmpip.argv.refusals import refuse_combinations
    from rocmpip.argv.request import need_requirements, parse_request
    from rocmpip.target.config import read_config
    from rocmpip.target.environment import find_environment
    from rocmpip.target.files import reader
    from rocmpip.target.pip import option_arity, pip_command

    target = find_environment(python_option(argv), env=env, cwd=cwd)
    pip = pip_command(target)

    def arity(name: str) -> int | None:
        return option_arity(pip, command, env).get(name)

    def remote(place: str, *, index: IndexOptions) -> str:
        from rocmpip.index.client import Client

        client = Client(index, env=env)
        try:
            return client.requirement_text(place)
        finally:
            client.close()

    seen: list[tuple[IndexOptions, int]] = []
    try:
        request, ours = parse_request(
            argv,
            command=command,
            env=env,
            config=without(read_config(env, target.prefix, isolated="--isolated" in argv), target.prefix),
            cwd=cwd,
            read=reader(lambda place: ""),
            remote=remote,
            pip_version=pip.version[:2],
            arity=arity,
            extra=extra,
            told=lambda index, quiet: seen.append((index, quiet)),
        )
        refuse_combinations(request)
        if command != "lock" and not empty:
            need_requirements(request)
    except UsageError as problem:
        if problem.words and command != "lock" and "--json" not in argv:
            pip_refuses(pip, [command, *problem.words], env, cwd)
        raise
    except InputError:
        for index, quiet in seen:
            warn_of_indexes(index, quiet=quiet > 1 or "--json" in argv)
        raise
    return request, ours, target


def pip_refuses(pip: PipCommand, words: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
    """Let pip refuse ``words``, which it does before it does anything else: its usage text and its exit code, by SystemExit.

    Returns when it does not refuse them: then the error is ours to tell.
    """
    from rocmpip.target.run import pip_output

    done = pip_output(pip, words, env={**env, "PIP_NO_INDEX": "1"}, cwd=cwd)
    if done.code == UsageError.exit_code:
        say.pips(done.stderr)
        raise SystemExit(done.code)


def warn_of_indexes(index: IndexOptions, *, quiet: bool = False) -> None:
    """pip's warning of an index URL that is none, which it gives before it looks for anything; behind the router it has none."""
    from urllib.parse import urlsplit

    for url in () if quiet else (index.index_url, *index.extra_index_urls):
        try:
            parts = urlsplit(url)
        except ValueError:
            continue
        if url and not parts.scheme and not parts.netloc:
            say.pips(f'WARNING: The index url "{url}" seems invalid, please provide a scheme.\n')


def python_option(argv: Sequence[str]) -> str:
    """The value of ``--python``, wherever it stands; "" when it is not there. The last one counts, as pip has it."""
    value = ""
    for number, word in enumerate(argv):
        if word == "--":
            break
        if word == "--python" and number + 1 < len(argv):
            value = argv[number + 1]
        elif word.startswith("--python="):
            value = word.partition("=")[2]
    return value


def sorted_request(context: Context) -> Asked:
    """The request sorted for planning: the torch family, recipes, files, what is left to pip.

    A CUDA name (cupy-cuda12x, jax[cuda12]) becomes its ROCm package on the user's word alone. Raises Refused without it.
    """
    from rocmpip.app.projects import project_lines
    from rocmpip.plan.asked import sort_request

    active = context.platform.state != "none"
    request, notes = mapped(context) if active else (context.request, ())

    def sort(request: Request) -> Asked:
        return sort_request(
            request,
            context.markers,
            is_family=lambda name: active and context.catalogue.is_family(name),
            has_recipe=lambda name: active and context.book.get(name) is not None,
            forbidden=lambda name: context.catalogue.forbidden(name) if active else None,
            cuda=not active,
        )

    asked = sort(request)
    notes = (*asked.notes, *notes)
    asked = replace(asked, notes=notes)
    brought = project_lines(asked.loose) if request.command == "install" and not request.no_deps else ()
    if not brought:
        return asked
    whole = sort(replace(request, requirements=(*request.requirements, *brought)))
    return replace(whole, notes=notes, said=asked.family)


def mapped(context: Context) -> tuple[Request, tuple[str, ...]]:
    """The request with CUDA names replaced, and what was replaced by what."""
    lines: list[RequirementLine] = []
    notes: list[str] = []
    for line in context.request.requirements:
        found = context.book.mapped_name(line.name, line.extras, context.recipe_context()) if line.name else None
        if found is None or line.url or line.path:
            lines.append(line)
            continue
        instead = found.name + (f"[{','.join(found.extras)}]" if found.extras else "")
        if not context.settings.map_cuda_names:
            raise Refused(
                f"{found.asked} ({line.origin}) is a CUDA package; on ROCm {instead} stands for it",
                why=found.because,
                hint=f"ask for {instead}, or let rocmpip replace such names: --map-cuda-names",
            )
        # A version of the CUDA package says nothing of its ROCm sister's when that is another project.
        same = found.name == line.name
        lines.append(replace(line, name=found.name, extras=found.extras, specifier=line.specifier if same else "", hashes=()))
        notes.append(f"{found.asked} is replaced by {instead}: {found.because}")
    return replace(context.request, requirements=tuple(lines)), tuple(notes)
