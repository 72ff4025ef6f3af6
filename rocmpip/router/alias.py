"""Wheels that exist only in the router: a dist-info folder and nothing else, the same bytes every time."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import zipfile
from collections.abc import Iterable

from rocmpip.model.packages import normalise
from rocmpip.model.routing import Synthetic

VIRTUAL_BUILD = "0rocmpip"
"""Build tag of the stand-ins for packages that a recipe will build: such a file is for planning, never for use."""


def alias_wheel(name: str, version: str, requires: str) -> Synthetic:
    """A wheel ``name==version`` whose only content is that it requires ``requires`` (``triton-rocm==3.5.1``).

    It keeps resolvers and ``pip check`` content where one import has several names, and adds no file that could clash.
    """
    metadata = static_metadata(
        name, version, (requires,), summary=f"Stands for {requires.partition('=')[0].strip()}, which has the code"
    )
    return _wheel(name, version, "", metadata)


def virtual_wheel(name: str, version: str, metadata: bytes) -> Synthetic:
    """A stand-in with the metadata of a package that a recipe builds, for a resolver's dry run on any target."""
    return _wheel(name, version, VIRTUAL_BUILD, metadata)


def static_metadata(
    name: str,
    version: str,
    requires_dist: Iterable[str] = (),
    provides_extra: Iterable[str] = (),
    requires_python: str = "",
    *,
    summary: str = "",
) -> bytes:
    """Core metadata 2.1 from its values. Raises ValueError when a value holds a line end."""
    rows = [("Metadata-Version", "2.1"), ("Name", name), ("Version", version)]
    if summary:
        rows.append(("Summary", summary))
    if requires_python:
        rows.append(("Requires-Python", requires_python))
    rows += [("Provides-Extra", extra) for extra in provides_extra]
    rows += [("Requires-Dist", requirement) for requirement in requires_dist]
    for key, value in rows:
        if "\n" in value or "\r" in value:
            raise ValueError(f"{key} of {name} has more than one line")
    return "".join(f"{key}: {value}\n" for key, value in rows).encode()


def _wheel(name: str, version: str, build: str, metadata: bytes) -> Synthetic:
    # Escaped as the wheel specification has it: runs of -_. become one underscore.
    distribution = normalise(name).replace("-", "_")
    escaped = re.sub(r"[^A-Za-z0-9.+!]+", "_", version)
    middle = f"-{build}" if build else ""
    filename = f"{distribution}-{escaped}{middle}-py3-none-any.whl"
    return Synthetic(filename, metadata, hollow_wheel(filename, metadata))


def hollow_wheel(filename: str, metadata: bytes) -> bytes:
    """The bytes of a wheel that has ``metadata`` and nothing else, whatever ``filename`` promises."""
    distribution, version, *build, python, abi, platform = filename.removesuffix(".whl").split("-")
    folder = f"{distribution}-{version}.dist-info"
    lines = ["Wheel-Version: 1.0", "Generator: rocmpip", "Root-Is-Purelib: true", f"Tag: {python}-{abi}-{platform}"]
    lines += [f"Build: {each}" for each in build]
    tags = ("\n".join(lines) + "\n").encode()
    members = [(f"{folder}/METADATA", metadata), (f"{folder}/WHEEL", tags)]
    record = [f"{path},sha256={_digest(data)},{len(data)}" for path, data in members]
    record.append(f"{folder}/RECORD,,")
    members.append((f"{folder}/RECORD", ("\n".join(record) + "\n").encode()))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for path, data in members:
            about = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            about.external_attr = 0o100644 << 16
            about.create_system = 3
            archive.writestr(about, data)
    return buffer.getvalue()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode("ascii")
