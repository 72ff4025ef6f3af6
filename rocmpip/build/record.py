"""Write the provenance record into a wheel's dist-info (``rocmpip.elf`` reads it back)."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import shutil
import zipfile
from pathlib import Path

from rocmpip.model.archives import broken_as
from rocmpip.model.errors import BuildFailed
from rocmpip.model.provenance import FILENAME, Provenance


def encode(provenance: Provenance) -> bytes:
    """The record's bytes: equal provenance, equal bytes."""
    return json.dumps(provenance.as_json(), sort_keys=True, indent=1, ensure_ascii=True).encode("ascii") + b"\n"


def write_record(wheel: Path, target: Path, provenance: Provenance) -> None:
    """Copy ``wheel`` to ``target`` with the record in its dist-info and RECORD brought up to date.

    Everything else keeps its order, times and modes, so the same wheel and record give the same bytes.
    Raises BuildFailed when the wheel cannot be read, has no RECORD, or has members that lie outside of it.
    """
    payload = encode(provenance)
    with (
        broken_as(lambda why: _no_wheel(wheel, why)),
        zipfile.ZipFile(wheel) as before,
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as after,
    ):
        record = next((name for name in before.namelist() if name.endswith(".dist-info/RECORD") and name.count("/") == 1), None)
        if record is None:
            raise _no_wheel(wheel, "it has no RECORD")
        place = record.removesuffix("RECORD") + FILENAME
        for member in before.infolist():
            if member.filename in (record, place):
                continue
            if member.filename.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", member.filename):
                raise _no_wheel(wheel, f"its member {member.filename!a} lies outside of it")
            with before.open(member) as reader, after.open(_like(member), "w") as writer:
                shutil.copyfileobj(reader, writer, 1 << 20)
        after.writestr(_like(before.getinfo(record), place), payload)
        after.writestr(_like(before.getinfo(record)), _updated(before.read(record), record, place, payload))


def _no_wheel(wheel: Path, why: str) -> BuildFailed:
    return BuildFailed(
        f"{wheel.name} is no proper wheel",
        why=why,
        hint="nothing was kept; the fault is in the package's build, whose maintainers should know",
    )


def _like(member: zipfile.ZipInfo, name: str = "") -> zipfile.ZipInfo:
    """A fresh header with a member's name, time, mode and compression."""
    copy = zipfile.ZipInfo(name or member.filename, member.date_time)
    copy.external_attr = member.external_attr
    copy.compress_type = member.compress_type
    copy.create_system = member.create_system
    copy.file_size = 0 if name else member.file_size
    return copy


def _updated(record: bytes, own: str, place: str, payload: bytes) -> bytes:
    try:
        rows = [row for row in csv.reader(io.StringIO(record.decode("utf-8"))) if row and row[0] not in (own, place)]
    except csv.Error as problem:
        raise zipfile.BadZipFile(f"its RECORD cannot be read: {problem}") from problem
    digest = base64.urlsafe_b64encode(hashlib.sha256(payload).digest()).rstrip(b"=").decode("ascii")
    rows += [[place, f"sha256={digest}", str(len(payload))], [own, "", ""]]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8")
