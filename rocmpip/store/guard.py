"""The guard's two files in an environment: a constraints file, and lines in pip.conf that lead every pip to it.

pip reads ``PREFIX/pip.conf`` for that environment whatever starts it. Lines of others stay byte for byte; ours stand between two
markers. A section may hold one ``constraint`` alone, and pip takes a command's section before [global]: where [global] has one,
ours goes to the commands' sections and repeats what it hides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from rocmpip.argv.config import parse_pip_config
from rocmpip.model.errors import InputError
from rocmpip.model.record import Struct

CONSTRAINTS = "rocmpip-guard.txt"
BEGIN, END = "# >>> rocmpip guard", "# <<< rocmpip guard"
KEY = "constraint"
COMMANDS = ("install", "download", "wheel", "lock")
"""The commands of pip that take constraints: their own section goes before [global]."""

_HEADER = re.compile(r"^(\s*)\[([^\]]+)\]")
_OPTION = re.compile(r"^\s*([^=:\s][^=:]*?)\s*[=:]\s*(.*)$")
_LARGEST = 1024 * 1024


class Files(Struct, frozen=True):
    """The guard's places in one environment."""

    prefix: Path

    @property
    def conf(self) -> Path:
        return self.prefix / "pip.conf"

    @property
    def constraints(self) -> Path:
        return self.prefix / CONSTRAINTS

    @property
    def reference(self) -> str:
        """The constraints file as pip.conf names it: pip splits values at blanks, so a path with one becomes a URL."""
        path = str(self.constraints)
        return self.constraints.as_uri() if re.search(r"[\s,]", path) else path


def read(path: Path) -> str | None:
    """The text of a file, every byte kept; None when there is none. Raises InputError."""
    try:
        with path.open("rb") as stream:
            data = stream.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror or problem}") from None
    if len(data) > _LARGEST:
        raise InputError(f"{path} is too large for a configuration file", hint="it was not changed")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(
            f"{path} is not UTF-8 text", why="pip refuses it too", hint="mend the file; it was not changed"
        ) from None


def write(path: Path, text: str) -> None:
    """Whole or not at all, through a new file beside it; a link stays a link, permissions stay. Raises InputError."""
    target = Path(os.path.realpath(path))
    try:
        import tempfile

        handle, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(text.encode("utf-8"))
                stream.flush()
                os.fsync(stream.fileno())
            Path(name).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o644)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise InputError(f"{path} cannot be written: {problem.strerror or problem}") from None


def remove(path: Path) -> None:
    """Remove a file that may be gone already. Raises InputError."""
    try:
        path.unlink(missing_ok=True)
    except OSError as problem:
        raise InputError(f"{path} cannot be removed: {problem.strerror or problem}") from None


def sections_of(text: str, path: Path) -> dict[str, dict[str, str]]:
    """Section → key as pip understands it → value, the later of two spellings. Raises InputError for a broken file."""
    try:
        return parse_pip_config(text, str(path))
    except InputError as problem:
        raise InputError(
            f"{path} is no configuration file, and pip refuses it too",
            why=problem.why,
            hint="mend it first; it was not changed",
        ) from None


def names_guard(value: str, reference: str) -> bool:
    return reference in value.split()


def sections_for(
    text: str | None, reference: str, merged: Mapping[str, Mapping[str, str]], path: Path
) -> dict[str, tuple[str, ...]]:
    """Section → the constraint files that the guard's line there would hide, and so repeats.

    ``text``: the pip.conf without the guard's lines. ``merged``: what this file and those below it say together.
    Raises InputError for a broken file, and for one in which a command's section has a constraint of its own.
    """
    own = sections_of(text or "", path)
    below = {name: tuple(values.get(KEY, "").split()) for name, values in merged.items()}
    result: dict[str, tuple[str, ...]] = {}
    if KEY not in own.get("global", {}):
        result["global"] = below.get("global", ())
    for command in COMMANDS:
        if names_guard(own.get(command, {}).get(KEY, ""), reference):
            continue
        if KEY in own.get(command, {}):
            raise InputError(
                f"{path} has a constraint of its own in [{command}], and pip takes one alone",
                hint=f"add {reference} to that line yourself, then run this again; it was not changed",
            )
        if below.get(command) or "global" not in result:
            result[command] = below.get(command) or below.get("global", ())
    return result


def with_guard(text: str | None, reference: str, hidden: Mapping[str, Sequence[str]], path: Path) -> str:
    """``text`` of a pip.conf (None: there is none) with the guard's lines.

    ``hidden``: as ``sections_for`` says.
    Raises InputError when the file is broken or lies in no way that lines can be added to.
    """
    before = sections_of(text or "", path)
    result = text or ""
    for section, others in hidden.items():
        value = " ".join((reference, *others))
        result = _with_line(result, section, value, new_file=text is None)
    expected = {name: dict(values) for name, values in before.items()}
    for section, others in hidden.items():
        expected.setdefault(section, {})[KEY] = " ".join((reference, *others))
    if sections_of(result, path) != expected:
        raise InputError(
            f"{path} lies in a way that no line can be added to safely",
            hint=f"it was not changed; add this to its [global] section yourself: constraint = {reference}",
        )
    return result


def _with_line(text: str, section: str, value: str, *, new_file: bool) -> str:
    lines = text.splitlines(keepends=True)
    newline = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    header = next((n for n, line in enumerate(lines) if (m := _HEADER.match(line)) and m[2] == section), None)
    said = ["new file"] if new_file and not lines else []
    if header is None:
        at, indent = len(lines), ""
    else:
        match = _HEADER.match(lines[header])
        indent = match[1] if match else ""
        # What is indented deeper than the header continues a value.
        following = (n for n in range(header + 1, len(lines)) if (m := _HEADER.match(lines[n])) and len(m[1]) <= len(indent))
        at = next(following, len(lines))
        while at - 1 > header and (not lines[at - 1].strip() or lines[at - 1].lstrip().startswith(("#", ";"))):
            at -= 1
    if at and not lines[at - 1].endswith(("\n", "\r")):
        said.append("no newline before")
        lines[at - 1] += newline
    block = [f"{BEGIN}{' (' + ', '.join(said) + ')' if said else ''} >>>", *([f"[{section}]"] if header is None else [])]
    block += [f"{KEY} = {value}", f"{END} <<<"]
    lines[at:at] = [f"{indent}{line}{newline}" for line in block]
    return "".join(lines)


def without_guard(text: str, reference: str) -> str | None:
    """``text`` as it was before the guard, with everything that others wrote since; None when the file was the guard's own.

    Lines that ``pip config`` has rewritten (it drops comments) lose the guard's file from their value alone.
    """
    kept: list[str] = []
    own_headers: list[int] = []
    inside = new_file = cut_newline = False
    for line in text.splitlines(keepends=True):
        words = line.strip()
        if words.startswith(BEGIN):
            inside = True
            new_file = new_file or "new file" in words
            cut_newline = "no newline before" in words
            continue
        if words.startswith(END):
            inside = False
            continue
        option = _OPTION.match(line)
        ours = option is not None and option[1].removeprefix("--") == KEY and names_guard(option[2], reference)
        if ours and option is not None:
            rest = [] if inside else [word for word in option[2].split() if word != reference]
            if rest:
                kept.append(line.replace(option[2].rstrip(), " ".join(rest)))
            elif cut_newline and kept:
                index = own_headers[-1] - 1 if own_headers and own_headers[-1] == len(kept) - 1 else len(kept) - 1
                if index >= 0:
                    kept[index] = kept[index].removesuffix("\n").removesuffix("\r")
                cut_newline = False
            continue
        if inside and _HEADER.match(line):
            own_headers.append(len(kept))
        kept.append(line)
    for index in reversed(own_headers):
        following = kept[index + 1 :]
        content = next((line for line in following if line.strip() and not line.lstrip().startswith(("#", ";"))), None)
        if content is None or _HEADER.match(content):
            del kept[index]
    result = "".join(kept)
    return None if new_file and not result.strip() else result
