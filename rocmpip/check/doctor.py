"""All checks of ``rocmpip doctor``, in the order in which a GPU program needs their answers."""

from __future__ import annotations

from collections.abc import Callable

from rocmpip.check import device, environment, needs, room, roots, tools, variables
from rocmpip.check.look import Look
from rocmpip.check.result import BROKEN, ORDER, Check

CHECKS: tuple[Callable[[Look], Check], ...] = (
    device.driver,
    device.devices,
    device.kernel,
    device.wsl,
    variables.override,
    variables.visible,
    roots.links,
    variables.rocm_path,
    roots.winner,
    roots.loader,
    variables.cuda,
    tools.hipcc,
    tools.host_compiler,
    tools.cmake,
    tools.ninja,
    needs.packages,
    environment.place,
    environment.torch,
    environment.triton,
    environment.cuda_packages,
    environment.libstdcxx,
    environment.glibc,
    room.disk,
    room.memory,
)


def examine(look: Look) -> tuple[Check, ...]:
    """Every check's answer, then the needs of --for's recipe. Nothing is changed."""
    return (*(check(look) for check in CHECKS), *needs.recipe(look))


def worst_first(checks: tuple[Check, ...]) -> tuple[Check, ...]:
    return tuple(sorted(checks, key=lambda check: ORDER.index(check.verdict)))


def broken(checks: tuple[Check, ...]) -> tuple[Check, ...]:
    return tuple(check for check in checks if check.verdict == BROKEN)
