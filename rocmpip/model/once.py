"""Each key's value is made once, however many threads ask for it at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class _Cell(Generic[V]):
    __slots__ = ("done", "problem", "value")

    def __init__(self) -> None:
        self.done = threading.Event()
        self.value: V | None = None
        self.problem: BaseException | None = None


class Once(Generic[K, V]):
    """A memo for threads: the first asker makes the value, the others wait for it. A failure is remembered too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cells: dict[K, _Cell[V]] = {}

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of ``key``; raises what ``make`` raised, in every thread that asks."""
        cell = self._cells.get(key)
        if cell is None:
            with self._lock:
                cell = self._cells.get(key)
                mine = cell is None
                if cell is None:
                    cell = self._cells[key] = _Cell()
            if mine:
                try:
                    cell.value = make()
                except BaseException as problem:
                    cell.problem = problem
                    raise
                finally:
                    cell.done.set()
                return cell.value
        cell.done.wait()
        if cell.problem is not None:
            raise cell.problem
        return cell.value  # type: ignore[return-value]

    def forget(self, key: K) -> None:
        """Make the value anew when it is asked for next."""
        with self._lock:
            self._cells.pop(key, None)

    def known(self) -> dict[K, V]:
        """What was made so far without a failure."""
        with self._lock:
            cells = dict(self._cells)
        return {
            key: cell.value  # type: ignore[misc]
            for key, cell in cells.items()
            if cell.done.is_set() and cell.problem is None
        }
