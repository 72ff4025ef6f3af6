"""Options of pip whose promise a plan of ours cannot keep: refused in words rather than left out in silence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rocmpip.model.errors import InputError, NoPlan, Refused
from rocmpip.model.redact import redact
from rocmpip.model.rocm import rocm_of_label

if TYPE_CHECKING:
    from rocmpip.app.context import Context


def check_locks(context: Context) -> None:
    """A pylock.toml goes to pip with the URLs that stand in it, past the router: it must name no CUDA package and no torch of another
    build. Raises NoPlan(40), InputError for what is no lock, NetworkError for one that cannot be had."""
    if context.platform.state == "none" or not context.request.pylocks:
        return
    from rocmpip.lock.pylock import read

    for place in context.request.pylocks:
        try:
            text = _fetched(context, place) if "://" in place else Path(place).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise InputError(
                f"Error reading pylock file {place!r}", why=getattr(problem, "strerror", "") or str(problem)
            ) from None
        pins = read(text, redact(place)).pins
        wrong = [f"{name} {version}" for name, version in pins.items() if _wrong(context, name, version)]
        if wrong:
            raise NoPlan(
                f"{redact(place)} locks what is not for this machine: {', '.join(wrong[:6])}",
                why="they are CUDA packages or builds of torch without a +rocm label",
                hint="lock for this machine: rocmpip lock -o pylock.toml and what you need",
            )


def _fetched(context: Context, place: str) -> str:
    from rocmpip.index.client import Client

    with Client(context.request.index, env=context.env) as client:
        return client.requirement_text(place)


def _wrong(context: Context, name: str, version: str) -> bool:
    if context.catalogue.forbidden(name):
        return True
    return name in ("torch", "torchvision", "torchaudio") and rocm_of_label(version) is None


def refuse_unkept(context: Context, *, plain: bool) -> None:
    """Raise Refused (44) for options that only pip itself keeps, where the plan is ours to carry out. ``plain``: pip does it all."""
    request = context.request
    if request.pylocks and not plain:
        raise Refused(
            "a pylock.toml and packages of the torch family or with recipes cannot be installed by one command",
            hint="install the lock first: rocmpip sync pylock.toml",
        )
    if plain:
        return
    if request.uploaded_prior_to:
        raise Refused(
            f"--uploaded-prior-to {request.uploaded_prior_to} cannot be kept",
            why="the indexes of ROCm builds give no upload times",
            hint="pin the versions that you want instead: torch==X.Y.Z, or a lock (rocmpip lock)",
        )
    if request.only_deps:
        raise Refused(
            "--only-deps is not known to plans with the torch family or recipes",
            hint="name the dependencies themselves; rocmpip tree shows them",
        )
