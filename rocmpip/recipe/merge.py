"""Clauses laid over each other: what a recipe says for one version and machine, not filled yet."""

from __future__ import annotations

from typing import Any, TypeVar

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rocmpip.model.recipe import ReadyWheels, SystemNeed
from rocmpip.model.record import Struct, field, replace
from rocmpip.recipe.schema import Clause, Recipe, Setting, When

T = TypeVar("T")


def clause_text(recipe: Recipe, where: str, when: When) -> str:
    place = f"{recipe.file} {where}".strip() if where else recipe.file
    return f"{place} ({when})" if str(when) else place


class Merge(Struct):
    """Clauses laid over each other; later ones win. Keys are in the order of their first mention."""

    env: dict[str, tuple[Setting, str]] = field(default_factory=dict)
    config: dict[str, list[tuple[Setting, str]]] = field(default_factory=dict)
    runtime: dict[str, tuple[Setting, str]] = field(default_factory=dict)
    requires: dict[str, tuple[str, str]] = field(default_factory=dict)
    system: dict[tuple[str, str], SystemNeed] = field(default_factory=dict)
    wheels: list[ReadyWheels] = field(default_factory=list)
    prepare: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    ulimits: dict[str, tuple[int, str]] = field(default_factory=dict)
    single: dict[str, tuple[Any, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def lay(self, clause: Clause, text: str) -> None:
        for name in clause.drop:
            self.env.pop(name, None)
            self.runtime.pop(name, None)
            self.config.pop(name, None)
            self.requires.pop(canonicalize_name(name), None)
            for need_key in [each for each in self.system if each[1] == name]:
                del self.system[need_key]
        for setting in clause.env:
            self.env[setting.key] = (setting, text)
        for setting in clause.runtime:
            self.runtime[setting.key] = (setting, text)
        for key in {setting.key: None for setting in clause.config_settings}:
            self.config[key] = [(setting, text) for setting in clause.config_settings if setting.key == key]
        for requirement in clause.requires:
            self.requires[canonicalize_name(Requirement(requirement).name)] = (requirement, text)
        for need in clause.system:
            self.system[need.kind, need.name] = replace(need, clause=text)
        # A later clause knows better, so its indexes are asked first; within one clause the order is the file's.
        self.wheels[:0] = [replace(ready, clause=text) for ready in clause.wheels]
        self.prepare += [(step, text) for step in clause.prepare]
        for name, limit in clause.ulimits.items():
            self.ulimits[name] = (limit, text)
        for field_name in (
            "source",
            "requires_dist",
            "isolation",
            "memory_per_job",
            "import_name",
            "device_code",
            "must_not_link",
        ):
            value = getattr(clause, field_name)
            if value is not None:
                self.single[field_name] = (value, text)
        self.notes += clause.notes

    def get(self, key: str, default: T) -> T:
        """The last word on a single value."""
        value: T = self.single[key][0] if key in self.single else default
        return value

    def whence(self, key: str) -> str:
        """The clause that said it."""
        return self.single[key][1] if key in self.single else "built-in"

    def bare(self) -> Merge:
        """Ready wheels and single values alone."""
        return Merge(wheels=self.wheels, single=self.single, notes=self.notes)
