"""Catalogue rows: shipped TOML first, then the user's files over it, field by field, with all faults told at once.

Every catalogue file has the form ``[section.key]`` + fields. A user's file may hold any section; a row with a known key
changes the fields it names, a row with a new key must be complete, ``remove = true`` takes a row away.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from rocmpip.catalogue.plain import read_plain
from rocmpip.model import toml
from rocmpip.model.errors import BadConfiguration

# Type checkers take the name for typing's own, whose import would cost detection 2 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# A plain class instead of a dataclass or NamedTuple: this module is on the way of `rocmpip detect`.
Check = Callable[[object], str]
"""Returns what is wrong with a value ("must be a list of strings"), or ""."""

_DATA = os.path.join(os.path.dirname(__file__), "data")  # noqa: PTH118, PTH120 (pathlib costs detection 5 ms)
_LARGEST = 4 * 1024 * 1024


class Section:
    """What rows of one section may hold."""

    def __init__(
        self,
        name: str,
        fields: Mapping[str, Check],
        required: Sequence[str] = (),
        key: Check | None = None,
    ) -> None:
        self.name = name
        self.fields = fields
        self.required = ("source", *required)
        self.key = key


class Layer:
    """One parsed file."""

    def __init__(self, origin: str, tables: Mapping[str, Any]) -> None:
        self.origin = origin
        self.tables = tables


def shipped(filename: str) -> Layer:
    """A file of rocmpip's own data folder. It is checked by the tests, not on every start."""
    with open(os.path.join(_DATA, filename), "rb") as stream:  # noqa: PTH118
        text = stream.read().decode("utf-8")
    tables = read_plain(text)
    return Layer(filename, toml.loads(text) if tables is None else tables)


def read_overrides(paths: Sequence[str]) -> list[Layer]:
    """The user's files, lowest first; a folder stands for its ``*.toml`` in alphabetical order.

    Raises BadConfiguration naming every file that cannot be read.
    """
    layers: list[Layer] = []
    problems: list[str] = []
    for path in _files(paths, problems):
        try:
            with open(path, "rb") as stream:
                data = stream.read(_LARGEST + 1)
            if len(data) > _LARGEST:
                problems.append(f"{path}: larger than 4 MiB")
                continue
            layers.append(Layer(path, toml.loads(data.decode("utf-8"))))
        except OSError as problem:
            problems.append(f"{path}: {problem.strerror or problem}")
        except UnicodeDecodeError:
            problems.append(f"{path}: not UTF-8 text")
        except toml.TomlError as problem:
            problems.append(f"{path}: {problem}")
    told(problems)
    return layers


def _files(paths: Sequence[str], problems: list[str]) -> Iterator[str]:
    for path in paths:
        if not os.path.isdir(path):  # noqa: PTH112
            yield str(path)
            continue
        try:
            names = sorted(os.listdir(path))  # noqa: PTH208
        except OSError as problem:
            problems.append(f"{path}: {problem.strerror or problem}")
            continue
        for name in names:
            if name.endswith(".toml"):
                yield os.path.join(path, name)  # noqa: PTH118


def merge(section: Section, layers: Sequence[Layer], problems: list[str]) -> dict[str, dict[str, Any]]:
    """The rows of one section, later layers over earlier ones. Faults are added to ``problems``; bad fields are left out."""
    rows: dict[str, dict[str, Any]] = {}
    for number, layer in enumerate(layers):
        table = layer.tables.get(section.name)
        if table is None:
            continue
        if not isinstance(table, Mapping):
            problems.append(f"{layer.origin}: {section.name} must be a table of rows")
            continue
        for key, fields in table.items():
            if number == 0:
                rows[key] = dict(fields)
                continue
            _merge_row(section, rows, layer.origin, key, fields, problems)
    return rows


def _merge_row(
    section: Section, rows: dict[str, dict[str, Any]], origin: str, key: str, fields: object, problems: list[str]
) -> None:
    where = f"{origin}: {section.name}.{key}"
    if not isinstance(fields, Mapping):
        problems.append(f"{where} must be a table")
        return
    wrong = section.key(key) if section.key else ""
    if wrong:
        problems.append(f"{where}: the key {wrong}")
        return
    if fields.get("remove") is True and len(fields) == 1:
        rows.pop(key, None)
        return
    good: dict[str, Any] = {}
    for name, value in fields.items():
        check = section.fields.get(name)
        if check is None:
            allowed = ", ".join(sorted({*section.fields, "remove"}))
            problems.append(f"{where}.{name} is not a known key (allowed: {allowed})")
            continue
        wrong = check(value)
        if wrong:
            problems.append(f"{where}.{name} {wrong}, not {_short(value)}")
        else:
            good[name] = value
    row = {**rows.get(key, {}), **good}
    for name in section.required:
        if name not in row and name not in fields:
            problems.append(f"{where} is new and needs {name}")
    rows[key] = row


def unknown_sections(layers: Sequence[Layer], known: Sequence[str], problems: list[str]) -> None:
    """Tell the sections of user files that no part of the catalogue reads."""
    for layer in layers:
        problems.extend(
            f"{layer.origin}: [{name}] is not a section of the catalogue (allowed: {', '.join(sorted(known))})"
            for name in layer.tables
            if name not in known
        )


def told(problems: Sequence[str]) -> None:
    """Raise BadConfiguration with all of ``problems``, if there are any."""
    if not problems:
        return
    count = "a fault" if len(problems) == 1 else f"{len(problems)} faults"
    raise BadConfiguration(
        f"the catalogue override has {count}",
        why=problems[0] if len(problems) == 1 else "",
        hint="docs/reference/catalogue.md lists the sections, their keys and what they may hold",
        details=tuple(problems),
    )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def text(value: object) -> str:
    return "" if isinstance(value, str) and len(value) <= 2000 else "must be a string"


def flag(value: object) -> str:
    return "" if isinstance(value, bool) else "must be true or false"


def texts(value: object) -> str:
    good = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return "" if good else "must be a list of strings"


def one_of(*allowed: str) -> Check:
    return lambda value: "" if value in allowed else f"must be one of {', '.join(allowed)}"
