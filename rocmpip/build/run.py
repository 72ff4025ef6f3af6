"""Run one program of a build: its own process group, every byte in the log, progress on the way, nothing left behind."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

from rocmpip.model.redact import redact
from rocmpip.model.terminated import interrupted_by_sigterm

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_NINJA = re.compile(r"^\[(\d{1,7})/(\d{1,7})\]")
_BEAT = 0.25
_GRACE = 5.0
_LONGEST_LINE = 1 << 16


def plain(text: str) -> str:
    """``text`` without terminal escapes and control characters."""
    return "".join(char for char in _ESCAPES.sub("", text) if char.isprintable() or char == "\t")


def ninja_count(line: str) -> tuple[int, int] | None:
    """(done, total) of ninja's ``[12/345] …``."""
    match = _NINJA.match(line.lstrip())
    return (int(match.group(1)), int(match.group(2))) if match else None


class Log:
    """The full log of a build: bytes as they came, secrets masked line by line."""

    def __init__(self, path: Path, secrets: Sequence[str] = ()) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._stream = os.fdopen(descriptor, "w", encoding="utf-8", errors="replace")
        self.secrets = tuple(secrets)

    def mask(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "****")
        return redact(text)

    def write(self, line: str) -> None:
        self._stream.write(self.mask(line) + "\n")

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        self._stream.close()


@contextlib.contextmanager
def sigterm_raises() -> Iterator[None]:
    """Within the block SIGTERM raises Interrupted (143), unless someone handles it already or this is no main thread."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    with interrupted_by_sigterm("stopped by SIGTERM"):
        yield


def run_logged(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    log: Log,
    ulimits: Mapping[str, int] | None = None,
    on_beat: Callable[[str, tuple[int, int] | None], None] | None = None,
) -> int:
    """Run ``argv`` to its end and return its exit code (negative: the signal that ended it).

    Ctrl-C, SIGTERM (where it raises) and any other exception end the whole process group: TERM, five seconds, KILL.
    ``on_beat(last line, ninja count)`` is called about four times a second.
    """
    process: subprocess.Popen[bytes] | None = None
    guard: subprocess.Popen[bytes] | None = None
    try:
        with _ulimits(ulimits or {}, log), _signals_wait():
            process = subprocess.Popen(
                list(argv), env=dict(env), cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        # Outside of the limits, which are the compilers'.
        guard = _outlived(process.pid)
        _follow(process, log, on_beat)
        return process.wait()
    finally:
        if process is not None:
            end_group(process)
            assert process.stdout is not None
            process.stdout.close()
        if guard is not None:
            _no_longer(guard)
        log.flush()


# A line says that all went well; the end of the pipe, which the kernel sees to, says that its maker is no more.
_GUARD = 'read -r line || { kill -s TERM -- "-$1"; sleep "$2"; kill -s KILL -- "-$1"; }'


def _outlived(group: int) -> subprocess.Popen[bytes] | None:
    """A shell that ends the process group ``group`` when we die of something that lets us do nothing (SIGKILL, no memory)."""
    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "sh", str(group), f"{_GRACE:g}"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", start_new_session=True,
        )  # fmt: skip
    except OSError:
        return None  # without a shell a build goes on as well


def _no_longer(guard: subprocess.Popen[bytes]) -> None:
    assert guard.stdin is not None
    with contextlib.suppress(OSError):
        guard.stdin.write(b"ended\n")
        guard.stdin.close()
    guard.wait()


@contextlib.contextmanager
def _signals_wait() -> Iterator[None]:
    """SIGINT and SIGTERM that come within the block take effect at its end: one that breaks off ``Popen`` leaves a child that
    nobody knows of."""
    caught: list[int] = []
    before: dict[int, Callable[[int, FrameType | None], object]] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if callable(handler):  # what is ignored stays ignored, in the child too
                signal.signal(number, lambda got, frame: caught.append(got))
                before[number] = handler
    except ValueError:  # not the main thread
        pass
    try:
        yield
    finally:
        for restored, handler in before.items():
            signal.signal(restored, handler)
        for got in caught[:1]:
            before[got](got, None)


@contextlib.contextmanager
def _ulimits(ulimits: Mapping[str, int], log: Log) -> Iterator[None]:
    """Soft limits for a child started within the block, as far as the hard ones allow: ``stack`` in KiB, the others as counts.

    They are ours for that moment. Set on the running child they could be lost: the kernel writes the stack limit it saw at the
    start of ``exec`` back at its end.
    """
    kinds = {"stack": resource.RLIMIT_STACK, "nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
    before: dict[int, tuple[int, int]] = {}
    for name, amount in ulimits.items():
        kind = kinds.get(name)
        if kind is None:
            continue
        wanted = amount * 1024 if name == "stack" else amount
        soft, hard = resource.getrlimit(kind)
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        try:
            resource.setrlimit(kind, (allowed, hard))
        except (OSError, ValueError) as problem:
            log.write(f"rocmpip: ulimit {name} {amount} could not be set: {problem}")
            continue
        before[kind] = (soft, hard)
        if allowed != wanted:
            log.write(f"rocmpip: ulimit {name} is {allowed}, less than the {wanted} asked for: the hard limit is lower")
    try:
        yield
    finally:
        for kind, limits in before.items():
            resource.setrlimit(kind, limits)


def _follow(process: subprocess.Popen[bytes], log: Log, on_beat: Callable[[str, tuple[int, int] | None], None] | None) -> None:
    """Read until the program ends. A background child that keeps the pipe open (a compile cache's server) is not waited for."""
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    os.set_blocking(descriptor, False)
    pending, last, count = b"", "", None
    told = 0.0
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            ended = process.poll() is not None
            ready = selector.select(0 if ended else _BEAT)
            data = b""
            if ready:
                with contextlib.suppress(BlockingIOError):
                    data = os.read(descriptor, 1 << 16)
                if not data and not ended:
                    # The pipe is closed and the program lives on, silent: wait for it without spinning.
                    selector.unregister(descriptor)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(_BEAT)
                    selector.register(descriptor, selectors.EVENT_READ)
            elif ended:
                break
            if ended and ready and not data:
                break
            *lines, pending = re.split(rb"\r\n|\n|\r", pending + data)
            if len(pending) > _LONGEST_LINE:
                lines, pending = [*lines, pending], b""
            for raw in lines:
                text = raw.decode("utf-8", "replace")
                log.write(text)
                shown = plain(text).strip()
                if shown:
                    last = log.mask(shown)
                    count = ninja_count(shown) or count
            if on_beat is not None and time.monotonic() - told >= _BEAT:
                told = time.monotonic()
                on_beat(last, count)
    if pending:
        log.write(pending.decode("utf-8", "replace"))


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End what is left of the process group, and reap its leader. No error when nothing is left."""
    if not _signal(process.pid, signal.SIGTERM):
        process.wait()
        return
    deadline = time.monotonic() + _GRACE
    while time.monotonic() < deadline:
        process.poll()  # a leader that has ended but was not reaped still counts as a member
        if not _signal(process.pid, 0):
            return
        time.sleep(0.02)
    _signal(process.pid, signal.SIGKILL)
    process.wait()
    # The others die in their own time, an instant later; their folder is removed next.
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline and _signal(process.pid, 0):
        time.sleep(0.01)


def _signal(group: int, number: int) -> bool:
    """True when the group had a process to receive the signal."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False
    return True
