"""pip's configuration: text of its files → values, in pip's order. Reading the files is ``target.config``'s work."""

from __future__ import annotations

import configparser
from collections.abc import Iterator, Mapping, Sequence

from rocmpip.model.errors import InputError
from rocmpip.model.record import Struct, field

Sections = Mapping[str, Mapping[str, str]]

_IGNORED_VARIABLES = ("version", "help")


class PipConfig(Struct, frozen=True):
    """What pip's configuration files say together: section → key → value, and which files were read, lowest first."""

    sections: Sections = field(default_factory=dict)
    files: tuple[str, ...] = ()

    def items(self, command: str) -> Iterator[tuple[str, str]]:
        """(key, value) in the order in which pip applies them to ``command``: [global], then its own section."""
        for section in ("global", command):
            for key, value in self.sections.get(section, {}).items():
                if value:
                    yield key, value


def normal_key(name: str) -> str:
    """pip's key for a configuration name: lower case, ``-`` for ``_``, one leading ``--`` dropped."""
    return name.lower().replace("_", "-").removeprefix("--")


class _Parser(configparser.RawConfigParser):
    def optionxform(self, optionstr: str) -> str:
        return normal_key(optionstr)


def parse_pip_config(text: str, filename: str = "pip.conf") -> dict[str, dict[str, str]]:
    """The sections of one configuration file. Raises InputError in pip's words when it is no configuration file."""
    parser = _Parser()
    try:
        parser.read_string(text, source=filename)
    except configparser.Error as problem:
        message = "Configuration file could not be loaded."
        raise InputError(message, why=str(problem).replace("\n", " "), hint=f"mend {filename}") from None
    return {section: dict(parser.items(section)) for section in parser.sections()}


def merge(files: Sequence[tuple[str, Sections]]) -> PipConfig:
    """Join parsed files, lowest priority first: global < user < environment's own < PIP_CONFIG_FILE.

    A key of a later file replaces the earlier one in the same section, an empty value too.
    """
    merged: dict[str, dict[str, str]] = {}
    for _, sections in files:
        for section, values in sections.items():
            merged.setdefault(section, {}).update(values)
    return PipConfig(merged, tuple(name for name, _ in files))


def environment_items(env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(key, value) of the PIP_* variables that pip takes for options, without empty ones."""
    for name, value in env.items():
        if name.startswith("PIP_"):
            key = normal_key(name[4:])
            if key not in _IGNORED_VARIABLES and value:
                yield key, value
