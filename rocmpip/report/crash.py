"""Keep the details of an unexpected exception where a person can find them."""

from __future__ import annotations

import os
import tempfile
import traceback
from pathlib import Path

from rocmpip.model.redact import redact


def keep(problem: BaseException) -> str:
    """Write the redacted traceback under the state folder (else the temporary folder); its path, or "" when neither can be written."""
    text = redact("".join(traceback.format_exception(problem)))
    state = os.environ.get("ROCMPIP_STATE_DIR") or str(Path("~/.local/state/rocmpip").expanduser())
    for folder in (Path(state) / "crashes", Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(prefix="crash-", suffix=".txt", dir=folder, text=True)
        except OSError:
            continue
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        return name
    return ""
