"""Examples in the documentation run: ``$ `` lines of ``console`` blocks, against the replica and a simulated MI300X node.

A page is one session in one folder. The output shown must appear in the real one, line by line in this order; ``...`` stands
for anything. A command must succeed unless it ends with ``# exit N``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.environments import make_venv
from tests.support.replica import Replica

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [page for page in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]) if BLOCK.search(page.read_text("utf-8"))]


def examples(text: str) -> Iterator[tuple[str, list[str]]]:
    """(command, lines shown) of every example in a page."""
    for block in BLOCK.findall(text):
        command: str | None = None
        shown: list[str] = []
        for line in block.splitlines():
            if line.startswith("$ "):
                if command is not None:
                    yield command, shown
                command, shown = line[2:], []
            elif line.strip():
                shown.append(line)
        if command is not None:
            yield command, shown


def appears(shown: list[str], output: str) -> str:
    """The first shown line that is not in ``output`` after those before it; "" when all are."""
    lines = iter(output.splitlines())
    for wanted in shown:
        if wanted.strip() in ("...", "…"):
            continue
        parts = [re.escape(" ".join(part.split())) for part in re.split(r"\.\.\.|…", wanted)]
        pattern = re.compile(".*".join(parts))
        if not any(pattern.search(" ".join(line.split())) for line in lines):
            return wanted
    return ""


def test_the_comparison_itself() -> None:
    assert appears(["a ... c", "e"], "x\na b  c\nd\ne\n") == ""
    assert appears(["e", "a b"], "a b\ne\n") == "a b"
    assert list(examples("```console\n$ a\nb\n\n$ c\n```\n")) == [("a", ["b"]), ("c", [])]


@pytest.mark.pip
@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_examples_run(page: Path, replica: Replica, sysroot: Callable[..., Path], tmp_path: Path) -> None:
    venv = make_venv(tmp_path / "venv", with_pip=True).parent
    work = tmp_path / "work"
    work.mkdir()
    (venv / "rocmpip").write_text(f'#!/bin/sh\nexec {sys.executable} -m rocmpip "$@"\n')
    (venv / "rocmpip").chmod(0o755)
    env = replica.env(
        tmp_path, ROCMPIP_SYSROOT=str(sysroot(["mi300x"], "6.4.0-47")), VIRTUAL_ENV=str(venv.parent), COLUMNS="120"
    )
    env["PATH"] = f"{venv}:{env['PATH']}"
    for command, shown in examples(page.read_text(encoding="utf-8")):
        words, _, code = command.partition("# exit ")
        done = subprocess.run(
            ["/bin/sh", "-c", words], cwd=work, env=env, capture_output=True, text=True, timeout=300, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        output = done.stdout + done.stderr
        assert done.returncode == int(code or 0), f"{command}\n{output}"
        assert appears(shown, output) == "", f"{command}\n{output}"
