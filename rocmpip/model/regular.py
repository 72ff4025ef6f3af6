"""Open what must be a regular file: a pipe in its place would keep us waiting, a device would never end.

``open(path, opener=regular)`` is the whole use of it.
"""

from __future__ import annotations

import errno
import os
import stat


def regular(path: str, flags: int) -> int:
    """An opener for ``open``. Raises OSError as opening does, and EINVAL for what is no regular file."""
    handle = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return handle
