"""Values of options, gathered as pip gathers them: configuration < PIP_* variables < command line.

Lists of the command line extend what the configuration says; a list from a higher configuration layer replaces the lower one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from rocmpip.argv.config import PipConfig, environment_items
from rocmpip.argv.table import OURS, Grammar, Option
from rocmpip.argv.words import Given
from rocmpip.model.errors import UsageError
from rocmpip.model.packages import normalise
from rocmpip.model.record import Struct, field

_TRUE = frozenset(("y", "yes", "t", "true", "on", "1"))
_FALSE = frozenset(("n", "no", "f", "false", "off", "0"))


class NameSets(Struct):
    """Two sets of names that exclude each other: no-binary and only-binary, all-releases and only-final."""

    first: list[str] = field(default_factory=list)
    second: list[str] = field(default_factory=list)

    def add(self, text: str, *, to_second: bool) -> None:
        """Take in one comma-separated value. ``:all:`` clears both sets first, ``:none:`` its own."""
        target, other = (self.second, self.first) if to_second else (self.first, self.second)
        new = text.split(",")
        while ":all:" in new:
            other.clear()
            target[:] = [":all:"]
            del new[: new.index(":all:") + 1]
            # What follows :all: only matters when :none: takes it back.
            if ":none:" not in new:
                return
        for word in new:
            if word == ":none:":
                target.clear()
                continue
            name = normalise(word)
            if name in other:
                other.remove(name)
            if name not in target:
                target.append(name)


class Values:
    """dest → value. Lists for append and collect, ints for count, bools for flags, None for what nobody set."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self.binary = NameSets()
        """first: no-binary, second: only-binary."""
        self.releases = NameSets()
        """first: all-releases, second: only-final."""

    def text(self, dest: str) -> str:
        value = self._values.get(dest)
        return "" if value is None else str(value)

    def number(self, dest: str) -> int:
        return int(self._values.get(dest) or 0)

    def given(self, dest: str) -> bool:
        return dest in self._values

    def flag(self, dest: str, default: bool = False) -> bool:
        value = self._values.get(dest)
        return default if value is None else bool(value)

    def many(self, dest: str) -> tuple[str, ...]:
        return tuple(self._values.get(dest) or ())

    def set(self, dest: str, value: object) -> None:
        self._values[dest] = value

    def apply_configuration(self, config: PipConfig, env: Mapping[str, str], grammar: Grammar, *, isolated: bool) -> None:
        """Set the defaults from configuration and environment. Raises UsageError in pip's words."""
        for key, value in config.items(grammar.command):
            self._configure(key, value, grammar)
        if not isolated:
            for key, value in environment_items(env):
                self._configure(key, value, grammar)

    def _configure(self, key: str, value: str, grammar: Grammar) -> None:
        option = grammar.longs.get("--" + key)
        if option is None:
            return
        if option.action in ("flag", "off"):
            # pip sets the value as read, for the negative options too: PIP_NO_COMPILE=1 means compile=True.
            self._values[option.dest] = _boolean(value, key)
        elif option.action == "count":
            self._values[option.dest] = _count(value, key)
        elif option.action == "append":
            self._values[option.dest] = [_typed(option, word) for word in value.split()]
        elif option.action == "nocache":
            try:
                _boolean(value, key)
            except UsageError:
                raise UsageError(f"--no-cache-dir error: invalid truth value {value!r}") from None
            # Whatever the truth value is, pip takes the cache off.
            self.take(Given(option, option.name))
        elif option.action == "collect":
            self.take(Given(option, option.name, value))
        else:
            self._values[option.dest] = _typed(option, value)
            if option.dest == "cache_dir":
                self._values.pop("no_cache_dir", None)

    def take_all(self, given: Iterable[Given]) -> None:
        for one in given:
            try:
                self.take(one)
            except UsageError as problem:
                if one.option not in OURS:
                    problem.words = (one.spelled, one.value or "")
                raise

    def take(self, given: Given) -> None:
        """Apply one option of the command line (or of a requirement file). Raises UsageError in pip's words."""
        option, value = given.option, given.value or ""
        dest = option.dest
        if option.action in ("flag", "off"):
            self._values[dest] = option.action == "flag"
        elif option.action == "count":
            self._values[dest] = self.number(dest) + 1
        elif option.action == "nocache":
            self._values["no_cache_dir"] = True
            self._values.pop("cache_dir", None)
        elif dest in ("no_binary", "only_binary"):
            if value.startswith("-"):
                raise UsageError("--no-binary / --only-binary option requires 1 argument.")
            self.binary.add(value, to_second=dest == "only_binary")
        elif dest in ("all_releases", "only_final"):
            if value.startswith("-"):
                raise UsageError("--all-releases / --only-final option requires 1 argument.")
            self.releases.add(value, to_second=dest == "only_final")
        elif option.action in ("append", "collect"):
            _check(given)
            self._values[dest] = [*self.many(dest), _typed(option, value)]
        else:
            self._values[dest] = _typed(option, value, given.spelled)
            if dest == "cache_dir":
                self._values.pop("no_cache_dir", None)


def _check(given: Given) -> None:
    dest, value, name = given.option.dest, given.value or "", given.spelled
    if dest == "config_settings" and "=" not in value:
        raise UsageError(f"Arguments to {name} must be of the form KEY=VAL")
    if dest == "groups":
        path, colon, _ = value.rpartition(":")
        # pip also takes a pylock.toml (26.3) and pylock.NAME.toml there.
        filename = PurePosixPath(re.sub(r"\[[^\]]+\]$", "", path)).name
        if colon and filename != "pyproject.toml" and not is_pylock(filename):
            raise UsageError("--group error: group paths use 'pyproject.toml' filenames")


def is_pylock(place: str) -> bool:
    """True when a path or URL names a PEP 751 lock file: pylock.toml or pylock.NAME.toml."""
    name = place.split("?")[0].split("#")[0].rpartition("/")[2] if "://" in place else PurePosixPath(place).name
    return name == "pylock.toml" or re.fullmatch(r"pylock\.[^.]+\.toml", name) is not None


def _typed(option: Option, value: str, spelled: str = "") -> Any:
    name = spelled or option.name
    if option.kind == "int":
        try:
            # optparse reads 0x10, 0b1 and octal 010 too.
            prefix = value[:2].lower()
            return int(value, {"0x": 16, "0b": 2}.get(prefix, 8 if value[:1] == "0" else 10))
        except ValueError:
            raise UsageError(f"option {name}: invalid integer value: {value!r}") from None
    if option.kind == "float":
        try:
            return float(value)
        except ValueError:
            raise UsageError(f"option {name}: invalid floating-point value: {value!r}") from None
    return value


def _truth(value: str) -> bool | None:
    word = value.strip().lower() if isinstance(value, str) else ""
    return True if word in _TRUE else False if word in _FALSE else None


def _boolean(value: str, key: str) -> bool:
    truth = _truth(value)
    if truth is None:
        raise UsageError(
            f"{value} is not a valid value for {key} option, please specify a boolean value like yes/no, true/false or 1/0 instead."
        )
    return truth


def _count(value: str, key: str) -> int:
    truth = _truth(value)
    if truth is not None:
        return int(truth)
    if value.isdigit():
        return int(value)
    raise UsageError(
        f"{value} is not a valid value for {key} option, please instead specify either a non-negative integer or a boolean "
        "value like yes/no or false/true which is equivalent to 1/0."
    )
