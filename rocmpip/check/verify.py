"""All of ``rocmpip verify``: static over files, then what is run in children of the target's interpreter."""

from __future__ import annotations

from rocmpip.check import code, dynamic, links
from rocmpip.check.family import Fault, cuda_faults, torch_faults, triton_faults
from rocmpip.check.finding import FAULT, LEVELS, WARNING, Finding, Step
from rocmpip.check.site import Site
from rocmpip.model.record import Struct


class Outcome(Struct, frozen=True):
    findings: tuple[Finding, ...]
    """Worst first."""
    steps: tuple[Step, ...]
    distributions: int
    files: int
    gpu: tuple[str, ...]
    """Distributions with something for a GPU in them."""
    targets: tuple[str, ...]

    @property
    def faults(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.level == FAULT)

    def as_json(self) -> dict[str, object]:
        return {
            "findings": [finding.as_json() for finding in self.findings],
            "checked": {
                "distributions": self.distributions,
                "elf_files": self.files,
                "gpu_distributions": list(self.gpu),
                "gfx": list(self.targets),
                "steps": [step.as_json() for step in self.steps],
            },
        }


def verify(site: Site, *, run: bool = True, time_limit: float = 180.0) -> Outcome:
    """Check everything. ``run=False`` starts no child. Nothing is changed on disk."""
    steps = [Step("installed packages", "ok", f"{len(site.inventory.dists)} looked at")]
    findings = _absent(site) + _by_name(site)
    findings += code.provenance(site)
    if site.targets:
        findings += code.device_code(site)
        steps.append(Step("device code", "ok", f"against {', '.join(map(str, site.targets))}"))
    else:
        steps.append(Step("device code", "skipped", "no target GPU is known: name one with --gfx"))
    findings += links.check(site)
    steps.append(Step("links and symbols", "ok", f"{site.inventory.elf_files} ELF files"))
    findings += code.unowned(site)
    findings += [Finding("unreadable", WARNING, "", problem) for problem in site.inventory.problems]
    if run:
        told, done = dynamic.run(site, time_limit)
        findings += told
        steps += done
    else:
        steps.append(Step("import and compute", "skipped", "--no-run"))
    return Outcome(
        tuple(sorted(_once(findings), key=lambda finding: LEVELS.index(finding.level))),
        tuple(_marked(steps, findings)),
        len(site.inventory.dists),
        site.inventory.elf_files,
        tuple(dist.name for dist in site.inventory.gpu),
        tuple(map(str, site.targets)),
    )


def _absent(site: Site) -> list[Finding]:
    return [
        Finding("not-installed", FAULT, name, f"{name} is not installed in {site.target.prefix}", "", (), "", (f"rocmpip install {name}",))
        for name in sorted(site.names) if name not in site.installed
    ]  # fmt: skip


def _by_name(site: Site) -> list[Finding]:
    """What names, versions and labels alone tell."""
    targets = site.platform.gfx_targets if not site.claimed else tuple(gfx.name for gfx in site.targets)
    faults = torch_faults(site.installed, site.catalogue, targets, aimed=site.aimed)
    faults += triton_faults(site.installed, site.catalogue)
    if site.aimed:
        faults += cuda_faults(site.installed, site.catalogue)
    return [_from(fault) for fault in faults if not site.names or fault.name in site.names]


def _from(fault: Fault) -> Finding:
    return Finding(
        fault.kind, WARNING if fault.warns else FAULT, fault.name, fault.what, "", fault.evidence, fault.why, fault.fix
    )


def _once(findings: list[Finding]) -> list[Finding]:
    """Without what another finding already says of the same package."""
    told: dict[str, set[str]] = {}
    for finding in findings:
        told.setdefault(finding.name, set()).add(finding.kind)
    kept: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        kinds = told[finding.name]
        # A torch or torchvision that is wrong by its label is CUDA's by its links too.
        if finding.kind in ("cuda-only", "cuda-link") and kinds & {"wrong-torch", "pairing", "wrong-triton", "cuda-package"}:
            continue
        if finding.kind == "cuda-link" and "cuda-only" in kinds:
            continue
        kept.setdefault((finding.kind, finding.name, finding.file), finding)
    return list(kept.values())


def _marked(steps: list[Step], findings: list[Finding]) -> list[Step]:
    """Static steps that found a fault say so."""
    by_step = {
        "device code": {"wrong-gfx", "wrong-feature"},
        "links and symbols": {"cuda-only", "cuda-link", "missing-library", "missing-rocm-library", "torch-missing", "two-rocms",
                              "libstdcxx-shadowed", "libstdcxx-old", "glibc-old", "version-missing", "undefined-symbols", "wrong-torch-build"},
        "installed packages": {"wrong-torch", "pairing", "two-tritons", "wrong-triton", "cuda-package", "not-installed"},
    }  # fmt: skip
    faults = {finding.kind for finding in findings if finding.level == FAULT}
    return [Step(step.step, FAULT, step.detail) if faults & by_step.get(step.step, set()) else step for step in steps]
