"""Settings from flags, environment, project, user and site, merged into one ``Settings`` that knows where each value is from.

Order: flags > ROCMPIP_* > the project's [tool.rocmpip] > the user's file > the site's file > built-in. TOML is parsed only
where a file speaks of rocmpip, so that a run without files pays nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rocmpip.model import toml
from rocmpip.model.errors import BadConfiguration, UsageError
from rocmpip.model.record import replace
from rocmpip.model.settings import Settings
from rocmpip.store.settings_table import BY_KEY, ROWS, read_value

SITE_FILE = Path("/etc/rocmpip/config.toml")
_LARGEST = 1 << 20  # bytes; a settings file beyond this is not one


def user_file(env: Mapping[str, str]) -> Path | None:
    """The user's settings file, there or not: ROCMPIP_CONFIG, else ~/.config/rocmpip/config.toml; None without a home."""
    named = env.get("ROCMPIP_CONFIG")
    if named:
        return Path(named)
    folder = env.get("XDG_CONFIG_HOME") or (env["HOME"] + "/.config" if env.get("HOME") else "")
    return Path(folder) / "rocmpip/config.toml" if folder else None


def project_file(cwd: str) -> Path | None:
    """The nearest pyproject.toml at ``cwd`` or above it."""
    here = Path(cwd)
    return next((path for folder in (here, *here.parents) if (path := folder / "pyproject.toml").is_file()), None)


def load_settings(
    flags: Mapping[str, object],
    env: Mapping[str, str],
    cwd: str,
    *,
    trusted: Callable[[Path], bool] | None = None,
    site: Path = SITE_FILE,
) -> Settings:
    """The settings in force. ``flags`` holds what the command line says, by field name; None and "" count as not said.

    ``trusted(pyproject)`` says whether a project may set where code comes from (default: the user's trust file). What is
    left out because it may not is told in ``Settings.notes``. Raises UsageError for a bad flag, BadConfiguration with every fault of every other source at once.
    """
    home = env.get("HOME", "")
    faults: list[str] = []
    notes: list[str] = []
    values: dict[str, object] = {}
    where: dict[str, str] = {}

    def take(table: Mapping[str, object], source: Callable[[str], str], base: Path) -> None:
        for key, raw in table.items():
            try:
                values[key] = read_value(BY_KEY[key], raw, base, home)
                where[key] = source(key)
            except ValueError as problem:
                place = source(key)
                # A flag or a variable names its key already.
                faults.append(f"{place}: {problem}" if place.startswith(("--", "ROCMPIP_")) else f"{place}: {key}: {problem}")

    # Lowest first: what comes later replaces.
    for path in (site, user_file(env)):
        if path is not None:
            table = known(_read_file(path, faults), str(path), faults)
            take(table, lambda key, path=path: str(path), path.parent)  # type: ignore[misc]
    project = project_file(cwd)
    if project is not None:
        told = known(_read_project(project, faults), f"{project} [tool.rocmpip]", faults)
        held_back = [key for key in told if BY_KEY[key].needs_trust]
        if held_back and not (trusted or _trust_file(env))(project):
            notes.append(
                f"{project} sets {', '.join(held_back)}, which say where code comes from: left out until you trust the project "
                "(rocmpip recipe trust)"
            )
            told = {key: raw for key, raw in told.items() if key not in held_back}
        take(told, lambda key: f"{project} [tool.rocmpip]", project.parent)
    take({row.key: env[row.variable] for row in ROWS if env.get(row.variable)}, lambda key: BY_KEY[key].variable, Path(cwd))
    said = {key: raw for key, raw in flags.items() if raw is not None and raw not in ("", (), [])}
    before = len(faults)
    take(said, lambda key: "--" + key.replace("_", "-"), Path(cwd))
    if len(faults) > before:
        # What is on the command line is in front of the user: told first, and as a usage error.
        raise UsageError(faults[before], details=tuple(faults[before + 1 :]))
    if faults:
        raise BadConfiguration(
            "the settings are wrong: " + faults[0] if len(faults) == 1 else f"the settings have {len(faults)} faults",
            hint="correct them there; `rocmpip settings` shows every value and its source",
            details=tuple(faults) if len(faults) > 1 else (),
        )
    return _with_folders(Settings(**values, where=where, notes=tuple(notes)), env)  # type: ignore[arg-type]


def _trust_file(env: Mapping[str, str]) -> Callable[[Path], bool]:
    from rocmpip.store.trust import TrustStore, state_folder

    return TrustStore(state_folder(env)).trusts_project


def _without_home() -> Path:
    import tempfile

    return Path(tempfile.gettempdir()) / f"rocmpip-{os.getuid()}"


def _with_folders(settings: Settings, env: Mapping[str, str]) -> Settings:
    """Cache and state folders always have a value: XDG's, else under the home, else in the temporary folder."""
    home = env.get("HOME", "")

    def folder(variable: str, below: str) -> str:
        base = env.get(variable) or (f"{home}/{below}" if home else "")
        return str(Path(base) / "rocmpip" if base else _without_home() / below.rpartition("/")[2].lstrip("."))

    return replace(
        settings,
        cache_dir=settings.cache_dir or folder("XDG_CACHE_HOME", ".cache"),
        state_dir=settings.state_dir or folder("XDG_STATE_HOME", ".local/state"),
    )


def known(table: Mapping[str, object], source: str, faults: list[str]) -> dict[str, object]:
    """``table`` by field name (``pytorch-url`` and ``pytorch_url`` are one); unknown keys become faults."""
    found: dict[str, object] = {}
    for key, raw in table.items():
        name = key.replace("-", "_")
        if name in BY_KEY:
            found[name] = raw
        else:
            faults.append(f"{source}: unknown key {key!r}{_nearest(name)}")
    return found


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, BY_KEY, 1)
    return f" (did you mean {close[0]}?)" if close else f" (known: {', '.join(BY_KEY)})"


def _read_text(path: Path) -> str:
    """The file's text, "" when it is not there. Raises ValueError that says why it cannot be read."""
    try:
        with path.open("rb") as stream:
            data = stream.read(_LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as problem:
        raise ValueError(f"cannot be read: {problem.strerror or problem}") from None
    if len(data) > _LARGEST:
        raise ValueError("is larger than 1 MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise ValueError(f"is not UTF-8 (byte {problem.start})") from None


def _parse(text: str) -> dict[str, Any]:
    try:
        return toml.loads(text)
    except toml.TomlError as problem:
        raise ValueError(f"is not TOML: {problem or 'nested too deeply'}") from None


def _read_file(path: Path, faults: list[str]) -> dict[str, Any]:
    try:
        text = _read_text(path)
        return _parse(text) if text.strip() else {}
    except ValueError as problem:
        faults.append(f"{path}: {problem}")
        return {}


def _read_project(path: Path, faults: list[str]) -> dict[str, Any]:
    """[tool.rocmpip] of a pyproject.toml. One that does not speak of us, or cannot be read, is none of our business."""
    try:
        text = _read_text(path)
    except ValueError:
        return {}
    if "rocmpip" not in text:
        return {}
    try:
        tool = _parse(text).get("tool", {})
    except ValueError as problem:
        if any(line.strip().startswith("[tool.rocmpip") for line in text.splitlines()):
            faults.append(f"{path}: {problem}")
        return {}
    table = tool.get("rocmpip", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        faults.append(f"{path}: tool.rocmpip is not a table")
        return {}
    return table


def rows(settings: Settings) -> Iterator[tuple[str, object, str]]:
    """(key, value, source) of every setting, in the table's order."""
    for row in ROWS:
        yield row.key, getattr(settings, row.key), settings.where.get(row.key, "built-in")
