"""What a lock is for: this machine, or another GPU, ROCm, Python and platform, on a laptop without any of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rocmpip.app.context import Context
from rocmpip.argv.table import Option
from rocmpip.model.errors import UsageError
from rocmpip.model.record import Struct, asdict, field, replace
from rocmpip.plan.listing import Rules

_KEYS = ("gfx", "rocm", "python", "platform", "channel")

OPTIONS: tuple[Option, ...] = (
    Option("upgrade_package", "append", ("--upgrade-package",), ("-P",)),
    Option("upgrade", "flag", ("--upgrade",), ("-U",)),
    Option("check", "flag", ("--check",)),
    Option("for", "append", ("--for",)),
    Option("wheelhouse", "append", ("--wheelhouse",)),
    Option("platforms", "append", ("--platform",)),
    Option("python_version", "store", ("--python-version",)),
)
"""Options that ``lock`` has beside pip's and those of all our commands."""


class Variant(Struct, frozen=True):
    """One target of ``--for``; what is "" is as everywhere else. ``label`` goes into the file's name."""

    gfx: str = ""
    rocm: str = ""
    python: str = ""
    platform: str = ""
    channel: str = ""

    @property
    def label(self) -> str:
        parts = (
            self.gfx.replace(",", "+"),
            f"rocm{self.rocm}" if self.rocm else "",
            f"py{self.python.replace('.', '')}" if self.python else "",
            self.platform,
            self.channel,
        )
        return "-".join(part for part in parts if part)


def read_variant(text: str) -> Variant:
    """``gfx=gfx942+gfx90a,rocm=6.4,python=3.12,platform=manylinux_2_28_x86_64``. Raises UsageError."""
    values: dict[str, str] = {}
    for piece in text.split(","):
        key, equals, value = piece.strip().partition("=")
        if not equals or key not in _KEYS or not value.strip():
            raise UsageError(
                f"--for {text}: {piece.strip() or 'an empty part'} is not understood",
                hint=f"say KEY=VALUE with {', '.join(_KEYS)}, separated by commas; several GPUs as gfx=gfx942+gfx90a",
            )
        values[key] = value.strip().replace("+", ",") if key == "gfx" else value.strip()
    return Variant(**values)


class TargetContext(Context, frozen=True):
    """A context whose Python may be another than the one at hand."""

    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def markers(self) -> dict[str, str]:
        return dict(self.environment)


def for_target(context: Context, python_version: str, platforms: Sequence[str]) -> Context:
    """``context`` as it is, or seen from the foreign Python or platform. Raises UsageError for what is none."""
    if not python_version and not platforms:
        return context
    from rocmpip.plan.markers import target_environment

    version = _full_version(python_version or context.target.version)
    platform = platforms[0] if platforms else "linux_" + context.markers.get("platform_machine", "x86_64")
    try:
        environment = target_environment(version, platform=platform)
    except ValueError as problem:
        raise UsageError(str(problem)) from None
    short = ".".join(version.split(".")[:2])
    request = replace(
        context.request, python_version=short if python_version else "", platforms=tuple(platforms), implementation=""
    )
    target = replace(context.target, version=version)
    return TargetContext(**{**asdict(context), "request": request, "target": target}, environment=environment)


def _full_version(text: str) -> str:
    """``3.12``, ``312`` or ``3.12.4`` → three numbers."""
    parts = text.split(".")
    if len(parts) == 1 and len(text) > 1:
        parts = [text[0], text[1:]]
    if len(parts) == 1 or not all(part.isdigit() for part in parts[:2]):
        raise UsageError(f"--python-version {text}: expected two numbers, such as 3.12")
    return ".".join((*parts, "0")[:3])


def target_rules(context: Context) -> Rules:
    """What makes a file fit the context's target."""
    request = context.request
    return Rules.for_target(
        context.tags,
        context.target.version,
        no_binary=frozenset(request.no_binary),
        only_binary=frozenset(request.only_binary),
        prefer_binary=request.prefer_binary,
        ignore_requires_python=request.ignore_requires_python,
        stretch_python=True,
    )
