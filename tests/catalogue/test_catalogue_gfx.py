"""GPUs by name and PCI id, as AMD's tables have them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rocmpip.catalogue import rows
from rocmpip.catalogue.gfx import SECTION, load_gfx
from rocmpip.model.errors import BadConfiguration
from rocmpip.model.gfx import is_gfx_name

GFX = load_gfx()


@pytest.mark.parametrize(
    ("device", "gfx"),
    [
        ("74a1", "gfx942"), ("74a0", "gfx942"), ("75a3", "gfx950"), ("7408", "gfx90a"), ("740f", "gfx90a"),
        ("738c", "gfx908"), ("66af", "gfx906"), ("744c", "gfx1100"), ("73df", "gfx1031"), ("15bf", "gfx1103"),
        ("1586", "gfx1151"), ("150e", "gfx1150"), ("1114", "gfx1152"), ("7550", "gfx1201"), ("164e", "gfx1036"),
        ("7422", "gfx1034"), ("731f", "gfx1010"),
    ],
)  # fmt: skip
def test_pci_ids(device: str, gfx: str) -> None:
    assert GFX.gfx_of_pci(device) == gfx
    assert GFX.gfx_of_pci(f"1002:{device.upper()}") == gfx
    assert GFX.gfx_of_pci(f"0x{device}") == gfx


def test_unknown_is_answered_kindly() -> None:
    assert GFX.gfx_of_pci("ffff") is None and GFX.gfx_of_pci("") is None
    assert GFX.name("gfx132f") == "" and GFX.family("gfx132f") == "" and GFX.override("gfx132f") == ""
    assert not GFX.integrated("gfx132f") and "gfx132f" not in GFX.known
    # A new GPU's extra follows AMD's naming.
    assert GFX.extra("gfx132f") == "device-gfx132f"


def test_names() -> None:
    assert GFX.name("gfx942", "1002:74a1") == "Instinct MI300X"
    assert "MI300A" in GFX.name("gfx942")
    assert "Steam Deck" in GFX.name("gfx1033", "1002:163f")
    # The id of another gfx does not name this one.
    assert "MI300X" in GFX.name("gfx942", "1002:1586") and "Strix" not in GFX.name("gfx942", "1002:1586")


def test_integrated() -> None:
    assert {gfx for gfx in GFX.known if GFX.integrated(gfx)} == {
        "gfx902", "gfx90c", "gfx1033", "gfx1035", "gfx1036", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153",
    }  # fmt: skip
    assert not GFX.integrated("gfx942", "1002:74a0")


def test_families_extras_and_ends() -> None:
    assert GFX.family("gfx942") == "gfx94X-dcgpu" and GFX.family("gfx1103") == "gfx110X-all"
    assert GFX.families("gfx1100") == ("gfx110X-all", "gfx110X-dgpu")
    assert GFX.extra("gfx90a") == "device-gfx90a" and GFX.extra("gfx803") == ""
    assert [gfx for gfx in sorted(GFX.known) if GFX.max_rocm(gfx)] == ["gfx906"]
    assert GFX.max_rocm("gfx906") == "6.3"
    assert GFX.generic("gfx1151") == "gfx11-generic"


def test_overrides_people_use() -> None:
    assert (GFX.override("gfx1031"), GFX.override_gfx("gfx1031")) == ("10.3.0", "gfx1030")
    assert GFX.override_gfx("gfx1101") == "gfx1100"
    assert "unsafe" in GFX.override_note("gfx1010")
    # gfx1103 hangs with 11.0.0 (pytorch#179653).
    assert GFX.override("gfx1103") == "11.0.2" and GFX.override_note("gfx1103")
    for gfx in GFX.known:
        value, borrowed = GFX.override(gfx), GFX.override_gfx(gfx)
        assert bool(value) == bool(borrowed)
        if borrowed:
            major, minor, step = value.split(".")
            assert borrowed == f"gfx{major}{int(minor):x}{int(step):x}"


def test_every_row_is_sound_and_has_a_source() -> None:
    table = rows.shipped("gfx.toml").tables["gfx"]
    problems: list[str] = []
    rows.merge(SECTION, [rows.Layer("empty", {}), rows.Layer("gfx.toml", {"gfx": table})], problems)
    assert problems == []
    assert all(is_gfx_name(gfx) and GFX.source(gfx) for gfx in GFX.known)
    ids = [device for row in table.values() for device in row.get("pci", "").split()]
    assert len(ids) == len(set(ids))


def test_a_user_file_changes_and_adds_rows(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(
        '[gfx.gfx132f]\nproducts = "MI999"\npci = "9999"\nsource = "me"\n[gfx.gfx906]\nmax_rocm = "6.4"\n', encoding="utf-8"
    )
    table = load_gfx([str(tmp_path)])
    assert table.gfx_of_pci("9999") == "gfx132f" and table.name("gfx132f") == "MI999"
    assert table.max_rocm("gfx906") == "6.4" and table.family("gfx906") == "gfx906"
    assert GFX.max_rocm("gfx906") == "6.3"


def test_faults_are_told_together(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(
        '[gfx.gfx132f]\npci = "12"\nintegrated = "yes"\ncolour = "red"\n[gfx.mi300]\nproducts = "x"\n', encoding="utf-8"
    )
    with pytest.raises(BadConfiguration) as caught:
        load_gfx([str(path)])
    text = "\n".join(caught.value.details)
    for word in (
        "gfx132f.pci",
        "gfx132f.integrated",
        "gfx132f.colour is not a known key",
        "gfx132f is new and needs",
        "gfx.mi300",
    ):
        assert word in text
    assert text.count(str(path)) == len(caught.value.details)


def test_it_imports_nothing_heavy() -> None:
    code = (
        "import sys; import rocmpip.catalogue.gfx; "
        "print([m for m in ('packaging', 'pathlib', 'importlib.resources', 'httpx', 'click', 'json', 'dataclasses') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False, env=_path())
    assert ran.stdout.strip() == "[]", ran.stderr


def _path() -> dict[str, str]:
    import msgspec

    import rocmpip

    places = [str(Path(module.__file__).resolve().parents[1]) for module in (rocmpip, msgspec) if module.__file__]
    if sys.version_info < (3, 11):
        import tomli

        places.append(str(Path(tomli.__file__).resolve().parents[1]))
    return {"PYTHONPATH": ":".join(places)}
