"""What a built wheel was made from: the inputs that change its bytes, and the record that travels inside it."""

from __future__ import annotations

from collections.abc import Mapping

from rocmpip.model.record import Struct, field

FILENAME = "rocmpip.json"
"""The record's name inside a wheel's ``.dist-info``."""
SCHEMA = 1
UNKNOWN = "0"
"""The version of a local folder, whose name is a guess too: only its build knows both."""


def subject(name: str, version: str) -> str:
    """A package as people are told of it: a local folder has no version before it is built."""
    return name if version == UNKNOWN else f"{name} {version}"


class FingerprintInputs(Struct, frozen=True):
    """Everything that changes a built binary. Two builds with equal inputs are the same build."""

    name: str
    """Normalised."""
    version: str
    source: str
    """``sha256:…`` of the sdist, or ``git:`` and the commit."""
    recipe: str
    """ResolvedRecipe.digest."""
    gfx: tuple[str, ...]
    """In any order: the fingerprint sorts them."""
    rocm: str
    """Version of the ROCm toolchain that compiles, as text."""
    torch: str = ""
    """With its local label; "" when the build does not see a torch."""
    python_abi: str = ""
    """cp312."""
    platform: str = ""
    """linux_x86_64, with the C library: linux_x86_64-glibc2.36."""
    compiler: str = ""
    """Identity of the device and host compilers: their version lines."""
    backend: str = ""
    config_settings: tuple[str, ...] = ()
    """``KEY=VAL`` as handed to the build, in order."""
    env: tuple[str, ...] = ()
    """``KEY=VAL`` of the build variables that the user exported and that win over the recipe's."""


class Provenance(Struct, frozen=True):
    """The record in ``rocmpip.json``: no times and no machine names, so equal builds have equal records."""

    fingerprint: str
    inputs: FingerprintInputs
    rocmpip: str = ""
    """Version of rocmpip that built it."""
    recipe: str = ""
    """The recipe's name and layer: ``flash-attn (shipped)``."""
    code_objects: tuple[str, ...] = ()
    """gfx targets found in the wheel."""
    runtime: Mapping[str, str] = field(default_factory=dict)
    """Variables that the installed package needs at run time."""

    def as_json(self) -> dict[str, object]:
        inputs = self.inputs
        return {
            "schema": SCHEMA,
            "fingerprint": self.fingerprint,
            "name": inputs.name,
            "version": inputs.version,
            "source": inputs.source,
            "recipe": self.recipe,
            "recipe_digest": inputs.recipe,
            "backend": inputs.backend,
            "gfx": list(inputs.gfx),
            "rocm": inputs.rocm,
            "torch": inputs.torch,
            "python_abi": inputs.python_abi,
            "platform": inputs.platform,
            "compiler": inputs.compiler,
            "config_settings": list(inputs.config_settings),
            "env": list(inputs.env),
            "code_objects": list(self.code_objects),
            "runtime": dict(self.runtime),
            "rocmpip": self.rocmpip,
        }


def from_json(record: object) -> Provenance:
    """Read a record back. Raises ValueError for what is none; unknown keys are left alone (a newer rocmpip's)."""
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        raise ValueError("not a rocmpip provenance record of a known schema")

    def text(key: str) -> str:
        value = record.get(key, "")
        if not isinstance(value, str):
            raise ValueError(f"{key} is not text")
        return value

    def texts(key: str) -> tuple[str, ...]:
        value = record.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ValueError(f"{key} is not a list of text")
        return tuple(value)

    runtime = record.get("runtime", {})
    if not isinstance(runtime, dict) or not all(isinstance(item, str) for pair in runtime.items() for item in pair):
        raise ValueError("runtime is not a table of text")
    inputs = FingerprintInputs(
        name=text("name"),
        version=text("version"),
        source=text("source"),
        recipe=text("recipe_digest"),
        gfx=texts("gfx"),
        rocm=text("rocm"),
        torch=text("torch"),
        python_abi=text("python_abi"),
        platform=text("platform"),
        compiler=text("compiler"),
        backend=text("backend"),
        config_settings=texts("config_settings"),
        env=texts("env"),
    )
    return Provenance(text("fingerprint"), inputs, text("rocmpip"), text("recipe"), texts("code_objects"), runtime)


def stale_because(record: Provenance, *, torch: str, gfx: tuple[str, ...], rocm: str = "") -> tuple[str, ...]:
    """Why a build no longer fits: another torch, a GPU it has no code for, another ROCm major.minor. () when it fits.

    ``torch`` is the version now installed (or planned), with its label; "" asks nothing. ``gfx`` are the targets now.
    """
    inputs = record.inputs
    reasons = []
    if inputs.torch and torch and inputs.torch != torch:
        reasons.append(f"it was built against torch {inputs.torch}, and torch is now {torch}")
    absent = tuple(one for one in gfx if one not in inputs.gfx)
    if inputs.gfx and absent:
        reasons.append(f"it was built for {', '.join(inputs.gfx)}, and {', '.join(absent)} is asked for now")
    if inputs.rocm and rocm and inputs.rocm.split(".")[:2] != rocm.split(".")[:2]:
        reasons.append(f"it was built with ROCm {inputs.rocm}, and ROCm is now {rocm}")
    return tuple(reasons)
