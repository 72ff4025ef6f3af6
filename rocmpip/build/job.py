"""What one build is asked to do, what it tells on the way, and what it hands back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rocmpip.elf import WheelReport
from rocmpip.model.machine import TargetEnv
from rocmpip.model.provenance import Provenance
from rocmpip.model.recipe import ResolvedRecipe
from rocmpip.model.record import Struct, field
from rocmpip.model.rocm import RocmVersion


class BuildJob(Struct, frozen=True):
    """One wheel to build. Nothing here is looked up again: what is not in the job does not steer the build."""

    recipe: ResolvedRecipe
    source: Path | None
    """An sdist (.tar.gz, .zip …) or an unpacked folder, which is copied first; None for the recipe's own git source."""
    gfx: tuple[str, ...]
    rocm_root: str
    hip_root: str
    rocm: RocmVersion | None
    torch: str
    """Version of the torch the build sees, with its label; "" for none."""
    target: TargetEnv
    pip_argv: tuple[str, ...]
    """How to run a pip that acts on the target: ``(python, "-m", "pip")``, perhaps with ``--python``."""
    pip_env: Mapping[str, str]
    """The router's environment, for build requirements. The user's own PIP_* are dropped before it is applied."""
    user_env: Mapping[str, str]
    out_dir: Path
    log_path: Path
    config_settings: tuple[str, ...] = ()
    """The user's ``-C`` values, ``KEY=VAL``. They win over a recipe's unless that is forced."""
    jobs: int = 0
    """0: from cores, memory and limits."""
    keep_build: bool = False
    work_dir: Path | None = None
    """Where the work folder is made; None takes the first temporary place with room."""
    provenance: Provenance | None = None
    """Written into the wheel when given."""
    expected_seconds: float | None = None
    """From earlier builds, for the estimate."""
    only_named: RocmVersion | None = None
    """The ROCm that --rocm asks for where the machine has another one (``Platform.only_named``): that one's hipcc is not taken."""
    compile_cache: bool = True
    """Use ccache or sccache when present."""
    constraints: tuple[str, ...] = ()
    """Requirement lines that hold build requirements (the user's build constraints)."""


class Progress(Struct, frozen=True):
    """One moment of a build: ``stage`` (unpack, requirements, compile, examine), seconds so far, ninja's counts (0 of 0: none seen)."""

    stage: str
    elapsed: float
    done: int = 0
    total: int = 0
    expected: float | None = None
    line: str = ""
    """The last line of output, without terminal escapes and secrets."""


class BuiltWheel(Struct, frozen=True):
    """A wheel that was built, examined and recorded."""

    path: Path
    report: WheelReport
    seconds: float
    log: Path
    notes: tuple[str, ...] = field(default=())
    """What a person should know: CUDA folders taken out, the user's values that won …"""
