"""Find-links places on this machine: folders of archives, and HTML files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rocmpip.index.credentials import Credentials
from rocmpip.index.listing import Row, parse_links
from rocmpip.model.filenames import is_archive


def folder_rows(folder: Path) -> Iterator[Row]:
    """Every archive in ``folder`` (not below it), by name."""
    for path in sorted(folder.iterdir()):
        if is_archive(path.name) and path.is_file():
            yield Row(path.name, path.absolute().as_uri(), {}, "", None, None, path.stat().st_size, "")


def local_rows(path: Path, credentials: Credentials) -> list[Row]:
    """The files of a local find-links place. Raises OSError."""
    if path.is_dir():
        return list(folder_rows(path))
    if is_archive(path.name):
        return [Row(path.name, path.absolute().as_uri(), {}, "", None, None, path.stat().st_size, "")]
    return list(parse_links(path.read_bytes(), "text/html", path.absolute().as_uri(), credentials))
