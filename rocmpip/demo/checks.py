"""What the demo's environment must be like at the end, read from the environment and not from our own words."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocmpip.demo.embedded import Node
from rocmpip.elf import ElfError, code_objects
from rocmpip.model.packages import normalise
from rocmpip.model.rocm import parse_rocm, rocm_of_label

# Run by the environment's own interpreter: what its packages say of themselves.
_ASK = """
import importlib.metadata as m, json, pathlib, torch, triton, flash_attn
seen = json.loads((pathlib.Path(flash_attn.__file__).parent / "build_seen.json").read_text())
print(json.dumps({
    "installed": {d.metadata["Name"]: d.version for d in m.distributions()},
    "torch": torch.__version__, "hip": torch.version.hip, "cuda": torch.version.cuda,
    "triton": triton.DISTRIBUTION, "seen": seen, "flash_attn": str(pathlib.Path(flash_attn.__file__).parent),
}))
"""
CUDA_NAMES = ("nvidia-", "cuda-")


@dataclass(frozen=True)
class Check:
    """One thing that must hold, and what was found."""

    name: str
    ok: bool
    found: str


def check_environment(
    python: Path, node: Node, gfx: Sequence[str], plan: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, str], list[Check]]:
    """(installed distributions, checks) of the environment of ``python``, which should serve ``gfx`` on ``node``."""
    asked = subprocess.run([str(python), "-I", "-c", _ASK], capture_output=True, text=True, timeout=60, check=False)
    if asked.returncode != 0:
        last = (asked.stderr.strip() or "no output").splitlines()[-1]
        return {}, [Check("torch, triton and flash-attn can be imported", False, last)]
    told = json.loads(asked.stdout)
    installed = {normalise(name): version for name, version in told["installed"].items()}
    planned = {row["name"]: row["version"] for row in plan if row["action"] != "keep"}
    different = [name for name, version in planned.items() if installed.get(name) != version]
    cuda = sorted(name for name in installed if name.startswith(CUDA_NAMES))
    return installed, [
        _label(installed.get("torch", "nothing"), node),
        Check("torch is a HIP build", bool(told["hip"]) and told["cuda"] is None, f"hip {told['hip']}, cuda {told['cuda']}"),
        Check("nothing is CUDA", not cuda, ", ".join(cuda) or f"{len(installed)} packages, none of NVIDIA's"),
        Check("one triton, the ROCm one", "triton-rocm" in told["triton"], f"import triton is {told['triton']}"),
        Check("accelerate is there", "accelerate" in installed, installed.get("accelerate", "missing")),
        Check("all is as planned", not different, ", ".join(different) or f"{len(planned)} packages"),
        *_build(told, node, gfx),
    ]


def _label(torch: str, node: Node) -> Check:
    """The label's ROCm must run on the node: none newer than what is installed."""
    rocm = rocm_of_label(torch)
    ok = rocm is not None and rocm.minor <= parse_rocm(node.rocm_version).minor
    return Check("torch carries a ROCm label that fits the node", ok, f"{torch} on ROCm {node.rocm_version}")


def _build(told: Mapping[str, Any], node: Node, gfx: Sequence[str]) -> list[Check]:
    """What flash-attn's setup.py saw while it was built, and the code objects in what it made."""
    seen = told["seen"]
    wanted = ";".join(gfx)
    by_triton = seen.get("FLASH_ATTENTION_TRITON_AMD_ENABLE") == "TRUE"
    archs = "Triton back end" if by_triton else f"GPU_ARCHS={seen.get('GPU_ARCHS')}"
    torch, rocm = seen.get("torch"), seen.get("ROCM_PATH")
    checks = [
        Check("flash-attn was built for the GPU", by_triton or seen.get("GPU_ARCHS") == wanted, archs),
        Check("its build saw the installed torch", torch == told["torch"], str(torch)),
        Check("its build saw the node's ROCm", rocm == str(node.rocm), f"ROCM_PATH={rocm}"),
    ]
    if not by_triton:
        found = _targets(Path(told["flash_attn"]))
        checks.append(Check("its code objects run on the GPU", set(gfx) <= found, ", ".join(sorted(found)) or "none"))
    return checks


def _targets(folder: Path) -> set[str]:
    """gfx names of all code objects under ``folder``."""
    found: set[str] = set()
    for path in folder.rglob("*.so"):
        try:
            found.update(str(one.target).split(":")[0] for one in code_objects(path))
        except ElfError:
            continue
    return found
