"""Run pip as a watched child: ``python watched.py PARENT RUNNER ARGUMENT…`` in the target's interpreter.

``python watched.py PARENT --ready FD RUNNER`` loads pip first and then waits for what it is to do (``target/ready.py``).

Not imported by rocmpip. It must run on every Python that a target may have, so its syntax is old, and it may import nothing of
ours. PARENT: process id of the rocmpip that waits. RUNNER: runner file of rocmpip's own pip, "" for the target's own pip.

* When the parent dies, this process gets SIGTERM (Linux).
* SIGTERM ends what this process started (a compiler must not go on for an install that is over) and interrupts pip, which then
  removes its temporary folders.
* The parent tells of a SIGINT that it got itself by SIGUSR1. A terminal's Ctrl-C reaches both processes; the copy that comes
  so soon after the first must not interrupt pip's roll-back.
* pip's line "Looking in indexes: …" would show the router's address and an empty folder of ours. It says what ROCMPIP_LOOKING
  holds instead (the user's own places), or is left out when that is empty. In all other words of pip's the router's address
  (with its secret path) is "rocmpip". A page of the router's is told (``pip -v``) as that of the one index that it came from,
  ROCMPIP_PLACE, but for the names ROCMPIP_ELSEWHERE, which have indexes of their own.
* What pip said is written to the file ROCMPIP_TRANSCRIPT when it fails. pip's own --log is no way to have it: with that pip
  shows no spinner and leaves the output of a failed build out of its error.
"""

# ruff: noqa: PTH208, SIM105, RUF005, S110, UP037

import sys

# The folder of this file must not be searched: it has a module named pip.
if sys.path and sys.path[0] == __file__.rpartition("/")[0]:
    # In its place what stands there when the pip command is run: pip drops a first entry that is the working directory.
    sys.path[0] = sys.executable.rpartition("/")[0]

# Little, since an interrupt that comes before _watch ends in a traceback.
import _thread
import os
import signal
import time

ONE_PRESS = 1.0
"""Seconds within which two interrupts are one press of Ctrl-C."""

_last = [0.0]


def _interrupt(number: int, frame: object) -> None:
    """SIGINT, or SIGUSR1 from the parent: KeyboardInterrupt, once a press."""
    before, _last[0] = _last[0], time.monotonic()
    if number == signal.SIGINT or _last[0] - before > ONE_PRESS:
        raise KeyboardInterrupt


def _cancelled() -> None:
    """End as pip does where it can: with its words and no traceback."""
    try:
        sys.stderr.write("ERROR: Operation cancelled by user\n")
    except (OSError, ValueError):
        pass
    sys.exit(130)


def _end(number: int, frame: object) -> None:
    """SIGTERM: end what we started, then let pip clean up as after Ctrl-C. A second one ends us at once."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for process in _descendants(os.getpid()):
        try:
            os.kill(process, signal.SIGTERM)
        except OSError:
            pass
    _last[0] = time.monotonic()
    raise KeyboardInterrupt


def _descendants(parent: int) -> "list[int]":
    """Process ids below ``parent``, from /proc; empty where there is none."""
    children: "dict[int, list[int]]" = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            try:
                with open("/proc/" + name + "/stat", "rb") as stream:
                    # The command may hold spaces and brackets; what follows its last bracket is state and parent.
                    above = int(stream.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(above, []).append(int(name))
    found, queue = [], [parent]
    while queue:
        below = children.get(queue.pop(), [])
        found.extend(below)
        queue.extend(below)
    return found


def _hear_again(unraisable: "sys.UnraisableHookArgs") -> None:
    """An interrupt that came where Python drops what is raised (the callback of a weak reference, a ``__del__``) comes once more."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    main = _thread.get_ident()

    def again() -> None:
        time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    _thread.start_new_thread(again, ())


def _deaf() -> None:
    """pip is done: while Python takes itself apart an interrupt could only end in a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGUSR1"):
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)


def _watch(parent: int) -> None:
    # Started where interrupts are ignored (a job in the background of a script), we ignore them too, as pip would.
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupt)
        sys.unraisablehook = _hear_again
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # held back while we got ready
    signal.signal(signal.SIGTERM, _end)
    if hasattr(signal, "SIGUSR1"):
        signal.signal(signal.SIGUSR1, _interrupt)
    if sys.platform.startswith("linux"):
        try:
            import ctypes

            ctypes.CDLL(None).prctl(1, int(signal.SIGTERM), 0, 0, 0)  # PR_SET_PDEATHSIG
        except (ImportError, OSError, AttributeError):
            pass
        if os.getppid() != parent:  # it died before we asked to be told
            sys.exit(143)


def _hear_records(text: str, router: str, place: str, elsewhere: str, transcript: "_Transcript | None") -> None:
    """Change pip's words where its log records are made: nothing of pip is imported, and other words change nothing."""
    import fnmatch
    import logging
    import re

    pages, secret = router + "/simple/", router.rpartition("/")[2]
    patterns = elsewhere.split()

    def page(found: "re.Match[str]") -> str:
        name = found.group(1)
        ours = not place or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
        return ("rocmpip/simple" if ours else place) + "/" + name + "/"

    make = logging.getLogRecordFactory()

    def tell(*args: object, **more: object) -> logging.LogRecord:
        record = make(*args, **more)
        # A rich renderable stands in the arguments of these.
        if not isinstance(record.msg, str) or record.msg.startswith("[present-"):
            return record
        if record.msg.startswith("Looking in indexes: http://127.0.0.1:"):
            record.msg, record.args = text, ()
            if not text:
                record.levelno = logging.NOTSET  # below every handler's level
            return record
        # Under the user's own --log a build's output goes there and not to the terminal.
        unseen = transcript is not None and record.name == "pip.subprocessor"
        if router or unseen:
            try:
                said = record.getMessage()
            except (TypeError, ValueError):
                return record
            if secret and secret in said:
                said = re.sub(re.escape(pages) + "([^/ ]+)/", page, said).replace(router, "rocmpip").replace(secret, "rocmpip")
                record.msg, record.args = said, ()
            if transcript is not None and unseen:
                transcript.add(said + "\n")
        return record

    logging.setLogRecordFactory(tell)


class _Transcript:
    """The start and the end of what is written to stdout and stderr, in the order written; in memory until it is asked for."""

    HEAD = 256 * 1024
    TAIL = 4 * 1024 * 1024

    def __init__(self, path: str) -> None:
        import collections

        self._path = path
        self._room = self.HEAD
        self._held = 0
        self._head: "list[str]" = []
        self._tail: "collections.deque[str]" = collections.deque()
        for stream in (sys.stdout, sys.stderr):
            self._listen(stream)

    def _listen(self, stream: "object") -> None:
        """The stream itself stays what it is (a terminal, a pipe, its encoding): only its ``write`` is heard."""
        write = getattr(stream, "write", None)
        if write is None:
            return

        def heard(text: str) -> int:
            self.add(text)
            count: int = write(text)
            return count

        try:
            stream.write = heard  # type: ignore[attr-defined]
        except AttributeError:
            pass

    def add(self, text: object) -> None:
        if not isinstance(text, str):
            return
        if self._room > 0:
            self._room -= len(text)
            self._head.append(text)
            return
        self._held += len(text)
        self._tail.append(text)
        while self._held > self.TAIL and len(self._tail) > 1:
            self._held -= len(self._tail.popleft())

    def save(self) -> None:
        try:
            with open(self._path, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.writelines(self._head)
                file.writelines(self._tail)
        except OSError:
            pass


def _pip(runner: str, arguments: "list[str]") -> None:
    import runpy

    sys.argv[:] = ["pip"] + arguments
    if runner:
        runpy.run_path(runner, run_name="__main__")
    else:
        runpy.run_module("pip", run_name="__main__")


def _get_ready(fd: int, runner: str) -> "list[str]":
    """Have pip loaded, then wait for its order on ``fd``; returns pip's arguments. Ends the process when there is none.

    Loaded by a command that prints its help and does nothing else, with its output sent nowhere.
    """
    import json

    path, arguments = list(sys.path), list(sys.argv)
    kept = [(stream, os.dup(stream)) for stream in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream, _ in kept:
        os.dup2(nowhere, stream)
    try:
        _pip(runner, ["install", "--help"])
    except BaseException:  # what is wrong is told when pip is run in earnest
        pass
    for buffer in (sys.stdout, sys.stderr):
        buffer.flush()
    for stream, copy in kept:
        os.dup2(copy, stream)
        os.close(copy)
    os.close(nowhere)
    sys.path[:], sys.argv[:] = path, arguments
    order = b""
    while not order.endswith(b"\n"):
        piece = os.read(fd, 65536)
        if not piece:
            os._exit(0)
        order += piece
    told = json.loads(order.decode("ascii"))
    if told["stdout"] != 1:
        os.dup2(told["stdout"], 1)
    os.environ.clear()
    os.environ.update(told["environment"])
    # What is installed may be other than when we looked.
    sys.path_importer_cache.clear()
    os.write(fd, b"!")
    os.close(fd)
    words: "list[str]" = told["arguments"]
    return words


def _run(runner: str, arguments: "list[str]") -> None:
    """Become pip; what it says is heard and, when it fails, kept."""
    # http://127.0.0.1:PORT/SECRET/simple: pages lie there, and files that need credentials beside it.
    url = os.environ.get("PIP_INDEX_URL", "").rstrip("/").rpartition("/")[0]
    path = os.environ.pop("ROCMPIP_TRANSCRIPT", "")
    transcript = _Transcript(path) if path else None
    router = url if url.startswith("http://127.0.0.1:") else ""
    told = [os.environ.pop("ROCMPIP_" + name, "") for name in ("LOOKING", "PLACE", "ELSEWHERE")]
    _hear_records(told[0], router, told[1], told[2], transcript)
    try:
        _pip(runner, arguments)
    except SystemExit as stop:
        if stop.code and transcript is not None:
            transcript.save()
        raise
    except Exception:
        if transcript is not None and not _last[0]:
            # At the very end: the interpreter has yet to print this.
            import atexit

            atexit.register(transcript.save)
        raise


if __name__ == "__main__":
    try:
        parent, runner, words = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
        if runner == "--ready":
            runner = words[1]
            words = _get_ready(int(words[0]), runner)
        _watch(parent)
        _run(runner, words)
    except Exception:
        # An interrupt within a class body comes out as a RuntimeError of Python's.
        if not _last[0]:
            raise
        _cancelled()
    except KeyboardInterrupt:
        # pip itself tells of one, but not while its modules are being imported.
        _cancelled()
    finally:
        _deaf()
