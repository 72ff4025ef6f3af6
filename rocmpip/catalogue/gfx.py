"""GPUs by gfx name and by PCI id. Cheap to import and to read: `rocmpip detect` waits for it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rocmpip.catalogue import rows
from rocmpip.model.gfx import is_gfx_name

# Type checkers take the name for typing's own, whose import would cost detection 2 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_IDS = re.compile(r"\s*(?:[0-9a-f]{4}(?:-[0-9a-f]{4})?(?:\s+|\Z))*\Z")
_ROCM = re.compile(r"\d{1,4}\.\d{1,4}(?:\.\d{1,4})?\Z")


def _gfx(value: object) -> str:
    return "" if isinstance(value, str) and is_gfx_name(value) else "must be a gfx name such as gfx1100"


def _ids(value: object) -> str:
    good = isinstance(value, str) and _IDS.match(value)
    return "" if good else "must be device ids of four hex digits, with spaces between, a range as 7420-7424"


def _names(value: object) -> str:
    good = isinstance(value, str) and all("=" in pair for pair in value.split(",") if pair.strip())
    return "" if good else 'must be "ID=product, ID=product"'


def _rocm(value: object) -> str:
    return "" if isinstance(value, str) and _ROCM.match(value) else "must be a ROCm version such as 6.3"


SECTION = rows.Section(
    "gfx",
    {
        "products": rows.text,
        "pci": _ids,
        "names": _names,
        "integrated": rows.flag,
        "family": rows.text,
        "extra": rows.text,
        "override": rows.text,
        "override_gfx": _gfx,
        "override_note": rows.text,
        "max_rocm": _rocm,
        "generic": rows.text,
        "note": rows.text,
        "source": rows.text,
    },
    required=("products",),
    key=_gfx,
)


class GfxTable:
    """What is known of each gfx. Unknown names are answered with an empty value, never an error."""

    def __init__(self, table: dict[str, dict[str, Any]]) -> None:
        self._rows = table
        self._by_id: dict[str, str] = {}
        self._names: dict[str, str] = {}
        for gfx, row in table.items():
            for device in _expand(row.get("pci", "")):
                self._by_id[device] = gfx
            for pair in row.get("names", "").split(","):
                device, equals, product = pair.partition("=")
                if equals:
                    self._names[device.strip().lower()] = product.strip()

    @property
    def known(self) -> frozenset[str]:
        """All gfx names of the table."""
        return frozenset(self._rows)

    def name(self, gfx: str, pci_id: str = "") -> str:
        """A product name for people: by PCI id (``1002:74a1`` or ``74a1``) where one id is one product, else the gfx's list."""
        device = _device(pci_id)
        if self._by_id.get(device) == gfx and device in self._names:
            return self._names[device]
        return str(self._rows.get(gfx, {}).get("products", ""))

    def gfx_of_pci(self, device_id: str) -> str | None:
        """The gfx of a device of vendor 1002 (``74a1``, ``0x74A1``, ``1002:74a1``); None when the table has no such id."""
        return self._by_id.get(_device(device_id))

    def integrated(self, gfx: str, pci_id: str = "") -> bool:
        """True for an iGPU (an MI300A is a card here: it is what its node computes on)."""
        return bool(self._rows.get(gfx, {}).get("integrated", False))

    def family(self, gfx: str) -> str:
        """The name of AMD's per-family index (``gfx110X-all``), "" when there is none."""
        return self.families(gfx)[0] if self.families(gfx) else ""

    def families(self, gfx: str) -> tuple[str, ...]:
        """All names that AMD's per-family index had, newest first."""
        return tuple(self._rows.get(gfx, {}).get("family", "").split())

    def extra(self, gfx: str) -> str:
        """The extra of AMD's multi-arch wheels. A gfx that is not in the table has the extra that it would have."""
        return str(self._rows.get(gfx, {"extra": f"device-{gfx}"}).get("extra", ""))

    def override(self, gfx: str) -> str:
        """The HSA_OVERRIDE_GFX_VERSION that people use for it, "" when none is known."""
        return str(self._rows.get(gfx, {}).get("override", ""))

    def override_gfx(self, gfx: str) -> str:
        """The gfx whose kernels run under that override, or ""."""
        return str(self._rows.get(gfx, {}).get("override_gfx", ""))

    def override_note(self, gfx: str) -> str:
        """What is known against that override, or ""."""
        return str(self._rows.get(gfx, {}).get("override_note", ""))

    def max_rocm(self, gfx: str) -> str:
        """The newest ROCm whose wheels really work on it (``6.3`` for gfx906), "" when there is no such end."""
        return str(self._rows.get(gfx, {}).get("max_rocm", ""))

    def generic(self, gfx: str) -> str:
        """LLVM's generic target (``gfx11-generic``), or ""."""
        return str(self._rows.get(gfx, {}).get("generic", ""))

    def note(self, gfx: str) -> str:
        """Something that people should know about it, or ""."""
        return str(self._rows.get(gfx, {}).get("note", ""))

    def source(self, gfx: str) -> str:
        """Where the row comes from."""
        return str(self._rows.get(gfx, {}).get("source", ""))


def _device(pci_id: str) -> str:
    return pci_id.rpartition(":")[2].strip().lower().removeprefix("0x")


def _expand(ids: str) -> list[str]:
    """``7420-7422 743f`` → 7420, 7421, 7422, 743f."""
    found: list[str] = []
    for item in ids.split():
        first, dash, last = item.partition("-")
        if dash:
            found += [f"{number:04x}" for number in range(int(first, 16), int(last, 16) + 1)]
        else:
            found.append(first)
    return found


_shipped: GfxTable | None = None


def load_gfx(overrides: Sequence[str] = ()) -> GfxTable:
    """The GPU table, with the ``[gfx.…]`` rows of the user's catalogue files or folders over it.

    Raises BadConfiguration (45) naming every fault of those rows. Other sections of the files are not looked at here.
    """
    global _shipped
    if not overrides:
        if _shipped is None:
            _shipped = GfxTable(rows.shipped("gfx.toml").tables["gfx"])
        return _shipped
    problems: list[str] = []
    table = rows.merge(SECTION, [rows.shipped("gfx.toml"), *rows.read_overrides(overrides)], problems)
    rows.told(problems)
    return GfxTable(table)
