"""Run pip as a child that shares our terminal and our fate, behind the router and nothing else."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rocmpip.model.errors import InputError, Interrupted
from rocmpip.model.record import Struct
from rocmpip.model.request import IndexOptions
from rocmpip.target.pip import PipCommand
from rocmpip.target.ready import WATCHED, ReadyPip

_SECONDS_TO_END = 10.0
"""How long pip may take to end after SIGTERM before it is killed."""


class Finished(Struct, frozen=True):
    """A pip that ran with its output kept."""

    code: int
    stdout: str
    stderr: str


def run_pip(
    command: PipCommand,
    args: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None = None,
    stdout_to_stderr: bool = False,
    transcript: Path | None = None,
    ready: ReadyPip | None = None,
) -> int:
    """Run pip on our terminal and return its exit code (128 + n when signal n ended it).

    ``transcript``: a file that holds what pip said when it has failed, and is not there when it has not. ``ready``: a pip
    that may be waiting for just this.

    Ctrl-C reaches pip itself; we wait until it has cleaned up. A SIGINT or SIGTERM that only we got is passed on, and pip ends
    when we are killed. Raises Interrupted (130 or 143) after pip has ended, InputError when it cannot be started.
    """
    if transcript is not None:
        transcript.unlink(missing_ok=True)
        env = {**env, "ROCMPIP_TRANSCRIPT": str(transcript)}
    with _signals() as caught:
        _flush()
        child = ready.take(command, args, env, cwd, stdout_to_stderr=stdout_to_stderr) if ready is not None else None
        if child is None:
            child = _start(command, args, env, cwd, stdout=sys.stderr.fileno() if stdout_to_stderr else None)
        caught.pass_on_to(child)
        code = _wait(child, caught)
    caught.raise_if_interrupted()
    return code


def pip_output(command: PipCommand, args: Sequence[str], *, env: Mapping[str, str], cwd: str | None = None) -> Finished:
    """Run pip with nothing on stdin and its output kept. Raises Interrupted and InputError as ``run_pip`` does."""
    with _signals() as caught:
        child = _start(
            command,
            args,
            env,
            cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        caught.pass_on_to(child)
        stdout, stderr = child.communicate()
    caught.raise_if_interrupted()
    return Finished(_code(child.returncode), stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"))


def _start(
    command: PipCommand,
    args: Sequence[str],
    env: Mapping[str, str],
    cwd: str | None,
    *,
    stdin: int | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
) -> subprocess.Popen[bytes]:
    _flush()
    try:
        return subprocess.Popen(
            [command.python, WATCHED, str(os.getpid()), command.runner, *args],
            env={**env, **command.env},
            cwd=cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )
    except OSError as problem:
        raise InputError(
            f"{command.python} does not run: {problem.strerror or problem}", hint="give another interpreter with --python"
        ) from None


def _flush() -> None:
    """Our words come before pip's."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


class _Caught:
    """The signals that we got while pip ran."""

    def __init__(self) -> None:
        self.number = 0
        self.child: subprocess.Popen[bytes] | None = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        # SIGTERM outranks SIGINT: it asks for a quicker end.
        self.number = max(self.number, number)
        self._forward(number)

    def pass_on_to(self, child: subprocess.Popen[bytes]) -> None:
        """From now on signals go to ``child``, also the one that came while it was being started."""
        self.child = child
        if self.number:
            self._forward(self.number)

    def _forward(self, number: int) -> None:
        if self.child is not None:
            self.child.send_signal(signal.SIGUSR1 if number == signal.SIGINT else number)

    def raise_if_interrupted(self) -> None:
        if self.number:
            problem = Interrupted("interrupted" if self.number == signal.SIGINT else "terminated")
            problem.exit_code = 128 + self.number
            raise problem


@contextmanager
def _signals() -> Iterator[_Caught]:
    """SIGINT and SIGTERM are kept and passed on in this block (in the main thread; others leave signals alone)."""
    caught = _Caught()
    before = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:  # what is ignored, as in the background of a script, stays so
                before[number] = signal.signal(number, caught.handle)
    except ValueError:
        pass
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(child: subprocess.Popen[bytes], caught: _Caught) -> int:
    with _end_of(child) as ended:
        while True:
            seconds = _SECONDS_TO_END if caught.number == signal.SIGTERM else 0.5
            if ended(seconds):
                return _code(child.wait())
            if caught.number == signal.SIGTERM:
                child.kill()


@contextmanager
def _end_of(child: subprocess.Popen[bytes]) -> Iterator[Callable[[float], bool]]:
    """A function that waits so many seconds for the child's end and says whether it has come."""
    try:
        fd = os.pidfd_open(child.pid)
    except (AttributeError, OSError):

        def looked(seconds: float) -> bool:
            try:
                child.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                return False
            return True

        yield looked
        return
    try:
        # Popen's own waiting sleeps up to 50 ms between two looks.
        yield lambda seconds: bool(select.select([fd], [], [], seconds)[0])
    finally:
        os.close(fd)


def _code(code: int) -> int:
    return 128 - code if code < 0 else code


_KEPT = frozenset(
    (
        "PIP_BREAK_SYSTEM_PACKAGES",
        "PIP_CACHE_DIR",
        "PIP_DISABLE_PIP_VERSION_CHECK",
        "PIP_NO_CACHE_DIR",
        "PIP_NO_COLOR",
        "PIP_NO_INPUT",
        "PIP_NO_PYTHON_VERSION_WARNING",
        "PIP_PROGRESS_BAR",
        "PIP_REQUIRE_VIRTUALENV",
        "PIP_RESUME_RETRIES",
        "PIP_ROOT_USER_ACTION",
    )
)
"""The user's variables that say nothing of sources, requirements and destinations. Counts and lists are not among them: the
options that the request hands on say those already."""

_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def neutral_environment(
    env: Mapping[str, str],
    *,
    router_url: str,
    empty_folder: str,
    index: IndexOptions | None = None,
    netrc: str = "",
    constraint: str = "",
    build_constraint: str = "",
) -> dict[str, str]:
    """The environment in which pip and the pips it starts for builds see the router alone.

    ``env``: the user's. ``empty_folder``: an empty folder, the only find-links place. ``index``: how the user reaches servers:
    certificates, proxy, time-outs, trusted hosts are said again. ``netrc``: a netrc file to use instead of the user's.
    ``constraint``: a constraints file for builds of pips up to 25.3; ``build_constraint``: for those from 25.3 on.
    """
    result = {name: value for name, value in env.items() if not name.startswith("PIP_") or name in _KEPT}
    result.update(
        PIP_CONFIG_FILE=os.devnull,
        PIP_INDEX_URL=router_url,
        # An empty value would not cancel what a configuration says; the same URL twice is asked once.
        PIP_EXTRA_INDEX_URL=router_url,
        PIP_FIND_LINKS=empty_folder,
        PIP_NO_INDEX="0",
    )
    if constraint:
        result["PIP_CONSTRAINT"] = constraint
    if build_constraint:
        result["PIP_BUILD_CONSTRAINT"] = build_constraint
    if netrc:
        result["NETRC"] = netrc
    if index is not None:
        result.update(_reach(index))
    _proxies(result, index)
    return result


def routed_environment(env: Mapping[str, str], *, router_url: str, empty_folder: str) -> dict[str, str]:
    """``env`` and the user's configuration as they are, but for the places packages come from: those are the router alone.

    Only for a request whose configuration names no proxy: pip would send the router's address to that.
    """
    result = {name: value for name, value in env.items() if name != "PIP_PYTHON"}
    result.update(PIP_INDEX_URL=router_url, PIP_EXTRA_INDEX_URL=router_url, PIP_FIND_LINKS=empty_folder, PIP_NO_INDEX="0")
    _proxies(result, None)
    return result


def _reach(index: IndexOptions) -> dict[str, str]:
    values = {
        "PIP_CERT": index.cert,
        "PIP_CLIENT_CERT": index.client_cert,
        "PIP_TRUSTED_HOST": " ".join(index.trusted_hosts),
        "PIP_TIMEOUT": f"{index.timeout:g}" if index.timeout != IndexOptions.timeout else "",
        "PIP_RETRIES": str(index.retries) if index.retries != IndexOptions.retries else "",
        "PIP_KEYRING_PROVIDER": index.keyring_provider if index.keyring_provider != "auto" else "",
        "PIP_NO_INPUT": "1" if index.no_input else "",
    }
    return {name: value for name, value in values.items() if value}


def _proxies(result: dict[str, str], index: IndexOptions | None) -> None:
    """The user's proxy by variables, with the router's address excepted. Lower-case names win, so both are written."""
    proxy = index.proxy if index is not None else ""
    direct = result.get("no_proxy") or result.get("NO_PROXY") or ""
    if proxy or (index is not None and index.no_proxy_env):
        # Under these options pip leaves what the environment says of certificates aside too.
        for name in (*_PROXIES, "requests_ca_bundle", "curl_ca_bundle"):
            result.pop(name, None)
            result.pop(name.upper(), None)
        # pip's --proxy takes no exceptions.
        direct = ""
    if proxy:
        for name in ("http_proxy", "https_proxy"):
            result[name] = result[name.upper()] = proxy
    hosts = [host.strip() for host in direct.split(",") if host.strip()]
    if "*" not in hosts and "127.0.0.1" not in hosts:
        hosts.append("127.0.0.1")
    result["no_proxy"] = result["NO_PROXY"] = ",".join(hosts)
