"""Every ROCm installation of the machine, in the order in which one wins.

ROCM_PATH, HIP_PATH, /opt/rocm (with the core folders of ROCm 7.14 and later), /opt/rocm-X.Y.Z from high to low, a
distribution's own under /usr, ROCm from pip, conda. Two names of one folder are one root; the name that wins is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rocmpip.machine.files import Tree
from rocmpip.model.machine import RocmRoot
from rocmpip.model.rocm import RocmVersion, parse_rocm

VERSION_FILES = (".info/version", ".info/version-utils", ".info/version-libs")
"""One line such as ``6.4.0-47``."""

ROCM_HEADERS = ("include/rocm-core/rocm_version.h", "include/rocm_version.h")
HIP_HEADERS = ("include/hip/hip_version.h", "share/hip/version")
"""Macros, or KEY=VALUE lines. HIP's patch number is a build number, so two numbers are taken."""

# From ROCm 10 on, HIP counts on from 7.14 by itself (ROCm 10.1 has HIP 7.16).
_LAST_SHARED_HIP = (7, 14)
_VARIABLES = ("ROCM_PATH", "HIP_PATH")
_SDK_PREFIX = "_rocm_sdk_"
"""Folders of ROCm from pip, beside each other in site-packages: _rocm_sdk_core, _rocm_sdk_devel, …"""


class _Candidate:
    """A folder that may be a root. A plain class: on the way of ``detect`` a dataclass costs more than reading the root.

    ``label`` is the variable that named it, or "". ``expected`` folders are ROCm's alone: one without a version is broken.
    ``pip`` is the root that pip's distributions describe, when the folder is one of theirs.
    """

    __slots__ = ("expected", "kind", "label", "path", "pip")

    def __init__(
        self, path: str, label: str = "", kind: str = "root", expected: bool = True, pip: RocmRoot | None = None
    ) -> None:
        self.path = path
        self.label = label
        self.kind = kind
        self.expected = expected
        self.pip = pip


def find_roots(tree: Tree, env: Mapping[str, str], pip_roots: Sequence[RocmRoot] = (), conda: str = "") -> tuple[RocmRoot, ...]:
    """All roots with a version, the winner first. ``pip_roots`` come from the target environment, outside the tree."""
    roots: list[RocmRoot] = []
    seen: set[str] = set()
    _collect(tree, _machine_candidates(tree, env, pip_roots), roots, seen)
    named = {root.version for root in roots if root.kind == "pip"}
    roots.extend(root for root in pip_roots if root.version not in named)
    conda = conda or env.get("CONDA_PREFIX", "")
    if conda.startswith("/"):
        _collect(tree, [_Candidate(conda, kind="conda", expected=False)], roots, seen)
    return tuple(roots)


def _machine_candidates(tree: Tree, env: Mapping[str, str], pip_roots: Sequence[RocmRoot]) -> Iterator[_Candidate]:
    sites = {root.path.rpartition("/")[0]: root for root in pip_roots}
    for variable in _VARIABLES:
        path = env.get(variable, "").rstrip("/")
        if not path:
            continue
        if not path.startswith("/"):
            tree.note(f"{variable} is {path!r}, which is not an absolute path: ignored")
        elif not tree.is_folder(path):
            tree.note(f"{variable} says {path}, which is not there")
        else:
            # ROCm before 6 kept HIP in a folder of its own below the root.
            if variable == "HIP_PATH" and path.endswith("/hip") and _version(tree, path[:-4]) is not None:
                path = path[:-4]
            site, _, name = path.rpartition("/")
            pip = sites.get(site) if name.startswith(_SDK_PREFIX) else None
            kind = "pip" if pip else "distribution" if path == "/usr" else "root"
            yield _Candidate(path, variable, kind, pip=pip)
    if tree.is_folder("/opt/rocm"):
        yield _Candidate("/opt/rocm")
    elif tree.leads_nowhere("/opt/rocm"):
        tree.note("/opt/rocm is a link that leads nowhere")
    for name in _by_number(tree.names("/opt"), "rocm-"):
        yield _Candidate(f"/opt/{name}")
    yield _Candidate("/usr", kind="distribution", expected=False)


def _by_number(names: Iterable[str], prefix: str) -> list[str]:
    """Names such as ``rocm-6.10.0`` from the highest number to the lowest."""
    numbered: list[tuple[RocmVersion, str]] = []
    for name in names:
        if name.startswith(prefix) and name[len(prefix) : len(prefix) + 1].isdigit():
            try:
                numbered.append((parse_rocm(name[len(prefix) :]), name))
            except ValueError:
                continue
    return [name for _, name in sorted(numbered, reverse=True)]


def _collect(tree: Tree, candidates: Iterable[_Candidate], roots: list[RocmRoot], seen: set[str]) -> None:
    for candidate in candidates:
        found = False
        for path in _with_cores(tree, candidate):
            real = tree.real(path)
            if real in seen:
                found = True
                continue
            version = _of_pip(candidate.pip) or _version(tree, path)
            if version is None:
                continue
            found = True
            number, file = version
            # A root of links into another one shares its version file.
            keys = {real, tree.real(file)} - {""}
            if not keys & seen:
                source = f"{candidate.label}, {file}" if candidate.label else file
                roots.append(RocmRoot(number, path, source, candidate.kind))
            seen |= keys
        if not found and candidate.expected:
            tree.note(f"{candidate.path} has no readable ROCm version (.info/version, hip_version.h): it does not count")


def _with_cores(tree: Tree, candidate: _Candidate) -> Iterator[str]:
    yield candidate.path
    if candidate.kind == "root":
        names = tree.names(candidate.path)
        if "core" in names:
            yield f"{candidate.path}/core"
        for name in _by_number(names, "core-"):
            yield f"{candidate.path}/{name}"


def _of_pip(root: RocmRoot | None) -> tuple[RocmVersion, str] | None:
    """Folders of ROCm from pip hold no version file; their distribution has the version."""
    return None if root is None or root.version is None else (root.version, root.source)


def _version(tree: Tree, root: str) -> tuple[RocmVersion, str] | None:
    """The version of a root and the file that tells it."""
    for name in VERSION_FILES:
        path = f"{root}/{name}"
        text = tree.text(path, 4096)
        if text is None:
            continue
        try:
            version = parse_rocm(text.strip().split("\n", 1)[0])
        except ValueError:
            version = RocmVersion(())
        if len(version.release) >= 2 and version.release[0] < 100:
            return version, path
        tree.note(f"{path} does not hold a version")
    for name in (*ROCM_HEADERS, *HIP_HEADERS):
        path = f"{root}/{name}"
        text = tree.text(path)
        if text is None:
            continue
        hip = name in HIP_HEADERS
        found = _macros(text, 2 if hip else 3)
        if found is None:
            tree.note(f"{path} does not hold a version")
            continue
        if hip and found.minor > _LAST_SHARED_HIP:
            tree.note(
                f"{path} says HIP {found}; from ROCm 10 on HIP has numbers of its own, so the ROCm version may differ: "
                "--rocm says which"
            )
        return found, path
    return None


def _macros(text: str, count: int) -> RocmVersion | None:
    """``…_VERSION_MAJOR 6`` (or ``=6``), MINOR and PATCH as a version of ``count`` numbers."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        words = line.replace("=", " ").split()
        if words[:1] == ["#define"]:
            words = words[1:]
        if len(words) < 2 or not (words[1].isascii() and words[1].isdigit()) or len(words[1]) > 6:
            continue
        head, _, part = words[0].rpartition("_")
        if head in ("HIP_VERSION", "ROCM_VERSION"):
            found.setdefault(part, int(words[1]))
    numbers = tuple(found[part] for part in ("MAJOR", "MINOR", "PATCH")[:count] if part in found)
    if len(numbers) < 2 or numbers[0] >= 100:
        return None
    return RocmVersion(numbers, ".".join(str(number) for number in numbers))
