"""``rocmpip verify``: settings → machine and environment → findings. Packages are imported in children alone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from rocmpip.app.doctor import machine
from rocmpip.check.inventory import take
from rocmpip.check.site import Site
from rocmpip.check.verify import Outcome, verify
from rocmpip.machine.files import Tree
from rocmpip.model.errors import CheckFailed, InputError, RocmpipError
from rocmpip.model.names import normalise
from rocmpip.target.installed import installed

__all__ = ["look_at", "verdict", "verify"]


def look_at(
    names: Sequence[str] = (), *, env: Mapping[str, str], gfx: Sequence[str] = (), python: str = "", cwd: str = ""
) -> Site:
    """Everything verify looks at. Raises UsageError for a bad option, InputError when there is no environment."""
    cwd = cwd or os.getcwd()  # noqa: PTH109
    _, platform, target, catalogue = machine(env=env, gfx=gfx, python=python, cwd=cwd)
    if target is None:
        raise InputError("there is no environment to verify", hint="activate one, or name it with --python")
    dists = installed(target.site_packages)
    wanted = frozenset(normalise(name) for name in names)
    asked = tuple(gfx) or ((env["ROCMPIP_GFX"],) if env.get("ROCMPIP_GFX") else ())
    return Site(
        env=dict(env),
        platform=platform,
        target=target,
        catalogue=catalogue,
        inventory=take(target.site_packages, dists, wanted),
        installed={dist.name: dist for dist in dists},
        asked=asked,
        tree=Tree(env.get("ROCMPIP_SYSROOT") or None),
        names=wanted,
    )


def verdict(outcome: Outcome) -> RocmpipError | None:
    """The error that the faults amount to, None without any."""
    faults = outcome.faults
    if not faults:
        return None
    kinds = ", ".join(dict.fromkeys(f"{fault.name or fault.file}: {fault.kind}" for fault in faults))
    hint = next((command for fault in faults for command in fault.fix), "")
    return CheckFailed(f"{len(faults)} fault{'s' if len(faults) > 1 else ''} in what is installed: {kinds}", hint=hint)
