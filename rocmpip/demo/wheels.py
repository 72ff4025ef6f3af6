"""Small real wheels and sdists: true names, versions, tags, requirements, and next to nothing inside.

Standard library only, deterministic bytes (one date, sorted entries), made when first asked for.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import re
import tarfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from rocmpip.model.packages import normalise

_DATE = (2026, 1, 1, 0, 0, 0)
_EXTRA = re.compile(r"extra == [\"']([^\"']+)[\"']")
_EPOCH = 1767225600  # the same moment


def core_metadata(
    name: str,
    version: str,
    requires: Sequence[str] = (),
    extras: Sequence[str] = (),
    requires_python: str = "",
    summary: str = "",
) -> bytes:
    """A METADATA (PKG-INFO) file, core metadata 2.1."""
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Summary: {summary}"] if summary else []
    lines += [f"Requires-Python: {requires_python}"] if requires_python else []
    lines += [f"Requires-Dist: {line}" for line in requires]
    lines += [f"Provides-Extra: {extra}" for extra in extras]
    return ("\n".join(lines) + "\n").encode()


def zipped(entries: Mapping[str, bytes]) -> bytes:
    """A zip of ``entries`` in their order, always the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path, content in entries.items():
            info = zipfile.ZipInfo(path, _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)
    return buffer.getvalue()


def record_line(path: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}"


@dataclass(frozen=True)
class Artifact(ABC):
    """What wheels and sdists share. ``files`` maps a path inside to its content; extras in ``requires`` need no naming."""

    name: str
    version: str
    requires: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    requires_python: str = ""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    yanked: str | None = None
    upload_time: str = "2026-01-01T00:00:00Z"

    @property
    @abstractmethod
    def filename(self) -> str: ...

    @property
    @abstractmethod
    def content(self) -> bytes: ...

    @property
    def module(self) -> str:
        """The import name: ``nvidia-ml-py`` → ``nvidia_ml_py``."""
        return normalise(self.name).replace("-", "_")

    @property
    def project(self) -> str:
        return normalise(self.name)

    @cached_property
    def metadata(self) -> bytes:
        told = _EXTRA.findall("\n".join(self.requires))
        extras = dict.fromkeys((*self.extras, *told))
        return core_metadata(self.name, self.version, self.requires, tuple(extras), self.requires_python)

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def metadata_sha256(self) -> str:
        return hashlib.sha256(self.metadata).hexdigest()

    def encoded_files(self) -> dict[str, bytes]:
        return {path: text.encode() if isinstance(text, str) else text for path, text in self.files.items()}


@dataclass(frozen=True)
class Wheel(Artifact):
    """One wheel. Without ``files`` it holds one module that knows its version."""

    tag: str = "py3-none-any"

    @property
    def filename(self) -> str:
        return f"{self.module}-{self.version}-{self.tag}.whl"

    @property
    def content(self) -> bytes:
        return self._content

    @cached_property
    def _content(self) -> bytes:
        info = f"{self.module}-{self.version}.dist-info"
        entries = self.encoded_files() or {f"{self.module}/__init__.py": f'__version__ = "{self.version}"\n'.encode()}
        python, abi, platforms = self.tag.split("-")
        tags = [f"{p}-{a}-{m}" for p in python.split(".") for a in abi.split(".") for m in platforms.split(".")]
        pure = str(self.tag.endswith("-none-any")).lower()
        lines = ["Wheel-Version: 1.0", "Generator: rocmpip-demo", f"Root-Is-Purelib: {pure}", *(f"Tag: {t}" for t in tags)]
        entries[f"{info}/METADATA"] = self.metadata
        entries[f"{info}/WHEEL"] = ("\n".join(lines) + "\n").encode()
        record = [record_line(path, content) for path, content in entries.items()]
        entries[f"{info}/RECORD"] = ("\n".join([*record, f"{info}/RECORD,,"]) + "\n").encode()
        return zipped(entries)


@dataclass(frozen=True)
class Sdist(Artifact):
    """One source archive: ``files`` plus PKG-INFO, under ``name-version/``."""

    @property
    def filename(self) -> str:
        return f"{self.module}-{self.version}.tar.gz"

    @property
    def content(self) -> bytes:
        return self._content

    @cached_property
    def _content(self) -> bytes:
        buffer = io.BytesIO()
        top = f"{self.module}-{self.version}"
        with (
            gzip.GzipFile(fileobj=buffer, mode="wb", mtime=_EPOCH, compresslevel=1, filename="") as stream,
            tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for path, content in sorted({"PKG-INFO": self.metadata, **self.encoded_files()}.items()):
                member = tarfile.TarInfo(f"{top}/{path}")
                member.size, member.mtime, member.mode = len(content), _EPOCH, 0o644
                archive.addfile(member, io.BytesIO(content))
        return buffer.getvalue()
