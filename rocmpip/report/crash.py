"""Keep the details of an unexpected exception where a person can find them."""

from __future__ import annotations

import contextlib
import os
import tempfile
import traceback
from pathlib import Path

from rocmpip.model.redact import redact


def keep(problem: BaseException) -> str:
    """Write the redacted traceback under the state folder (else the temporary folder); its path, or "" when neither can be written."""
    text = redact("".join(traceback.format_exception(problem)))
    state = os.environ.get("ROCMPIP_STATE_DIR") or os.path.expanduser("~/.local/state/rocmpip")  # noqa: PTH111 - never raises
    for place in (str(Path(state) / "crashes"), ""):
        try:
            folder = Path(place or tempfile.gettempdir())  # without any temporary folder this raises too
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(prefix="crash-", suffix=".txt", dir=folder, text=True)
        except OSError:
            continue
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(text)
        except OSError:  # a full disk: the next place may have room
            with contextlib.suppress(OSError):
                Path(name).unlink()
            continue
        return name
    return ""
