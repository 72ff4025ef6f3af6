"""From a context to a lock: resolve for the target, gather every file's hash, write down who asked for what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from rocmpip.app.context import Context, user_indexes
from rocmpip.app.lock_ground import Ground, Keep, plain_ground, resolve_on
from rocmpip.index.client import Client
from rocmpip.lock.model import Coordinates, Entry, Lock, strongest, strongest_hash
from rocmpip.model.errors import InputError, NetworkError, NoPlan
from rocmpip.model.filenames import ENDINGS
from rocmpip.model.packages import File, RequirementLine
from rocmpip.model.record import replace
from rocmpip.model.redact import bare_url
from rocmpip.plan.listing import as_file
from rocmpip.report import say

if TYPE_CHECKING:
    from rocmpip.app.scouted import Ahead
    from rocmpip.plan.resolve import Pin, Resolution


def make_lock(
    context: Context,
    client: Client,
    keep: Keep,
    *,
    command: str,
    wheelhouse: Mapping[Path, str] | None = None,
    ahead: Ahead | None = None,
) -> tuple[Lock, float, Sequence[str]]:
    """Resolve the context's request for its target. ``wheelhouse``: folders of built wheels → how the lock names them.

    The second value is the moment (seconds since 1970) until which nothing on the indexes needs to be asked again; 0 for
    none. The third is what was noted on the way. Raises NoPlan, NetworkError, InputError, Refused.
    """
    refuse_loose(context.request.requirements)
    folders = tuple(wheelhouse or ())
    with ExitStack() as stack:
        if context.platform.state == "none":
            ground = stack.enter_context(plain_ground(context, client))
            resolution, fresh_until = resolve_on(ground, context, client, keep, folders, stack, ahead)
        else:
            from rocmpip.app.lock_rocm import resolve_rocm

            ground, resolution, fresh_until = resolve_rocm(context, client, keep, folders, stack)
        notes = (*context.platform.notes, *context.request.notes, *resolution.notes)
        for note in notes:
            say.note(note)
        entries = [_entry(ground, pin) for pin in resolution.pins.values() if not _alias(pin)]
        refuse_lies(entries)
        until = fresh_until()
        entries = _with_hashes(client, entries)
    return _lock(context, ground, resolution, entries, command, tuple((wheelhouse or {}).values())), until, notes


def _lock(
    context: Context,
    ground: Ground,
    resolution: Resolution,
    entries: Sequence[Entry],
    command: str,
    wheelhouse: Sequence[str],
) -> Lock:
    index = context.request.index
    own = [bare_url(url) for url in user_indexes(context)]
    known = {url.rstrip("/") for url in (*own, *map(bare_url, index.find_links))}
    foreign = sorted({place for entry in entries for file in entry.first if (place := _place(file)) not in known} - {""})
    return Lock(
        entries=tuple(entries),
        coordinates=_coordinates(context, ground, {entry.recipe for entry in entries} - {""}),
        index_url=own[0] if own else (foreign[0] if foreign else ""),
        extra_index_urls=tuple(dict.fromkeys([*own[1:], *foreign])),
        find_links=tuple(dict.fromkeys([*map(bare_url, index.find_links), *wheelhouse])),
        command=command,
        no_index=index.no_index and not foreign,
        any_python=any(pin.candidate.stretched for pin in resolution.pins.values()),
        no_deps=any(_alias(pin) for pin in resolution.pins.values()) or context.request.no_deps,
    )


def refuse_loose(lines: Sequence[RequirementLine]) -> None:
    """A folder, an editable or a repository cannot be pinned by a hash."""
    for line in lines:
        archive = (line.url or line.path).partition("#")[0].endswith(ENDINGS)
        if line.editable or ((line.url or line.path) and not archive) or line.url.startswith(("git+", "hg+", "svn+", "bzr+")):
            raise InputError(
                f"{line.text!r} ({line.origin}) cannot be locked",
                why="a folder, an editable install or a repository has no file whose hash could be written down",
                hint="build a wheel of it (rocmpip build, pip wheel) and name the wheel",
            )


def _alias(pin: Pin) -> bool:
    """An alias wheel exists in the router only; the package that it stands for has its own entry."""
    row = pin.candidate.row
    return (
        isinstance(row, File) and row.url.startswith("synthetic:") and pin.candidate.origin == "family" and pin.name != "rocm"
    )


def _entry(ground: Ground, pin: Pin) -> Entry:
    file, recipe = ground.origin(pin)
    if file is None:
        raise NoPlan(f"{pin.name} {pin.version} has no file that could be locked")
    rows = () if recipe else [row for row in pin.candidate.rows if row.filename != file.filename]

    def others() -> tuple[File, ...]:
        return tuple(one for one in sorted(map(as_file, rows), key=lambda one: one.filename) if strongest(one))

    return Entry(
        name=pin.name,
        version=pin.version,
        first=(file,),
        others=others,
        digests=tuple(text for row in rows if (text := strongest_hash(row.hashes))),
        via=_via(pin),
        requires=pin.requires,
        url=bare_url(pin.candidate.url if pin.candidate.origin == "url" else file.url if file.url.startswith("git+") else ""),
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
        return f"-r {bare_url(place) if '://' in place else Path(place).name}"
    return "the command line" if origin in ("", "command line") else origin


def _place(file: File) -> str:
    """The index of a file as the lock would name it, "" for what lies on disk or stands for itself."""
    index = bare_url(file.index).rstrip("/")
    return index if index.startswith(("http://", "https://")) else ""


def refuse_lies(entries: Sequence[Entry]) -> None:
    """What an index publishes for a hash must be one: a file that nothing can match is no reason to compute another hash."""
    from rocmpip.lock.text import HASH

    for entry in entries:
        for text in entry.hashes:
            if not HASH.match(text):
                file = entry.first[0]
                raise NetworkError(
                    f"{file.index or file.url} lists no usable hash for {entry.name} {entry.version}",
                    why=f"it says {text[:80]!r}",
                    hint="check the index URL: its server answers with what no index lists",
                )


def _with_hashes(client: Client, entries: list[Entry]) -> list[Entry]:
    """Files whose index publishes no hash are downloaded and hashed, after saying how much that is."""
    bare = [entry for entry in entries if not entry.commit and not strongest(entry.first[0])]
    if not bare:
        return entries
    far = [entry for entry in bare if not entry.first[0].url.startswith("file:")]
    sizes = [entry.first[0].size for entry in far]
    total = sum(size or 0 for size in sizes)
    amount = f"{total / 2**20:.0f} MiB" + (" and more" if None in sizes else "") if total else "of unknown size"
    if far:
        say.step(f"{len(far)} files are published without a hash and are downloaded to compute it ({amount})")
    hashed = {entry.name: _hash_file(client, entry) for entry in bare}
    return [hashed.get(entry.name, entry) for entry in entries]


def _hash_file(client: Client, entry: Entry) -> Entry:
    import hashlib

    from rocmpip.model.temporary import TemporaryFolder

    file = entry.first[0]
    digest = hashlib.sha256()
    with TemporaryFolder(prefix="rocmpip-lock-") as folder:
        path = client.download(file, Path(folder))
        with path.open("rb") as stream:
            while block := stream.read(2**20):
                digest.update(block)
    return replace(entry, first=(replace(file, hashes={"sha256": digest.hexdigest()}),))


def _coordinates(context: Context, ground: Ground, recipes: set[str]) -> Coordinates:
    markers, platforms = context.markers, context.request.platforms
    python = ".".join(context.target.version.split(".")[:2])
    platform = platforms[0] if platforms else f"{markers['sys_platform']}_{markers['platform_machine']}"
    if context.platform.state == "none":
        return Coordinates(python, platform)
    from rocmpip.app.lock_machine import catalogue_version, hipcc_version

    machine = context.platform
    digests = tuple((name, context.book.resolve(name, "", context.recipe_context()).digest) for name in sorted(recipes))
    return Coordinates(
        python=python,
        platform=platform,
        rocm=str(machine.rocm or ground.rocm),
        gfx=machine.gfx_targets,
        family=ground.family,
        channel=context.settings.channel,
        driver=machine.driver,
        kernel=machine.kernel,
        hipcc=hipcc_version(context),
        catalogue=catalogue_version(context),
        recipes=digests,
    )
