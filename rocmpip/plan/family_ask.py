"""What is asked of the torch family: specifiers made to fit ROCm labels, requested members, versions to avoid."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from rocmpip.model.record import Struct

TRITON_NAMES = ("triton", "triton-rocm", "pytorch-triton-rocm", "pytorch-triton")
"""One import, several names: a bound on one of them bounds the family's own."""

_FOREIGN = re.compile(r"\+(cu\d+|cuda|cpu|xpu)", re.IGNORECASE)
_ILLEGAL = re.compile(r"(?P<operator>[<>]=?|~=)\s*(?P<version>[^\s,;+]+)\+(?P<label>[A-Za-z0-9.]+)")


class ConflictLike(Protocol):
    """A recipe's word on torch: versions in ``torch`` (a specifier) do not work, ``message`` says why."""

    @property
    def torch(self) -> str: ...

    @property
    def message(self) -> str: ...


class Ask(Struct, frozen=True):
    """The request on the torch family."""

    specs: Mapping[str, SpecifierSet]
    """Name → bounds that a ROCm build can meet."""
    wanted: frozenset[str]
    """Members that must be there; the others only have to agree if they are."""
    conflicts: tuple[tuple[SpecifierSet, str], ...]
    pre: bool
    notes: tuple[str, ...] = ()

    def spec(self, name: str) -> SpecifierSet:
        return self.specs.get(name, SpecifierSet())

    def admits(self, name: str, version: Version) -> bool:
        """Whether the bounds on ``name`` hold; pre-releases are a question of their own (``pre_allowed``)."""
        return self.spec(name).contains(version, prereleases=True)

    def admits_triton(self, version: Version) -> bool:
        """Whether the bounds on every name of triton hold for its public version."""
        public = Version(version.public)
        return all(
            self.spec(name).contains(version, prereleases=True) or self.spec(name).contains(public, prereleases=True)
            for name in TRITON_NAMES
            if name in self.specs
        )

    def pre_allowed(self, name: str) -> bool:
        """Pre-releases were asked for: by --pre, or by a bound that names one."""
        return self.pre or bool(self.spec(name).prereleases)

    def avoided(self, torch: Version) -> str:
        """The recipe's message when ``torch`` conflicts, else ""."""
        base = Version(torch.base_version)
        return next((message for spec, message in self.conflicts if spec.contains(base, prereleases=True)), "")

    @property
    def torch_text(self) -> str:
        """``torch==2.4.0``, for people."""
        return f"torch{clauses(self.spec('torch'))}"


def read_ask(
    requirements: Mapping[str, SpecifierSet],
    conflicts: Sequence[ConflictLike],
    *,
    pre: bool,
    wanted: Collection[str] | None = None,
) -> Ask:
    """Make the request one that ROCm builds can meet; what was changed is in ``notes``."""
    specs: dict[str, SpecifierSet] = {}
    notes: list[str] = []
    for name, specifier in requirements.items():
        specs[name], told = eased(name, specifier)
        notes += told
    avoid = tuple((SpecifierSet(conflict.torch), conflict.message) for conflict in conflicts if _is_specifier(conflict.torch))
    return Ask(specs, frozenset(requirements if wanted is None else wanted), avoid, pre, tuple(notes))


def eased(name: str, specifier: SpecifierSet) -> tuple[SpecifierSet, list[str]]:
    """``==2.5.1+cu121`` → ``==2.5.1``; ``===2.9.1`` → ``==2.9.1`` (a ROCm build never equals it as text). With what to say of it."""
    kept: list[str] = []
    notes: list[str] = []
    for clause in specifier:
        public, plus, label = clause.version.partition("+")
        foreign = bool(plus) and _FOREIGN.match(f"+{label}") is not None
        if foreign and clause.operator == "!=":
            continue
        if foreign and clause.operator in ("==", "==="):
            kept.append(f"=={public}")
            notes.append(f"{name}{clause} names a build that is not for AMD GPUs: read as {name}=={public}")
        elif clause.operator == "===" and not plus and _is_version(public):
            kept.append(f"=={public}")
            notes.append(f"{name}{clause} compares text, which no +rocm version can equal: read as {name}=={public}")
        else:
            kept.append(str(clause))
    return SpecifierSet(",".join(kept)), notes


def drop_illegal_labels(text: str) -> tuple[str, str]:
    """``torch>=1.7.1+cu110`` → (``torch>=1.7.1``, note): PEP 440 allows a label with == and != alone. ("" = nothing to say.)

    For a requirement's text before it is parsed: with the label no parser takes it.
    """
    found = _ILLEGAL.search(text)
    if found is None:
        return text, ""
    fixed = _ILLEGAL.sub(r"\g<operator>\g<version>", text)
    return fixed, f"{found.group()}: a local label is legal with == and != alone; read as {fixed.strip()}"


def clauses(specifier: SpecifierSet) -> str:
    """A specifier set in a stable order: ``>=2.5,<3``."""
    order = {"===": 0, "==": 0, "~=": 1, ">=": 1, ">": 1, "<=": 2, "<": 2, "!=": 3}

    def key(clause: Specifier) -> tuple[int, str]:
        return order.get(clause.operator, 4), str(clause)

    return ",".join(map(str, sorted(specifier, key=key)))


def pinned(specifier: SpecifierSet) -> bool:
    """True when a clause names one exact version, as pip decides it for yanked files."""
    return any(
        clause.operator == "===" or (clause.operator == "==" and not clause.version.endswith(".*")) for clause in specifier
    )


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _is_specifier(text: str) -> bool:
    if not text:
        return False
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return False
    return True
