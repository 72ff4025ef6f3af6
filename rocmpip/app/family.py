"""The torch family in one environment: what is held, what is wrong, what is chosen, and the files that only we can serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from rocmpip.model.filenames import version_of
from rocmpip.model.packages import Absent
from rocmpip.model.plan import FamilyChoice
from rocmpip.model.recipe import Conflict
from rocmpip.model.rocm import rocm_of_label
from rocmpip.model.routing import Route, Synthetic
from rocmpip.plan.asked import Asked

if TYPE_CHECKING:
    from rocmpip.app.context import Context
    from rocmpip.app.policy import Pages


def installed_family(context: Context) -> dict[str, str]:
    """Installed torch-family distributions: name → version."""
    return {dist.name: dist.version for dist in context.installed if context.catalogue.is_family(dist.name)}


def hip_of_source_build(context: Context) -> bool:
    """True when the installed torch has no label but says HIP in its version.py: built from source for ROCm."""
    for folder in context.target.site_packages:
        path = Path(folder) / "torch" / "version.py"
        try:
            with path.open(encoding="utf-8", errors="replace") as stream:
                text = stream.read(64 * 1024)
        except OSError:
            continue
        for line in text.splitlines():
            key, _, value = line.partition("=")
            if key.split(":")[0].strip() == "hip":
                return value.strip() not in ("None", "''", '""', "")
    return False


def build_fits(context: Context, version: str) -> tuple[bool, str]:
    """(fits, why not) for an installed torch, from its label alone: ROCm label of this ROCm, with kernels for every target."""
    rocm = rocm_of_label(version)
    if rocm is None:
        if "+" not in version and hip_of_source_build(context):
            return True, ""
        from rocmpip.plan.assemble import build_words

        return False, f"torch {version} is {build_words(version)}"
    missing = [gfx for gfx in context.platform.gfx_targets if context.catalogue.lacks_kernels(version, gfx)]
    if missing:
        return False, f"torch {version} has no kernels for {', '.join(missing)}"
    return True, ""


def satisfied(version: str, specifier: SpecifierSet) -> bool:
    try:
        return specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False


def changes_asked(context: Context, asked: Asked) -> bool:
    """True when the user's own words ask for another torch than the installed one."""
    request = context.request
    installed = context.installed_versions
    said = asked.family if asked.said is None else asked.said
    if "torch" in said and (request.force_reinstall or request.upgrade):
        return True
    return any(
        name in installed and not satisfied(installed[name], specifier)
        for name, specifier in (*said.items(), *asked.family_constraints.items())
    )


def held_family(context: Context, asked: Asked) -> dict[str, str]:
    """The installed family that this install must not change: exact versions, {} when there is none or it is wrong.

    A torch labelled for another ROCm than the machine's is only held when the choice would take the same one again:
    ``confirm_held`` asks that, because it needs the index.
    """
    family = installed_family(context)
    torch = family.get("torch", "")
    if not torch or context.platform.state != "gpu" or changes_asked(context, asked):
        return {}
    fits, _ = build_fits(context, torch)
    if not fits:
        return {}
    rocm = rocm_of_label(torch)
    return {
        name: version
        for name, version in family.items()
        if name == "torch" or rocm is None or rocm_of_label(version) in (rocm, None)
    }


def same_rocm(context: Context, version: str) -> bool:
    """True when a torch label names the machine's own ROCm (major.minor), or there is nothing to compare."""
    rocm = rocm_of_label(version)
    return rocm is None or context.platform.rocm is None or rocm.minor == context.platform.rocm.minor


def confirm_held(context: Context, asked: Asked, client: Pages, held: Mapping[str, str]) -> dict[str, str]:
    """``held`` if the choice would take the installed torch again, else {} (it is for another ROCm than it should be)."""
    torch = held.get("torch", "")
    if not torch or same_rocm(context, torch):
        return dict(held)
    from rocmpip.model.errors import NetworkError, NoPlan

    public = torch.partition("+")[0]
    try:
        again = choose(context, asked, client, extra={"torch": SpecifierSet(f"=={public}")}, held={}, conflicts=())
    except (NoPlan, NetworkError):
        return dict(held)
    return dict(held) if Version(again.pins.get("torch", "0")) == Version(torch) else {}


def choose(
    context: Context,
    asked: Asked,
    client: Pages,
    *,
    extra: Mapping[str, SpecifierSet],
    held: Mapping[str, str],
    conflicts: Sequence[Conflict],
) -> FamilyChoice:
    """The family choice for this run. Raises NoPlan(40) with the table of what was tried, NetworkError(42)."""
    from rocmpip.plan.choose import choose_family

    requirements: dict[str, SpecifierSet] = {"torch": SpecifierSet()}
    for table in (asked.family, asked.family_constraints, extra):
        for name, specifier in table.items():
            if table is not asked.family_constraints or name == "torch":
                requirements[name] = requirements.get(name, SpecifierSet()) & specifier
    return choose_family(
        platform=context.platform,
        python_tags=context.tags,
        requirements=requirements,
        conflicts=tuple(conflicts),
        catalogue=context.catalogue,
        candidates=client,
        channel=context.settings.channel,
        held=dict(held),
        allow_override=context.settings.hsa_override,
        pre=context.request.pre,
    )


def alias_for(name: str, choice: FamilyChoice) -> Synthetic | None:
    """The alias wheel that stands for PyPI's ``triton`` where the family's triton has another name; None otherwise."""
    if name != "triton" or "triton" in choice.pins:
        return None
    real = next((candidate for candidate in ("triton-rocm", "pytorch-triton-rocm") if candidate in choice.pins), "")
    if not real:
        return None
    from rocmpip.router.alias import alias_wheel

    version = choice.pins[real]
    return alias_wheel("triton", version.partition("+")[0], f"{real}=={version}")


def rocm_style(context: Context, choice: FamilyChoice | None) -> str:
    """The style of the chosen index: its ``rocm`` is split by GPU family on AMD's older ones, by device on all others."""
    if choice is None:
        return "thin"
    return next((family.style for family in context.catalogue.families if family.name == choice.family), "thin")


def rocm_environment(context: Context, choice: FamilyChoice | None) -> dict[str, str]:
    """What a build of AMD's ``rocm`` needs so that it does not look at the machine. Also where the choice is still to come."""
    from rocmpip.plan.family import rocm_build_env

    return rocm_build_env(context.platform.gfx_targets, style=rocm_style(context, choice))


def rocm_page(choice: FamilyChoice, context: Context, client: Pages) -> Route:
    """``rocm`` is an sdist whose setup.py looks at the GPU: its page holds our static metadata, narrowed to the target GPUs."""
    from rocmpip.router.alias import virtual_wheel

    page = client.page(choice.index_url, "rocm")
    if isinstance(page, Absent):
        return Route("rocm", "family", because=f"{choice.family} has no rocm package")
    pin = choice.pins.get("rocm", "")
    synthetic: list[Synthetic] = []
    for version in sorted({v for file in page.files if (v := version_of(file.filename)) is not None}):
        if pin and version != Version(pin):
            continue
        if not pin and (version.is_prerelease or version.release[:2] != choice.rocm.minor):
            continue
        synthetic.append(virtual_wheel("rocm", str(version), rocm_static(version, choice, context, client)))
    return Route("rocm", "family", synthetic=tuple(synthetic), because="static metadata, device packages of this GPU only")


def rocm_static(version: Version, choice: FamilyChoice, context: Context, client: Pages) -> bytes:
    """The metadata of ``rocm`` at ``version`` for the target GPUs, without a build of it."""
    from rocmpip.plan.family import rocm_metadata

    targets = context.platform.gfx_targets
    # A post-release may mend rocm alone: then its parts have no release of that version.
    has = _parts(choice, targets, client) if version.is_postrelease else None
    return rocm_metadata(str(version), gfx=targets, style=rocm_style(context, choice), has=has)


def _parts(choice: FamilyChoice, targets: Sequence[str], client: Pages) -> dict[str, tuple[str, ...]]:
    """Part of the SDK → versions that the index holds."""
    names = ["rocm-sdk-core", "rocm-sdk-libraries", "rocm-sdk-devel", *(f"rocm-sdk-device-{gfx}" for gfx in targets)]
    pages = {name: client.page(choice.index_url, name) for name in names}
    return {
        name: tuple(str(version) for file in page.files if (version := version_of(file.filename)) is not None)
        for name, page in pages.items()
        if not isinstance(page, Absent)
    }
