"""Records: msgspec's structs in the place of dataclasses, frozen with few exceptions, everywhere but in the demo.

To define a dataclass Python compiles six functions, 0.4 ms for each class, and its module loads ``inspect`` for 7 ms more.
With some sixty classes on the way that was a quarter of what a cold lock computes; a struct is defined in 0.01 ms.
"""

from __future__ import annotations

import sys

__all__ = ["Struct", "asdict", "field", "msgspec", "replace"]

_EXTENSIONS = "typing_extensions"
_hidden = _EXTENSIONS not in sys.modules
if _hidden:
    # Where this is installed msgspec prefers it to typing, which has all that we use, and its import would double msgspec's.
    sys.modules[_EXTENSIONS] = None  # type: ignore[assignment]
try:
    import msgspec
    from msgspec import Struct, field
    from msgspec.structs import asdict, replace
finally:
    if _hidden:
        del sys.modules[_EXTENSIONS]
