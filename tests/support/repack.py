"""Wheels of what is installed beside the tests, so that a pip without network can install it elsewhere."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from importlib import metadata
from pathlib import Path


def repack(name: str, folder: Path) -> Path | None:
    """The installed distribution ``name`` as a wheel in ``folder``; None when it is not installed here."""
    try:
        dist = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    info = next(file for file in dist.files or () if file.name == "METADATA").parent
    stem = info.name.removesuffix(".dist-info")
    text = dist.read_text("WHEEL") or ""
    tag = next(line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("Tag:"))
    path = folder / f"{stem}-{tag}.whl"
    folder.mkdir(parents=True, exist_ok=True)
    record = ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in dist.files or ():
            place = Path(str(dist.locate_file(file)))
            member = file.as_posix()
            if (
                not place.is_file()
                or "__pycache__" in member
                or member.endswith((".dist-info/RECORD", "INSTALLER", "REQUESTED"))
            ):
                continue
            if member.startswith("../"):
                if "/bin/" not in member:
                    continue
                member = f"{stem}.data/scripts/{file.name}"
            data = place.read_bytes()
            header = zipfile.ZipInfo(member)
            header.external_attr = (place.stat().st_mode & 0o777 | 0o100000) << 16
            archive.writestr(header, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{member},sha256={digest},{len(data)}\n"
        archive.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return path
