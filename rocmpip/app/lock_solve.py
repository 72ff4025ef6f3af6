"""From a session to a lock: resolve for the target, gather every file's hash, write down who asked for what."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rocmpip.app.context import Context
from rocmpip.app.resolve import IndexSource
from rocmpip.app.sdists import SdistReader
from rocmpip.app.session import Session
from rocmpip.app.solve import requirement_lines, target_rules
from rocmpip.index.client import Client
from rocmpip.lock.model import Coordinates, Entry, Lock, strongest
from rocmpip.model.errors import InputError, NoPlan
from rocmpip.model.packages import File, normalise
from rocmpip.model.redact import bare_url
from rocmpip.plan.markers import Markers
from rocmpip.plan.resolve import Options, Pin, Resolution, resolve
from rocmpip.report import say

_TRIES = 8
_SMALL = 64 * 2**20


@dataclass(frozen=True)
class Keep:
    """Pins of an existing lock that stay while they fit."""

    pins: Mapping[str, str] = field(default_factory=dict)
    hashes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Name → hashes in the existing lock: reused for files that are published without any."""


def make_lock(session: Session, keep: Keep, *, command: str, wheelhouse: Sequence[Path] = ()) -> Lock:
    """Resolve the session's request for its target. Raises NoPlan, NetworkError, InputError, Refused."""
    context = session.context
    refuse_loose(session)
    if session.asked.family and context.platform.state != "none":
        session.policy.family.get()
    with SdistReader(session) as reader:
        resolution = _resolve(session, keep, reader, wheelhouse)
    for note in (*context.platform.notes, *context.request.notes, *resolution.notes):
        say.note(note)
    entries = [_entry(session, pin) for pin in resolution.pins.values() if not _alias(pin)]
    entries = _with_hashes(session.client, entries, keep)
    made = session.policy.family.made
    index = context.request.index
    family_urls = sorted({url for entry in entries for file in entry.files if (url := _foreign_index(file, session))})
    from rocmpip.app.policy import user_indexes

    indexes = [bare_url(url) for url in user_indexes(context)]
    recipes = {entry.recipe for entry in entries if entry.recipe}
    return Lock(
        entries=tuple(entries),
        coordinates=_coordinates(context, made.family if made else "", made.rocm if made else None, recipes),
        index_url=indexes[0] if indexes else (family_urls[0] if family_urls else ""),
        extra_index_urls=tuple(dict.fromkeys([*indexes[1:], *family_urls])),
        find_links=tuple(dict.fromkeys([*map(bare_url, index.find_links), *map(str, wheelhouse)])),
        command=command,
        no_index=index.no_index and not family_urls,
        no_deps=any(_alias(pin) for pin in resolution.pins.values()) or context.request.no_deps,
    )


def refuse_loose(session: Session) -> None:
    """A folder, an editable or a repository cannot be pinned by a hash."""
    for line in session.asked.loose:
        raise InputError(
            f"{line.text!r} ({line.origin}) cannot be locked",
            why="a folder, an editable install or a repository has no file whose hash could be written down",
            hint="build a wheel of it (rocmpip build, pip wheel) and name the wheel",
        )


def _resolve(session: Session, keep: Keep, reader: SdistReader, wheelhouse: Sequence[Path]) -> Resolution:
    """Resolve; where the family chosen cannot satisfy the whole set, take the next one that can."""
    first: NoPlan | None = None
    for _ in range(_TRIES):
        try:
            return _resolve_once(session, keep, reader, wheelhouse)
        except NoPlan as problem:
            made = session.policy.family.made
            if made is None or not _about_family(session, problem):
                raise first or problem from None
            first = first or problem
            left_out = {**session.policy.left_out, made.index_url: problem.why or problem.message}
            session.again(held={}, left_out=left_out)
            try:
                session.policy.family.get()
            except NoPlan:
                raise first from None
    raise first or NoPlan("no torch of any ROCm satisfies all packages of the request")


def _about_family(session: Session, problem: NoPlan) -> bool:
    is_family = session.context.catalogue.is_family
    alone = str(getattr(problem, "alone", ""))
    names = (alone,) if alone else getattr(problem, "names", ())
    return any(is_family(name) for name in names)


def _resolve_once(session: Session, keep: Keep, reader: SdistReader, wheelhouse: Sequence[Path]) -> Resolution:
    context, asked, policy = session.context, session.asked, session.policy
    active = context.platform.state != "none"
    catalogue = context.catalogue if active else None
    lines = requirement_lines(asked, policy, ())
    constraints = [one for one in context.request.constraints if catalogue is None or not catalogue.is_family(one.name)]
    made = policy.family.made
    preferred = {**keep.pins, **(made.pins if made else {})}
    with IndexSource(
        session.client,
        rules=target_rules(context),
        markers=Markers(context.markers),
        find_links=(*map(str, wheelhouse), *context.request.index.find_links),
        route=policy.route if active else None,
        bounds=[*lines, *constraints],
        source_metadata=reader.metadata,
        pre=context.request.pre,
    ) as source:
        return resolve(
            lines,
            constraints,
            source=source,
            environment=source.markers,
            rules=source.rules,
            options=Options(
                pre=context.request.pre,
                preferred=preferred,
                no_deps=context.request.no_deps,
                require_hashes=context.request.require_hashes,
            ),
            forbidden=catalogue.forbidden if catalogue is not None else None,
        )


def _alias(pin: Pin) -> bool:
    """An alias wheel exists in the router only; the package that it stands for has its own entry."""
    file = pin.file
    return file is not None and file.url.startswith("synthetic:") and pin.candidate.origin == "family" and pin.name != "rocm"


def _entry(session: Session, pin: Pin) -> Entry:
    policy = session.policy
    source = policy.sources.get(pin.name, {}).get(pin.version)
    file = source or pin.file
    recipe = pin.name if source is not None else ""
    if file is not None and file.url.startswith("synthetic:"):
        file = policy.real_file(pin.name, pin.version)
    if file is None:
        raise NoPlan(f"{pin.name} {pin.version} has no file that could be locked")
    others = [one for one in pin.candidate.files if one.filename != file.filename and not one.url.startswith("synthetic:")]
    if source is not None:
        others = []
    others.sort(key=lambda one: one.filename)
    return Entry(
        name=pin.name,
        version=pin.version,
        files=(file, *(one for one in others if strongest(one))),
        via=_via(pin),
        requires=pin.requires,
        url=bare_url(pin.candidate.url) if pin.candidate.origin == "url" else "",
        recipe=recipe,
        requires_python=file.requires_python,
        extras=pin.extras if pin.direct else (),
    )


def _via(pin: Pin) -> tuple[str, ...]:
    """Parents' names, and the user's files and command line as pip writes them (without line numbers: those move)."""
    origins = {_origin(parent.origin) for parent in pin.parents if not parent.name}
    return (*sorted({parent.name for parent in pin.parents if parent.name}), *sorted(origins))


def _origin(origin: str) -> str:
    place, colon, number = origin.rpartition(":")
    if colon and number.isdigit():
        return f"-r {Path(place).name}" if "://" not in place else f"-r {bare_url(place)}"
    return origin or "the command line"


def _foreign_index(file: File, session: Session) -> str:
    """The index of a file that the user's own indexes and find-links do not have, "" for all others."""
    from rocmpip.app.policy import user_indexes

    index = bare_url(file.index).rstrip("/")
    own = {bare_url(url).rstrip("/") for url in (*user_indexes(session.context), *session.context.request.index.find_links)}
    return index if index.startswith(("http://", "https://")) and index not in own else ""


def _with_hashes(client: Client, entries: list[Entry], keep: Keep) -> list[Entry]:
    """Files whose index publishes no hash are downloaded and hashed, after saying how much that is."""
    bare = [entry for entry in entries if not strongest(entry.files[0])]
    if not bare:
        return entries
    sizes = [entry.files[0].size for entry in bare]
    total = sum(size or 0 for size in sizes)
    amount = f"{total / 2**20:.0f} MiB" + (" and more" if None in sizes else "") if total else "of unknown size"
    say.step(f"{len(bare)} files are published without a hash and are downloaded to compute it ({amount})")
    hashed = {}
    with tempfile.TemporaryDirectory(prefix="rocmpip-lock-") as folder:
        for entry in bare:
            hashed[entry.name] = _hash_file(client, entry, Path(folder))
    return [hashed.get(entry.name, entry) for entry in entries]


def _hash_file(client: Client, entry: Entry, folder: Path) -> Entry:
    file = entry.files[0]
    path = client.download(file, folder)
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(2**20):
            digest.update(block)
    path.unlink()
    return replace(entry, files=(replace(file, hashes={"sha256": digest.hexdigest()}), *entry.files[1:]))


def _coordinates(context: Context, family: str, rocm: object, recipes: set[str]) -> Coordinates:
    from rocmpip.app.lock_machine import catalogue_version, hipcc_version

    platform = context.platform
    active = platform.state != "none"
    tags = context.request.platforms
    digests = []
    for name in sorted(recipes):
        resolved = context.book.resolve(name, "", context.recipe_context())
        digests.append((normalise(name), resolved.digest))
    return Coordinates(
        python=".".join(context.target.version.split(".")[:2]),
        platform=tags[0] if tags else f"{context.markers['sys_platform']}_{context.markers['platform_machine']}",
        rocm=str(platform.rocm or rocm or "") if active else "",
        gfx=platform.gfx_targets,
        family=family,
        channel=context.settings.channel if active else "",
        driver=platform.driver if active else "",
        kernel=platform.kernel if active else "",
        hipcc=hipcc_version(context) if active else "",
        catalogue=catalogue_version(context) if active else "",
        recipes=tuple(digests),
    )
