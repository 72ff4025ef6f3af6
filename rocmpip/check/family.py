"""What is installed of the torch family, read from files alone: builds, tritons, pairings. Used by doctor and verify."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from rocmpip.catalogue.catalogue import Catalogue
from rocmpip.model.machine import InstalledDist
from rocmpip.model.names import normalise
from rocmpip.model.record import Struct
from rocmpip.model.regular import regular
from rocmpip.model.rocm import rocm_of_label

TRITONS = ("triton", "triton-rocm", "pytorch-triton-rocm", "pytorch-triton")
"""Names that all install into site-packages/triton."""
_REQUIRES = re.compile(r"Requires-Dist:\s*([A-Za-z0-9._-]+)")
_ASSIGNED = re.compile(r"^(\w+)(?:\s*:[^=]+)?\s*=\s*(None|'[^']*'|\"[^\"]*\")", re.MULTILINE)


class Fault(Struct, frozen=True):
    """One thing that is wrong with what is installed."""

    kind: str
    """wrong-torch, wrong-gfx, wrong-rocm, pairing, two-tritons, wrong-triton, cuda-package."""
    name: str
    """The distribution at fault."""
    what: str
    evidence: tuple[str, ...] = ()
    why: str = ""
    fix: tuple[str, ...] = ()
    warns: bool = False
    """True when it works all the same."""


def record(dist: InstalledDist) -> tuple[str, ...]:
    """Files of a distribution by its RECORD, relative to site-packages; () when it has none."""
    try:
        with open(Path(dist.path) / "RECORD", encoding="utf-8", errors="replace", newline="", opener=regular) as stream:
            return tuple(row[0] for row in csv.reader(line for line in stream) if row and row[0])
    except (OSError, csv.Error):
        return ()


def requires(dist: InstalledDist, name: str) -> bool:
    """True when its metadata requires ``name`` unconditionally."""
    try:
        with open(Path(dist.path) / "METADATA", encoding="utf-8", errors="replace", opener=regular) as stream:
            for line in stream:
                if not line.strip():
                    return False
                found = _REQUIRES.match(line)
                if found and normalise(found.group(1)) == name and "extra" not in line.partition(";")[2]:
                    return True
    except OSError:
        return False
    return False


def brings(dist: InstalledDist, folder: str) -> bool:
    """True when the distribution itself installs files of an import folder (an alias wheel has none). Without a RECORD: yes."""
    files = record(dist)
    return not files or any(file.startswith(f"{folder}/") for file in files)


def torch_build(torch: InstalledDist) -> Mapping[str, str]:
    """torch/version.py's constants (``hip``, ``cuda``, ``__version__``), "" for None; {} when it cannot be read."""
    try:
        with open(Path(torch.path).parent / "torch/version.py", encoding="utf-8", errors="replace", opener=regular) as stream:
            text = stream.read(65536)
    except OSError:
        return {}
    return {key: "" if value == "None" else value[1:-1] for key, value in _ASSIGNED.findall(text)}


def is_rocm(torch: InstalledDist) -> bool | None:
    """Is this torch a ROCm build? None when neither its label nor its files tell."""
    if rocm_of_label(torch.version) is not None:
        return True
    constants = torch_build(torch)
    if constants.get("hip"):
        return True
    local = torch.version.partition("+")[2]
    if local.startswith(("cu", "cpu", "xpu")) or constants:
        return False
    return None


def build_words(torch: InstalledDist) -> str:
    """What kind of build it is, in words."""
    local = torch.version.partition("+")[2]
    constants = torch_build(torch)
    if local.startswith("cu") or constants.get("cuda"):
        return f"a CUDA build ({local or 'CUDA ' + constants.get('cuda', '')})"
    if local.startswith("cpu"):
        return "a CPU build"
    return "a build without ROCm" if constants else "PyPI's build, which is made for CUDA"


def torch_faults(
    dists: Mapping[str, InstalledDist], catalogue: Catalogue, targets: Sequence[str], *, aimed: bool
) -> list[Fault]:
    """What is wrong with the torch that is there. ``aimed``: this machine has a GPU or ROCm, so torch must be a ROCm build."""
    torch = dists.get("torch")
    if torch is None:
        return []
    evidence = (f"torch {torch.version} ({torch.path})",)
    mend = (f"rocmpip install --force-reinstall torch=={torch.version.partition('+')[0]}",)
    rocm = is_rocm(torch)
    if not rocm:
        if not aimed:
            return []
        what = f"torch {torch.version} is {build_words(torch)}"
        return [Fault("wrong-torch", "torch", what, evidence, "it never uses an AMD GPU", mend)]
    constants = torch_build(torch)
    found = []
    if constants and not constants.get("hip"):
        what = f"torch {torch.version} says ROCm in its version but holds another build (torch/version.py: hip = None)"
        found.append(Fault("wrong-torch", "torch", what, evidence, "two torch builds were unpacked over each other", mend))
    lacking = [gfx for gfx in targets if catalogue.lacks_kernels(torch.version, gfx)]
    if lacking and rocm_of_label(torch.version) is not None:
        what = f"torch {torch.version} has no kernels for {', '.join(lacking)}"
        why = "programs stop with 'invalid device function' or hang"
        fix = ("rocmpip install --force-reinstall torch",)
        found.append(Fault("wrong-gfx", "torch", what, evidence, why, fix))
    return found + _pairing_faults(dists, torch, catalogue)


def _pairing_faults(dists: Mapping[str, InstalledDist], torch: InstalledDist, catalogue: Catalogue) -> list[Fault]:
    found = []
    pairing = catalogue.pairing(torch.version)
    label = rocm_of_label(torch.version)
    for name in ("torchvision", "torchaudio"):
        dist = dists.get(name)
        if dist is None:
            continue
        public = dist.version.partition("+")[0]
        other = rocm_of_label(dist.version)
        listed = getattr(pairing, name) if pairing is not None else ()
        evidence = (f"torch {torch.version}", f"{name} {dist.version} ({dist.path})")
        right = f"rocmpip install --force-reinstall torch=={torch.version.partition('+')[0]} {name}"
        if label is not None and other is None:
            what = f"{name} {dist.version} is no ROCm build, and torch {torch.version} is one"
            found.append(
                Fault(
                    "pairing",
                    name,
                    what,
                    evidence,
                    "its operators are not there: 'operator torchvision::nms does not exist'",
                    (right,),
                )
            )
        elif label is not None and other is not None and label.minor != other.minor:
            what = f"{name} is built for ROCm {other}, torch for ROCm {label}"
            found.append(
                Fault("pairing", name, what, evidence, "two ROCm versions in one process crash or do not load", (right,))
            )
        elif listed and public not in listed:
            what = f"{name} {public} does not belong to torch {torch.version.partition('+')[0]} ({' or '.join(listed)} does)"
            found.append(
                Fault("pairing", name, what, evidence, "it is compiled against another torch: symbols are missing", (right,))
            )
    return found


def triton_faults(dists: Mapping[str, InstalledDist], catalogue: Catalogue) -> list[Fault]:
    """Several tritons in one folder, or one that is not torch's."""
    torch = dists.get("torch")
    fix: tuple[str, ...]
    real = [dists[name] for name in TRITONS if name in dists and brings(dists[name], "triton")]
    evidence = tuple(f"{dist.name} {dist.version} ({dist.path})" for dist in real)
    rocm = bool(torch is not None and is_rocm(torch))
    pairing = catalogue.pairing(torch.version) if torch is not None else None
    if len(real) > 1:
        wrong = _strangers(real, torch)
        keep = next((dist for dist in real if dist not in wrong), real[0])
        fix = (
            f"rocmpip uninstall -y {' '.join(dist.name for dist in real)}",
            f"rocmpip install {keep.name}=={keep.version}",
        )
        what = f"{' and '.join(f'{dist.name} {dist.version}' for dist in real)} lie over each other in one folder, triton"
        return [
            Fault(
                "two-tritons",
                wrong[0].name if wrong else real[1].name,
                what,
                evidence,
                "files of both are mixed: kernels fail to compile, or the wrong back end answers",
                fix,
            )
        ]
    if real and rocm and torch is not None:
        dist = real[0]
        public = dist.version.partition("+")[0]
        if dist.name == "pytorch-triton" or (dist.name == "triton" and "+" not in dist.version):
            expected = "triton-rocm" if _new(torch.version) else "pytorch-triton-rocm"
            what = f"{dist.name} {dist.version} is PyPI's, and torch {torch.version} wants {expected}"
            fix = (
                f"rocmpip uninstall -y {dist.name}",
                f"rocmpip install --force-reinstall torch=={torch.version.partition('+')[0]}",
            )
            return [Fault("wrong-triton", dist.name, what, evidence, "it is made for CUDA's torch", fix)]
        if pairing is not None and pairing.triton and not any(_begins(public, one) for one in pairing.triton):
            what = f"{dist.name} {public} does not belong to torch {torch.version.partition('+')[0]} ({' or '.join(pairing.triton)} does)"
            fix = (f"rocmpip install --force-reinstall torch=={torch.version.partition('+')[0]}",)
            return [
                Fault("wrong-triton", dist.name, what, evidence, "torch.compile and flash attention may fail", fix, warns=True)
            ]
    return []


def _begins(version: str, listed: str) -> bool:
    return version == listed or version.startswith((listed + ".", listed + "+"))


def _new(torch: str) -> bool:
    """triton-rocm from torch 2.10 on."""
    numbers = [int(part) for part in re.findall(r"\d+", torch)[:2]]
    return numbers >= [2, 10]


def _strangers(tritons: Sequence[InstalledDist], torch: InstalledDist | None) -> list[InstalledDist]:
    """Those that are not made for ROCm; when all or none are, those that torch does not name."""
    plain = [
        dist
        for dist in tritons
        if dist.name == "pytorch-triton" or (dist.name == "triton" and "rocm" not in dist.version and "git" not in dist.version)
    ]
    if plain and len(plain) < len(tritons):
        return plain
    wanted = "triton-rocm" if torch is None or _new(torch.version) else "pytorch-triton-rocm"
    return [dist for dist in tritons if dist.name != wanted]


def cuda_faults(dists: Mapping[str, InstalledDist], catalogue: Catalogue) -> list[Fault]:
    """Installed packages that are CUDA's, by name."""
    found = []
    for name, dist in dists.items():
        reason = catalogue.forbidden(name)
        if reason:
            instead = catalogue.instead(name)
            fix = (f"rocmpip uninstall -y {name}", *((f"rocmpip install {instead}",) if instead else ()))
            found.append(
                Fault("cuda-package", name, f"{name} {dist.version}: {reason}", (dist.path,), "nothing here can use it", fix)
            )
    return found
