"""A reader for the plainest TOML: what our own data files are written in, and quick enough for every start.

It knows comments, ``[a.b]`` headers with bare keys, and ``key = "string without escapes"``, ``true`` or ``false``. For
anything else it gives up, and the caller takes a real TOML parser: importing that costs a quarter of detection.
"""

from __future__ import annotations

# Type checkers take the name for typing's own, whose import would cost 2 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def read_plain(text: str) -> dict[str, Any] | None:
    """The same tables that tomllib reads, or None for a text with anything that is not plain (errors too)."""
    root: dict[str, Any] = {}
    table = root
    headers: set[str] = set()
    for line in text.split("\n"):
        line = line.strip(" \t")
        if not line or line[0] == "#":
            # A lone carriage return or another control character is an error in TOML, even in a comment.
            if not line.isprintable():
                return None
            continue
        if line[0] == "[":
            names = line[1:-1].split(".")
            if line[-1] != "]" or line in headers or not all(_bare(name) for name in names):
                return None
            headers.add(line)
            table = root
            for name in names:
                table = table.setdefault(name, {})
                if not isinstance(table, dict):
                    return None
            continue
        key, equals, value = line.partition("=")
        key, value = key.rstrip(" \t"), value.lstrip(" \t")
        if not equals or not _bare(key) or key in table:
            return None
        if value in ("true", "false"):
            table[key] = value == "true"
        elif len(value) >= 2 and value[0] == value[-1] == '"' and value.isprintable() and _simple(value[1:-1]):
            table[key] = value[1:-1]
        else:
            return None
    return root


def _bare(name: str) -> bool:
    return name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()


def _simple(body: str) -> bool:
    return '"' not in body and "\\" not in body
