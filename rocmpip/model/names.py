"""Project names. A module of its own because detection needs nothing else of ``packages``."""

from __future__ import annotations

import re

_RUN = re.compile(r"[-_.]+")


def normalise(name: str) -> str:
    """PEP 503: ``Torch_Vision`` → ``torch-vision``. (Not packaging's: importing that costs more than detection may.)"""
    return _RUN.sub("-", name).lower()
