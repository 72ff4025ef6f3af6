"""Runs beside the tests, in a process of its own: what the installed pip itself makes of a command line.

One JSON object a line on stdin, ``{"command", "argv", "env", "config"}``; one a line on stdout: ``{"values", "args"}`` or
``{"error"}`` with optparse's text. The product never looks inside pip; this oracle does, so that the two can be compared.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any


def plain(value: Any) -> Any:
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    names = [name for name in ("no_binary", "only_binary", "all_releases", "only_final") if hasattr(value, name)]
    return {name: plain(getattr(value, name)) for name in names} or str(value)


def parse(question: dict[str, Any]) -> dict[str, Any]:
    from pip._internal.commands import create_command

    for name in [name for name in os.environ if name.startswith("PIP_")]:
        del os.environ[name]
    os.environ.update(question["env"])
    with tempfile.NamedTemporaryFile("w", suffix=".conf", delete=False) as stream:
        stream.write(question["config"])
    os.environ["PIP_CONFIG_FILE"] = stream.name if question["config"] else os.devnull
    said = io.StringIO()
    try:
        with redirect_stderr(said), redirect_stdout(said):
            command = create_command(question["command"], isolated="--isolated" in question["argv"])
            values, args = command.parser.parse_args(list(question["argv"]))
    except SystemExit:
        return {"error": said.getvalue().strip().splitlines()[-1] if said.getvalue().strip() else ""}
    except Exception as problem:
        return {"error": str(problem)}
    finally:
        Path(stream.name).unlink()
    return {"values": {key: plain(value) for key, value in vars(values).items()}, "args": args}


if __name__ == "__main__":
    from pip._internal import configuration

    # Only the configuration of the question counts, not this machine's.
    configuration.get_configuration_files = lambda: {kind: [] for kind in configuration.VALID_LOAD_ONLY}
    from pip._internal.commands import create_command, wheel  # noqa: F401 - before the forks, so that each costs little

    for line in sys.stdin:
        # A fork for each: pip's list defaults are shared between the parses of one process.
        process = os.fork()
        if process == 0:
            print(json.dumps(parse(json.loads(line))), flush=True)
            os._exit(0)
        os.waitpid(process, 0)
