"""A wheel's files seen through this room: device code, links and tags of the whole."""

from __future__ import annotations

import os
import re
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from email.parser import BytesHeaderParser
from pathlib import Path

from rocmpip.elf.links import links
from rocmpip.elf.objects import HEAD, FileReport, examine_source, interesting
from rocmpip.elf.source import BytesSource, ElfError, FileSource, Source
from rocmpip.elf.targets import CodeObject, covers
from rocmpip.model.archives import broken_as
from rocmpip.model.record import Struct
from rocmpip.model.regular import regular

_IN_MEMORY = 8 << 20
_MAX_MEMBERS = 200_000
_MAX_MEMBER = 16 << 30
_BLOCK = 1 << 20
_ZEROS = bytes(_BLOCK)
_KPACK = re.compile(r"_(gfx[0-9a-f]+)\.kpack$")


class WheelReport(Struct, frozen=True):
    """What a wheel holds, file by file and as a whole."""

    filename: str
    size: int
    name: str
    version: str
    tags: tuple[str, ...]
    """The wheel's own tags (its WHEEL file; else its file name)."""
    files: tuple[FileReport, ...]
    """Files with device code or links, in the archive's order."""

    @property
    def gfx(self) -> tuple[str, ...]:
        """Every target of every file, sorted, without features."""
        return tuple(sorted({target for file in self.files for target in file.gfx}))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of device code: plain, ccob-v3-zstd, loose, kpack, kpack-ref, cuda."""
        return tuple(sorted({kind for file in self.files for kind in file.kinds}))

    @property
    def links(self) -> tuple[str, ...]:
        """Every library that some file needs and the wheel does not bring itself, sorted."""
        own = {Path(file.path).name for file in self.files} | {file.soname for file in self.files}
        return tuple(sorted({name for file in self.files for name in file.needed} - own))

    @property
    def cuda_links(self) -> tuple[str, ...]:
        """CUDA libraries that some file needs, bundled or not."""
        return tuple(sorted({name for file in self.files for name in file.cuda_links}))

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(f"{file.path}: {file.problem}" for file in self.files if file.problem)

    def missing(self, gfx: tuple[str, ...]) -> tuple[str, ...]:
        """Those of ``gfx`` that no code object in the wheel runs on."""
        return tuple(one for one in gfx if not any(covers(target, one) for target in self.gfx))

    def forbidden_links(self, forbidden: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """(file, library) for each link to one of ``forbidden``."""
        return tuple((file.path, name) for file in self.files for name in links(file.needed, forbidden))

    def as_json(self) -> dict[str, object]:
        return {
            "filename": self.filename,
            "size": self.size,
            "name": self.name,
            "version": self.version,
            "tags": list(self.tags),
            "gfx": list(self.gfx),
            "kinds": list(self.kinds),
            "links": list(self.links),
            "cuda_links": list(self.cuda_links),
            "files": [file.as_json() for file in self.files],
            "problems": list(self.problems),
        }


def examine_wheel(path: str | os.PathLike[str]) -> WheelReport:
    """Examine every ELF file and bundle of a wheel. Raises ElfError for what is no wheel (or no zip), OSError when it cannot be read.

    Members up to 8 MiB are read in memory; larger ones stay where they are when stored, and go through a temporary file
    when compressed, so memory does not grow with the wheel.
    """
    path = Path(path)
    with open(path, "rb", opener=regular) as stream:
        size = os.fstat(stream.fileno()).st_size
        with (
            broken_as(lambda why: ElfError(f"{path.name} is not a readable wheel: {why}")),
            zipfile.ZipFile(stream) as archive,
        ):
            return _examine(archive, path.name, size, stream.fileno())


def _examine(archive: zipfile.ZipFile, filename: str, size: int, descriptor: int) -> WheelReport:
    members = archive.infolist()
    if len(members) > _MAX_MEMBERS:
        raise ElfError(f"{filename} has {len(members)} members")
    name, version, tags = _identity(archive, filename)
    files = []
    for member in members:
        if member.is_dir() or member.file_size == 0:
            continue
        packed = _KPACK.search(member.filename)
        if packed:
            found = CodeObject(packed.group(1), (), member.file_size)
            files.append(FileReport(member.filename, member.file_size, "", ("kpack",), (found,)))
            continue
        with archive.open(member) as body:
            head = body.read(HEAD)
        if interesting(head):
            with _source(archive, member, descriptor) as source:
                files.append(examine_source(source, member.filename))
    return WheelReport(filename, size, name, version, tags, tuple(files))


@contextmanager
def _source(archive: zipfile.ZipFile, member: zipfile.ZipInfo, descriptor: int) -> Iterator[Source]:
    """Random access to a member's bytes."""
    if member.file_size <= _IN_MEMORY:
        yield BytesSource(archive.read(member))
        return
    if member.file_size > _MAX_MEMBER:
        raise ElfError(f"{member.filename} claims {member.file_size} bytes")
    if member.compress_type == zipfile.ZIP_STORED:
        yield FileSource(descriptor, _data_offset(descriptor, member), member.file_size)
        return
    with tempfile.TemporaryFile(prefix="rocmpip-examine-", buffering=0) as stream:
        with archive.open(member) as body:
            while block := body.read(_BLOCK):
                # Runs of zeros become holes: a bomb made of them fills no disk.
                if block == _ZEROS:
                    stream.seek(len(block), os.SEEK_CUR)
                else:
                    stream.write(block)
        stream.truncate()
        stream.flush()
        yield FileSource(stream.fileno())


def _data_offset(descriptor: int, member: zipfile.ZipInfo) -> int:
    """Where a stored member's bytes begin: after its local header, whose name and extra field have their own lengths."""
    header = os.pread(descriptor, 30, member.header_offset)
    if len(header) != 30 or header[:4] != b"PK\x03\x04":
        raise ElfError(f"{member.filename}: broken local header")
    return member.header_offset + 30 + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")


def _identity(archive: zipfile.ZipFile, filename: str) -> tuple[str, str, tuple[str, ...]]:
    """(name, version, tags) from METADATA and WHEEL, else from the file name."""
    parts = filename.removesuffix(".whl").split("-")
    name, version = (parts[0], parts[1]) if len(parts) >= 5 else ("", "")
    tags = tuple(f"{py}-{abi}-{plat}" for py in parts[-3].split(".") for abi in parts[-2].split(".")
                 for plat in parts[-1].split(".")) if len(parts) >= 5 else ()  # fmt: skip
    for member in archive.infolist():
        folder, _, leaf = member.filename.rpartition("/")
        if not folder.endswith(".dist-info") or "/" in folder or member.file_size > 4 << 20:
            continue
        if leaf == "WHEEL":
            tags = tuple(BytesHeaderParser().parsebytes(archive.read(member)).get_all("Tag") or tags)
        elif leaf == "METADATA":
            headers = BytesHeaderParser().parsebytes(archive.read(member))
            name, version = str(headers.get("Name") or name), str(headers.get("Version") or version)
    return name, version, tags
