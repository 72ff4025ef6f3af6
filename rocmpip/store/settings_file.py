"""Edit the user's settings file: one key at a time, comments and order kept, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmpip.model.errors import BadConfiguration

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


def set_value(path: Path, key: str, value: object) -> None:
    """Put ``key = value`` into the file, which is made (with its folder) when it is not there. Raises BadConfiguration."""
    document = _read(path)
    document[_present(document, key) or key] = _toml(value)
    _write(path, document)


def unset_value(path: Path, key: str) -> bool:
    """Take ``key`` out; False when it was not in the file. Raises BadConfiguration."""
    document = _read(path)
    present = _present(document, key)
    if present is None:
        return False
    del document[present]
    _write(path, document)
    return True


def _toml(value: object) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _present(document: TOMLDocument, key: str) -> str | None:
    """The file's own spelling of ``key`` (``pytorch-url`` for ``pytorch_url``), or None."""
    return next((name for name in document if str(name).replace("-", "_") == key), None)


def _read(path: Path) -> TOMLDocument:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return tomlkit.document()
    except (TOMLKitError, UnicodeDecodeError) as problem:
        raise BadConfiguration(f"{path} is not TOML: {problem}", hint="mend the file first; it was not changed") from None
    except OSError as problem:
        raise BadConfiguration(f"{path} cannot be read: {problem.strerror or problem}") from None


def _write(path: Path, document: TOMLDocument) -> None:
    """Through a new file beside it; a link (dotfile managers) stays a link, permissions stay as they were."""
    target = Path(os.path.realpath(path))
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(prefix=".config-", suffix=".toml", dir=target.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(document.as_string())
                stream.flush()
                os.fsync(stream.fileno())
            if target.exists():
                Path(name).chmod(target.stat().st_mode & 0o777)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise BadConfiguration(f"{path} cannot be written: {problem.strerror or problem}") from None
