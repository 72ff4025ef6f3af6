"""`rocmpip env`: the variables that installed packages need at run time, from their recipes and their build records."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from rocmpip.elf import read_installed
from rocmpip.model.errors import RocmpipError, UsageError
from rocmpip.model.recipe import RecipeContext
from rocmpip.model.record import Struct

SHELLS = ("sh", "fish", "csh")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Variable(Struct, frozen=True):
    """One variable, who needs it, and where that is written."""

    key: str
    value: str
    package: str
    source: str
    """"the record of its build", or the recipe's clause."""


class Needed(Struct, frozen=True):
    variables: tuple[Variable, ...]
    clashes: tuple[str, ...]
    """Two packages that want different values, in words; the first one named is printed."""


def needed(env: Mapping[str, str], *, python: str = "") -> Needed:
    """What the target environment's packages need. A build record counts before the recipe: it says what was built."""
    from rocmpip.app.detect import detect_platform
    from rocmpip.app.recipe import load_layers
    from rocmpip.store.settings import load_settings

    settings = load_settings({"python": python} if python else {}, env, str(Path.cwd()))
    platform, target, installed = detect_platform(
        env=env, gfx=settings.gfx, rocm=settings.rocm, python=python or settings.python, catalogue=settings.catalogue_path
    )
    if target is None:
        raise UsageError("there is no environment to look into", hint="name one: --python PATH")
    book = load_layers(settings, env, str(Path.cwd()), ())
    from rocmpip.target.environment import installed as all_installed

    dists = {dist.name: dist for dist in all_installed(target.site_packages)}
    dists |= {dist.name: dist for dist in installed if dist.name not in dists}
    torch = dists["torch"].version if "torch" in dists else ""
    rows: list[Variable] = []
    for name, dist in sorted(dists.items()):
        record = read_installed(Path(dist.path)) if dist.path else None
        if record is not None:
            rows += [Variable(key, value, name, "the record of its build") for key, value in record.runtime.items()]
            continue
        if book.get(name) is None:
            continue
        context = RecipeContext(
            gfx=platform.gfx_targets,
            rocm=platform.rocm,
            torch=torch,
            python=".".join(target.version.split(".")[:2]),
            backend=book.backend_asked(name, env),
            rocm_path=platform.rocm_root,
            hip_path=platform.rocm_root,
            site_packages=target.site_packages[0] if target.site_packages else "",
        )
        try:
            recipe = book.resolve(name, dist.version, context)
        except RocmpipError:
            continue  # no GPU known here: what the recipe would set depends on it
        rows += [Variable(value.key, value.value, name, value.clause) for value in recipe.runtime]
    return _without_clashes(rows)


def _without_clashes(rows: Sequence[Variable]) -> Needed:
    first: dict[str, Variable] = {}
    clashes: list[str] = []
    for row in rows:
        before = first.setdefault(row.key, row)
        if before.value != row.value:
            clashes.append(f"{row.package} needs {row.key}={row.value}, and {before.package} needs {before.value}")
    return Needed(tuple(first[key] for key in sorted(first)), tuple(clashes))


def shell_of(env: Mapping[str, str]) -> str:
    """The syntax of the user's shell: sh, fish or csh."""
    name = os.path.basename(env.get("SHELL", ""))  # noqa: PTH119 - a text, not a path of ours
    return "fish" if name == "fish" else "csh" if name in ("csh", "tcsh") else "sh"


def lines(needed: Needed, shell: str) -> str:
    """Lines to ``eval``: values quoted, names checked (a record travels inside wheels)."""
    rows = []
    for one in needed.variables:
        if not _NAME.fullmatch(one.key) or not one.value.isprintable():
            continue
        if shell == "fish":
            quoted = one.value.replace("\\", "\\\\").replace("'", "\\'")
            rows.append(f"set -gx {one.key} '{quoted}'")
        elif shell == "csh":
            # csh expands ! even inside single quotes.
            rows.append(f"setenv {one.key} {shlex.quote(one.value).replace('!', chr(92) + '!')}")
        else:
            rows.append(f"export {one.key}={shlex.quote(one.value)}")
    return "".join(f"{row}\n" for row in rows)
