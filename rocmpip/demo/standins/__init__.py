"""Sources of the stand-in packages: what runs in the demo's and the tests' environments in place of the heavy originals."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent


def source(name: str) -> str:
    """The text of one stand-in module (``setuptools_build``)."""
    return (_HERE / f"{name}.py").read_text(encoding="utf-8")
