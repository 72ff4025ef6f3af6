"""The text that ``rocmpip recipe new`` writes: a whole, valid recipe with what is usually needed, explained."""

from __future__ import annotations

from rocmpip.recipe.schema import SCHEMA

_FRESH = """\
# A recipe for {name}. rocmpip recipe check FILE tells its faults; rocmpip recipe show {name} --recipe FILE what it comes to.
schema = {schema}

[package]
name = "{name}"
# What every C++/HIP extension of torch needs: no isolation, PYTORCH_ROCM_ARCH, ROCM_HOME, MAX_JOBS, hipcc.
extends = "_torch-extension"
summary = "{name}, built for the target GPUs"

[source]
# sdist: from your index. For git: kind = "git", url = "https://…", commit = "<40 hex digits>", submodules = true.
kind = "sdist"

[build]
# Build requirements besides setuptools, wheel, ninja and packaging; torch is the target's own.
requires = []
# GiB that one compiler job takes: the number of jobs comes from it.
memory_per_job = 3.0

[build.env]
# Values may hold {{gfx:;}}, {{gfx:,}}, {{gfx: }}, {{rocm_path}}, {{jobs}} … ; no shell reads them.
# FORCE_CUDA = {{ value = "1", note = "the switch for GPU code, on ROCm too" }}

[verify]
# import = "{module}"
# A wheel without code objects for the target GPUs is refused.
device_code = true

# More of the same for some versions, ROCm versions, GPUs, Pythons or torch versions; later clauses win.
# [[when]]
# version = "<2"
# gfx = ["gfx11*"]
# [when.build.env]
# NAME = "value"

# A combination that cannot work: torch is chosen around it, or the build is refused with this reason.
# [[conflict]]
# when = {{ torch = ">=2.14" }}
# message = "…"
# way_out = "…"
"""

_OVER = """\
# Changes to the recipe for {name} that comes with rocmpip: what is said here wins, the rest stays.
# rocmpip recipe show {name} --recipe FILE prints each value with the clause it came from.
schema = {schema}

[package]
name = "{name}"
extends = "{name}"

[build.env]
# MAX_JOBS = "4"
"""


def skeleton(name: str, *, known: bool) -> str:
    """The text for ``name``; ``known``: a recipe is there already, so the new one changes it."""
    template = _OVER if known else _FRESH
    return template.format(name=name, schema=SCHEMA, module=name.replace("-", "_"))
