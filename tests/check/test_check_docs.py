"""The reference lists every check and every kind of finding, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import rocmpip.check
from tests.check.check_machines import answers, environment, healthy

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/checks.md").read_text(encoding="utf-8")


def listed(section: str) -> set[str]:
    return set(
        re.findall(r"^\| `([\w-]+)` \|", PAGE.partition(f"## rocmpip {section}\n")[2].partition("\n## ")[0], re.MULTILINE)
    )


def test_every_check(tmp_path: Path, venv: Callable[..., Path]) -> None:
    env = environment(healthy(tmp_path / "root"), venv().parent.parent)
    found = {re.sub(r"^needs-.*", "needs-KIND-NAME", name) for name in answers(env, package="vllm")}
    assert listed("doctor") == found


def test_every_kind() -> None:
    """Kinds are written where findings are made: as first argument, or in the few lines that choose one."""
    room = Path(rocmpip.check.__file__).parent
    source = "\n".join((room / name).read_text() for name in ("verify.py", "links.py", "code.py", "dynamic.py", "family.py"))
    made = set(re.findall(r"(?:Finding|Fault)\(\s*\"([a-z-]+)\"", source))
    chosen = {
        word
        for line in source.splitlines()
        if re.match(r"\s*kind = |\s*kind = \{", line)
        for word in re.findall(r"\"([a-z]+(?:-[a-z]+)+)\"", line)
    }
    assert made <= listed("verify")
    assert chosen <= listed("verify") | {"missing-library"}
    for kind in listed("verify"):
        assert f'"{kind}"' in source, kind
