"""pip itself behind the router: for download and wheel, and where pip's own words are the right answer of an install."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rocmpip.app import family, plain
from rocmpip.app.command import guarded, passes_through, plain_pip, terminated_as_interrupt
from rocmpip.app.context import Context, gather
from rocmpip.app.devices import complete
from rocmpip.app.lines import line_text
from rocmpip.app.notebook import Watch
from rocmpip.app.pip_child import Pip
from rocmpip.app.session import Session, open_session
from rocmpip.app.solve import family_constraints
from rocmpip.model.errors import NoPlan
from rocmpip.model.temporary import TemporaryFolder
from rocmpip.report import say


def main(command: str, argv: Sequence[str]) -> int:
    """``rocmpip download`` and ``rocmpip wheel``: pip's command, ROCm's truth."""
    return guarded(command, "--json" in argv, lambda: _run(command, argv))


def _run(command: str, argv: Sequence[str]) -> int:
    from rocmpip.app.request import sorted_request, warn_of_indexes

    context = gather(command, argv)
    if passes_through(context):
        plain_pip(context)
    warn_of_indexes(context.request.index, quiet=context.request.quiet > 1)
    with terminated_as_interrupt(), open_session(context, sorted_request(context)) as session:
        for note in session.asked.notes:
            say.note(note)
        return run_plain(session)


def run_pip_behind(session: Session) -> int:
    """Run the request's own pip command with the router as its only index; returns pip's exit code.

    A torch-family problem that the router met (no build for this GPU, a CUDA package asked for) is told after pip's words
    and decides the exit code.
    """
    context, asked = session.context, session.asked
    command = context.request.command
    held = family.held_family(context, asked) if command == "install" else {}
    policy = session.again(held=held, virtual=False)
    if asked.family and context.platform.state != "none" and not context.request.index.no_index:
        choice = policy.family.get()
        for reason in choice.because:
            say.step(reason)
    watch = Watch(context)
    with session.router() as router, TemporaryFolder(prefix="rocmpip-pip-") as folder:
        pip = Pip(session, Path(folder), router.url, json=context.ours.json)
        if plain.in_own_words(session):
            code = plain.run_routed(pip, held)
        else:
            code = pip.run(command, arguments(session, Path(folder), held))
        code = code or complete(pip)
        problems = [problem for problem in router.errors if isinstance(problem, NoPlan)]
        forbidden = router.forbidden
        problem = problems[0] if problems else cuda_asked(context, [one.name for one in forbidden]) if forbidden else None
        watch.ended(code, pip.transcript, problem)
    if not code and command == "install":
        from rocmpip.app.guard import refresh

        refresh(context)
    if code and problem is not None:
        raise problem
    return code


def run_plain(session: Session) -> int:
    """What pip alone can do: its exit code. Under --no-index there is no index for the router to stand before."""
    unrouted = session.context.request.index.no_index and plain.in_own_words(session)
    if unrouted and not plain.finds_ours_locally(session):
        installs = session.context.request.command == "install"
        return plain.run_unrouted(session, family.held_family(session.context, session.asked) if installs else {})
    return run_pip_behind(session)


def cuda_asked(context: Context, names: Sequence[str]) -> NoPlan:
    """The error for CUDA packages that something asked for behind the router."""
    reason = context.catalogue.forbidden(names[0]) or "it is a part of CUDA"
    instead = context.catalogue.instead(names[0])
    return NoPlan(
        f"a package of this request asks for {names[0]}, a CUDA package",
        why=reason,
        hint=f"use {instead} instead" if instead else "leave the package that needs it out (pip's words above name it)",
        details=tuple(f"also asked for: {name}" for name in names[1:6]),
    )


def arguments(session: Session, folder: Path, held: dict[str, str]) -> list[str]:
    """The user's options and requirements for pip: what stood on the command line stays there, files are rewritten copies."""
    context, asked = session.context, session.asked
    request = context.request
    choice = session.policy.family.made
    words: list[str] = [*request.options, *(("--report", request.report) if request.report else ())]
    words += ["--dry-run"] if request.dry_run else []
    filed: list[str] = []
    for line in request.requirements:
        text = line_text(line)
        if choice is not None and line.name in asked.family and line.name in choice.pins:
            extras = sorted({*line.extras, *choice.extras.get(line.name, ())})
            text = f"{line.name}{'[' + ','.join(extras) + ']' if extras else ''}=={choice.pins[line.name]}"
            text += f" ; {line.marker}" if line.marker else ""
        elif line.path and line.text.lower().startswith("file:") and not line.editable:
            text = line.text  # its fragment may hold a hash
        elif line.hashes:
            text += "".join(f" --hash={one}" for one in line.hashes)
        if line.origin == "command line" and not line.editable and not line.config_settings and not line.hashes:
            words.append(text)
        elif line.origin == "command line" and line.editable:
            words.extend(("-e", text[3:]))
        else:
            filed.append(text)
    is_family = context.catalogue.is_family
    constraints = [line_text(line) for line in asked.constraints if not is_family(line.name)]
    # A CUDA build's label in a constraint means its version.
    constraints += [f"{line.name}{line.specifier}" for line in family_constraints(asked, is_family, held) if line.specifier]
    constraints += [f"{name}=={version}" for name, version in held.items()]
    for name, option, lines in (("requirements.txt", "-r", filed), ("constraints.txt", "-c", constraints)):
        if lines:
            path = folder / name
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            words.extend((option, str(path)))
    return words
