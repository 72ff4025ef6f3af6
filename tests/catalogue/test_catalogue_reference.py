"""The reference page is written from the data."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocmpip.catalogue import load
from rocmpip.catalogue.reference import TABLES, refreshed

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "catalogue.md"
REFRESH = (
    'python -c "from pathlib import Path; from rocmpip.catalogue import load; from rocmpip.catalogue.reference import refreshed; '
    "p = Path('docs/reference/catalogue.md'); p.write_text(refreshed(p.read_text('utf-8'), load()), 'utf-8')\""
)


def test_the_page_is_fresh() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert refreshed(page, load()) == page, f"write it anew with: {REFRESH}"


def test_every_table_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"<!-- table: {name} -->" in page for name in TABLES)
    assert "| gfx942 |" in page and "rocm7.14" in page


def test_an_unknown_marker_is_an_error() -> None:
    with pytest.raises(KeyError):
        refreshed("<!-- table: nothing -->\n<!-- end -->", load())
