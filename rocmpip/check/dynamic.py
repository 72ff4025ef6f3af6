"""The dynamic part of verify: children of the target's interpreter, each with a time limit; this process imports nothing."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import threading
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from rocmpip.check.family import record
from rocmpip.check.finding import FAULT, Finding, Step
from rocmpip.check.site import Site
from rocmpip.elf.targets import fitting
from rocmpip.machine.programs import Unanswered, output_of
from rocmpip.model.machine import InstalledDist
from rocmpip.model.regular import regular

_FIRST = ("torch", "torchvision", "torchaudio", "triton", "triton-rocm", "pytorch-triton-rocm")
_NO_IMPORT = ("rocm", "rocm-sdk-core", "rocm-sdk-devel", "rocm-sdk-libraries")


def run(site: Site, time_limit: float) -> tuple[list[Finding], list[Step]]:
    """Import what has GPU code, ask torch, and compute on the GPU where there is one."""
    findings: list[Finding] = []
    steps: list[Step] = []
    with tempfile.TemporaryDirectory(prefix="rocmpip-verify-") as folder:
        env = environment(site.env, Path(folder))
        if "torch" in site.installed and (not site.names or "torch" in site.names):
            seen = bool(site.platform.gpus) and not site.simulated
            targets = {gfx.name: list(fitting(gfx.name)) for gfx in site.targets}
            found = child(site, env, {"mode": "torch", "targets": targets, "seen": seen}, time_limit)
            steps += [step for step in found if step.verdict != "count"]
            count = next((int(step.detail) for step in found if step.verdict == "count"), 0)
            lacking = _lacking(found, count)
            steps += lacking or _reduce(site, env, count, Path(folder), time_limit)
        for dist in _wanted(site):
            names = import_names(dist)
            if names:
                steps += child(site, env, {"mode": "import", "names": names}, time_limit)
            else:
                steps.append(Step(f"import {dist.name}", "skipped", "it has no import name"))
    findings += [_finding(site, step) for step in steps if step.verdict == FAULT]
    return findings, steps


def environment(base: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The user's environment, with every cache that GPU packages write by themselves in ``folder``."""
    home = base.get("HOME", "")
    moved = {
        "HOME": "home", "XDG_CACHE_HOME": "cache", "TRITON_HOME": "triton", "TRITON_CACHE_DIR": "triton/cache",
        "TORCHINDUCTOR_CACHE_DIR": "inductor", "TORCH_EXTENSIONS_DIR": "extensions", "MIOPEN_USER_DB_PATH": "miopen",
        "MIOPEN_CUSTOM_CACHE_DIR": "miopen", "AMD_COMGR_CACHE_DIR": "comgr", "HF_HOME": "hf", "TMPDIR": "tmp",
        "MPLCONFIGDIR": "mpl", "NUMBA_CACHE_DIR": "numba",
    }  # fmt: skip
    env = dict(base)
    # The user's own site-packages stay visible though HOME is another.
    if home:
        env.setdefault("PYTHONUSERBASE", str(Path(home) / ".local"))
    for name, below in moved.items():
        path = folder / below
        path.mkdir(parents=True, exist_ok=True)
        env[name] = str(path)
    env |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1", "MIOPEN_DISABLE_CACHE": "1", "AMD_COMGR_CACHE": "0"}
    env.pop("PYTHONSTARTUP", None)
    return env


def child(site: Site, env: Mapping[str, str], asked: Mapping[str, object], time_limit: float) -> list[Step]:
    """Run the program once. The step at which the child died or stood still is a fault."""
    program = files("rocmpip.check").joinpath("child_program.py").read_text(encoding="utf-8")
    handle, progress = tempfile.mkstemp(prefix="progress-", dir=env["TMPDIR"])
    os.close(handle)
    asked = {**asked, "progress": progress}
    argv = ["/bin/sh", "-c", 'exec "$0" "$@" 2>&1', site.target.python, "-B", "-c", program, json.dumps(asked)]
    try:
        code, text = output_of(argv, env=env, time_limit=time_limit)
        ended = ""
    except (Unanswered, OSError) as problem:
        code, text, ended = -1, "", str(problem) or "cannot be started"
    steps = _read(Path(progress).read_text(encoding="utf-8", errors="replace"))
    done = [step for step in steps if step.verdict != "begin"]
    names = {step.step for step in done}
    open_ = next((step.step for step in reversed(steps) if step.verdict == "begin" and step.step not in names), "")
    if ended or code != 0 or open_:
        done.append(Step(open_ or _name(asked), FAULT, ended or _death(code, text)))
    return done


def _read(text: str) -> list[Step]:
    found = []
    for line in text.splitlines():
        try:
            row = json.loads(line)
            found.append(Step(str(row["step"]), str(row["verdict"]), str(row.get("detail", ""))))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # a line that was cut short by the child's end
    return found


def _name(asked: Mapping[str, object]) -> str:
    names = asked.get("names")
    return f"import {names[0]}" if isinstance(names, list) and names else f"the {asked['mode']} steps"


def _death(code: int, text: str) -> str:
    if code < 0:
        try:
            return f"the interpreter was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"the interpreter was ended by signal {-code}"
    said = [line for line in text.splitlines() if line.strip()]
    return f"the interpreter ended with exit code {code}" + (f": {said[-1].strip()[:300]}" if said else "")


def _wanted(site: Site) -> list[InstalledDist]:
    """Distributions to import: those asked for, else the torch family and what has GPU code."""
    if site.names:
        chosen = [dist for name, dist in site.installed.items() if name in site.names and name != "torch"]
    else:
        gpu = {dist.name for dist in site.inventory.gpu if not site.catalogue.forbidden(dist.name)}
        chosen = [dist for name, dist in site.installed.items() if name != "torch" and (name in gpu or name in _FIRST)]
    kept = [dist for dist in chosen if dist.name not in _NO_IMPORT and not dist.name.startswith("rocm-sdk-")]
    return sorted(kept, key=lambda dist: (_FIRST.index(dist.name) if dist.name in _FIRST else len(_FIRST), dist.name))


def import_names(dist: InstalledDist) -> list[str]:
    """What the distribution is imported as: its top_level.txt, else the packages and modules of its RECORD."""
    try:
        with open(Path(dist.path) / "top_level.txt", encoding="utf-8", errors="replace", opener=regular) as stream:
            text = stream.read(65536)
    except OSError:
        text = ""
    names = [line.strip() for line in text.splitlines() if line.strip().isidentifier()]
    rows = record(dist)
    if not names:
        packages = {row.split("/")[0] for row in rows if row.count("/") == 1 and row.endswith("/__init__.py")}
        modules = {row.split(".")[0] for row in rows if "/" not in row and row.endswith((".py", ".so"))}
        names = sorted(name for name in packages | modules if name.isidentifier())
    like = [name for name in names if name.lower().replace("_", "-") == dist.name]
    public = [name for name in names if not name.startswith("_") and name not in ("test", "tests", "docs", "examples", "bin")]
    return (like or public)[:4]


def _lacking(found: list[Step], count: int) -> list[Step]:
    """The GPU steps that were not come to, because one before them ended the interpreter."""
    told = {step.step for step in found}
    names = [f"{name} on GPU {index}" for index in range(count) for name in ("matmul", "attention", "memory")]
    lacking = [name for name in names if name not in told]
    if not lacking:
        return []
    why = f"not come to: {found[-1].step} ended the interpreter"
    return [Step(name, "skipped", why) for name in (*lacking, "RCCL all-reduce")]


def _reduce(site: Site, env: Mapping[str, str], count: int, folder: Path, time_limit: float) -> list[Step]:
    """One child a GPU, all at once."""
    if count < 2:
        return [Step("RCCL all-reduce", "skipped", "there is one GPU")] if count == 1 else []
    meeting = str(folder / "meeting")
    outcome: dict[int, list[Step]] = {}

    def one(rank: int) -> None:
        outcome[rank] = child(site, env, {"mode": "rank", "rank": rank, "world": count, "meeting": meeting}, time_limit)

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    steps = [step for rank in sorted(outcome) for step in outcome[rank]]
    bad = [step for step in steps if step.verdict != "ok"]
    return bad or [Step("RCCL all-reduce", "ok", f"{count} GPUs")]


def _finding(site: Site, step: Step) -> Finding:
    name = step.step.removeprefix("import ").split(" ")[0] if step.step.startswith("import ") else "torch"
    kind = "import-fails" if step.step.startswith("import ") else "gpu-step-fails"
    kind = {"torch.version.hip": "wrong-torch", "torch.cuda.get_arch_list()": "wrong-gfx", "device visible": "no-device"}.get(
        step.step, kind
    )
    if kind == "import-fails" and "No module named" in step.detail:
        # Installing it again brings what it requires and keeps what is there.
        return Finding(
            kind,
            FAULT,
            name,
            f"{step.step}: {step.detail}",
            "",
            (f"in {site.target.python}",),
            "",
            (f"rocmpip install {name}",),
        )
    fixes = {
        "wrong-torch": ("rocmpip install --force-reinstall torch",),
        "wrong-gfx": ("rocmpip install --force-reinstall torch",),
        "no-device": ("rocmpip doctor",),
    }
    return Finding(
        kind,
        FAULT,
        name,
        f"{step.step}: {step.detail}",
        "",
        (f"in {site.target.python}",),
        "",
        fixes.get(kind, ("rocmpip doctor",)),
    )
