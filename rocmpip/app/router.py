"""``rocmpip router`` and ``rocmpip run``: the router alone, and any command behind it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from rocmpip.app.devices import WithDevices
from rocmpip.app.family import rocm_environment
from rocmpip.model.errors import UsageError
from rocmpip.model.request import IndexOptions
from rocmpip.model.temporary import TemporaryFolder
from rocmpip.report import envelope, say
from rocmpip.router.server import Asked, Router

if TYPE_CHECKING:
    from rocmpip.app.context import Context

# Runs before the command itself: the kernel ends it when we die, whatever we die of (prctl PR_SET_PDEATHSIG, SIGTERM).
_LEASH = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 15); "
    "os.getppid() == int(sys.argv[1]) or os._exit(143); os.execvp(sys.argv[2], sys.argv[2:])"
)
_UV_SOURCES = ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX", "UV_TORCH_BACKEND", "UV_CONFIG_FILE")


def serve(env: Mapping[str, str], *, port: int, as_json: bool) -> int:
    """Serve until Ctrl-C or SIGTERM; the URL goes to stdout at once. The exit code is 130 or 143, as for any interrupted command."""
    with _signals() as ended, _open(env, port, tell=_told) as (router, _):
        if as_json:
            envelope.write("router", {"url": router.url, "port": router.port})
        else:
            sys.stdout.write(router.url + "\n")
            sys.stdout.flush()
        say.step("the router answers this user only, until Ctrl-C")
        if not router.uid_checked:
            say.warning("this system does not tell who connects: whoever learns the URL can use the router")
        ended.event.wait()
    return 128 + ended.number


def run(env: Mapping[str, str], command: Sequence[str]) -> int:
    """Run ``command`` with the router as its only index; its exit code (128 + N when a signal ended it)."""
    if not command:
        raise UsageError("no command to run", hint="rocmpip run -- uv pip install torch")
    program = shutil.which(command[0], path=env.get("PATH"))
    if program is None:
        raise UsageError(f"{command[0]} is not found", why="no such program on PATH", hint="check the spelling")
    with (
        TemporaryFolder(prefix="rocmpip-run-") as folder,
        _signals() as ended,
        _open(env, 0, tell=_told) as (router, context),
    ):
        child_env = command_environment(env, router.url, folder=Path(folder), index=context.request.index)
        child_env.update(rocm_environment(context, None))
        words = [sys.executable, "-I", "-S", "-c", _LEASH, str(os.getpid()), program, *command[1:]]
        with subprocess.Popen(words, env=child_env) as child:
            ended.pass_on_to(child)
            code = child.wait()
    return 128 - code if code < 0 else code


def command_environment(env: Mapping[str, str], url: str, *, folder: Path, index: IndexOptions | None = None) -> dict[str, str]:
    """``env`` with the router as pip's and uv's only index. ``folder`` is empty: the only find-links place."""
    from rocmpip.target.run import neutral_environment

    result = neutral_environment(env, router_url=url, empty_folder=str(folder), index=index)
    for name in _UV_SOURCES:
        result.pop(name, None)
    # uv reads the first two by age; a uv.toml could name further indexes, so it is not read.
    result.update(UV_DEFAULT_INDEX=url, UV_INDEX_URL=url, UV_NO_CONFIG="1")
    return result


@contextmanager
def _open(env: Mapping[str, str], port: int, *, tell: Callable[[Asked], None]) -> Iterator[tuple[Router, Context]]:
    """The router with this machine's routing, and the machine's facts."""
    from rocmpip.app.open_client import open_client
    from rocmpip.app.policy import standalone_context, standalone_policy

    context = standalone_context(env)
    client = open_client(context)
    policy = standalone_policy(context, client)
    try:
        seen = WithDevices(client, lambda: policy, told=say.warning)
        with Router(policy.route, seen, port=port, tell=tell, metadata=seen.metadata_for, tells=seen.tells) as router:
            yield router, context
            seen.end()
    finally:
        client.close()


def _told(record: Asked) -> None:
    """What pip or uv cannot say about a name in their own words."""
    if record.error is not None:
        say.error(record.error)
    elif record.kind == "forbidden":
        say.warning(f"{record.name} was asked for and refused: {record.because}")


class _Ended:
    """Which signal asked us to end, and the child that it goes to."""

    def __init__(self) -> None:
        self.number = 0
        self.event = threading.Event()
        self.child: subprocess.Popen[bytes] | None = None

    def pass_on_to(self, child: subprocess.Popen[bytes]) -> None:
        """From now on a SIGTERM goes to ``child``, also one that came while it was being started."""
        self.child = child
        if self.number == signal.SIGTERM:
            child.terminate()

    def handle(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        self.event.set()
        # Ctrl-C reaches the child by the terminal; a SIGTERM is for us alone, so it is passed on.
        if number == signal.SIGTERM and self.child is not None:
            self.child.terminate()


@contextmanager
def _signals() -> Iterator[_Ended]:
    """In the block SIGINT and SIGTERM are noted instead of ending us; outside the main thread signals are left alone."""
    ended = _Ended()
    before = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:  # what is ignored, as in the background of a script, stays so
                before[number] = signal.signal(number, ended.handle)
    except ValueError:
        pass
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
