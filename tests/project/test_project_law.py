"""The project keeps its own rules: the import law, the fast path's table, what the repository must not say."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "rocmpip"
PURE = ("model", "argv", "catalogue", "recipe", "plan", "elf", "diagnose")
DOORS = ("machine", "index", "router", "store", "target", "build")
FACES = ("app", "cli", "report", "lock", "check", "demo")


def imported_rooms(path: Path) -> set[str]:
    """Rooms of rocmpip that a file imports anywhere, in functions and type-checking blocks too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        found.update(name.split(".")[1] for name in names if name.startswith("rocmpip."))
    return found


def loaded_modules(path: Path) -> set[str]:
    """Modules of rocmpip that a file imports when it is run, in functions too; what only a type checker reads is left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typed = {
        id(one)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for one in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("rocmpip.") and id(node) not in typed:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            found.update(name for name in names if (ROOT / name.replace(".", "/")).with_suffix(".py").exists())
    return found


# The process that scouts is started by the file that sends it, and answers in that file's terms.
SCOUTS = frozenset(f"rocmpip.app.{name}" for name in ("scout", "scout_child", "scout_errand", "scout_rows"))


def test_no_files_import_each_other_in_a_circle() -> None:
    graph = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): loaded_modules(path) for path in sorted(PACKAGE.rglob("*.py"))
    }
    done: set[str] = set()
    circles = []

    def walk(name: str, way: tuple[str, ...]) -> None:
        if name in way:
            circles.append(way[way.index(name) :])
        elif name not in done:
            for other in sorted(graph.get(name, ())):
                walk(other, (*way, name))
            done.add(name)

    for name in graph:
        walk(name, ())
    assert [circle for circle in circles if not SCOUTS.issuperset(circle)] == []


@pytest.mark.parametrize("room", PURE)
def test_pure_rooms_import_no_door_and_no_face(room: str) -> None:
    for path in (PACKAGE / room).rglob("*.py"):
        assert not imported_rooms(path) & {*DOORS, *FACES}, path


@pytest.mark.parametrize("room", DOORS)
def test_doors_import_no_other_door_and_no_face(room: str) -> None:
    for path in (PACKAGE / room).rglob("*.py"):
        assert not imported_rooms(path) & ({*DOORS, *FACES} - {room}), path


def test_every_room_is_in_the_law() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert rooms == {*PURE, *DOORS, *FACES}
    contracts = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert all(f'"rocmpip.{room}"' in contracts for room in rooms)


def test_the_inside_of_pip_is_never_imported() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert not re.search(r"(?:from|import)\s+pip\._|[\"']pip\._", path.read_text(encoding="utf-8")), path


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, check=False)
    names = [name for name in listed.stdout.decode().split("\0") if name]
    return [ROOT / name for name in names] or [path for pattern in patterns for path in ROOT.rglob(pattern)]


def test_no_machine_paths_and_one_registry_constant() -> None:
    machine = re.compile(r"/(?:work|farm|bash_jobs)/|/opt/r" + "p/|" + r"\.pyen" + r"v\b")
    registry = re.compile(r"py" + r"pi\.org|pythonhosted\.o" + "rg")
    for path in tracked("*.py", "*.toml", "*.md", "*.yaml", ".ci/run"):
        text = path.read_text(encoding="utf-8")
        assert not machine.search(text), path
        if registry.search(text):
            assert path == PACKAGE / "index/default.py", path


def test_what_an_index_page_needs_is_in_one_place() -> None:
    assert len(re.findall(r"https://\S+/simple", (PACKAGE / "index/default.py").read_text(encoding="utf-8"))) >= 1


def test_importing_the_package_is_light() -> None:
    code = "import sys; before = set(sys.modules); import rocmpip; print(len(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 2


def test_readme_has_two_commands_and_ci_runs_the_second() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    setup = text.partition("## Set up")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```$", setup, re.MULTILINE | re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines() if line.strip()]
    assert len(commands) == 2
    assert commands[0].endswith("rocmpip demo")
    assert commands[1].startswith(".venv/bin/python -m pytest")
    assert "README.md" in (ROOT / ".ci/run").read_text(encoding="utf-8")
