"""Options that pip refuses together, before it looks at anything else."""

from __future__ import annotations

from rocmpip.model.errors import InputError
from rocmpip.model.request import Request


def refuse_combinations(request: Request) -> None:
    """Raise InputError in pip's words, in the order in which pip looks: builds, then the options that name another target."""
    if request.user and request.target:
        raise InputError("Can not combine '--user' and '--target'")
    if request.build_constraint_files and request.no_build_isolation:
        raise InputError("--build-constraint cannot be used with --no-build-isolation.")
    if request.command not in ("install", "download"):
        return
    if not (request.python_version or request.platforms or request.abis or request.implementation):
        return
    for_another = "--python-version, --platform, --abi, or --implementation"
    binary_only = request.only_binary == (":all:",) and not request.no_binary
    if not binary_only and not request.no_deps:
        raise InputError(
            f"When restricting platform and interpreter constraints using {for_another}, either --no-deps must be set, or "
            "--only-binary=:all: must be set and --no-binary must not be set (or must be set to :none:)."
        )
    if request.command == "install" and not request.dry_run and not request.target:
        raise InputError(
            "Can not use any platform or abi specific options unless installing via '--target' or using '--dry-run'"
        )
    for place in request.pylocks:
        raise InputError(
            f"Platform and interpreter constraints using {for_another}, are not supported when selecting requirements from "
            f"{place!r}"
        )
