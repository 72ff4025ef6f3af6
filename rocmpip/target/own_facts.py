"""Markers and wheel tags of the interpreter that we run on, where there is no doubt about them: CPython on Linux with glibc.

``packaging`` is right everywhere, and takes 16 ms to be loaded and asked, a tenth of a small lock. The tests compare the two.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

from rocmpip.model.machine import TargetFacts
from rocmpip.plan.tags import cpython_texts, expand_platform

_MACHINES = ("x86_64", "aarch64")


def own_facts() -> TargetFacts | None:
    """None for anything out of the ordinary: then ``packaging`` must be asked."""
    platforms = _platforms()
    if platforms is None or sys.implementation.name != "cpython" or sys.abiflags or hasattr(sys, "gettotalrefcount"):
        return None
    system, version = os.uname(), sys.version.split()[0]
    if not version.replace(".", "").isdigit() or sys.version_info.releaselevel != "final":
        return None
    markers = {
        "implementation_name": "cpython",
        "implementation_version": version,
        "os_name": os.name,
        "platform_machine": system.machine,
        "platform_release": system.release,
        "platform_system": system.sysname,
        "platform_version": system.version,
        "python_full_version": version,
        "platform_python_implementation": "CPython",
        "python_version": ".".join(map(str, sys.version_info[:2])),
        "sys_platform": sys.platform,
    }
    return TargetFacts(markers, tuple(cpython_texts(sys.version_info[:2], platforms)))


def _platforms() -> list[str] | None:
    """The native platform first (as packaging has it since 26.3), then manylinux from this glibc down."""
    if sys.platform != "linux" or sys.maxsize <= 2**32 or "_PYTHON_HOST_PLATFORM" in os.environ:
        return None
    machine = os.uname().machine
    try:
        name, _, glibc = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        major, minor = map(int, glibc.split("."))
    except (ValueError, OSError):
        return None
    # A distribution may say by that module which manylinux wheels run there.
    if name != "glibc" or major != 2 or machine not in _MACHINES or PathFinder.find_spec("_manylinux") is not None:
        return None
    many = expand_platform(f"linux_{machine}", (major, minor))
    return [f"linux_{machine}", *(one for one in many if one != f"linux_{machine}")]
