"""What each setting is: its kind, whether a project must be trusted to set it, and one line of help.

One row a field of ``Settings``; a test holds them together. The reference page of the settings is made from this table.
"""

from __future__ import annotations

import os
from pathlib import Path

from rocmpip.model.gfx import parse_gfx
from rocmpip.model.record import Struct
from rocmpip.model.redact import redact
from rocmpip.model.rocm import parse_rocm

NONE = "none"
"""For ``rocm`` and ``gfx``: none, whatever the machine has."""
TRUE, FALSE = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off"})


class Row(Struct, frozen=True):
    """One setting. ``kind``: text, rocm, gfx, url, path, paths, program, whole, switch, or choice (one of ``choices``)."""

    key: str
    kind: str
    help: str
    choices: tuple[str, ...] = ()
    needs_trust: bool = False
    """It says where code comes from: a project's file may set it only when the project is trusted."""

    @property
    def variable(self) -> str:
        """Its environment variable: ROCMPIP_PYTORCH_URL."""
        return "ROCMPIP_" + self.key.upper()


ROWS: tuple[Row, ...] = (
    Row("rocm", "rocm", "ROCm version to aim at, in place of the one found."),
    Row("gfx", "gfx", "GPU targets that installs must cover, in place of those found."),
    Row("python", "program", "Interpreter of the environment to install into.", needs_trust=True),
    Row("channel", "choice", "Which builds of the torch family.", ("stable", "test", "nightly")),
    Row("no_rocm_build", "choice", "What to do for a package without a ROCm build.", ("fail", "ask", "cpu")),
    Row("pytorch_url", "url", "Mirror of pytorch.org: the root that holds whl/rocmX.Y.", needs_trust=True),
    Row("amd_7_url", "url", "Mirror of AMD's multi-arch index of ROCm 7.", needs_trust=True),
    Row("amd_10_url", "url", "Mirror of AMD's index of ROCm 10.", needs_trust=True),
    Row("cache_dir", "path", "Folder of listings, downloads and built wheels.", needs_trust=True),
    Row("state_dir", "path", "Folder of the journal, trust and crash files.", needs_trust=True),
    Row("recipe_path", "paths", "More folders of recipes, lowest first.", needs_trust=True),
    Row("catalogue_path", "paths", "More catalogue files or folders, lowest first.", needs_trust=True),
    Row("jobs", "whole", "Build jobs at once; 0 means from cores and memory."),
    Row("hsa_override", "switch", "Accept wheels that run only under HSA_OVERRIDE_GFX_VERSION."),
    Row("map_cuda_names", "switch", "Accept the ROCm package for a CUDA name (cupy-cuda12x → cupy-rocm-7-0)."),
)
BY_KEY = {row.key: row for row in ROWS}


def expected(row: Row) -> str:
    """What a value of this row may be, in words for an error."""
    return {
        "rocm": "a ROCm version such as 6.4, or none",
        "gfx": "gfx targets such as gfx942 or gfx90a,gfx1100, or none",
        "url": "an http, https or file URL",
        "path": "a path",
        "paths": f"paths (a list, or one text joined by {os.pathsep})",
        "program": "the path of a Python interpreter",
        "whole": "a whole number, 0 or more",
        "switch": "true or false",
        "choice": "one of " + ", ".join(row.choices),
    }.get(row.kind, "a text")


def read_value(row: Row, raw: object, base: Path, home: str) -> object:
    """``raw`` (from a flag, a variable or a TOML file) as ``Settings`` keeps it; relative paths start at ``base``.

    Raises ValueError that says what was expected.
    """
    reader = _READERS.get(row.kind, _text)
    try:
        return reader(row, raw, base, home)
    except ValueError as problem:
        # The model's parsers say it best themselves.
        raise ValueError(redact(str(problem)) or f"{redact(_shown(raw))} is not {expected(row)}") from None


def _shown(raw: object) -> str:
    text = ", ".join(map(str, raw)) if isinstance(raw, list | tuple) else repr(raw)
    return text if len(text) <= 80 else text[:77] + "..."


def _text(row: Row, raw: object, base: Path, home: str) -> str:
    if not isinstance(raw, str) or not raw.strip() or "\0" in raw:
        raise ValueError
    return raw.strip()


def _words(raw: object, separators: str) -> list[str]:
    """A list, or one text cut at ``separators``; empty pieces fall out."""
    if isinstance(raw, str):
        for separator in separators[1:]:
            raw = raw.replace(separator, separators[0])
        raw = raw.split(separators[0])
    if not isinstance(raw, list | tuple) or not all(isinstance(word, str) for word in raw):
        raise ValueError
    return [word.strip() for word in raw if word.strip()]


def _rocm(row: Row, raw: object, base: Path, home: str) -> str:
    text = _text(row, raw, base, home)
    if text.lower() == NONE:
        return NONE
    parse_rocm(text)
    return text


def _gfx(row: Row, raw: object, base: Path, home: str) -> tuple[str, ...]:
    texts = [raw] if isinstance(raw, str) else _words(raw, ",")
    words = [word for text in texts for word in _words(text, ",; \t")]
    if [word.lower() for word in words] == [NONE]:
        return (NONE,)
    found = tuple(dict.fromkeys(str(parse_gfx(word)) for word in words))
    if not found:
        raise ValueError
    return found


def _url(row: Row, raw: object, base: Path, home: str) -> str:
    text = _text(row, raw, base, home)
    scheme, mark, rest = text.partition("://")
    if scheme.lower() not in ("http", "https", "file") or not mark or not rest or any(char.isspace() for char in text):
        raise ValueError
    return text


def _path(row: Row, raw: object, base: Path, home: str) -> str:
    text = _text(row, raw, base, home)
    if text == "~" or text.startswith("~/"):
        text = home + text[1:]
    return os.path.normpath(base / text)


def _program(row: Row, raw: object, base: Path, home: str) -> str:
    """A path stays a path; a bare word (``python3.12``) is looked up on PATH by whoever runs it."""
    text = _text(row, raw, base, home)
    # Not normalised beyond that: resolving the link of a venv's python would leave the venv.
    return (
        str(base / text) if "/" in text and not text.startswith("~") else _path(row, text, base, home) if "~" in text else text
    )


def _paths(row: Row, raw: object, base: Path, home: str) -> tuple[str, ...]:
    return tuple(_path(row, word, base, home) for word in _words(raw, os.pathsep))


def _whole(row: Row, raw: object, base: Path, home: str) -> int:
    text = str(raw).strip()
    if isinstance(raw, bool) or not text.isascii() or not text.isdigit() or len(text) > 6:
        raise ValueError
    return int(text)


def _switch(row: Row, raw: object, base: Path, home: str) -> bool:
    if isinstance(raw, bool):
        return raw
    text = raw.strip().lower() if isinstance(raw, str) else ""
    if text not in TRUE | FALSE:
        raise ValueError
    return text in TRUE


def _choice(row: Row, raw: object, base: Path, home: str) -> str:
    text = _text(row, raw, base, home)
    if text not in row.choices:
        raise ValueError
    return text


_READERS = {
    "rocm": _rocm,
    "gfx": _gfx,
    "url": _url,
    "path": _path,
    "paths": _paths,
    "program": _program,
    "whole": _whole,
    "switch": _switch,
    "choice": _choice,
}
