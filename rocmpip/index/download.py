"""Files on disk: checked against their hashes, put in place in one step, resumed where they were cut."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from rocmpip.index.fetch import Fetcher
from rocmpip.index.limits import Limits
from rocmpip.index.response import Response
from rocmpip.index.wire_errors import Cut, Malformed, Stalled, WireError
from rocmpip.model.errors import NetworkError
from rocmpip.model.packages import File
from rocmpip.model.redact import redact


class WrongFile(NetworkError):
    """The bytes are not what the index lists."""


Progress = Callable[[int, "int | None"], None]
"""Called with bytes so far and bytes in all (None: unknown)."""

_STRENGTH = ("sha512", "sha384", "sha256", "sha224", "sha1", "md5")
_STEP = 2**20
_PROGRESS = 64 * 1024


def download(fetcher: Fetcher, file: File, destination: Path, *, retries: int, progress: Progress | None = None) -> Path:
    """Put ``file`` at ``destination`` (a path, or a folder that exists); the path.

    Raises NetworkError when it cannot be had or its bytes are not what the index says; nothing is at the path then. Bytes that
    came stay in a ``.part`` file beside it for the next try, if the index gives a hash to check the whole with.
    """
    path = destination / file.filename if destination.is_dir() else destination
    path.parent.mkdir(parents=True, exist_ok=True)
    part, lock = _part(path)
    try:
        with part.open("r+b") as stream:
            if file.url.startswith("file:"):
                _copy(local_path(file.url), stream)
            else:
                _fetch_checked(fetcher, file, stream, retries, progress)
            _check(file, stream)
            stream.flush()
            os.fsync(stream.fileno())
        part.chmod(0o644)
        part.replace(path)
        return path
    except BaseException as problem:
        if isinstance(problem, WrongFile) or not file.hashes or not part.name.endswith(".part"):
            part.unlink(missing_ok=True)
        raise
    finally:
        os.close(lock)


def local_path(url: str) -> Path:
    """The path of a file:// URL."""
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise NetworkError(f"{url} names another machine", why="only file:///absolute/path can be read")
    return Path(unquote(parts.path))


def _part(path: Path) -> tuple[Path, int]:
    """The partial file for ``path`` and a descriptor that holds its lock; another name while a second process uses it."""
    for name in (f".{path.name}.part", f".{path.name}.{os.getpid()}-{time.monotonic_ns()}"):
        part = path.with_name(name)
        lock = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The holder before us may have moved it into place between our open and our lock.
            if part.exists() and os.fstat(lock).st_ino == part.stat().st_ino:
                return part, lock
        except OSError:
            pass
        os.close(lock)
    raise NetworkError(f"{path} is being written by other processes", hint="try again when they have ended")


def _copy(source: Path, stream: BinaryIO) -> None:
    stream.truncate(0)
    try:
        with source.open("rb") as original:
            while chunk := original.read(_STEP):
                stream.write(chunk)
    except OSError as problem:
        raise NetworkError(f"{source} cannot be read", why=problem.strerror or str(problem)) from None


def _fetch_checked(fetcher: Fetcher, file: File, stream: BinaryIO, retries: int, progress: Progress | None) -> None:
    """Fetch, and once more from the start when what an earlier run left turns out to be of another file."""
    resumed = stream.seek(0, os.SEEK_END) > 0
    _fetch(fetcher, file, stream, retries, progress)
    if resumed:
        try:
            _check(file, stream)
        except WrongFile:
            stream.truncate(0)
            _fetch(fetcher, file, stream, retries, progress)


def _fetch(fetcher: Fetcher, file: File, stream: BinaryIO, retries: int, progress: Progress | None) -> None:
    place = stream.seek(0, os.SEEK_END)
    if place and (not file.hashes or (file.size is not None and place > file.size)):
        stream.truncate(0)
        place = 0
    validator = ""
    failures = 0
    while file.size is None or place < file.size or place == 0:
        headers = {"Accept-Encoding": "identity"}
        if place:
            headers["Range"] = f"bytes={place}-"
            if validator:
                headers["If-Range"] = validator
        before = place
        try:
            with fetcher.opened(file.url, subject=file.filename, seconds=30 * 86400, headers=headers) as response:
                place = _place(file, response, place, stream)
                validator = _validator(response)
                total = file.size if response.length is None else place + response.length
                _limit(file, total)
                for chunk in _steady(response, fetcher.limits):
                    stream.write(chunk)
                    place += len(chunk)
                    _limit(file, place)
                    if progress is not None:
                        progress(place, total)
            return
        except WireError as problem:
            stream.flush()
            # What counts is progress: a server that cuts every few megabytes still gets us there. A trickle does not.
            failures = 0 if isinstance(problem, Cut) and place - before >= _PROGRESS else failures + 1
            if problem.final or failures > retries:
                raise NetworkError(
                    f"{file.filename} could not be downloaded from {redact(file.url)}",
                    why=_reason(problem, place, file.size),
                    hint="run the same command again"
                    + (": it goes on where it stopped" if place and file.hashes else ", or name another index or mirror"),
                ) from None
            if failures:
                fetcher.pause(failures)


def _reason(problem: WireError, place: int, size: int | None) -> str:
    """What went wrong, and how much had come in all attempts together. A cut that counts bytes counts those of its own answer."""
    amount = f"{place} of {size} bytes" if size else f"{place} bytes"
    if isinstance(problem, Cut) and "bytes" in str(problem):
        return f"the connection ended after {amount}"
    return f"{problem}; {amount} had come before" if place else str(problem)


def _place(file: File, response: Response, place: int, stream: BinaryIO) -> int:
    """Where the answer's bytes go, after looking at status and Content-Range."""
    if response.status == 206:
        start = response.headers.get("content-range", "").removeprefix("bytes ").partition("-")[0].strip()
        if start == str(place):
            return stream.seek(place)
        raise Malformed("the server answers with another range than asked for", final=True)
    if response.status in (200, 416):
        stream.seek(0)
        stream.truncate(0)
        if response.status == 416:
            raise Malformed("the server has fewer bytes than before")
        return 0
    raise NetworkError(
        f"{file.filename} could not be downloaded from {redact(file.url)}",
        why=f"the server answers HTTP {response.status}",
        hint="the index lists a file that its server does not give out; try another mirror or version",
    )


def _validator(response: Response) -> str:
    etag = response.headers.get("etag", "")
    return etag if etag.startswith('"') else response.headers.get("last-modified", "")


def _limit(file: File, size: int | None) -> None:
    if file.size is not None and size is not None and size > file.size:
        raise _wrong(file, f"it has more than the {file.size} bytes that the index says")


def _steady(response: Response, limits: Limits) -> Iterator[bytes]:
    """The answer's chunks; Stalled when they come slower than a trickle."""
    since, count = time.monotonic(), 0
    for chunk in response.chunks():
        yield chunk
        count += len(chunk)
        passed = time.monotonic() - since
        if passed >= limits.trickle_window:
            if count < limits.trickle_rate * passed:
                raise Stalled(f"only {count} bytes came in {passed:.0f} s")
            since, count = time.monotonic(), 0


def _check(file: File, stream: BinaryIO) -> None:
    size = stream.seek(0, os.SEEK_END)
    if file.size is not None and size != file.size:
        raise _wrong(file, f"it has {size} bytes, the index says {file.size}")
    algorithm = next((name for name in _STRENGTH if name in file.hashes), "")
    if not algorithm:
        return
    stream.seek(0)
    engine = hashlib.new(algorithm, usedforsecurity=False)
    while chunk := stream.read(_STEP):
        engine.update(chunk)
    if engine.hexdigest() != file.hashes[algorithm]:
        raise _wrong(file, f"its {algorithm} is {engine.hexdigest()}, the index says {file.hashes[algorithm]}")


def _wrong(file: File, why: str) -> WrongFile:
    return WrongFile(
        f"{file.filename} from {redact(file.url)} is not what the index lists",
        why=why,
        hint="a proxy or mirror changes files, or the file was replaced: do not install it; try again or ask the index's owner",
    )
