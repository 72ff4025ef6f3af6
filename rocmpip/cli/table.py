"""Our commands: name → one line of help. Each lives in ``rocmpip.cli.<name with _>`` as ``command``.

A plain tuple, so that ``--help`` and completion import nothing else. A test checks that every row has its module.
"""

from __future__ import annotations

COMMANDS: tuple[tuple[str, str], ...] = (
    ("install", "Install packages: ROCm builds of the torch family, recipe builds, and the rest by pip."),
    ("detect", "Show the GPUs, ROCm, driver and target environment, each with its source."),
    ("recipe", "List, show, check, create and trust build recipes."),
    ("build", "Build wheels by recipe without installing them, also for another gfx."),
    ("wheelhouse", "List, verify, prune, export and import the wheels that were built here."),
    ("examine", "Print the code objects, links and tags of a wheel."),
    ("router", "Serve the router alone: one index with ROCm's truth."),
    ("run", "Run any command behind the router."),
    ("lock", "Write pinned requirements for this machine or another."),
    ("sync", "Make the environment exactly what a lock says."),
    ("why", "Say why a package is in the plan."),
    ("tree", "Show who requires whom."),
    ("dockerfile", "Write a Dockerfile that reproduces a lock."),
    ("doctor", "Check the machine: driver, permissions, ROCm roots, compilers."),
    ("verify", "Check what is installed: builds, links, code objects."),
    ("diagnose", "Find the first real cause in a log."),
    ("journal", "The notebook of failed and mended builds."),
    ("env", "Print the variables that installed packages need at run time."),
    ("guard", "Hold the ROCm torch family for plain pip too."),
    ("shim", "Put a real pip command in front of pip."),
    ("shell-init", "Print the shell's alias and completion."),
    ("settings", "Print each setting and where it came from."),
    ("demo", "Show the main job on any machine, without a GPU."),
)
