"""Resolve a request by a dry run of our own pip behind the router: nothing is downloaded, nothing is installed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from rocmpip.app.context import Context
from rocmpip.app.policy import Policy
from rocmpip.model.errors import InputError, NetworkError, NoPlan, RocmpipError
from rocmpip.model.packages import File, RequirementLine
from rocmpip.plan.asked import Asked
from rocmpip.plan.assemble import Resolved
from rocmpip.router.server import Router

_DEPENDS = re.compile(r"^\s*(?P<who>\S+ \S+) depends on (?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*\(?(?P<spec>[<>=!~][^;)]*)?", re.MULTILINE)
_FROM = re.compile(r"requirement (?P<what>[^ ]+) \(from (?P<who>[^)]+)\)")


@dataclass(frozen=True)
class Failure:
    """pip's dry run found no answer. ``needs``: who depends on which torch-family version, as pip told it."""

    text: str
    code: int
    needs: tuple[tuple[str, str, str], ...] = ()
    """(who, name, specifier)."""
    errors: tuple[RocmpipError, ...] = field(default=())


def line_text(line: RequirementLine) -> str:
    """A requirement as pip reads it, free of its file's folder."""
    if line.editable:
        return f"-e {line.path or line.url}"
    text = line.path or (f"{line.name} @ {line.url}" if line.name and line.url and " @ " in line.text else line.url)
    if not text:
        extras = f"[{','.join(line.extras)}]" if line.extras else ""
        text = f"{line.name}{extras}{line.specifier}"
    elif line.path and line.extras:
        text += f"[{','.join(line.extras)}]"
    if line.marker:
        text += f" ; {line.marker}"
    for setting in line.config_settings:
        text += f' --config-settings "{setting}"'
    return text


def requirement_texts(context: Context, asked: Asked, policy: Policy, pins: Mapping[str, str], *, hashes: bool) -> list[str]:
    """The request as lines for pip: torch-family lines pinned to the choice, everything else as the user wrote it."""
    lines: list[str] = []
    choice = policy.family.made
    for line in asked.plain:
        pin = pins.get(line.name)
        if pin:
            added = choice.extras.get(line.name, ()) if choice else ()
            extras = sorted({*line.extras, *added})
            lines.append(f"{line.name}{f'[{chr(44).join(extras)}]' if extras else ''}=={pin}")
        else:
            suffix = "".join(f" --hash={one}" for one in line.hashes) if hashes else ""
            lines.append(line_text(line) + suffix)
    for direct in asked.direct:
        lines.append(line_text(direct.line))
    for line in asked.loose:
        lines.append(line_text(line))
    return lines


def constraint_texts(context: Context, pins: Mapping[str, str]) -> list[str]:
    """The user's constraints (without those the pins decide) and the pins themselves."""
    lines = [f"{name}=={version}" for name, version in pins.items()]
    lines.extend(
        line_text(line)
        for line in context.request.constraints
        if not (line.name and (line.name in pins or context.catalogue.is_family(line.name)))
    )
    return lines


def dry_run(
    context: Context,
    asked: Asked,
    policy: Policy,
    router: Router,
    pins: Mapping[str, str],
    *,
    extra_lines: Sequence[str] = (),
) -> list[Resolved] | Failure:
    """Ask our own pip what it would install into the target. ``pins`` are exact torch-family versions."""
    from rocmpip.target.run import neutral_environment

    with tempfile.TemporaryDirectory(prefix="rocmpip-plan-") as folder:
        base = Path(folder)
        lines = [*requirement_texts(context, asked, policy, pins, hashes=False), *extra_lines]
        (base / "requirements.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (base / "constraints.txt").write_text("\n".join(constraint_texts(context, pins)) + "\n", encoding="utf-8")
        (base / "empty").mkdir()
        report = base / "report.json"
        command = [
            *(sys.executable, "-m", "pip", "--python", context.target.python, "install"),
            *("--dry-run", "--report", str(report), "--quiet", "--disable-pip-version-check", "--no-input"),
            *resolve_options(context.request.options),
            *("-r", str(base / "requirements.txt"), "-c", str(base / "constraints.txt")),
        ]
        env = neutral_environment(context.env, router_url=router.url, empty_folder=str(base / "empty"), index=context.request.index)
        env["PYTHONWARNINGS"] = "ignore"
        code, output = _run(command, env, context.cwd)
        if code != 0:
            return _failure(code, output, router)
        try:
            data = json.loads(report.read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            raise NetworkError("pip's report of its dry run cannot be read", why=str(problem)) from None
        return [_resolved(row, router, policy) for row in data.get("install", [])]


_ONLY_ACT = frozenset(
    ("--compile", "--no-compile", "--no-warn-script-location", "--warn-script-location", "--no-warn-conflicts", "--no-clean", "-v", "--verbose", "-q", "--quiet", "--require-hashes")
)


def resolve_options(options: Sequence[str]) -> list[str]:
    """The user's options without those that only matter when something is installed (and without the volume)."""
    return [word for word in options if word not in _ONLY_ACT and not re.fullmatch(r"-[vq]+", word)]


def _run(command: Sequence[str], env: Mapping[str, str], cwd: str) -> tuple[int, str]:
    # pip stays in our process group: Ctrl-C reaches it as it reaches us.
    with subprocess.Popen(
        command, env=dict(env), cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as child:
        try:
            output, _ = child.communicate()
        except BaseException:
            child.kill()
            child.wait()
            raise
    return child.returncode, output.decode("utf-8", "replace")


def _failure(code: int, output: str, router: Router) -> Failure:
    needs = tuple(
        (match["who"], str(canonicalize_name(match["name"])), (match["spec"] or "").strip())
        for match in _DEPENDS.finditer(output)
    )
    return Failure(output.strip(), code, needs, tuple(router.errors))


def _resolved(row: Mapping[str, Any], router: Router, policy: Policy) -> Resolved:
    metadata = row.get("metadata", {})
    name = str(canonicalize_name(str(metadata.get("name", ""))))
    version = str(metadata.get("version", ""))
    info = row.get("download_info", {})
    url = router.real_url(str(info.get("url", "")))
    file = policy.sources.get(name, {}).get(version) or router.file_of(url) or File(
        filename=url.rpartition("/")[2], url=url, hashes=dict((info.get("archive_info") or {}).get("hashes") or {})
    )
    return Resolved(
        name=name,
        version=version,
        file=file,
        requires_dist=tuple(metadata.get("requires_dist") or ()),
        requested=bool(row.get("requested")),
        direct_url=bool(row.get("is_direct")),
        extras=tuple(row.get("requested_extras") or ()),
    )


def explain(failure: Failure, context: Context, asked: Asked, policy: Policy, router: Router) -> RocmpipError:
    """The error a person sees for a failed resolution: our record of what was asked first, pip's words after it."""
    if failure.errors:
        return failure.errors[0]
    forbidden = [record for record in router.asked if record.kind == "forbidden"]
    words = [line for line in failure.text.splitlines() if line.strip()]
    pip_lines = tuple(line for line in words if not line.startswith(("WARNING", "[notice]")))[:30]
    if forbidden:
        return forbidden_error([record.name for record in forbidden], failure.text, policy)
    about_torch = any(context.catalogue.is_family(name) for _, name, _ in failure.needs) or any(
        f"({name}" in failure.text or f" {name}=" in failure.text for name in ("torch", *policy.held)
    )
    choice = policy.family.made
    if about_torch:
        wants = [f"{who} needs {name}{spec}" for who, name, spec in failure.needs if context.catalogue.is_family(name)]
        torch = (choice.pins.get("torch") if choice else "") or policy.held.get("torch", "")
        return NoPlan(
            "the request cannot be met with a ROCm build of torch" if not policy.held else f"the request conflicts with the installed torch {torch}",
            why="; ".join(wants) or "pip found no set of versions that fits together",
            hint=(
                "ask for another torch in the same command (for example: rocmpip install -U torch …), or relax the requirement"
                if policy.held
                else "relax the torch requirement, or choose another ROCm with --rocm"
            ),
            details=pip_lines,
        )
    return InputError("pip cannot resolve the request", why="its words follow", details=pip_lines)


def forbidden_error(names: Sequence[str], text: str, policy: Policy) -> NoPlan:
    """The error for CUDA runtime packages that something asks for."""
    first = names[0]
    who = next((match["who"] for match in _FROM.finditer(text) if match["what"].lower().startswith(first)), "")
    reason = policy.context.catalogue.forbidden(first) or "it is part of the CUDA runtime"
    return NoPlan(
        f"{who or 'a package of this request'} asks for {first}, a CUDA package",
        why=reason,
        hint=f"leave {who.split()[0] if who else 'that package'} out, or look for its ROCm build: rocmpip recipe list",
        details=tuple(f"also asked for: {name}" for name in names[1:6]),
    )

