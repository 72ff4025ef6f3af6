"""Which wheels fit a target Python, this machine's or any other's, without asking that Python."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

_PYTHON = re.compile(r"(?:cp|python)?(\d)\.?(\d{1,2})(?:\.\d+[a-z0-9+]*)?(t?)\Z", re.IGNORECASE)
_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_(\w+)\Z")
_LEGACY = {(2, 17): "manylinux2014", (2, 12): "manylinux2010", (2, 5): "manylinux1"}
_OLDEST_GLIBC = {"x86_64": 5, "i686": 5}


class Tags:
    """A target's supported tags, best first. Made by ``tags_for``, or from any source of tags in pip's order."""

    def __init__(self, tags: Iterable[str], python: str = "") -> None:
        """``tags`` are ``cp312-cp312-manylinux_2_28_x86_64``; ``python`` is ``3.12`` (or ``3.14t``), for messages."""
        self.tags: tuple[str, ...] = tuple(str(tag) for tag in tags)
        self.python = python or _python_of(self.tags)
        self._ranks = {tag: rank for rank, tag in reversed(list(enumerate(self.tags)))}
        self._memo: dict[str, int | None] = {}

    def rank(self, suffix: str) -> int | None:
        """The rank of a compressed tag set (``cp310.cp311-abi3-manylinux_2_28_x86_64``), 0 is best; None if it does not fit."""
        if suffix in self._memo:
            return self._memo[suffix]
        ranks = [rank for tag in _expand(suffix) if (rank := self._ranks.get(tag)) is not None]
        self._memo[suffix] = min(ranks, default=None)
        return self._memo[suffix]

    @property
    def platform(self) -> str:
        """The first platform of the target, for messages."""
        return self.tags[0].split("-")[2] if self.tags else ""

    @property
    def platforms(self) -> tuple[str, ...]:
        """Every platform of the target, best first."""
        return tuple(platform for platform in dict.fromkeys(tag.split("-")[2] for tag in self.tags) if platform != "any")

    def __iter__(self) -> Iterator[str]:
        return iter(self.tags)

    def __len__(self) -> int:
        return len(self.tags)


def fits(filename: str, tags: Tags) -> int | None:
    """The rank of a wheel for the target (0 is best), None for what does not fit or is no wheel.

    Only the last three parts of the name are looked at; each distinct combination is worked out once per target.
    """
    if not filename.endswith(".whl"):
        return None
    parts = filename[:-4].rsplit("-", 3)
    if len(parts) != 4:
        return None
    return tags.rank("-".join(parts[1:]).lower())


def tags_for(
    python: str,
    platform: str = "linux_x86_64",
    *,
    glibc: tuple[int, int] | None = None,
    implementation: str = "cp",
    abis: Sequence[str] = (),
    platforms: Sequence[str] = (),
) -> Tags:
    """The tags of a target.

    ``python`` is ``3.12``, ``3.12.4``, ``312`` or ``3.14t`` (free-threaded). ``platform`` is a tag such as ``linux_x86_64`` (then
    ``glibc``, its C library's version, says which manylinux wheels fit; default 2.28) or ``manylinux_2_28_x86_64``. ``platforms``
    and ``abis`` replace what would be derived (pip's --platform and --abi). Raises ValueError for a Python that cannot be read.
    """
    match = _PYTHON.match(python.strip())
    if match is None:
        raise ValueError(f"{python!r} is not a Python version (expected 3.12 or 3.14t)")
    major, minor, threads = int(match[1]), int(match[2]), match[3].lower()
    where = tuple(platforms) or expand_platform(platform, glibc)
    version = (major, minor)
    if implementation in ("cp", "cpython") and not abis and not threads:
        return Tags(cpython_texts(version, where), f"{major}.{minor}")
    from packaging.tags import compatible_tags, cpython_tags, generic_tags

    if implementation in ("cp", "cpython"):
        chosen = list(abis) or [f"cp{major}{minor}{threads}"]
        found = [*cpython_tags(version, abis=chosen, platforms=where)]
        if threads and not abis:
            # A free-threaded interpreter has no stable ABI before 3.15: packaging would offer abi3 wheels to it.
            found = [tag for tag in found if tag.abi != "abi3"]
        interpreter = f"cp{major}{minor}"
    else:
        interpreter = f"{implementation}{major}{minor}"
        found = [*generic_tags(interpreter, list(abis) or ["none"], where)]
    found += compatible_tags(version, interpreter, where)
    return Tags(dict.fromkeys(map(str, found)), f"{major}.{minor}{threads}")


def cpython_texts(version: tuple[int, int], platforms: Sequence[str]) -> list[str]:
    """The tags of a CPython with the GIL, best first, as packaging's ``cpython_tags`` and ``compatible_tags`` give them."""
    major, minor = version
    own = f"cp{major}{minor}"
    older = range(minor - 1, -1, -1)
    found = [f"{own}-{abi}-{platform}" for abi in (own, "abi3", "none") for platform in platforms]
    # The stable ABI begins with Python 3.2.
    found += [f"cp{major}{number}-abi3-{platform}" for number in older if number > 1 for platform in platforms]
    pure = [f"py{major}{minor}", f"py{major}", *(f"py{major}{number}" for number in older)]
    found += [f"{python}-none-{platform}" for python in pure for platform in platforms]
    found += [f"{own}-none-any", *(f"{python}-none-any" for python in pure)]
    return list(dict.fromkeys(found))


def expand_platform(platform: str, glibc: tuple[int, int] | None = None) -> tuple[str, ...]:
    """A platform tag → all tags that run there, best first: ``linux_x86_64`` with glibc 2.28 → manylinux_2_28 … manylinux1, linux."""
    many = _MANYLINUX.match(platform)
    if many is not None:
        glibc, arch, plain = (int(many[1]), int(many[2])), many[3], False
    elif platform.startswith("linux_"):
        glibc, arch, plain = glibc or (2, 28), platform.removeprefix("linux_"), True
    else:
        return (platform,)
    found: list[str] = []
    for minor in range(glibc[1], _OLDEST_GLIBC.get(arch, 17) - 1, -1):
        found.append(f"manylinux_{glibc[0]}_{minor}_{arch}")
        alias = _LEGACY.get((glibc[0], minor))
        if alias:
            found.append(f"{alias}_{arch}")
    # pip takes linux_x86_64 wheels on every Linux; torch's own were tagged so through 2.5.
    if plain:
        found.append(f"linux_{arch}")
    return tuple(found)


@lru_cache(maxsize=4096)
def _expand(suffix: str) -> tuple[str, ...]:
    parts = suffix.split("-")
    if len(parts) != 3:
        return ()
    pythons, abis, platforms = (part.split(".") for part in parts)
    return tuple(f"{p}-{a}-{w}" for p in pythons for a in abis for w in platforms)


def python_of(tag: str) -> str:
    """The Python of a tag: ``cp314-cp314t-linux_x86_64`` → ``3.14t``; "" for one that fits many."""
    match = re.match(r"cp(\d)(\d+)-cp\d+(t?)", tag)
    return f"{match[1]}.{match[2]}{match[3]}" if match else ""


def _python_of(tags: Sequence[str]) -> str:
    return next((python for tag in tags if (python := python_of(tag))), "")
