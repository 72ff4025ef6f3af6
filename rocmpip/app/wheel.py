"""``rocmpip wheel``: pip's command behind the router."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str]) -> int:
    """Run ``rocmpip wheel ARGV`` and return the exit code."""
    from rocmpip.app import behind

    return behind.main("wheel", argv)
