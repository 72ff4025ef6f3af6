"""How a command of ours ends badly: in words or in the envelope, and never in a traceback. Light to load."""

from __future__ import annotations

import contextlib
import os
import sys

from rocmpip.model.errors import InternalError, Interrupted, RocmpipError
from rocmpip.report import envelope, say


def last_net(problem: Exception) -> RocmpipError:
    """What an exception that nobody expected is told as: an interruption that Python or a library wrapped, what the system refuses
    (a full disk), else a fault of ours."""
    interrupted = interruption(problem)
    if interrupted is not None:
        return interrupted
    from rocmpip.model.system import system_error

    return system_error(problem) or internal(problem)


def interruption(problem: BaseException) -> Interrupted | None:
    """The interruption that Python or a library wrapped: one within a class body comes out as a RuntimeError."""
    cause: BaseException | None = problem
    for _ in range(100):
        if isinstance(cause, Interrupted):
            return cause
        if isinstance(cause, KeyboardInterrupt):
            return Interrupted("interrupted")
        cause = (cause.__cause__ or cause.__context__) if cause else None
    return None


def internal(problem: Exception) -> InternalError:
    """Wrap an unexpected exception; its traceback goes to a file in the state folder, redacted."""
    from rocmpip.report.crash import keep

    where = keep(problem)
    return InternalError(
        f"rocmpip failed inside: {type(problem).__name__}: {problem}",
        why="this is a fault of rocmpip, not of your command",
        hint=f"please report it with the details in {where}" if where else "please report it",
    )


def fail(name: str, as_json: bool, problem: RocmpipError, result: object = None) -> int:
    """Tell the error in the form asked for and return its exit code."""
    if as_json:
        try:
            envelope.write(name, getattr(problem, "result", None) or result, (problem,))
            return problem.exit_code
        except (OSError, ValueError):
            # A closed or full stdout: the words still have stderr.
            drop_stdout()
    say.error(problem)
    return problem.exit_code


def drop_stdout() -> None:
    """Nobody reads stdout any more: what is left in its buffer must not make Python complain at its exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
