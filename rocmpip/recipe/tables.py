"""Reading of one decoded TOML table: wrong types and unknown keys become faults, never exceptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rocmpip.recipe.faults import Faults, key_path, shown
from rocmpip.recipe.values import control_fault

MOST_ITEMS = 300
"""Entries of one list or table."""

Check = Callable[[str], str]
"""Text → "" or the fault."""


class Table:
    """One table under ``path``. ``finish`` tells the keys that nobody read."""

    def __init__(self, data: Mapping[str, Any], path: tuple[str | int, ...], faults: Faults) -> None:
        self.data = data
        self.path = path
        self.faults = faults
        self._read: list[str] = []
        if len(data) > MOST_ITEMS:
            self.fault("", f"has {len(data)} entries", f"at most {MOST_ITEMS}")
            self.data = dict(list(data.items())[:MOST_ITEMS])

    def fault(self, key: str | int, problem: str, allowed: str = "") -> None:
        self.faults.add(key_path(*self.path, *([key] if key != "" else [])), problem, allowed)

    def take(self, key: str) -> Any:
        self._read.append(key)
        return self.data.get(key)

    def checked(self, key: str | int, value: object, check: Check | None = None) -> str:
        """``value`` when it is a proper string that passes ``check``, else "" and a fault."""
        if not isinstance(value, str):
            self.fault(key, f"is {shown(value)}", "a string")
            return ""
        problem = control_fault(value) or (check(value) if check else "")
        if problem:
            self.fault(key, f"{shown(value)} {problem}")
            return ""
        return value

    def text(self, key: str, check: Check | None = None, *, needed: bool = False, choices: tuple[str, ...] = ()) -> str:
        value = self.take(key)
        if value is None:
            if needed:
                self.fault(key, "is missing", ", ".join(choices) or "a string")
            return ""
        text = self.checked(key, value, check)
        if text and choices and text not in choices:
            self.fault(key, f"is {shown(text)}", ", ".join(choices))
            return ""
        if needed and value == "":
            self.fault(key, "is empty")
        return text

    def texts(self, key: str, check: Check | None = None, *, one: bool = False) -> tuple[str, ...] | None:
        """A list of strings (``one``: a single string is a list of one). None when the key is absent."""
        value = self.take(key)
        if value is None:
            return None
        if one and isinstance(value, str):
            value = [value]
        if not isinstance(value, list):
            self.fault(key, f"is {shown(value)}", "a list of strings")
            return ()
        return tuple(text for text in self.several(key, value, check) if text)

    def several(self, key: str, values: list[Any], check: Check | None) -> list[str]:
        if len(values) > MOST_ITEMS:
            self.fault(key, f"has {len(values)} entries", f"at most {MOST_ITEMS}")
            return []
        inner = Table({}, (*self.path, key), self.faults)
        return [inner.checked(place, item, check) for place, item in enumerate(values)]

    def flag(self, key: str) -> bool | None:
        value = self.take(key)
        if value is None or isinstance(value, bool):
            return value
        self.fault(key, f"is {shown(value)}", "true or false")
        return None

    def number(self, key: str, least: float, most: float) -> float | None:
        value = self.take(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
            self.fault(key, f"is {shown(value)}", f"a number from {least:g} to {most:g}")
            return None
        return float(value)

    def table(self, key: str) -> Table | None:
        value = self.take(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.fault(key, f"is {shown(value)}", "a table")
            return None
        return Table(value, (*self.path, key), self.faults)

    def tables(self, key: str) -> list[Table]:
        value = self.take(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.fault(key, f"is {shown(value)}", f"tables written as [[{key}]]")
            return []
        if len(value) > MOST_ITEMS:
            self.fault(key, f"has {len(value)} entries", f"at most {MOST_ITEMS}")
            value = value[:MOST_ITEMS]
        return [Table(item, (*self.path, key, place + 1), self.faults) for place, item in enumerate(value)]

    def finish(self) -> None:
        for key in self.data:
            if key not in self._read:
                self.fault(key, "is not a known key", ", ".join(self._read))
