"""Build hook of hatchling: an editable install leaves compiled modules beside the sources, as pip does for every other install.

Where PYTHONDONTWRITEBYTECODE is set (container images set it) Python would otherwise compile the sources again at every start.
Sources that change later are noticed by their time, so a stale file does no harm.
"""

from __future__ import annotations

import compileall
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileEditable(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is made; ``version`` is "standard" or "editable". A read-only checkout stays as it is."""
        if self.target_name == "wheel" and version == "editable":
            folder = Path(self.root) / "rocmpip"
            compileall.compile_dir(folder, quiet=2, invalidation_mode=PycInvalidationMode.TIMESTAMP)
