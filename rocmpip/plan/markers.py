"""Marker environments of any target, and markers evaluated once each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from rocmpip.model.packages import normalise
from rocmpip.plan.versions import release, spec

_Token = str | tuple[str, str, str]
_TOKEN = re.compile(r"""\s*(?:(\(|\)|and\b|or\b)|(\w+)\s*(===|==|!=|<=|>=|<|>|~=)\s*(?:"([^"']*)"|'([^"']*)'))\s*""")
_RELEASE = re.compile(r"\d+(?:\.\d+)*\Z")
_STRINGS = frozenset(
    (
        "implementation_name",
        "os_name",
        "platform_machine",
        "platform_python_implementation",
        "platform_system",
        "sys_platform",
    )
)
_EXTRA = re.compile(r"\bextras?\b")

_SYSTEMS = {
    # platform tag's first word → (os_name, sys_platform, platform_system)
    "linux": ("posix", "linux", "Linux"),
    "manylinux": ("posix", "linux", "Linux"),
    "musllinux": ("posix", "linux", "Linux"),
    "macosx": ("posix", "darwin", "Darwin"),
    "win": ("nt", "win32", "Windows"),
    "windows": ("nt", "win32", "Windows"),
}


def target_environment(python: str, *, platform: str = "linux_x86_64", implementation: str = "cp") -> dict[str, str]:
    """The PEP 508 marker environment of a target that is not this machine.

    ``python`` is ``3.12`` or ``3.12.4`` (a missing patch counts as 0), ``platform`` a platform tag such as
    ``manylinux_2_28_x86_64`` or ``win_amd64``. What only the machine itself could tell (``platform_release``,
    ``platform_version``) is empty. Raises ValueError for a platform whose system is not known.
    """
    head, machine = _split_platform(platform)
    os_name, sys_platform, system = _SYSTEMS[head]
    numbers = [*python.split("."), "0"][:3]
    full = ".".join(numbers)
    cpython = implementation in ("cp", "py", "cpython")
    if machine == "amd64" and head != "win":
        machine = "x86_64"
    return {
        "implementation_name": "cpython" if cpython else "pypy",
        "implementation_version": full,
        "os_name": os_name,
        "platform_machine": {"win_amd64": "AMD64", "amd64": "AMD64"}.get(machine, machine),
        "platform_release": "",
        "platform_system": system,
        "platform_version": "",
        "python_full_version": full,
        "platform_python_implementation": "CPython" if cpython else "PyPy",
        "python_version": ".".join(numbers[:2]),
        "sys_platform": sys_platform,
    }


def _split_platform(platform: str) -> tuple[str, str]:
    """``manylinux_2_28_x86_64`` → ("manylinux", "x86_64")."""
    word = re.match(r"[a-z]+", platform)
    head = word.group() if word else ""
    if head not in _SYSTEMS:
        raise ValueError(f"{platform!r} is not a platform tag (expected linux_x86_64, win_amd64 …)")
    machine = re.search(r"(x86_64|amd64|aarch64|arm64|i686|ppc64le|s390x|armv7l|riscv64|universal2|win32)\Z", platform)
    if machine is None:
        raise ValueError(f"{platform!r} names no machine (expected … _x86_64, _aarch64 …)")
    return head, machine.group()


def _tokens(marker: str) -> list[_Token]:
    """Brackets, ``and``, ``or`` and comparisons; an empty list (nothing that can be answered) for anything else."""
    tokens: list[_Token] = []
    place = 0
    while place < len(marker):
        match = _TOKEN.match(marker, place)
        if match is None:
            return []
        word, variable, operator, double, single = match.groups()
        tokens.append(word or (variable, operator, double if double is not None else single))
        place = match.end()
    return tokens


class Markers:
    """Evaluates markers against one environment; every distinct text is parsed and evaluated once."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        self._answers: dict[tuple[str, str], bool] = {}
        self._tokens: dict[str, list[_Token]] = {}

    def holds(self, marker: str, extras: Iterable[str] = ()) -> bool:
        """Whether ``marker`` holds here, with any one of ``extras`` (normalised) or with none of them.

        Raises ValueError when it is no marker.
        """
        if not marker:
            return True
        if not _EXTRA.search(marker):
            return self._holds(marker, "")
        return self._holds(marker, "") or any(self._holds(marker, extra) for extra in extras)

    def _holds(self, marker: str, extra: str) -> bool:
        key = marker, extra
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = self._evaluate(marker, extra)
        return answer

    def _evaluate(self, marker: str, extra: str) -> bool:
        quick = self._quick(marker, extra)
        return self._slow(marker, extra) if quick is None else quick

    def _quick(self, marker: str, extra: str) -> bool | None:
        """Markers whose every part is a plain comparison; None for any other."""
        tokens = self._tokens.get(marker)
        if tokens is None:
            tokens = self._tokens[marker] = _tokens(marker)
        try:
            answer, place = self._either(tokens, 0, extra)
        except LookupError:
            return None
        return answer if place == len(tokens) else None

    def _either(self, tokens: Sequence[_Token], place: int, extra: str) -> tuple[bool, int]:
        """``or`` of ``and`` of comparisons and brackets, from ``place`` on. Raises LookupError where packaging must decide."""
        answer, place = self._all(tokens, place, extra)
        while place < len(tokens) and tokens[place] == "or":
            other, place = self._all(tokens, place + 1, extra)
            answer = answer or other
        return answer, place

    def _all(self, tokens: Sequence[_Token], place: int, extra: str) -> tuple[bool, int]:
        answer, place = self._one(tokens, place, extra)
        while place < len(tokens) and tokens[place] == "and":
            other, place = self._one(tokens, place + 1, extra)
            answer = answer and other
        return answer, place

    def _one(self, tokens: Sequence[_Token], place: int, extra: str) -> tuple[bool, int]:
        piece = tokens[place]
        if piece == "(":
            answer, place = self._either(tokens, place + 1, extra)
            if tokens[place] != ")":
                raise LookupError(place)
            return answer, place + 1
        if isinstance(piece, str):
            raise LookupError(piece)
        held = self._compare(*piece, extra)
        if held is None:
            raise LookupError(piece)
        return held, place + 1

    def _compare(self, variable: str, operator: str, value: str, extra: str) -> bool | None:
        """One comparison whose meaning leaves no doubt; None where packaging must decide."""
        if variable == "extra":
            if operator not in ("==", "!="):
                return None
            return (normalise(value) == extra) is (operator == "==")
        actual = self.environment.get(variable)
        if actual is None:
            return None
        if variable in ("python_version", "python_full_version"):
            if _RELEASE.match(value) is None or _RELEASE.match(actual) is None:
                return None
            return spec(operator + value).contains(release(actual))
        if variable in _STRINGS and operator in ("==", "!=") and not value[:1].isdigit():
            return (actual == value) is (operator == "==")
        return None

    def _slow(self, marker: str, extra: str) -> bool:
        from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName

        try:
            return Marker(marker).evaluate({**self.environment, "extra": extra})
        except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName) as problem:
            raise ValueError(f"the marker {marker!r} cannot be evaluated: {problem}") from None
