"""Decoding of one clause: the file's own tables, or one ``[[when]]`` (its conditions stand beside the same tables)."""

from __future__ import annotations

import re
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from rocmpip.model.recipe import ReadyWheels, Source, SystemNeed
from rocmpip.recipe.allowed import allowed, groups, providers
from rocmpip.recipe.faults import key_path, shown
from rocmpip.recipe.schema import Clause, Setting, When
from rocmpip.recipe.tables import MOST_ITEMS, Table
from rocmpip.recipe.values import (
    commit_fault,
    https_fault,
    placeholder_fault,
    prepare_fault,
    relative_path_fault,
    requirement_fault,
    template_fault,
)
from rocmpip.recipe.when import gfx_fault, rocm_fault, specifier_fault

_CONFIG_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,100}|--(?:build|global)-option", re.ASCII)
_IMPORT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*", re.ASCII)
_LIBRARY = re.compile(r"[A-Za-z0-9_.+-]{1,80}", re.ASCII)
_NEED = re.compile(r"[A-Za-z0-9_.+-]+(?:/[A-Za-z0-9_.+-]+)*", re.ASCII)
_LABEL = re.compile(r"[a-z0-9]+(?:\.[a-z0-9]+)*", re.ASCII)
_KINDS = {"tools": "tool", "headers": "header", "cmake": "cmake", "libraries": "library"}


def decode_when(table: Table | None, backends: tuple[str, ...] | None) -> When:
    """A table that holds conditions alone. ``backends``: the words allowed, None for any."""
    if table is None:
        return When()
    when = _conditions(table, backends)
    table.finish()
    return when


def _conditions(table: Table, backends: tuple[str, ...] | None) -> When:
    def backend_fault(text: str) -> str:
        known = ", ".join(backends or ()) or "none: the recipe has no [[backend]]"
        return "" if backends is None or text in backends else f"is not one of the recipe's back ends ({known})"

    return When(
        version=table.text("version", specifier_fault),
        rocm=table.text("rocm", rocm_fault),
        python=table.text("python", specifier_fault),
        torch=table.text("torch", specifier_fault),
        backend=table.texts("backend", backend_fault, one=True) or (),
        gfx=table.texts("gfx", gfx_fault, one=True) or (),
        gfx_any=table.texts("gfx_any", gfx_fault, one=True) or (),
        gfx_outside=table.texts("gfx_outside", gfx_fault, one=True) or (),
    )


def _settings(table: Table | None, package: str, *, variables: bool) -> tuple[Setting, ...]:
    """``NAME = "value"``, ``NAME = { value = …, force = true, note = … }`` and, for config settings, lists of values."""
    if table is None:
        return ()
    settings = []
    for key in table.data:
        value = table.take(key)
        if variables:
            problem = allowed().variable(key, package)
            if problem:
                table.fault(key, problem)
        elif not _CONFIG_KEY.fullmatch(key):
            table.fault(key, "is not a config setting's key", "a word, or --build-option, --global-option")
        force, note, values = False, "", value
        if isinstance(value, dict):
            inner = Table(value, (*table.path, key), table.faults)
            force, note = inner.flag("force") or False, inner.text("note")
            values = inner.take("value")
            if values is None:
                inner.fault("value", "is missing", "a string")
                values = ""
            inner.finish()
        several = values if isinstance(values, list) and not variables else [values]
        if len(several) > MOST_ITEMS:
            table.fault(key, f"has {len(several)} entries", f"at most {MOST_ITEMS}")
            several = []
        settings += [Setting(key, table.checked(key, item, template_fault), force, note) for item in several]
    return tuple(settings)


def _source(table: Table | None) -> Source | None:
    if table is None:
        return None
    kind = table.text("kind", choices=("sdist", "git", "none")) or "sdist"
    source = Source(
        kind=kind,
        url=table.text("url", https_fault, needed=kind == "git"),
        # One that is wrong is told here; what stands in for it keeps it from being told as missing too.
        commit=table.text("commit", commit_fault) or ("0" * 40 if "commit" in table.data else ""),
        submodules=table.flag("submodules") or False,
        subdirectory=table.text("subdirectory", relative_path_fault),
        reason=table.text("reason", needed=kind == "none"),
        way_out=table.text("way_out", needed=kind == "none"),
    )
    if kind != "git" and (source.url or source.commit or source.submodules):
        table.fault("kind", f"is {shown(kind)} beside url, commit or submodules", "git")
    table.finish()
    return source


def _wheels(top: Table, where: str) -> tuple[ReadyWheels, ...]:
    def index_fault(text: str) -> str:
        plain = re.sub(r"\{[^{}]*\}", "0", text)
        return "" if text in ("default", "family") else placeholder_fault(text) or https_fault(plain)

    def name_fault(text: str) -> str:
        return "" if re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", text) else "is not a normalised project name"

    def label_fault(text: str) -> str:
        plain = re.sub(r"\{[^{}]*\}", "0", text)
        return placeholder_fault(text) or ("" if _LABEL.fullmatch(plain) else "is not a local label such as rocm7.2")

    found = []
    for table in top.tables("wheels"):
        found.append(
            ReadyWheels(
                index=table.text("index", index_fault, needed=True),
                name=table.text("name", name_fault),
                specifier=table.text("version", specifier_fault),
                clause=where,
                local=table.text("local", label_fault),
            )
        )
        table.finish()
    return tuple(found)


def _need(table: Table, kind: str, place: int, item: Any, where: str) -> SystemNeed | None:
    """``"cmake>=3.26,<4"`` or ``{ name = …, version = …, apt = …, dnf = …, therock = …, reason = … }``."""
    fields = {"version": "", "apt": "", "dnf": "", "therock": "", "reason": ""}
    if isinstance(item, dict):
        inner = Table(item, (*table.path, place), table.faults)
        name = inner.text("name", needed=True)
        for key in fields:
            fields[key] = inner.text(key, specifier_fault if key == "version" else None)
        inner.finish()
    else:
        text = table.checked(place, item)
        # A tool's name may hold + (c++), which no requirement may, so the bounds are split off by hand.
        name = re.split(r"[<>=!~\s]", text, maxsplit=1)[0]
        fields["version"] = text[len(name) :].strip()
        problem = specifier_fault(fields["version"])
        if problem:
            table.fault(place, f"{shown(text)}: the bound {problem}")
            fields["version"] = ""
    if not name:
        return None
    if not _NEED.fullmatch(name) or ".." in name.split("/") or (kind != "header" and "/" in name):
        table.fault(place, f"{shown(name)} is not the plain name of a {kind}")
        return None
    known = providers()[kind].get(name, {})
    return SystemNeed(
        kind=kind,
        name=name,
        specifier=fields["version"],
        apt=fields["apt"] or known.get("apt", ""),
        dnf=fields["dnf"] or known.get("dnf", ""),
        therock=fields["therock"] or known.get("therock", ""),
        reason=fields["reason"],
        clause=where,
    )


def _system(table: Table | None, where: str) -> tuple[SystemNeed, ...]:
    if table is None:
        return ()
    needs: list[SystemNeed] = []
    for key, kind in _KINDS.items():
        items = table.take(key)
        if items is None:
            continue
        if not isinstance(items, list) or len(items) > MOST_ITEMS:
            table.fault(key, f"is {shown(items)}", f"a list of at most {MOST_ITEMS} names or tables")
            continue
        inner = Table({}, (*table.path, key), table.faults)
        for place, item in enumerate(items):
            if isinstance(item, str) and item.startswith("@"):
                members = groups().get(item[1:])
                if members is None or kind != "cmake":
                    inner.fault(place, f"is {shown(item)}", ", ".join("@" + name for name in groups()) + " under cmake")
                needs += [found for member in members or () if (found := _need(inner, kind, place, member, where))]
                continue
            need = _need(inner, kind, place, item, where)
            needs += [need] if need else []
    table.finish()
    return tuple(needs)


def _ulimits(table: Table | None) -> dict[str, int]:
    if table is None:
        return {}
    found = {}
    for key in allowed().ulimits:
        value = table.number(key, 1, 2**31)
        if value is not None:
            found[key] = int(value)
    table.finish()
    return found


def _prepare(table: Table) -> tuple[tuple[str, ...], ...]:
    value = table.take("prepare")
    if value is None:
        return ()
    allowed_form = "lists of arguments: [['python', 'tools/prepare.py', '--flag']]"
    if not isinstance(value, list) or len(value) > 20:
        table.fault("prepare", f"is {shown(value)}", f"at most 20 {allowed_form}")
        return ()
    steps = []
    for place, step in enumerate(value):
        if not isinstance(step, list):
            table.faults.add(key_path(*table.path, "prepare", place), f"is {shown(step)}", allowed_form)
            continue
        inner = Table({}, (*table.path, "prepare", place), table.faults)
        before = len(table.faults.lines)
        arguments = [inner.checked(number, item) for number, item in enumerate(step[:100])]
        if len(table.faults.lines) == before:
            problem = prepare_fault(arguments, allowed().programs)
            if problem:
                table.faults.add(key_path(*table.path, "prepare", place), problem)
        steps.append(tuple(arguments))
    return tuple(steps)


def _requirements(table: Table, key: str) -> tuple[str, ...] | None:
    found = table.texts(key, requirement_fault)
    return None if found is None else tuple(_tidy(text) for text in found)


def _tidy(text: str) -> str:
    try:
        return str(Requirement(text))
    except InvalidRequirement:  # told already
        return text


def _drop_fault(text: str) -> str:
    return "" if _NEED.fullmatch(text) or _CONFIG_KEY.fullmatch(text) else "is not a name"


def decode_clause(table: Table, where: str, package: str, backends: tuple[str, ...] | None) -> Clause:
    """One clause. For a ``[[when]]`` its conditions are read from ``table`` too; the top clause has none."""
    when = _conditions(table, backends) if where else When()
    if where and when == When():
        table.fault("", "has no condition", "version, rocm, python, torch, backend, gfx, gfx_any, gfx_outside")
    because = table.text("because")
    source = _source(table.table("source"))
    requires_dist = None
    metadata = table.table("metadata")
    if metadata is not None:
        requires_dist = _requirements(metadata, "requires")
        metadata.finish()
    wheels = _wheels(table, where)
    system = _system(table.table("system"), where)
    runtime_table = table.table("runtime")
    build, verify = table.table("build"), table.table("verify")
    fields: dict[str, Any] = {}
    if build is not None:
        isolation = build.flag("isolation")
        fields = {
            "env": _settings(build.table("env"), package, variables=True),
            "config_settings": _settings(build.table("config_settings"), package, variables=False),
            "requires": _requirements(build, "requires") or (),
            "isolation": isolation,
            "memory_per_job": build.number("memory_per_job", 0.1, 256),
            "ulimits": _ulimits(build.table("ulimits")),
            "prepare": _prepare(build),
        }
        build.finish()
    if verify is not None:
        fields["import_name"] = (
            verify.text("import", lambda text: "" if _IMPORT.fullmatch(text) else "is not an import name") or None
        )
        fields["device_code"] = verify.flag("device_code")
        fields["must_not_link"] = verify.texts(
            "must_not_link", lambda text: "" if _LIBRARY.fullmatch(text) else "is not a library's file name"
        )
        verify.finish()
    return Clause(
        where=where,
        when=when,
        because=because,
        source=source,
        requires_dist=requires_dist,
        wheels=wheels,
        system=system,
        drop=table.texts("drop", _drop_fault) or (),
        runtime=_settings(runtime_table, package, variables=True),
        notes=table.texts("notes") or (),
        **fields,
    )
