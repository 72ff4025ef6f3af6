"""TOML of any origin: tomllib with the faults that it lets through, and the time that it may take, bounded.

tomllib answers a number of 5,000 digits with a bare ValueError, deep nesting with RecursionError, and takes minutes for a key
of a hundred thousand parts. Here every fault is one error.
"""

from __future__ import annotations

import re
import sys

# Type checkers take the name for typing's own, whose import would cost detection 2 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEEPEST_KEY = 100
"""Parts of a dotted key, at most."""
_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')[ \t]*\.[ \t]*"""
_DEEP_KEY = f"(?<![A-Za-z0-9_.-])(?:{_PART}){{{DEEPEST_KEY}}}"
"""Compiled when a line has so many dots."""


class TomlError(ValueError):
    """A document that is none, with what is wrong and where."""


def loads(text: str) -> dict[str, Any]:
    """The data of a document. Raises TomlError for every fault."""
    # Loaded where there is something to read.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    if text.count(".") >= DEEPEST_KEY:
        for number, line in enumerate(text.splitlines(), 1):
            if line.count(".") >= DEEPEST_KEY and re.search(_DEEP_KEY, line):
                raise TomlError(f"a key of more than {DEEPEST_KEY} parts (at line {number})")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise TomlError("nested too deeply") from None
    except ValueError as problem:
        raise TomlError(str(problem)) from None
