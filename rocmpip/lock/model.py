"""A lock as values: what it is for, where files come from, and every package with exact version and hashes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rocmpip.model.packages import File
from rocmpip.model.record import Struct, field

FORMAT = 1


class Coordinates(Struct, frozen=True):
    """The machine and choices that a lock belongs to. Empty texts are left out of the file."""

    python: str = ""
    """major.minor: 3.12."""
    platform: str = ""
    """First platform tag: manylinux_2_36_x86_64."""
    rocm: str = ""
    gfx: tuple[str, ...] = ()
    family: str = ""
    """pytorch.org rocm6.4"""
    channel: str = ""
    driver: str = ""
    kernel: str = ""
    hipcc: str = ""
    catalogue: str = ""
    """Version (date) of the catalogue's data."""
    recipes: tuple[tuple[str, str], ...] = ()
    """(name, digest) of the recipes that entries are built by, sorted."""

    def rows(self) -> tuple[tuple[str, str], ...]:
        """(key, value) as the header shows them, in its order."""
        rows = (
            ("python", self.python),
            ("platform", self.platform),
            ("rocm", self.rocm),
            ("gfx", ", ".join(self.gfx)),
            ("family", self.family),
            ("channel", self.channel),
            ("driver", self.driver),
            ("kernel", self.kernel),
            ("hipcc", self.hipcc),
            ("catalogue", self.catalogue),
            *((f"recipe {name}", digest) for name, digest in self.recipes),
        )
        return tuple((key, value) for key, value in rows if value)


class Entry(Struct, frozen=True):
    """One package. ``files`` are all files of the version, the one that fits first; each has at least one hash.

    ``others`` gives the files beside the first when they are wanted, and ``digests`` their hashes: a lock in requirements
    form names a thousand files by hash alone.
    """

    name: str
    version: str
    first: tuple[File, ...] = ()
    via: tuple[str, ...] = ()
    """Who asks for it: names of entries, and ``-r requirements.in`` or ``the command line`` for the user."""
    requires: tuple[str, ...] = ()
    url: str = ""
    """A direct reference, without credentials; ``git+https://…@COMMIT`` for a source that a recipe takes from git."""
    recipe: str = ""
    """Recipe that builds it, or ""."""
    requires_python: str = ""
    extras: tuple[str, ...] = ()
    others: Callable[[], tuple[File, ...]] = tuple
    digests: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[File, ...]:
        return (*self.first, *self.others())

    @property
    def commit(self) -> str:
        """The commit of a source that a recipe takes from git: it says what a hash says elsewhere. "" for every other entry."""
        return self.url.rpartition("@")[2] if self.recipe and self.url.startswith("git+") else ""

    @property
    def hashes(self) -> tuple[str, ...]:
        """``sha256:…`` of all files, sorted, without repeats. Files without sha256 give the strongest that they have."""
        found = {text for file in self.first if (text := strongest_hash(file.hashes))}
        return tuple(sorted(found.union(self.digests)))


def strongest(file: File) -> tuple[str, ...]:
    """The name of the hash to write for a file, at most one; md5 and sha1 are none for a lock."""
    return next(((name,) for name in ("sha256", "sha384", "sha512") if name in file.hashes), ())


def strongest_hash(hashes: Mapping[str, str]) -> str:
    """``sha256:…``, or the next best; "" when there is none that a lock may use."""
    return next((f"{name}:{hashes[name]}" for name in ("sha256", "sha384", "sha512") if name in hashes), "")


class Lock(Struct, frozen=True):
    """Everything that goes into a lock file. ``entries`` are sorted by name."""

    entries: tuple[Entry, ...]
    coordinates: Coordinates = field(default_factory=Coordinates)
    index_url: str = ""
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    command: str = ""
    """The command that made it, without credentials."""
    no_index: bool = False
    no_deps: bool = False
    """True when plain pip needs --no-deps: something that entries require has no file of its own (an alias)."""
    any_python: bool = False
    """True when an entry says it is for older Pythons only: plain pip needs --ignore-requires-python."""
    notes: tuple[str, ...] = ()

    @property
    def needs_builds(self) -> bool:
        return any(entry.recipe for entry in self.entries)
