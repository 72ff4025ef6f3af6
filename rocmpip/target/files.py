"""Read the files that a command line names, and look at what lies at a path."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rocmpip.argv.text import LIMIT, check_size

Fetch = Callable[[str], "str | bytes"]
"""An http(s) URL → the content of a requirement file."""


def reader(fetch: Fetch) -> Callable[[str], str | bytes]:
    """The ``read`` that ``parse_request`` wants: local paths and file: URLs from disk, http(s) through ``fetch``."""

    def read(place: str) -> str | bytes:
        scheme = urlsplit(place).scheme.lower() if "://" in place or place.lower().startswith("file:") else ""
        if scheme in ("http", "https"):
            return fetch(place)
        if scheme == "file":
            return read_local(unquote(urlsplit(place).path))
        return read_local(place)

    return read


def read_local(path: str) -> bytes:
    """The content of a file, a pipe (``-r <(…)``) or a device, never more than a requirement file may have.

    Raises OSError as ``open`` does, InputError when the file is too large.
    """
    with Path(path).open("rb") as stream:
        status = os.fstat(stream.fileno())
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if stat.S_ISREG(status.st_mode):
            check_size(status.st_size, path)
        data = stream.read(LIMIT + 1)
    check_size(len(data), path)
    if stat.S_ISFIFO(status.st_mode):
        _put_back(path, data)
    return data


def _put_back(path: str, data: bytes) -> None:
    """A pipe gives its content once, and pip may be the next to open ``/dev/stdin`` or ``<(…)``: leave a copy in its place.

    Opening ``/dev/fd/N`` again begins at the copy's start, while N itself stays at its end, as the pipe did.
    """
    found = re.match(r"^/(?:dev/fd|proc/self/fd)/(\d+)$", {"/dev/stdin": "/dev/fd/0"}.get(path, path))
    if found is None or not hasattr(os, "memfd_create"):
        return
    copy = os.memfd_create("requirements")
    try:
        with open(copy, "wb", closefd=False) as stream:
            stream.write(data)
        os.dup2(copy, int(found[1]))
    finally:
        os.close(copy)
