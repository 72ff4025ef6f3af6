"""The reference pages say what the code says, and every command of ours has its place in them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from rocmpip.cli.group import available
from rocmpip.cli.overview import PIP_COMMANDS
from rocmpip.cli.table import COMMANDS
from rocmpip.model import errors
from rocmpip.store.settings_table import ROWS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_are_up_to_date(generate: ModuleType) -> None:
    assert "\n".join(generate.stale()) == ""


def test_every_command_is_documented(generate: ModuleType) -> None:
    text = (DOCS / "reference/cli.md").read_text(encoding="utf-8")
    for name, summary in COMMANDS:
        if available(name) or generate.conducted(name):
            assert f"## rocmpip {name}\n" in text, (name, summary)


def test_every_error_and_setting_is_documented() -> None:
    page = (DOCS / "reference/errors.md").read_text(encoding="utf-8")
    ours = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.RocmpipError)]
    for kind in ours:
        if kind is not errors.RocmpipError:
            assert f"| {kind.slug} |" in page
    settings = (DOCS / "reference/settings.md").read_text(encoding="utf-8")
    assert all(f"`{row.key}`" in settings for row in ROWS)


def test_links_between_pages_lead_somewhere() -> None:
    root = DOCS.parent
    for page in [root / "README.md", *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page}: {target}"


def test_the_documentation_names_only_commands_that_exist() -> None:
    known = {name for name, _ in COMMANDS} | set(PIP_COMMANDS.split()) | {"install", "uninstall", "COMMAND"}
    for page in [DOCS.parent / "README.md", *DOCS.rglob("*.md")]:
        text = page.read_text(encoding="utf-8")
        spoken = re.findall(r"`rocmpip ([a-z][a-z-]*)", text) + re.findall(
            r"^(?:\$ |    )rocmpip ([a-z][a-z-]*)", text, re.MULTILINE
        )
        assert set(spoken) <= known, (page, set(spoken) - known)
