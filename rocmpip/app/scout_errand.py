"""The errand that a scout is sent on, and the way it goes: messages of msgpack over a pipe, each behind its length in four bytes.

Light to load: until the errand is sent, nobody asks the indexes anything.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from typing import Any
from zlib import crc32

from rocmpip.app.scout import Scouts
from rocmpip.model.packages import RequirementLine
from rocmpip.model.record import Struct, msgspec
from rocmpip.model.request import IndexOptions
from rocmpip.plan.listing import Rules

_READING = 2**20
_SALT = 16893
"""Any would do; with this one the large pages of well-known sets (bench/lock.py's three) fall to both scouts alike, 50 : 50
instead of 64 : 36, and a tenth of a cold lock is waiting for the slower one."""

pack = msgspec.msgpack.encode
unpack = msgspec.msgpack.decode


class Gone(Exception):
    """The other side is no more."""


class Channel:
    """One end: ``send`` and ``read`` whole messages (lists of what msgpack knows)."""

    def __init__(self, reading: int, writing: int) -> None:
        self.reading = reading
        self._writing = writing
        self._rest = b""
        self._come: deque[list[Any]] = deque()

    def send(self, *messages: object) -> None:
        """Raises Gone."""
        data = bytearray()
        for message in messages:
            body = pack(message)
            data += len(body).to_bytes(4, "little") + body
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._writing, view) :]
        except OSError:
            raise Gone from None

    def read(self) -> list[Any]:
        """The next message, waited for. Raises Gone."""
        while not self._come:
            self._come.extend(self.take())
        return self._come.popleft()

    def rest(self) -> list[list[Any]]:
        """What came together with the message that was read last."""
        come, self._come = self._come, deque()
        return list(come)

    def take(self) -> list[list[Any]]:
        """What one reading brings to its end: waits when there is nothing to read. Raises Gone."""
        try:
            data = os.read(self.reading, _READING)
        except OSError:
            raise Gone from None
        if not data:
            raise Gone
        data = self._rest + data
        found: list[list[Any]] = []
        place = 0
        while len(data) - place >= 4:
            end = place + 4 + int.from_bytes(data[place : place + 4], "little")
            if end > len(data):
                break
            found.append(unpack(data[place + 4 : end]))
            place = end
        self._rest = data[place:]
        return found

    def close(self) -> None:
        os.close(self.reading)
        os.close(self._writing)


def share_of(name: str, shares: int) -> int:
    """Which scout sees to a name: the same in every process."""
    return crc32(name.encode(), _SALT) % shares


class Errand(Struct, frozen=True):
    """What a scout is sent for."""

    index: IndexOptions
    requirements: tuple[RequirementLine, ...]
    constraints: tuple[RequirementLine, ...]
    rules: Rules
    markers: dict[str, str]
    pre: bool
    cache: str
    """Folder of the page cache, "" for none."""
    subject: tuple[str, ...]
    """What the metadata in the cache is filed under."""
    catalogue: tuple[str, ...] = ()
    """The user's catalogue files."""


def send_errand(scouts: Scouts, errand: Errand) -> list[Channel]:
    """The ways to the scouts, which have their errand now. They close what ``scouts`` would."""
    channels = [Channel(*ends) for ends in scouts.ends]
    scouts.ends = []
    for channel in channels:
        with suppress(Gone):  # found out by whoever asks
            channel.send(("errand", pack(errand)))
    return channels
