"""The fast path: decide with the lightest of the standard library, then become pip, or hand over to our commands."""

from __future__ import annotations

import os
import sys

from rocmpip.argv.split import Command, split_command

OVERLAID = ("install", "download", "wheel", "lock")
"""pip's commands that rocmpip stands in for."""
_NO_PYTHON_OPTION = (
    "demo",
    "diagnose",
    "dockerfile",
    "examine",
    "journal",
    "recipe",
    "router",
    "run",
    "settings",
    "shell-init",
    "shim",
    "tree",
    "wheelhouse",
    "why",
)
"""Commands of ours that take the environment from ROCMPIP_PYTHON, since they have no ``--python`` among their options."""

_BECOMING = "_ROCMPIP_BECOMING"
"""Our process id while we turn into another program. Seen again under the same id, that program was rocmpip."""


def main(argv: list[str] | None = None) -> int:
    """Run one command line and return its exit code. Plain pip ends in SystemExit or replaces this process."""
    words = sys.argv[1:] if argv is None else list(argv)
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        _open_closed()
    command = split_command(words)
    try:
        code = _dispatch(command, words)
    except KeyboardInterrupt:
        code = 130
    except Exception as problem:
        # While modules are imported no command of ours is at work yet that would tell of it.
        from rocmpip.report.ending import interruption

        interrupted = interruption(problem)
        if interrupted is None:
            raise
        code = interrupted.exit_code
    if argv is None and command.name in OVERLAID:
        _leave(code)
    return code


def _hear_again(unraisable: sys.UnraisableHookArgs) -> None:
    """An interrupt that came where Python drops what is raised (the callback of a weak reference, a ``__del__``) comes once more."""
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)
        return
    # Loaded in every Python: nothing may be imported here, since the import lock's own callback is such a place.
    import _thread
    import time

    def again() -> None:
        time.sleep(0.01)
        os.kill(os.getpid(), 2)  # SIGINT

    _thread.start_new_thread(again, ())


def _leave(code: int) -> None:
    """End this process as Python would, but for taking apart what we hold in memory: that takes longer than a page."""
    import atexit

    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        code = code or 120  # what Python says when the reader of stdout is gone
    os._exit(code)


def _open_closed() -> None:
    """Streams that we were started without (``>&-``) become the null device: else the next file that is opened, here or in a
    child, takes their place and gets what is written to them."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


def _dispatch(command: Command, words: list[str]) -> int:
    name = command.name
    if "PIP_AUTO_COMPLETE" in os.environ:
        # The shell asks by variables and with no arguments; what is ours is said before pip says the rest.
        from rocmpip.cli.complete import complete

        return 1 if complete(os.environ) else _pip(command, words)
    if name in OVERLAID and not (command.help or command.version):
        return _overlaid(command, words)
    if command.problem:
        return _pip(command, words)
    if command.version:
        return _pip(command, words, after=_version_line())
    if command.help or not name or (name == "help" and not command.args):
        from rocmpip.cli.overview import show

        return show()
    if name == "help" and _is_ours(command.args[0]) and command.args[0] not in OVERLAID:
        return _ours([command.args[0], "--help"])
    if _is_ours(name):
        return _our_command(command)
    _python_after_name(command)
    return _pip(command, words)


def _python_after_name(command: Command) -> None:
    """``list --python X``: pip refuses it there and wants it first; here it means the same in both places."""
    words = command.args
    for number, word in enumerate(words):
        if word == "--":
            return
        if word == "--python" and number + 1 < len(words):
            command.python = words[number + 1]
            command.args = [*words[:number], *words[number + 2 :]]
            return
        if word.startswith("--python="):
            command.python = word.partition("=")[2]
            command.args = [*words[:number], *words[number + 1 :]]
            return


def _version_line() -> str:
    from rocmpip import __version__

    return f"rocmpip {__version__}"


def _is_ours(name: str) -> bool:
    from rocmpip.cli.table import COMMANDS

    return any(name == row[0] for row in COMMANDS)


def _ships(room: str, name: str) -> bool:
    """True when this version has the module ``rocmpip.ROOM.NAME`` (importlib would cost more than one look)."""
    folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    return os.path.exists(os.path.join(folder, room, name.replace("-", "_") + ".py"))  # noqa: PTH110, PTH118


def _arguments(command: Command) -> list[str]:
    """The words for a command of ours: what stood before its name comes first."""
    python = ["--python", command.python] if command.python else []
    return [*command.ours, *python, *command.global_args, *command.args]


def _overlaid(command: Command, words: list[str]) -> int:
    """install, download, wheel, lock: our conductor when this version has one, else our command, else pip."""
    name = command.name
    has_command = _ships("cli", name)
    if "--help" in command.args or "-h" in command.args:
        if name == "lock" and has_command:
            return _ours([name, "--help"])
        from rocmpip.cli.overview import own_options

        return _pip(command, words, after=own_options())
    if _ships("app", name):
        import gc
        import importlib

        # Until pip or a build runs, we make much and drop little: looking for garbage in it takes a tenth of the time.
        gc.disable()
        sys.unraisablehook = _hear_again
        outcome = importlib.import_module("rocmpip.app." + name).main(_arguments(command))
        return outcome if isinstance(outcome, int) else 0
    if has_command:
        return _ours([name, *_arguments(command)])
    return _pip(command, words)


def _our_command(command: Command) -> int:
    if command.python and command.name in _NO_PYTHON_OPTION:
        # They have no such option of their own; what they do in an environment follows the variable.
        os.environ["ROCMPIP_PYTHON"], command.python = command.python, ""
    arguments = _arguments(command)
    if command.name == "detect" and _ships("app", "detect"):
        from rocmpip.app.detect import fast_main

        code = fast_main(arguments)
        if code is not None:
            return code
    return _ours([command.name, *arguments])


def _ours(words: list[str]) -> int:
    from rocmpip.cli.group import run

    return run(words)


def _pip(command: Command, words: list[str], after: str = "") -> int:
    """Become pip in the target. Returns only when that cannot be: 1 after an error on stderr."""
    from rocmpip.target.become import pip_here, pip_there
    from rocmpip.target.choose import choose, is_own

    arguments = words
    if command.python:
        name = [command.name] if command.name else []
        arguments = [*command.global_args, *name, *command.args]
    interpreter, prefix, _ = choose(command.python, os.environ)
    if not interpreter:
        return _no_environment(command.python)
    # Chosen already: pip must not start a third process for it.
    os.environ.pop("PIP_PYTHON", None)
    if is_own(interpreter, prefix):
        return _guarded(lambda: pip_here(arguments, after=after), interpreter)
    if os.environ.get(_BECOMING) == str(os.getpid()):
        return _fail(f"{interpreter} is rocmpip again, not a Python interpreter", hint="give a Python with --python")
    os.environ[_BECOMING] = str(os.getpid())
    return _guarded(lambda: pip_there(interpreter, arguments, after=after), interpreter)


def _no_environment(python: str) -> int:
    from rocmpip.model.errors import RocmpipError
    from rocmpip.report import say
    from rocmpip.target.environment import find_environment

    try:
        find_environment(python, env=os.environ)
    except RocmpipError as problem:
        say.error(problem)
        return problem.exit_code
    return _fail("the environment changed while it was being looked at", hint="run the command again")


def _guarded(become, interpreter: str) -> int:  # type: ignore[no-untyped-def]
    """Call ``become``; what comes back is a failure to start."""
    try:
        become()
    except OSError as problem:
        return _fail(f"{interpreter} does not run: {problem.strerror or problem}", hint="give another with --python")
    return 0


def _fail(message: str, *, hint: str) -> int:
    from rocmpip.model.errors import InputError
    from rocmpip.report import say

    say.error(InputError(message, hint=hint))
    return InputError.exit_code


if __name__ == "__main__":
    sys.exit(main())
