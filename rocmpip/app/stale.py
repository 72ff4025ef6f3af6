"""Installed builds of ours that no longer fit: made for another GPU, against another torch, or by a recipe that has changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rocmpip.model.errors import Refused, RocmpipError
from rocmpip.model.packages import normalise
from rocmpip.model.provenance import FILENAME, UNKNOWN, Provenance, from_json
from rocmpip.target.environment import installed

if TYPE_CHECKING:
    from rocmpip.app.context import Context

_LIMIT = 256 * 1024


def provenances(context: Context) -> dict[str, Provenance]:
    """Name → record of every installed wheel that rocmpip built. Records that cannot be read count as none."""
    found: dict[str, Provenance] = {}
    for dist in installed(context.target.site_packages):
        path = Path(dist.path) / FILENAME
        try:
            with path.open("rb") as stream:
                found[dist.name] = from_json(json.loads(stream.read(_LIMIT)))
        except (OSError, ValueError):
            continue
    return found


def misfit(context: Context, record: Provenance, torch: str, *, recipe: bool) -> str:
    """Why an installed build is stale, "" when it fits. ``recipe``: compare the recipe's values too (it was asked for by name)."""
    inputs = record.inputs
    targets = context.platform.gfx_targets
    missing = [gfx for gfx in targets if inputs.gfx and gfx not in inputs.gfx]
    if missing:
        return f"the installed build is for {', '.join(inputs.gfx)}, and this machine has {', '.join(missing)}"
    if torch and inputs.torch and inputs.torch != torch:
        return f"the installed build was made against torch {inputs.torch}, and torch is {torch}"
    if recipe and inputs.recipe and record.recipe:
        from rocmpip.app.builds import TEMPLATE

        name = record.recipe.partition(" ")[0]
        own = context.book.get(inputs.name)
        if own is not None and name == TEMPLATE and inputs.version != UNKNOWN:
            # A folder of the user's own (no version before it is built) is built by the template whatever it is called.
            return f"the installed build was made without a recipe of its own, and now there is one: {own.name} ({own.layer})"
        try:
            now = context.book.resolve(name, inputs.version, context.recipe_context(torch=torch, backend=inputs.backend))
        except Refused:
            # The recipe that is in force now (a user's, a trusted project's) does not know the back end of then.
            return f"the recipe {name} has changed since it was built" if inputs.backend else ""
        except (KeyError, RocmpipError):
            return ""
        if now.digest != inputs.recipe:
            return f"the recipe {name} has changed since it was built"
    return ""


def stale(context: Context, torch: str, names: Iterable[str], asked: Iterable[str]) -> Mapping[str, str]:
    """Name → why, for the installed builds among ``names``. ``asked``: those that the user named; --rebuild names more."""
    if context.platform.state != "gpu":
        return {}
    wanted, named, again = set(names), set(asked), {normalise(name) for name in context.ours.rebuild}
    found = {}
    for name, record in provenances(context).items():
        if name in again:
            found[name] = "you asked for a rebuild"
        elif name in wanted:
            reason = misfit(context, record, torch, recipe=name in named)
            if reason:
                found[name] = reason
    for name in again & context.installed_versions.keys() - found.keys():
        # Built by something else: our recipe's build takes its place.
        if context.book.get(name) is not None and not context.catalogue.is_family(name):
            found[name] = "you asked for a rebuild"
    return found
