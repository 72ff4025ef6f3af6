"""Lanes to origins kept and handed out again; how each origin is reached."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from rocmpip.index.address import Address
from rocmpip.index.limits import Deadline
from rocmpip.index.names import Names
from rocmpip.index.proxies import Proxies, parse_proxy
from rocmpip.index.response import Response
from rocmpip.index.tls import Tls
from rocmpip.index.wire_errors import Cut

if TYPE_CHECKING:
    from rocmpip.index.transport import Lane

_IDLE_PER_ORIGIN = 32

_Key = tuple[int, str, str, int, str]


class Pool:
    """One exchange at a time per lane, any number of lanes. Safe for threads, and for a child that was forked."""

    def __init__(self, tls: Tls, proxies: Proxies, timeout: float) -> None:
        self._tls = tls
        self._proxies = proxies
        self._timeout = timeout
        self._lock = threading.Lock()
        self._idle: dict[_Key, list[Lane]] = {}
        self._closed = False
        self._names = Names()

    def open(self, address: Address, headers: dict[str, str], deadline: Deadline, method: str = "GET") -> Response:
        """Ask; the caller closes the response. A kept connection that turns out dead is replaced. Raises WireError."""
        proxy = self._proxies.of(address)
        # A child must not speak on its maker's connections, so it knows none of them.
        key = (os.getpid(), *address.origin, proxy)
        while True:
            kept = self._take(key)
            lane = kept or self._new(address, proxy)
            try:
                return lane.ask(method, address, headers, deadline, lambda lane: self._keep(key, lane))
            except BaseException as problem:
                lane.close()
                if kept is not None and isinstance(problem, Cut) and not problem.begun:
                    continue
                raise

    def _new(self, address: Address, proxy: str) -> Lane:
        from rocmpip.index.transport import Lane

        return Lane(address, parse_proxy(proxy) if proxy else None, self._tls, self._timeout, self._names)

    def _take(self, key: _Key) -> Lane | None:
        with self._lock:
            kept = self._idle.get(key)
            return kept.pop() if kept else None

    def _keep(self, key: _Key, lane: Lane) -> None:
        with self._lock:
            kept = self._idle.setdefault(key, [])
            if not self._closed and len(kept) < _IDLE_PER_ORIGIN:
                kept.append(lane)
                return
        lane.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            lanes = [lane for rows in self._idle.values() for lane in rows]
            self._idle.clear()
        for lane in lanes:
            lane.close()
