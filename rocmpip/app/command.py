"""How a command of ours begins and ends: errors become words or the envelope, and what is not ours becomes pip."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NoReturn

from rocmpip.app.context import Context
from rocmpip.model.errors import InputError, Interrupted, RocmpipError, UsageError
from rocmpip.model.terminated import interrupted_by_sigterm
from rocmpip.report import say


def guarded(command: str, as_json: bool, work: Callable[[], int]) -> int:
    """Run ``work``; every error ends as words on stderr or as the one envelope on stdout."""
    from rocmpip.report.ending import drop_stdout, fail, last_net

    try:
        return work()
    except (InputError, UsageError) as problem:
        if as_json:
            return fail(command, as_json, problem)
        say.refusal(problem)
        return problem.exit_code
    except RocmpipError as problem:
        return fail(command, as_json, problem)
    except KeyboardInterrupt:
        return fail(command, as_json, Interrupted("interrupted"))
    except BrokenPipeError:
        drop_stdout()
        return 0
    except Exception as problem:
        return fail(command, as_json, last_net(problem))


def terminated_as_interrupt() -> AbstractContextManager[None]:
    """Within the block SIGTERM raises Interrupted(143)."""
    return interrupted_by_sigterm("terminated")


def passes_through(context: Context) -> bool:
    """True when there is nothing for us to do: neither GPU nor ROCm, or nothing that an index or a build would answer."""
    return context.platform.state == "none"


def plain_pip(context: Context) -> NoReturn:
    """Become pip; one line on stderr when torch was asked for."""
    from rocmpip.target.pip import become_pip

    names = [line.name for line in context.request.requirements]
    if any(name in ("torch", "torchvision", "torchaudio") for name in names):
        say.note("no AMD GPU and no ROCm seen here: pip goes on alone (say --gfx to get ROCm builds)")
    become_pip([context.request.command, *context.ours.plain], context.target, context.env)
