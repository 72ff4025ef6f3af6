"""Which indexes hold ROCm wheels, for which GPUs they have kernels, and what belongs together: data, with its sources.

``gfx.load_gfx`` is the cheap part that detection waits for; ``load`` reads everything.
"""

from __future__ import annotations

# Type checkers take the name for typing's own, whose import would cost detection 2 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from rocmpip.catalogue.catalogue import Catalogue
    from rocmpip.model.settings import Settings

__all__ = ["load"]


def load(settings: Settings | None = None) -> Catalogue:
    """The whole catalogue for these settings. Raises BadConfiguration (45) telling every fault of the user's files."""
    from rocmpip.catalogue import catalogue

    return catalogue.load(settings)
