"""The one JSON envelope that every command of ours prints with ``--json``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from rocmpip import __version__
from rocmpip.model.errors import RocmpipError

SCHEMA = 1


def envelope(command: str, result: object, errors: Sequence[RocmpipError] = ()) -> dict[str, object]:
    """The envelope as a dict; ``ok`` is true when there are no errors. ``result`` is always an object."""
    return {
        "rocmpip": __version__,
        "schema": SCHEMA,
        "command": command,
        "ok": not errors,
        "result": {} if result is None else result,
        "errors": [error.as_json() for error in errors],
    }


def write(command: str, result: object, errors: Sequence[RocmpipError] = ()) -> None:
    """Print the envelope on stdout, once, as one JSON document."""
    sys.stdout.write(json.dumps(envelope(command, result, errors), indent=2, ensure_ascii=True) + "\n")
    sys.stdout.flush()
