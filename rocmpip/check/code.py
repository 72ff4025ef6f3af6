"""Device code against the GPU: targets, generic targets, target features. And builds against the torch they were made for."""

from __future__ import annotations

from collections.abc import Sequence

from rocmpip.check.finding import FAULT, NOTE, Finding
from rocmpip.check.inventory import Dist, GpuFile
from rocmpip.check.site import Site, words
from rocmpip.elf import CodeObject, covers
from rocmpip.model.gfx import Gfx
from rocmpip.model.provenance import stale_because

_ECC = frozenset({"gfx90a", "gfx940", "gfx941", "gfx942", "gfx950"})
"""Data-centre chips whose memory runs with ECC: sramecc+ (LLVM: the default of these targets' drivers)."""


def features_of(gpu: Gfx, xnack: str) -> dict[str, str]:
    """What is known of a GPU's features: as told, else ECC of the data-centre chips and HSA_XNACK (off when not set)."""
    known = {feature[:-1]: feature[-1] for feature in gpu.features}
    if gpu.name in _ECC:
        known.setdefault("sramecc", "+")
    known.setdefault("xnack", "+" if xnack == "1" else "-")
    return known


def runs(found: CodeObject, gpu: Gfx, xnack: str) -> bool:
    """Does this code object run on the GPU? A feature that it does not name may be either way."""
    if not covers(found.target, gpu.name):
        return False
    known = features_of(gpu, xnack)
    return all(known.get(feature[:-1], feature[-1]) == feature[-1] for feature in found.features)


def device_code(site: Site) -> list[Finding]:
    """Distributions whose AMD device code does not run on every target.

    Kernels of thin wheels stand in packages of their own, one for each GPU (rocm-sdk-device-gfx942, amd-torch-device-gfx942):
    those are judged together, and libraries that refer to such packs by what all of them hold.
    """
    found: list[Finding] = []
    xnack = site.env.get("HSA_XNACK", "")
    packs = [dist for dist in site.inventory.dists.values() if _role(site, dist) in ("device", "sdk")]
    shared = tuple(one for dist in packs for one in dist.objects)
    judged = [(dist, dist.objects) for dist in site.inventory.gpu if dist.objects and dist not in packs and not _refers(dist)]
    judged += [(dist, dist.objects + shared) for dist in site.inventory.gpu if _refers(dist) and dist not in packs]
    if shared and not any(_refers(dist) for dist, _ in judged):
        judged.append((next(dist for dist in packs if dist.objects), shared))
    for dist, objects in judged:
        for gpu in site.targets:
            finding = _lacking(site, dist, objects, gpu, xnack)
            if finding is not None:
                found.append(finding)
    return found


def _role(site: Site, dist: Dist) -> str:
    member = site.catalogue.member(dist.name)
    return member.role if member is not None else ""


def _refers(dist: Dist) -> bool:
    """True for libraries whose kernels stand in packs elsewhere."""
    return any("kpack-ref" in file.report.kinds for file in dist.files)


def _lacking(site: Site, dist: Dist, objects: Sequence[CodeObject], gpu: Gfx, xnack: str) -> Finding | None:
    version = f"{dist.name} {dist.dist.version}"
    held = tuple(sorted({str(one) for one in objects}))
    if any(runs(one, gpu, xnack) for one in objects):
        return _partly(dist, gpu, xnack)
    near = sorted({str(one) for one in objects if covers(one.target, gpu.name)})
    evidence = (
        f"device code for {words(held, 12) or 'no GPU: its kernels are packages of their own'}",
        f"the GPU is {gpu}" + (" by HSA_OVERRIDE_GFX_VERSION" if site.claimed else ""),
    )
    fix: tuple[str, ...]
    if near:
        wants = sorted(
            {
                feature
                for one in objects
                if covers(one.target, gpu.name)
                for feature in one.features
                if features_of(gpu, xnack).get(feature[:-1]) != feature[-1]
            }
        )
        what = f"{version} has code for {gpu.name} only with {', '.join(wants)}"
        fix = ("export HSA_XNACK=1",) if wants == ["xnack+"] else (f"rocmpip install --force-reinstall --no-deps {dist.name}",)
        why = "the runtime does not load code objects of another mode: 'no kernel image is available' or a crash"
        return Finding("wrong-feature", FAULT, dist.name, what, "", evidence, why, fix)
    where = tuple(file.name for file in dist.files if file.report.code_objects)
    what = f"{version} has no device code for {gpu.name}"
    why = "its kernels fail with 'invalid device function' or hang"
    fix = _rebuild(site, dist, gpu)
    return Finding("wrong-gfx", FAULT, dist.name, what, where[0] if where else "", evidence, why, fix)


def _rebuild(site: Site, dist: Dist, gpu: Gfx) -> tuple[str, ...]:
    if site.claimed:
        return ("unset HSA_OVERRIDE_GFX_VERSION",)
    extra = site.catalogue.gfx.extra(gpu.name)  # noqa: S610
    if extra and (_refers(dist) or _role(site, dist) in ("device", "sdk")):
        return (f"rocmpip install 'torch[{extra}]'",)
    return (f"rocmpip install --force-reinstall --no-deps {dist.name}=={dist.dist.version.partition('+')[0]}",)


def _partly(dist: Dist, gpu: Gfx, xnack: str) -> Finding | None:
    """Files with bundles of which none is for the GPU, beside files that have it."""
    bundled = [file for file in dist.files if file.loadable and file.report.code_objects and not file.variant]
    lacking = [file for file in bundled if not any(runs(one, gpu, xnack) for one in file.report.code_objects)]
    if not lacking:
        return None
    what = f"{dist.name}: {len(lacking)} of {len(bundled)} libraries have no code for {gpu.name}"
    evidence = tuple(f"{file.name}: {words(file.report.gfx, 8)}" for file in lacking[:6])
    return Finding(
        "partly-covered", NOTE, dist.name, what, lacking[0].name, evidence, "what these libraries do falls back or fails"
    )


def unowned(site: Site) -> list[Finding]:
    """GPU code that no installed distribution accounts for."""
    files: tuple[GpuFile, ...] = site.inventory.unowned
    if not files or site.names:
        return []
    names = [file.name for file in files]
    what = f"{len(files)} files with GPU code belong to no installed package: {words(names)}"
    return [
        Finding(
            "unowned", NOTE, "", what, names[0], tuple(names[:8]), "left by an uninstall that was cut short, or copied by hand"
        )
    ]


def provenance(site: Site) -> list[Finding]:
    """Builds of ours that were made for another torch, GPU or ROCm."""
    torch = site.installed.get("torch")
    found = []
    for dist in site.inventory.dists.values():
        if dist.provenance is None:
            continue
        for reason in stale_because(
            dist.provenance,
            torch=torch.version if torch else "",
            gfx=site.platform.gfx_targets,
            rocm=str(site.platform.rocm or ""),
        ):
            kind = "wrong-torch-build" if "torch" in reason else "wrong-gfx" if "asked for" in reason else "wrong-rocm-build"
            what = f"{dist.name} {dist.dist.version}: {reason}"
            fix = (f"rocmpip install --force-reinstall --no-deps {dist.name}=={dist.dist.version.partition('+')[0]}",)
            why = {"wrong-torch-build": "its symbols and classes are those of the other torch"}.get(
                kind, "it may not load, or not run"
            )
            level = NOTE if kind == "wrong-rocm-build" else FAULT
            found.append(Finding(kind, level, dist.name, what, "", (f"{dist.dist.path}/rocmpip.json",), why, fix))
    return found
