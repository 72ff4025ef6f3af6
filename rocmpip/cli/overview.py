"""``rocmpip --help`` without a markup library: our commands, and that pip's all work too."""

from __future__ import annotations

import os
import sys

from rocmpip.cli.table import COMMANDS

PIP_COMMANDS = "cache check completion config debug download freeze hash help index inspect list search show uninstall wheel"

_INTRODUCTION = """\
Usage: rocmpip [OPTIONS] COMMAND [ARGS]...

  The pip that knows your AMD GPU.

  Every pip command works too: what is not listed here goes to pip as it is.

Options:
  --python PATH  The environment to work on: an interpreter or a folder.
  -V, --version  Show the versions of pip and rocmpip and exit.
  -h, --help     Show this message and exit.
  pip's general options work here as well.

Commands:
"""


_OWN_OPTIONS = """
rocmpip's Options:
  --gfx <gfx>                 Install for this GPU instead of the one that is seen. Repeatable, or with commas.
  --rocm <version>            Install for this ROCm instead of the one that is installed.
  --channel <channel>         stable, test or nightly.
  --python <path>             The environment to install into: an interpreter or a folder.
  --json                      Print one JSON document on stdout; with --dry-run, the plan.
  --recipe <file>             Use this recipe file too. Repeatable.
  --rebuild <name>            Build this package again although a kept wheel fits. Repeatable.
  --only-ready                Build nothing: refuse what has no ready ROCm wheel.
  --keep-build                Keep the folders of builds.
  --jobs <number>             Compile with this many jobs.
  --hsa-override              Accept wheels that run only under HSA_OVERRIDE_GFX_VERSION.
  --map-cuda-names            Accept the ROCm package for a CUDA name."""


def overview() -> str:
    """The text of ``--help``."""
    cli = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as light as the rest of this page
    app = os.path.join(os.path.dirname(cli), "app")  # noqa: PTH118, PTH120
    shipped = [
        row
        for row in COMMANDS
        if any(os.path.exists(os.path.join(place, row[0].replace("-", "_") + ".py")) for place in (cli, app))  # noqa: PTH110, PTH118
    ]
    width = max((len(name) for name, _ in shipped), default=0)
    rows = [f"  {name:<{width}}  {text}\n" for name, text in shipped]
    others = f"\npip's commands: {PIP_COMMANDS}\n  `rocmpip COMMAND --help` shows the help of each.\n"
    return _INTRODUCTION + "".join(rows) + others


def own_options() -> str:
    """What rocmpip adds to pip's help of install, download and wheel."""
    return _OWN_OPTIONS


def show() -> int:
    sys.stdout.write(overview())
    sys.stdout.flush()
    return 0
