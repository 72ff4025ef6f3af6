"""``rocmpip lock``: the short way where the same lock was made a moment ago, else ``lock_run``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from rocmpip.app.lock_memo import Memo


def main(argv: Sequence[str]) -> int:
    """Run ``rocmpip lock ARGV`` and return the exit code."""
    if "--json" not in argv:
        memo = Memo(argv, os.getcwd(), os.environ)  # noqa: PTH109 - pathlib would cost more than the rest
        known = memo.recall()
        if known is not None and _repeat(known):
            return 0
    from rocmpip.app.scout import send_scouts

    scouts = send_scouts()
    from rocmpip.app.lock_run import run

    return run(argv, scouts)


def _repeat(known: dict[str, str]) -> bool:
    """Say and, where it is missing, write what was written before. False when that cannot be."""
    from rocmpip.report import say

    output = known["output"]
    try:
        if not output:
            sys.stdout.write(known["content"])
            sys.stdout.flush()
        elif not os.path.exists(output):  # noqa: PTH110
            with open(output, "x", encoding="utf-8", newline="\n") as stream:
                stream.write(known["content"])
    except OSError:
        return False
    for note in known["notes"].splitlines():
        say.note(note)
    if known["message"]:
        say.step(known["message"])
    return True
