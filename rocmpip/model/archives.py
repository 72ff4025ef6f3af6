"""What Python's archive readers raise for a broken or hostile archive: more than their documentation tells.

zipfile lets through zlib.error, LZMAError and bz2's OSError of a damaged member, RuntimeError for an encrypted one,
NotImplementedError for an unknown method; tarfile lets through LZMAError, and RecursionError for very deep folders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


def _kinds() -> tuple[type[Exception], ...]:
    # Imported here: this stands on the way of commands that open no archive.
    import struct
    import tarfile
    import zipfile
    import zlib

    kinds = [zipfile.BadZipFile, zipfile.LargeZipFile, tarfile.TarError, zlib.error, struct.error]
    kinds += [EOFError, NotImplementedError, RuntimeError, UnicodeError]  # a RecursionError is a RuntimeError
    try:
        import lzma
    except ImportError:  # a Python that was built without it
        return tuple(kinds)
    return (*kinds, lzma.LZMAError)


@contextmanager
def broken_as(error: Callable[[str], Exception]) -> Iterator[None]:
    """Within the block a broken archive raises ``error(why)``. Errors of the system (a full disk) stay what they are."""
    try:
        yield
    except OSError as problem:
        if problem.errno is not None:
            raise
        raise error(str(problem)) from problem  # bz2's "Invalid data stream" has no number
    except RecursionError as problem:
        raise error("it is nested too deeply") from problem
    except Exception as problem:
        if not isinstance(problem, _kinds()):
            raise
        raise error(str(problem) or type(problem).__name__) from problem
