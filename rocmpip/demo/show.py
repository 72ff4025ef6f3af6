"""The demo: a simulated node and embedded indexes, real pip, a real build, and checks of what came out."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rocmpip.demo.checks import Check, check_environment
from rocmpip.demo.embedded import Node, Servers, served, write_node
from rocmpip.demo.surroundings import clean_environment
from rocmpip.model.errors import CheckFailed
from rocmpip.report.plan import table

WANTED = ("torch", "accelerate", "flash-attn")
_SINGLE = ("Collecting ", "Downloading ", "Looking in ", "Obtaining dependency information ", "Using cached ")
_LIMIT = 300.0  # seconds for one command: far above what it takes, so that a hang ends


@dataclass(frozen=True)
class Step:
    """One thing that was done: the command a person would type, its exit code and how long it took."""

    title: str
    command: str
    code: int
    seconds: float


@dataclass
class Story:
    """What the demo did and found. ``folder`` is "" unless it was kept."""

    steps: list[Step] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    plan: list[dict[str, Any]] = field(default_factory=list)
    family: dict[str, Any] = field(default_factory=dict)
    platform: dict[str, Any] = field(default_factory=dict)
    installed: dict[str, str] = field(default_factory=dict)
    plain_pip: str = ""
    """What plain pip would install in the same place."""
    seconds: float = 0.0
    folder: str = ""

    def as_json(self) -> dict[str, object]:
        return {
            "steps": [vars(step) for step in self.steps],
            "checks": [vars(check) for check in self.checks],
            "platform": self.platform,
            "family": self.family,
            "plan": self.plan,
            "installed": self.installed,
            "plain_pip": self.plain_pip,
            "seconds": round(self.seconds, 1),
            "folder": self.folder or None,
        }


class Stage:
    """The place where it is played: folder, servers, node and environment, and the environment variables of every command."""

    def __init__(self, folder: Path, node: Node, servers: Servers, tell: Callable[[str], None], story: Story) -> None:
        self.folder = folder
        self.node = node
        self.servers = servers
        self.tell = tell
        self.story = story
        self.python = folder / "env/bin/python"
        venv.create(folder / "env", with_pip=False, symlinks=True)

    def variables(self) -> dict[str, str]:
        home, temporary = self.folder / "home", self.folder / "tmp"
        for folder in (home, temporary):
            folder.mkdir(exist_ok=True)
        return {
            **clean_environment(os.environ),
            "HOME": str(home),
            "TMPDIR": str(temporary),
            "VIRTUAL_ENV": str(self.folder / "env"),
            "ROCM_PATH": str(self.node.rocm),
            "ROCMPIP_SYSROOT": str(self.node.sysroot),
            "ROCMPIP_PYTORCH_URL": self.servers.pytorch,
            "ROCMPIP_AMD_7_URL": self.servers.nowhere,
            "ROCMPIP_AMD_10_URL": self.servers.nowhere,
            "ROCMPIP_CONFIG": os.devnull,
            "ROCMPIP_CACHE_DIR": str(self.folder / "cache"),
            "ROCMPIP_STATE_DIR": str(self.folder / "state"),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": self.servers.simple,
        }

    def run(self, title: str, shown: str, argv: Sequence[str], *, quiet: bool = False) -> tuple[int, str]:
        """Run one command and tell its lines as they come (``quiet``: stderr only on failure); (exit code, stdout)."""
        self.tell(f"\n$ {shown}")
        began = time.monotonic()

        def on_line(line: str) -> None:
            # pip's lines about single packages would bury the rest; the log has them.
            if line.strip() and not line.lstrip().startswith(_SINGLE):
                self.tell(f"  {self.short(line)}")

        code, text = run(argv, self.variables(), self.folder, None if quiet else on_line)
        with (self.folder / "demo.log").open("a", encoding="utf-8") as log:
            log.write(f"$ {shlex.join(argv)}\n{text}\n")
        self.story.steps.append(Step(title, shown, code, round(time.monotonic() - began, 2)))
        return code, text

    def short(self, line: str) -> str:
        """A line without the demo's long folder and ports."""
        line = line.replace(str(self.folder), "DEMO").replace(self.servers.pytorch, "pytorch.org(embedded)")
        return line.replace(self.servers.simple, "PyPI(embedded)")


def run(argv: Sequence[str], env: Mapping[str, str], cwd: Path, on_line: Callable[[str], None] | None) -> tuple[int, str]:
    """Run a command; stderr goes along with stdout when ``on_line`` is given, else apart. Nothing of it outlives this call.

    Raises CheckFailed when it takes longer than the limit.
    """
    process = subprocess.Popen(
        list(argv), env=dict(env), cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if on_line else subprocess.PIPE, text=True, encoding="utf-8", errors="replace",
    )  # fmt: skip
    try:
        if on_line is None:
            out, errors = process.communicate(timeout=_LIMIT)
            return process.returncode, out if process.returncode == 0 or out.strip() else errors
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            on_line(line.rstrip("\n"))
        return process.wait(_LIMIT), "".join(lines)
    except subprocess.TimeoutExpired:
        raise CheckFailed(f"{' '.join(argv)} took longer than {_LIMIT:.0f} s") from None
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def folder_for(keep: bool) -> Iterator[Path]:
    """A private folder of the demo; removed at the end unless ``keep``."""
    folder = Path(tempfile.mkdtemp(prefix="rocmpip-demo-")).resolve()
    try:
        yield folder
    finally:
        if not keep:
            # A file that cannot be removed is no fault of what was shown.
            shutil.rmtree(folder, ignore_errors=True)


def show(tell: Callable[[str], None], *, keep: bool = False) -> Story:
    """Play the demo, telling each line through ``tell``. Raises CheckFailed (with ``result``) when a step or a check fails."""
    began = time.monotonic()
    story = Story()
    try:
        with folder_for(keep) as folder, served() as servers:
            story.folder = str(folder) if keep else ""
            stage = Stage(folder, write_node(folder), servers, tell, story)
            for act in (_machine, _plain_pip, _plan, _install, _again, _checks):
                act(stage)
    except BrokenPipeError:
        raise  # our reader went away (| head): no fault of the demo
    except (CheckFailed, OSError) as fault:
        problem = fault if isinstance(fault, CheckFailed) else CheckFailed("the demo could not go on", why=str(fault))
        story.seconds = time.monotonic() - began
        problem.result = story.as_json()  # type: ignore[attr-defined]
        raise problem from None
    story.seconds = time.monotonic() - began
    tell(f"\nAll {len(story.checks)} checks passed in {story.seconds:.0f} s. Nothing outside a temporary folder was changed.")
    if keep:
        tell(f"Kept: {story.folder} (demo.log has every command and its output)")
    return story


def _rocmpip(*argv: str) -> list[str]:
    return [sys.executable, "-m", "rocmpip", *argv]


def _answer(stage: Stage, title: str, *argv: str) -> dict[str, Any]:
    """``result`` of one of our commands with --json. Raises CheckFailed with its own words when it fails."""
    words = [word for word in argv if word != "--json"]
    code, text = stage.run(title, "rocmpip " + " ".join(words), _rocmpip(*argv), quiet=True)
    try:
        answer = json.loads(text)
    except ValueError:
        raise CheckFailed(f"{title}: no JSON answer (exit code {code})", why=stage.short(text[-2000:])) from None
    if code != 0 or not answer["ok"]:
        first = (answer["errors"] or [{"message": "no reason given", "hint": ""}])[0]
        raise CheckFailed(f"{title} ended with exit code {code}", why=stage.short(first["message"]), hint=first["hint"])
    result: dict[str, Any] = answer["result"]
    return result


def _machine(stage: Stage) -> None:
    stage.tell("1. The machine: a simulated node (sysfs files in a folder), read as a real one is")
    found = stage.story.platform = _answer(stage, "detect", "detect", "--json")
    for gpu in found["gpus"]:
        stage.tell(f"  GPU   {gpu['gfx']}  {gpu['name']}  {gpu['pci_id']}  (from {gpu['source']})")
    for root in found["rocm"]:
        stage.tell(f"  ROCm  {root['version']}  (from {stage.short(root['source'])})")
    stage.tell(f"  installs aim at {', '.join(found['gfx_targets'])}")


def _plain_pip(stage: Stage) -> None:
    """What happens without us, on the same indexes: the reason this program exists."""
    stage.tell("\n2. What plain pip would install here, even with the ROCm index as an extra one")
    family = stage.servers.pytorch + "/whl/rocm" + ".".join(stage.node.rocm_version.split(".")[:2])
    argv = [sys.executable, "-m", "pip", "--python", str(stage.python), "--disable-pip-version-check", "--quiet"]
    argv += ["install", "--dry-run", "--report", "-", "torch", "--extra-index-url", family]
    code, text = stage.run(
        "plain pip", "pip install torch --extra-index-url .../" + family.rpartition("/")[2], argv, quiet=True
    )
    if code != 0:
        raise CheckFailed("plain pip found no torch in the embedded indexes", why=stage.short(text[-2000:]))
    report = json.loads(text)
    names = [f"{item['metadata']['name']} {item['metadata']['version']}" for item in report["install"]]
    stage.story.plain_pip = next(name for name in names if name.startswith("torch "))
    cuda = [name for name in names if name.startswith(("nvidia-", "cuda-"))]
    stage.tell(f"  {stage.story.plain_pip}" + (f", a CUDA build, with {', '.join(cuda)}" if cuda else ""))


def _plan(stage: Stage) -> None:
    stage.tell("\n3. The plan: everything is decided, with its reason, before anything is done")
    result = _answer(stage, "plan", "install", "--dry-run", "--json", *WANTED)
    stage.story.plan, stage.story.family = result["plan"], result["family"] or {}
    rows = sorted(stage.story.plan, key=lambda row: not row["direct"])
    told = stage.story.family.get("because", ())
    cells = [
        [
            row["action"],
            f"{row['name']} {row['version']}",
            stage.short("; ".join(why for why in row["because"] if why not in told)),
        ]
        for row in rows
    ]
    for line in table(cells):
        stage.tell("  " + line.rstrip())
    for row in stage.story.family.get("tried", ()):
        stage.tell(f"  {row['verdict']}: {row['family']}: {stage.short(row['because'])}")


def _install(stage: Stage) -> None:
    stage.tell("\n4. The install: pip for the torch family, the recipe's build, pip for the rest")
    code, text = stage.run("install", "rocmpip install " + " ".join(WANTED), _rocmpip("install", *WANTED))
    if code != 0:
        raise CheckFailed(f"the install ended with exit code {code}", why=stage.short(text.strip()[-500:]))


def _again(stage: Stage) -> None:
    """A second environment: what was built is kept, and taken from the wheelhouse."""
    stage.tell("\n5. The same in a second environment: the built wheel was kept")
    second = stage.folder / "second"
    venv.create(second, with_pip=False, symlinks=True)
    python = str(second / "bin/python")
    shown = f"rocmpip install --python {stage.short(python)} torch flash-attn"
    code, text = stage.run("install again", shown, _rocmpip("install", "--python", python, "torch", "flash-attn"))
    if code != 0:
        raise CheckFailed(f"the second install ended with exit code {code}", why=stage.short(text.strip()[-500:]))
    kept = [line for line in text.splitlines() if line.startswith("rocmpip:") and "wheelhouse" in line]
    ok = bool(kept) and any(second.rglob("flash_attn/build_seen.json"))
    found = kept[0].removeprefix("rocmpip: ") if kept else "no word of the wheelhouse"
    stage.story.checks.append(Check("the second environment got the kept wheel", ok, found))


def _checks(stage: Stage) -> None:
    stage.tell("\n6. Checks of the environment itself")
    story = stage.story
    story.installed, checks = check_environment(stage.python, stage.node, story.platform["gfx_targets"], story.plan)
    story.checks += checks
    for check in story.checks:
        stage.tell(f"  {'ok    ' if check.ok else 'FAILED'} {check.name}: {stage.short(check.found)}")
    failed = [check for check in story.checks if not check.ok]
    if failed:
        raise CheckFailed(
            f"{len(failed)} of {len(story.checks)} checks of the demo failed",
            why="; ".join(f"{check.name}: {check.found}" for check in failed),
            hint="rocmpip demo --keep leaves the folder for a look",
        )
