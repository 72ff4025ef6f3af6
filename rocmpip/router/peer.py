"""Who is at the other end: the uid of a loopback connection, from the kernel's socket tables."""

from __future__ import annotations

import os
import socket
import struct
import time
from pathlib import Path

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def can_tell(listener: socket.socket) -> bool:
    """True where the kernel's table of sockets tells whose they are: our own listening socket is looked up in it.

    False on other systems than Linux, and in sandboxes whose /proc hides sockets.
    """
    return _find(_TABLES[0], _hex(listener.getsockname()), b"00000000:0000") == os.geteuid()


def peer_uid(connection: socket.socket) -> int | None:
    """The uid that owns the other end of a connection on 127.0.0.1; None when there is no such socket (any more).

    /proc/net/tcp has one line a socket: local address, remote address, …, uid. The peer's line is ours seen from the other
    side. A read of the table is no snapshot, so a line that is missed is looked for again.
    """
    try:
        there, here = connection.getpeername(), connection.getsockname()
    except OSError:
        return None
    local, remote = _hex(there), _hex(here)
    for attempt in range(4):
        if attempt:
            time.sleep(0.002)
        for table, prefix in zip(_TABLES, (b"", b"0000000000000000FFFF0000"), strict=True):
            uid = _find(table, prefix + local, prefix + remote)
            if uid is not None:
                return uid
    return None


def _find(table: Path, local: bytes, remote: bytes) -> int | None:
    try:
        text = table.read_bytes()
    except OSError:
        return None
    pair = b" " + local + b" " + remote + b" "
    place = text.find(pair)
    if place < 0:
        return None
    # After the two addresses: state, queues, timer, retransmits, uid.
    fields = text[place + len(pair) : text.find(b"\n", place)].split()
    return int(fields[4])


def _hex(address: tuple[str, int]) -> bytes:
    (number,) = struct.unpack("=I", socket.inet_aton(address[0]))
    return b"%08X:%04X" % (number, address[1])
