"""Files and pages of indexes, and the requirements that ask for them."""

from __future__ import annotations

from collections.abc import Mapping

from rocmpip.model.names import normalise as normalise
from rocmpip.model.record import Struct, field


class File(Struct, frozen=True):
    """One file of a project page."""

    filename: str
    url: str
    """Absolute, without fragment and without credentials."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    """Algorithm → hex digest, from the page; empty on nightlies."""
    requires_python: str = ""
    yanked: str | None = None
    """None, or the reason (may be empty) when the file is yanked."""
    core_metadata: str | None = None
    """None: not advertised. "": advertised without a hash. Else ``sha256=…`` of the .metadata file."""
    size: int | None = None
    upload_time: str = ""
    index: str = ""
    """URL of the index (or find-links place) the page came from, without credentials."""
    trusted: bool = False
    """True when the file's host was named by --trusted-host."""


class Page(Struct, frozen=True):
    """All files an index has for one project; ``files`` keeps the page's order."""

    name: str
    """Normalised."""
    index: str
    files: tuple[File, ...] = ()


class Absent(Struct, frozen=True):
    """The index answered and has no such project (404, 403, or an empty page)."""

    name: str
    index: str
    reason: str = ""
    """"HTTP 404", "HTTP 403" …"""


class RequirementLine(Struct, frozen=True):
    """One requirement as a person wrote it, from argv or a file.

    Exactly one of ``name`` (a PEP 508 requirement), ``url`` (remote archive or VCS, perhaps ``name @ url``) and
    ``path`` (local folder, wheel or sdist) leads; ``name`` may be set beside the others when it is known.
    """

    text: str
    """The logical line, variables expanded, without comment."""
    origin: str
    """"command line" or "requirements.txt:12"."""
    name: str = ""
    """Normalised, or ""."""
    extras: tuple[str, ...] = ()
    specifier: str = ""
    marker: str = ""
    url: str = ""
    path: str = ""
    """Absolute."""
    editable: bool = False
    constraint: bool = False
    hashes: tuple[str, ...] = ()
    """``sha256:…`` as written."""
    config_settings: tuple[str, ...] = ()
    """``KEY=VAL`` per-requirement."""
