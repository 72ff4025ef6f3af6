"""Open the index client with the user's index options and our page cache."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocmpip.app.context import Context
    from rocmpip.index.client import Client


def cache_folder(context: Context) -> Path:
    """ROCMPIP_CACHE_DIR, the setting, or the user's cache folder."""
    if context.settings.cache_dir:
        return Path(context.settings.cache_dir)
    from platformdirs import user_cache_path

    return user_cache_path("rocmpip", appauthor=False)


def open_client(context: Context) -> Client:
    """A client for this run; the page cache is left out under --no-cache-dir."""
    from rocmpip.index.client import Client
    from rocmpip.report import say
    from rocmpip.report.ask import credentials
    from rocmpip.store.cache import PageCache

    warn = say.warning if context.request.quiet < 2 else None
    cache = None if context.request.no_cache else PageCache(cache_folder(context) / "pages", warn=warn)
    # A lock may take a server's unadvertised word for the sake of speed; what is installed is read as pip reads it.
    guess = context.request.command == "lock"
    return Client(context.request.index, cache=cache, env=context.env, ask=credentials, guess=guess)
