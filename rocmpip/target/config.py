"""Read pip's configuration files where pip finds them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from rocmpip.argv.config import PipConfig, merge, parse_pip_config
from rocmpip.model.errors import InputError

_LIMIT = 1024 * 1024


def config_files(env: Mapping[str, str], prefix: str, *, isolated: bool = False) -> Iterator[Path]:
    """The places of pip's configuration files, lowest priority first; not all exist.

    Global (XDG_CONFIG_DIRS and /etc), user (legacy, then XDG_CONFIG_HOME), the environment's own, PIP_CONFIG_FILE. A file that
    PIP_CONFIG_FILE names takes the place of the user's; the null device there means none at all.
    """
    named = env.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return
    home = Path(env.get("HOME") or Path.home())
    if sys.platform == "darwin":
        yield Path("/Library/Application Support/pip/pip.conf")
    else:
        for folder in (env.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep):
            if folder.strip():
                yield Path(folder) / "pip" / "pip.conf"
        yield Path("/etc/pip.conf")
    if not isolated and not (named and Path(named).exists()):
        yield home / ".pip" / "pip.conf"
        yield _user_folder(env, home) / "pip" / "pip.conf"
    yield Path(prefix) / "pip.conf"
    if named:
        yield Path(named)


def _user_folder(env: Mapping[str, str], home: Path) -> Path:
    if sys.platform == "darwin":
        library = home / "Library" / "Application Support"
        if (library / "pip").is_dir():
            return library
        return home / ".config"
    configured = (env.get("XDG_CONFIG_HOME") or "").strip()
    return Path(configured) if configured else home / ".config"


def read_config(env: Mapping[str, str], prefix: str, *, isolated: bool = False) -> PipConfig:
    """What the configuration files say for pip in the environment at ``prefix``.

    Raises InputError when a file is there and no configuration file; one that may not be read is passed over, as pip does.
    """
    files = []
    for path in config_files(env, prefix, isolated=isolated):
        text = _read(path)
        if text is not None:
            files.append((str(path), parse_pip_config(text, str(path))))
    return merge(files)


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as stream:
            data = stream.read(_LIMIT + 1)
    except OSError:
        return None
    if len(data) > _LIMIT:
        raise InputError(f"Configuration file could not be loaded: {path} is larger than {_LIMIT // 1024} KiB")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(
            "Configuration file could not be loaded.", why=f"{path} contains invalid utf-8 characters", hint=f"mend {path}"
        ) from None
