"""Requests that involve nothing of ours: pip runs once, in the user's own words, so that what it says is what it always says.

The router stands behind it all the same: what our plan did not foresee cannot bring CUDA in.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rocmpip.app.notebook import Watch
from rocmpip.model.plan import Plan
from rocmpip.model.temporary import TemporaryFolder
from rocmpip.plan.asked import read_filename

if TYPE_CHECKING:
    from rocmpip.app.pip_child import Pip
    from rocmpip.app.session import Session


def asks_for_ours(session: Session) -> bool:
    """True when the user's own words name the torch family or a package with a recipe."""
    asked = session.asked
    return bool(asked.family or asked.recipes)


def is_plain(session: Session, plan: Plan) -> bool:
    """True when the plan touches neither the torch family nor a recipe nor a build: pip alone would do the same."""
    context = session.context
    if asks_for_ours(session) or session.policy.family.made is not None:
        return False
    for item in plan.items:
        if item.action == "keep":
            continue
        if item.action == "build" or item.recipe or item.origin == "wheelhouse":
            return False
        if context.catalogue.is_family(item.name) or context.book.get(item.name) is not None:
            return False
    if session.asked.loose:
        from rocmpip.app.loose import torch_projects

        return not torch_projects(session.asked.loose)
    return True


def in_own_words(session: Session) -> bool:
    """True when pip can be given the user's words as they stand: nothing in them leads past the router or was changed by us."""
    context = session.context
    request = context.request
    return not (
        asks_for_ours(session)
        or session.asked.family_constraints
        or session.asked.constraints != request.constraints
        or request.places_in_files
        or request.isolated
        or request.index.proxy
        or request.index.no_proxy_env
        or any(place.lower().startswith(("http:", "https:")) for place in request.files)
    )


def finds_ours_locally(session: Session) -> bool:
    """True when a find-links place holds the torch family, a CUDA package or one with a recipe: not for pip to choose from."""
    context = session.context
    names = {
        read_filename(file.filename)[0]
        for place in context.request.index.find_links
        for file in session.client.find_links(place)
    }
    return any(
        context.catalogue.is_family(name) or context.catalogue.forbidden(name) or context.book.get(name) is not None
        for name in names
        if name
    )


def own_words(session: Session, folder: Path, held: Mapping[str, str], *, routed: bool = True) -> list[str]:
    """The arguments of the sub-command: the user's, and a constraint on the torch family where one is held."""
    ours = session.context.ours
    words = list(ours.routed if routed else ours.plain)
    if held:
        path = folder / "held.txt"
        path.write_text("".join(f"{name}=={version}\n" for name, version in held.items()), encoding="utf-8")
        words[:0] = ["--constraint", str(path)]
    return words


def run_routed(pip: Pip, held: Mapping[str, str]) -> int:
    """pip in the user's words, environment and configuration, with the router in the place of every index and find-links place."""
    from rocmpip.app.family import rocm_environment
    from rocmpip.app.pip_child import spoken
    from rocmpip.target.pip import pip_command
    from rocmpip.target.run import routed_environment, run_pip

    context = pip.session.context
    empty = pip.folder / "empty"
    empty.mkdir(exist_ok=True)
    env = routed_environment(context.env, router_url=pip.url, empty_folder=str(empty))
    # What pip resolves itself may bring torch along.
    env.update(rocm_environment(context, pip.session.policy.family.made))
    env.update(spoken(context))
    return run_pip(
        pip_command(context.target),
        [context.request.command, *own_words(pip.session, pip.folder, held)],
        env=env,
        cwd=context.cwd,
        stdout_to_stderr=pip.json,
        transcript=pip.transcript,
        ready=pip.session.ready if context.request.command == "install" else None,
    )


def run_unrouted(session: Session, held: Mapping[str, str]) -> int:
    """--no-index: pip in the user's words, with no index to stand before; returns its exit code."""

    from rocmpip.target.pip import pip_command
    from rocmpip.target.run import run_pip

    context = session.context
    env = {name: value for name, value in context.env.items() if name != "PIP_PYTHON"}
    with TemporaryFolder(prefix="rocmpip-pip-") as folder:
        words = own_words(session, Path(folder), held, routed=False)
        said = Path(folder, "said.txt")
        watch = Watch(context)
        code = run_pip(
            pip_command(context.target),
            [context.request.command, *words],
            env=env,
            cwd=context.cwd,
            transcript=said,
            ready=session.ready if context.request.command == "install" else None,
        )
        watch.ended(code, said)
        return code
