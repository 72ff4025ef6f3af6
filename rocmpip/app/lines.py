"""A requirement line as pip reads it, wherever its file stood."""

from __future__ import annotations

from rocmpip.model.packages import RequirementLine


def line_text(line: RequirementLine) -> str:
    """``line`` for a requirement file of ours: paths absolute, marker and per-line settings kept, hashes left out."""
    if line.editable:
        target = line.path or line.url
        return f"-e {target}[{','.join(line.extras)}]" if line.extras and line.path else f"-e {target}"
    if line.path:
        text = line.path + (f"[{','.join(line.extras)}]" if line.extras else "")
    elif line.url:
        extras = f"[{','.join(line.extras)}]" if line.extras else ""
        text = f"{line.name}{extras} @ {line.url}" if line.name else line.url
    else:
        extras = f"[{','.join(line.extras)}]" if line.extras else ""
        text = f"{line.name}{extras}{line.specifier}"
    if line.marker:
        text += f" ; {line.marker}"
    for setting in line.config_settings:
        text += f' --config-settings "{setting}"'
    return text
