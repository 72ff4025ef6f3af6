"""pip's public default index: the one place of this project that names it."""

from __future__ import annotations

DEFAULT_INDEX = "https://pypi.org/simple"
