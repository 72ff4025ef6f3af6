"""When KFD's sysfs has no answer: rocminfo, amd-smi, PCI ids, and /dev/dxg (WSL2), in this order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rocmpip.machine.driver import DXG
from rocmpip.machine.files import Tree
from rocmpip.machine.variables import for_programs
from rocmpip.model.gfx import is_gfx_name, parse_gfx
from rocmpip.model.machine import Gpu

PCI = "/sys/bus/pci/devices"
_PCI_AMD = 0x1002
# Display controllers, and "processing accelerators", which MI300 calls itself.
_PCI_CLASSES = (0x03, 0x12)
_AMD_SMI = ("static", "--asic", "--bus", "--json")


def look_elsewhere(
    tree: Tree,
    *,
    env: Mapping[str, str],
    roots: Sequence[str],
    programs: bool,
    time_limit: float,
    gfx_of_pci: Callable[[str], str | None],
) -> tuple[Gpu, ...]:
    """GPUs from the first fallback that has any. Each program gets ``time_limit`` seconds."""
    for name, arguments, read in (("rocminfo", (), read_rocminfo), ("amd-smi", _AMD_SMI, read_amd_smi)):
        if not programs:
            break
        path = _find_program(tree, name, env, roots)
        if path:
            found = _ask(tree, path, arguments, env, time_limit, read)
            if found:
                return found
    found = read_pci(tree, gfx_of_pci)
    if not found and tree.exists(DXG):
        tree.note(f"{DXG}: WSL2 offers a GPU but does not say which; --gfx (or ROCMPIP_GFX) names it")
    return found


def _find_program(tree: Tree, name: str, env: Mapping[str, str], roots: Sequence[str]) -> str:
    """The machine path of a helper program, or "". Under a root folder only the folders below it are searched."""
    folders = [f"{root}/bin" for root in roots]
    folders += ["/opt/rocm/bin", "/usr/bin", "/usr/local/bin"]
    if not tree.root:
        folders += [folder for folder in env.get("PATH", "").split(os.pathsep) if folder.startswith("/")]
    for folder in dict.fromkeys(folders):
        path = f"{folder}/{name}"
        if not tree.is_folder(path) and tree.allows(path, os.X_OK):
            return path
    return ""


def _ask(
    tree: Tree,
    path: str,
    arguments: Sequence[str],
    env: Mapping[str, str],
    time_limit: float,
    read: Callable[[str, str], tuple[Gpu, ...]],
) -> tuple[Gpu, ...]:
    # subprocess costs as much as all of detection: it is loaded only when a program is really asked.
    from rocmpip.machine.programs import Unanswered, output_of

    try:
        code, text = output_of([tree.host(path), *arguments], env=for_programs(env), time_limit=time_limit)
    except (Unanswered, OSError) as problem:
        tree.note(f"{path} {problem if isinstance(problem, Unanswered) else 'cannot be started'}")
        return ()
    found = read(text, " ".join((path, *arguments)))
    if not found:
        tree.note(f"{path} names no GPU" + (f" (exit code {code})" if code else ""))
    return found


def read_rocminfo(text: str, source: str) -> tuple[Gpu, ...]:
    """GPU agents of rocminfo's output, in its order. ISA lines give the target features."""
    gpus: list[Gpu] = []
    for block in _agents(text):
        fields: dict[str, str] = {}
        isa = ""
        for line in block:
            key, colon, value = line.strip().partition(":")
            value = value.strip()
            if not colon:
                continue
            if key == "Name" and value.startswith("amdgcn-amd-amdhsa--"):
                isa = isa or value.rpartition("--")[2]
            else:
                fields.setdefault(key, value)
        if fields.get("Device Type", "GPU") != "GPU":
            continue
        try:
            gfx = parse_gfx(isa or fields.get("Name", ""))
        except ValueError:
            continue
        if not is_gfx_name(gfx.name):
            continue
        device = _number(fields.get("Chip ID", "").partition("(")[0])
        uuid = fields.get("Uuid", "")
        gpus.append(
            Gpu(
                gfx=gfx.name,
                name=_plain(fields.get("Marketing Name", "")),
                pci_id=f"1002:{device:04x}" if 0 < device <= 0xFFFF else "",
                node=_number(fields["Node"]) if fields.get("Node", "").isdigit() else None,
                source=source,
                features=gfx.features,
                uuid=uuid if uuid.startswith("GPU-") and "XX" not in uuid else "",
            )
        )
    return tuple(gpus)


def _agents(text: str) -> Iterable[list[str]]:
    block: list[str] = []
    inside = False
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == "Agent" and words[1].isdigit():
            if inside:
                yield block
            block, inside = [], True
        else:
            block.append(line)
    if inside:
        yield block


def read_amd_smi(text: str, source: str) -> tuple[Gpu, ...]:
    """GPUs of ``amd-smi static --asic --bus --json``: a list, or (later) an object with ``gpu_data``."""
    import json

    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    rows = answer.get("gpu_data") if isinstance(answer, dict) else answer
    gpus = [_smi_row(row, source) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return tuple(gpu for gpu in gpus if gpu is not None)


def _smi_row(row: dict[str, Any], source: str) -> Gpu | None:
    asic = row.get("asic")
    if not isinstance(asic, dict):
        return None
    try:
        gfx = parse_gfx(str(asic.get("target_graphics_version", "")))
    except ValueError:
        return None
    bus = row.get("bus")
    device = _number(str(asic.get("device_id", "")))
    return Gpu(
        gfx=gfx.name,
        name=_plain(str(asic.get("market_name", ""))),
        pci_id=f"1002:{device:04x}" if 0 < device <= 0xFFFF else "",
        source=source,
        features=gfx.features,
        location=_plain(str(bus.get("bdf", ""))) if isinstance(bus, dict) else "",
    )


def read_pci(tree: Tree, gfx_of_pci: Callable[[str], str | None]) -> tuple[Gpu, ...]:
    """AMD display and accelerator devices whose id the table knows; unknown ones are noted."""
    gpus: list[Gpu] = []
    for address in tree.names(PCI):
        folder = f"{PCI}/{address}"
        if _hex(tree, f"{folder}/vendor") != _PCI_AMD or _hex(tree, f"{folder}/class") >> 16 not in _PCI_CLASSES:
            continue
        device = _hex(tree, f"{folder}/device")
        gfx = gfx_of_pci(f"{device:04x}")
        if gfx is None:
            tree.note(
                f"{folder}: an AMD GPU with PCI id 1002:{device:04x}, which the table does not know; "
                "--gfx (or ROCMPIP_GFX) names its target"
            )
            continue
        gpus.append(Gpu(gfx=gfx, pci_id=f"1002:{device:04x}", source=f"{folder}/device", location=address))
    return tuple(gpus)


def _hex(tree: Tree, path: str) -> int:
    text = (tree.text(path, 64) or "").strip()
    return _number(text) if text.startswith("0x") else 0


def _number(text: str) -> int:
    """A decimal or 0x number of up to 16 digits; 0 for anything else."""
    text = text.strip()
    try:
        return int(text, 16 if text.lower().startswith("0x") else 10) if len(text) <= 18 else 0
    except ValueError:
        return 0


def _plain(text: str) -> str:
    """One printable line that names something, or ""."""
    text = text.strip()
    return text if text.isprintable() and text.upper() not in ("N/A", "UNKNOWN") else ""
