"""Evidence → Platform, from values alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rocmpip.machine.judge import judge, read_gfx, read_rocm
from rocmpip.machine.override import claimed_gfx, override_notes
from rocmpip.model.errors import BadConfiguration, RocmpipError, UsageError
from rocmpip.model.machine import Evidence, Gpu, Platform, RocmRoot
from rocmpip.model.rocm import parse_rocm

KNOWN = frozenset({"gfx906", "gfx90a", "gfx942", "gfx1031", "gfx1036", "gfx1100", "gfx1103", "gfx1151", "gfx1201"})
IGPUS = frozenset({"gfx1036", "gfx1103", "gfx1151"})

XTX = Gpu("gfx1100", pci_id="1002:744c", node=1, uuid="GPU-a1ffc9d1799c317f", location="0000:86:00.0")
RAPHAEL = Gpu("gfx1036", pci_id="1002:164e", node=2, location="0000:10:00.0")
HALO = Gpu("gfx1151", node=1)
NEW = Gpu("gfx132f", node=3, pci_id="1002:7fff")


def mi300(count: int, partitions: int = 1) -> tuple[Gpu, ...]:
    return tuple(
        Gpu("gfx942", node=2 + number, location=f"0000:{16 * (1 + number // partitions):02x}:00.{number % partitions}")
        for number in range(count)
    )


def verdict(*gpus: Gpu, env: dict[str, str] | None = None, **options: object) -> Platform:
    return judge(
        Evidence(gpus=gpus, env=env or {}),
        names=lambda gfx, pci_id: f"Radeon {gfx}" if gfx in KNOWN else "",
        known_gfx=KNOWN,
        integrated=lambda gfx, pci_id: gfx in IGPUS,
        **options,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("gpus", "targets", "told"),
    [
        ((), (), []),
        ((XTX,), ("gfx1100",), []),
        ((RAPHAEL, XTX), ("gfx1100",), ["integrated GPU gfx1036 (node 2) is left out"]),
        ((XTX, RAPHAEL), ("gfx1100",), ["integrated GPU gfx1036 (node 2) is left out"]),
        ((HALO,), ("gfx1151",), []),
        ((XTX, Gpu("gfx1201", node=2)), ("gfx1100", "gfx1201"), []),
        ((Gpu("gfx1201", node=1), replace(XTX, node=2)), ("gfx1201", "gfx1100"), []),
        (mi300(8), ("gfx942",), []),
        (mi300(16, 8), ("gfx942",), ["8 partitions of one gfx942 at 0000:10:00", "8 partitions of one gfx942 at 0000:20:00"]),
        ((NEW,), ("gfx132f",), ["gfx132f is not in the table of known GPUs"]),
        ((NEW, RAPHAEL), ("gfx132f",), ["gfx1036 (node 2) is left out", "gfx132f is not in the table"]),
        ((replace(NEW, integrated=True), XTX), ("gfx1100",), ["integrated GPU gfx132f (node 3) is left out"]),
    ],
)
def test_targets(gpus: tuple[Gpu, ...], targets: tuple[str, ...], told: list[str]) -> None:
    platform = verdict(*gpus)
    assert platform.gfx_targets == targets
    assert platform.gfx_source == ("detected" if gpus else "")
    assert len(platform.notes) == len(told)
    assert all(part in note for part, note in zip(told, platform.notes, strict=True))


def test_names_and_knowledge_are_filled_in() -> None:
    platform = verdict(RAPHAEL, replace(NEW, name="driver's word"))
    assert [(gpu.name, gpu.integrated, gpu.known) for gpu in platform.gpus] == [
        ("Radeon gfx1036", True, True),
        ("driver's word", False, False),
    ]


def test_two_dies_are_explained() -> None:
    dies = (Gpu("gfx90a", node=1, location="0000:93:00.0"), Gpu("gfx90a", node=2, location="0000:96:00.0"))
    platform = judge(Evidence(gpus=dies), names=lambda gfx, pci_id: "Instinct MI250X")
    assert platform.gfx_targets == ("gfx90a",)
    assert platform.notes == ("an MI250 card has two dies, and each counts as a GPU: 2 are seen",)


@pytest.mark.parametrize(
    ("env", "visible", "told"),
    [
        ({"ROCR_VISIBLE_DEVICES": "0"}, [0], "1 of 3 GPUs count (gfx1100 node 1)"),
        ({"HIP_VISIBLE_DEVICES": "2"}, [2], "1 of 3 GPUs count"),
        ({"CUDA_VISIBLE_DEVICES": "1,2"}, [1, 2], "2 of 3 GPUs count"),
        ({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "2"}, [0], "HIP_VISIBLE_DEVICES=0"),
        ({"ROCR_VISIBLE_DEVICES": "2,1", "HIP_VISIBLE_DEVICES": "0"}, [2], "HIP_VISIBLE_DEVICES=0: 1 of 2"),
        ({"ROCR_VISIBLE_DEVICES": "GPU-A1FFC9D1799C317F"}, [0], "gfx1100 node 1"),
        ({"ROCR_VISIBLE_DEVICES": ""}, [], "no GPU is visible"),
        ({"HIP_VISIBLE_DEVICES": "-1"}, [], "no GPU is visible"),
        ({"HIP_VISIBLE_DEVICES": "NoDevFiles"}, [], "'NoDevFiles' names no GPU"),
        ({"ROCR_VISIBLE_DEVICES": "1,7,0"}, [1], "'7' names no GPU"),
        ({"ROCR_VISIBLE_DEVICES": " 0 , 0 , 1 "}, [0, 1], "2 of 3"),
        ({"CUDA_VISIBLE_DEVICES": "GPU-00000000-dead"}, [], "names no GPU"),
        ({"ROCR_VISIBLE_DEVICES": "0,1,2"}, [0, 1, 2], None),
    ],
)
def test_visible_devices(env: dict[str, str], visible: list[int], told: str | None) -> None:
    platform = verdict(XTX, Gpu("gfx1201", node=2), Gpu("gfx942", node=3), env=env)
    assert [index for index, gpu in enumerate(platform.gpus) if gpu.visible] == visible
    assert platform.gfx_targets == tuple(platform.gpus[index].gfx for index in visible)
    assert (told in " | ".join(platform.notes)) if told else platform.notes == ()


def test_a_hidden_card_leaves_the_igpu() -> None:
    assert verdict(XTX, RAPHAEL, env={"HIP_VISIBLE_DEVICES": "1"}).gfx_targets == ("gfx1036",)


@given(st.text(max_size=40), st.text(max_size=40))
def test_visible_devices_never_fail(rocr: str, hip: str) -> None:
    platform = verdict(XTX, RAPHAEL, env={"ROCR_VISIBLE_DEVICES": rocr, "HIP_VISIBLE_DEVICES": hip})
    assert set(platform.gfx_targets) <= {"gfx1100", "gfx1036"}


@pytest.mark.parametrize(
    ("env", "targets", "source"),
    [
        ({"PYTORCH_ROCM_ARCH": "gfx90a;gfx942"}, ("gfx90a", "gfx942"), "PYTORCH_ROCM_ARCH"),
        ({"PYTORCH_ROCM_ARCH": "gfx90a:sramecc+:xnack-"}, ("gfx90a",), "PYTORCH_ROCM_ARCH"),
        ({"GPU_ARCHS": "gfx942,gfx90a gfx942"}, ("gfx942", "gfx90a"), "GPU_ARCHS"),
        ({"GPU_ARCHS": "native", "HIP_ARCHS": "gfx1100"}, ("gfx1100",), "HIP_ARCHS"),
        ({"HIP_ARCHITECTURES": "gfx1100", "PYTORCH_ROCM_ARCH": ""}, ("gfx1100",), "HIP_ARCHITECTURES"),
        ({"PYTORCH_ROCM_ARCH": "sm_90"}, (), ""),
        ({"PYTORCH_ROCM_ARCH": "all gfx90a"}, ("gfx90a",), "PYTORCH_ROCM_ARCH"),
        ({"GPU_ARCHS": "native"}, (), ""),
    ],
)
def test_exported_variables_count_where_no_gpu_is_visible(env: dict[str, str], targets: tuple[str, ...], source: str) -> None:
    platform = verdict(env=env)
    assert (platform.gfx_targets, platform.gfx_source) == (targets, source)
    hidden = verdict(XTX, env={**env, "ROCR_VISIBLE_DEVICES": ""})
    assert (hidden.gfx_targets, hidden.gfx_source) == (targets, source)


def test_exported_variables_do_not_count_beside_a_gpu() -> None:
    platform = verdict(XTX, env={"PYTORCH_ROCM_ARCH": "gfx90a"})
    assert platform.gfx_targets == ("gfx1100",)
    assert platform.notes == ("PYTORCH_ROCM_ARCH says gfx90a, but gfx1100 is seen, and that counts; --gfx chooses",)
    assert verdict(XTX, env={"PYTORCH_ROCM_ARCH": "gfx90a;gfx1100"}).notes == ()


@pytest.mark.parametrize(
    ("asked", "targets"),
    [
        (("gfx942",), ("gfx942",)),
        (("gfx942", "gfx90a"), ("gfx942", "gfx90a")),
        (("gfx942;gfx90a, gfx942",), ("gfx942", "gfx90a")),
        (("gfx90a:sramecc+:xnack-",), ("gfx90a",)),
        (("GFX1100",), ("gfx1100",)),
        (("gfx11-generic",), ("gfx11-generic",)),
        (("none",), ()),
    ],
)
def test_asked_targets_count_over_all(asked: tuple[str, ...], targets: tuple[str, ...]) -> None:
    platform = verdict(XTX, env={"PYTORCH_ROCM_ARCH": "gfx906"}, gfx=asked, gfx_source="ROCMPIP_GFX")
    assert (platform.gfx_targets, platform.gfx_source) == (targets, "ROCMPIP_GFX")


def test_asking_for_what_is_not_there_is_told() -> None:
    assert verdict(XTX, gfx=("gfx90a",)).notes == ("--gfx says gfx90a; seen here: gfx1100",)
    assert verdict(XTX, RAPHAEL, gfx=("gfx1036",)).notes == ()


@pytest.mark.parametrize("value", ["sm_90", "gfx", "gfx9", "gfx90z", "gfx90a:fast+", "native", "none gfx90a", "gfx000", "\0"])
@pytest.mark.parametrize(
    ("source", "kind"),
    [("--gfx", UsageError), ("ROCMPIP_GFX", BadConfiguration), ("/etc/rocmpip/config.toml", BadConfiguration)],
)
def test_a_bad_target_is_refused_by_name(value: str, source: str, kind: type[RocmpipError]) -> None:
    with pytest.raises(kind) as refused:
        verdict(XTX, gfx=(value,), gfx_source=source)
    assert refused.value.message.startswith(f"{source}: ")
    assert refused.value.hint


def test_nothing_asked_is_nothing() -> None:
    assert read_gfx((), "--gfx") is None
    assert read_gfx((" ; ,",), "--gfx") is None


@given(st.text(max_size=30))
def test_asked_targets_are_read_or_refused(value: str) -> None:
    try:
        found = read_gfx((value,), "--gfx")
    except UsageError as refused:
        assert "--gfx" in refused.message
    else:
        assert found is None or all(name.startswith("gfx") for name in found)


ROOT = RocmRoot(parse_rocm("6.4.1-83"), "/opt/rocm", "/opt/rocm/.info/version")
OLD = RocmRoot(parse_rocm("6.2.4-1"), "/opt/rocm-6.2.4", "/opt/rocm-6.2.4/.info/version")


@pytest.mark.parametrize(
    ("asked", "version", "path", "rows"),
    [
        ("", "6.4.1", "/opt/rocm", ["6.4.1", "6.2.4"]),
        ("6.2", "6.2.4", "/opt/rocm-6.2.4", ["6.2.4", "6.4.1"]),
        ("6.2.4", "6.2.4", "/opt/rocm-6.2.4", ["6.2.4", "6.4.1"]),
        ("6.4.0", "6.4.0", "", ["6.4.0", "6.4.1", "6.2.4"]),
        ("rocm7.2", "7.2", "", ["7.2", "6.4.1", "6.2.4"]),
        ("10.1.0a20260828", "10.1.0", "", ["10.1.0", "6.4.1", "6.2.4"]),
    ],
)
def test_rocm(asked: str, version: str, path: str, rows: list[str]) -> None:
    platform = judge(Evidence(roots=(ROOT, OLD)), rocm=asked, rocm_source="ROCMPIP_ROCM")
    assert (str(platform.rocm), platform.rocm_root) == (version, path)
    assert [str(root.version) for root in platform.roots] == rows
    assert ("ROCMPIP_ROCM" in platform.roots[0].source) == bool(asked)
    assert platform.state == "rocm"
    # The variable overrides detection; the option asks for another ROCm than the one that is here.
    assert platform.only_named is None
    option = judge(Evidence(roots=(ROOT, OLD)), rocm=asked, rocm_source="--rocm")
    assert option.only_named == (None if path else platform.rocm)
    told = [note for note in platform.notes if "is not installed here" in note]
    assert len(told) == (not path)
    assert all("6.4.1 in /opt/rocm" in note and f"ROCm {version} is named by ROCMPIP_ROCM" in note for note in told)


def test_no_rocm_by_request() -> None:
    platform = judge(Evidence(roots=(ROOT,)), rocm="none")
    assert (platform.rocm, platform.rocm_root, platform.state) == (None, "", "none")
    assert platform.roots == (ROOT,)


def test_an_override_without_any_root_is_a_row() -> None:
    platform = judge(Evidence(), rocm="6.4", rocm_source="ROCMPIP_ROCM")
    assert platform.roots == (RocmRoot(parse_rocm("6.4"), "", "ROCMPIP_ROCM", "override"),)
    # The user's word for what the probe does not see: no other ROCm is there that could be taken for it.
    assert platform.only_named is None and platform.notes == ()


@pytest.mark.parametrize("value", ["7", "latest", "6.x", "6.4garbage", "6.4 7.2", "-1.2", "2024.1", "6.4\n;", "٦.٤", "v"])
@pytest.mark.parametrize(("source", "kind"), [("--rocm", UsageError), ("ROCMPIP_ROCM", BadConfiguration)])
def test_a_bad_rocm_is_refused_by_name(value: str, source: str, kind: type[RocmpipError]) -> None:
    with pytest.raises(kind, match=source):
        judge(Evidence(), rocm=value, rocm_source=source)


@given(st.text(max_size=30))
def test_asked_rocm_is_read_or_refused(value: str) -> None:
    try:
        version = read_rocm(value, "--rocm")
    except UsageError as refused:
        assert refused.hint
    else:
        assert len(version.release) >= 2


@pytest.mark.parametrize(
    ("value", "gfx"),
    [("11.0.0", "gfx1100"), ("10.3.0", "gfx1030"), ("9.0.10", "gfx90a"), ("9.4.2", "gfx942"), (" 11.5.1 ", "gfx1151")],
)
def test_what_an_override_claims(value: str, gfx: str) -> None:
    assert claimed_gfx(value) == gfx


@pytest.mark.parametrize("value", ["", "11", "11.0", "11.0.x", "11.0.0.0", "11.0.99", "gfx1100", "-1.0.0", "1" * 500])
def test_an_override_that_claims_nothing(value: str) -> None:
    with pytest.raises(ValueError, match="is n"):
        claimed_gfx(value)


@pytest.mark.parametrize(
    ("seen", "value", "told"),
    [
        ("gfx1031", "10.3.0", "workaround"),
        ("gfx1100", "11.0.0", "changes nothing"),
        ("gfx1103", "11.0.0", "hang"),
        ("gfx1151", "11.0.0", "workaround"),
        ("gfx1010", "10.3.0", "unsafe"),
        ("gfx942", "11.0.0", "another family"),
        ("gfx1031", "banana", "the runtime will refuse it"),
    ],
)
def test_the_override_is_told_and_changes_no_target(seen: str, value: str, told: str) -> None:
    platform = verdict(Gpu(seen, node=1), env={"HSA_OVERRIDE_GFX_VERSION": value})
    assert platform.gfx_targets == (seen,)
    assert told in platform.notes[0]


def test_an_override_for_one_gpu_is_told_too() -> None:
    assert "HSA_OVERRIDE_GFX_VERSION_1=10.3.0" in override_notes({"HSA_OVERRIDE_GFX_VERSION_1": "10.3.0"}, ["gfx1031"])[0]


def test_an_override_without_a_gpu_makes_no_target() -> None:
    platform = verdict(env={"HSA_OVERRIDE_GFX_VERSION": "11.0.0"})
    assert platform.gfx_targets == ()
    assert "no target by itself" in platform.notes[0]


def test_states() -> None:
    assert verdict().state == "none"
    assert verdict(XTX).state == "gpu"
    assert judge(Evidence(roots=(ROOT,))).state == "rocm"


def test_the_evidence_is_handed_on() -> None:
    evidence = Evidence(
        driver="6.12.12",
        driver_source="/sys/module/amdgpu/version",
        kernel="6.8.0",
        kfd="denied",
        wsl=True,
        container=True,
        container_source="/.dockerenv",
        notes=("odd",),
    )
    platform = judge(evidence)
    assert (platform.driver, platform.kernel, platform.kfd, platform.container_source) == (
        "6.12.12",
        "6.8.0",
        "denied",
        "/.dockerenv",
    )
    assert platform.wsl and platform.container and platform.notes == ("odd",)
