"""Temporary folders that an interrupt does not leave behind."""

from __future__ import annotations

import tempfile


class TemporaryFolder(tempfile.TemporaryDirectory[str]):
    """``tempfile.TemporaryDirectory`` whose removal starts again when Ctrl-C or SIGTERM breaks it off, and whose failed removal
    does not spoil what succeeded."""

    def __init__(self, prefix: str) -> None:
        super().__init__(prefix=prefix, ignore_cleanup_errors=True)

    def cleanup(self) -> None:
        try:
            super().cleanup()
        except BaseException:
            super().cleanup()
            raise
