"""The catalogue's data, and a user's files over it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rocmpip.catalogue import load, rows, tables
from rocmpip.catalogue.roots import roots
from rocmpip.model.errors import BadConfiguration
from rocmpip.model.rocm import parse_rocm
from rocmpip.model.settings import Settings

CATALOGUE = load()
FAMILIES = {family.name: family for family in CATALOGUE.families}


@pytest.mark.parametrize("filename", sorted(tables.FILES))
def test_shipped_rows_are_sound_and_have_a_source(filename: str) -> None:
    layer = rows.shipped(filename)
    sections = tables.FILES[filename]
    assert set(layer.tables) == {section.name for section in sections}
    for section in sections:
        problems: list[str] = []
        found = rows.merge(section, [rows.Layer("empty", {}), layer], problems)
        assert problems == []
        assert all(row["source"] for row in found.values())


# index → torch, from pytorch's own build matrix
MATRIX = {
    "5.3": "2.0.0 2.0.1", "5.4.2": "2.0.0 2.0.1", "5.5": "2.1.0 2.1.1 2.1.2",
    "5.6": "2.1.0 2.1.1 2.1.2 2.2.0 2.2.1 2.2.2", "5.7": "2.2.0 2.2.1 2.2.2 2.3.0 2.3.1",
    "6.0": "2.3.0 2.3.1 2.4.0 2.4.1", "6.1": "2.4.0 2.4.1 2.5.0 2.5.1 2.6.0", "6.2": "2.5.0 2.5.1",
    "6.2.4": "2.6.0 2.7.0 2.7.1", "6.3": "2.7.0 2.7.1 2.8.0 2.9.0 2.9.1", "6.4": "2.8.0 2.9.0 2.9.1", "7.0": "2.10.0",
    "7.1": "2.10.0 2.11.0 2.12.0 2.12.1 2.13.0", "7.2": "2.11.0 2.12.0 2.12.1 2.13.0", "7.14": "2.14.0 2.14.1",
}  # fmt: skip


@pytest.mark.parametrize("rocm", sorted(MATRIX))
def test_pytorch_indexes(rocm: str) -> None:
    family = FAMILIES[f"pytorch.org rocm{rocm}"]
    assert family.url == f"https://download.pytorch.org/whl/rocm{rocm}/"
    assert family.torch == tuple(MATRIX[rocm].split())
    numbers = parse_rocm(rocm).minor
    assert family.triton == ("triton-rocm" if numbers >= (7, 0) else "pytorch-triton-rocm")
    assert family.style == ("thin" if numbers >= (7, 14) else "fat")


def test_pairings_agree_with_the_indexes() -> None:
    for rocm, torches in MATRIX.items():
        for torch in torches.split():
            pairing = CATALOGUE.pairing(f"{torch}+rocm{rocm}")
            assert pairing is not None and rocm in pairing.rocm
    for torch, pairing in CATALOGUE.pairings.items():
        minor = int(torch.split(".")[1])
        assert all(version.startswith(f"0.{minor + 15}.") for version in pairing.torchvision)
        assert pairing.torchaudio[0].startswith("2.11." if minor >= 12 else f"2.{minor}.")


def test_amd_indexes() -> None:
    assert FAMILIES["AMD 7.14 multi-arch"].url == "https://repo.amd.com/rocm/whl-multi-arch/"
    assert FAMILIES["AMD 10.x"].url == "https://stable.repo.amd.com/rocm/whl-next/"
    assert FAMILIES["AMD nightly 10.x"].url == "https://nightly.repo.amd.com/rocm/whl-next/"
    per_family = FAMILIES["AMD per-family"]
    assert CATALOGUE.index_url(per_family, ["gfx1100", "gfx1103"]) == ("https://repo.amd.com/rocm/whl/gfx110X-all/",)
    assert CATALOGUE.index_url(per_family, ["gfx1100", "gfx942"]) == ()


# -- which indexes come into question ---------------------------------------------------------------------------------


def names(channel: str, minor: tuple[int, int], exact: str = "") -> list[str]:
    return [f.name for f in CATALOGUE.families_for(channel, minor, parse_rocm(exact) if exact else None)]


def test_patch_indexes_come_before_the_plain_one() -> None:
    assert names("stable", (6, 2), "6.2") == ["pytorch.org rocm6.2.4", "pytorch.org rocm6.2"]
    assert names("stable", (5, 4), "5.4.2") == ["pytorch.org rocm5.4.2"]


def test_not_in_the_table_does_not_mean_absent() -> None:
    assert names("stable", (7, 3), "7.3") == ["pytorch.org rocm7.3"]
    assert names("stable", (7, 2), "7.2.1") == ["pytorch.org rocm7.2.1", "pytorch.org rocm7.2"]
    assert names("stable", (7, 2), "7.2.0") == ["pytorch.org rocm7.2"]
    assert names("stable", (10, 0), "10.0") == ["pytorch.org rocm10.0", "AMD 10.x"]
    assert names("stable", (11, 0), "11.0") == ["pytorch.org rocm11.0", "AMD 10.x"]
    unlisted = CATALOGUE.unlisted("stable", parse_rocm("7.3"))
    assert unlisted is not None and unlisted.url.endswith("/whl/rocm7.3/") and not unlisted.listed
    assert unlisted.style == "fat" and CATALOGUE.unlisted("stable", parse_rocm("10.2")).style == "thin"  # type: ignore[union-attr]


def test_channels() -> None:
    assert names("test", (7, 14)) == ["pytorch.org test rocm7.14"]
    assert names("nightly", (10, 0))[0] == "pytorch.org nightly rocm10.0"


# -- kernels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "gfx", "lacks"),
    [
        ("2.9.1+rocm6.4", "gfx90a", False),
        ("2.9.1+rocm6.4", "gfx906", True),
        ("2.9.1+rocm6.3", "gfx906", False),
        ("2.9.1+rocm6.4", "gfx1151", True),
        ("2.10.0+rocm7.0", "gfx1151", False),
        ("2.13.0+rocm7.2", "gfx1103", True),
        ("2.14.1+rocm7.14", "gfx1103", False),
        ("2.14.1+rocm7.14", "gfx1031", True),
        ("2.12.0+rocm7.14.0", "gfx1031", False),
        ("2.12.0+rocm10.0.0", "gfx906", True),
        ("2.5.1+rocm6.2", "gfx1101", True),
        ("2.6.0+rocm6.2.4", "gfx1101", False),
        ("2.7.1+rocm6.2.4", "gfx1201", False),
        ("2.3.1+rocm5.7", "gfx942", True),
        ("2.9.1+rocm7.10.0", "gfx1031", False),
        ("2.9.1+cu128", "gfx90a", False),
        ("2.15.0.dev20261121+rocm7.14", "gfx942", False),
    ],
)
def test_lacks_kernels(version: str, gfx: str, lacks: bool) -> None:
    assert CATALOGUE.lacks_kernels(version, gfx) is lacks


@pytest.mark.parametrize(
    ("driver", "span"),
    [
        ("5.7.1", ((5, 5), (6, 1))),
        ("6.1.0", ((5, 7), (6, 3))),
        ("30.20.1", ((6, 3), (7, 2))),
        ("6.10.5", None),
        ("", None),
        ("x", None),
    ],
)
def test_driver_windows(driver: str, span: tuple[tuple[int, int], tuple[int, int]] | None) -> None:
    window = CATALOGUE.window(driver)
    assert (None if window is None else (window.user_from, window.user_to)) == span


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    """nvidia-cublas-cu11 nvidia-cublas-cu12 nvidia-cublas nvidia_cuda_runtime_cu12 nvidia-cudnn-cu12 nvidia-nccl-cu12 nvidia-nccl-cu13
    nvidia-nvtx nvidia-nvjitlink-cu12 nvidia-nvshmem-cu13 nvidia-cusparselt-cu13 nvidia-cufile-cu12 nvidia-curand cuda-toolkit
    cuda-bindings cuda-python cupy-cuda12x faiss-gpu-cu12 onnxruntime-gpu tensorrt tensorrt-cu12-libs jax-cuda12-plugin""".split(),
)
def test_cuda_is_forbidden_with_a_reason(name: str) -> None:
    assert CATALOGUE.forbidden(name)
    assert not CATALOGUE.is_family(name)


@pytest.mark.parametrize(
    "name",
    """nvidia-ml-py nvidia_ml_py pynvml torch triton numpy cupy-rocm-7-0 hip-python bitsandbytes jax-rocm7-plugin rocm cudagraphs
    onnxruntime onnxruntime-rocm cuda-quantum torch-scatter barracuda""".split(),
)
def test_harmless_names_are_not(name: str) -> None:
    assert CATALOGUE.forbidden(name) is None


def test_what_stands_for_a_cuda_name() -> None:
    assert CATALOGUE.instead("cupy-cuda12x") == "cupy-rocm-7-0"
    assert CATALOGUE.instead("onnxruntime-gpu") == "onnxruntime-migraphx"
    assert CATALOGUE.instead("numpy") == ""


def test_family_names() -> None:
    for name in """torch Torch torchvision torchaudio triton triton-rocm pytorch-triton-rocm rocm rocm-sdk-core rocm-sdk-devel
    rocm-sdk-libraries-gfx110x-all rocm_sdk_device_gfx942 amd-torch-device-gfx942 amd-torchvision-device-gfx1100""".split():
        assert CATALOGUE.is_family(name), name
    for name in """torchao torchmetrics torch-scatter torch_geometric xformers apex pytorch-lightning rocm-bootstrap amd-aiter
    triton-kernels rocmpip""".split():
        assert not CATALOGUE.is_family(name), name
    assert [CATALOGUE.member(n).role for n in ("torch", "torchvision", "triton", "rocm", "rocm-sdk-device-gfx90a")] == [  # type: ignore[union-attr]
        "torch", "pair", "triton", "sdk", "device",
    ]  # fmt: skip


def test_placeholders_of_the_public_index_are_known() -> None:
    for name in ("rocm", "rocm-sdk-core", "rocm-sdk-device-gfx942", "amd-torch-device-gfx942", "pytorch-triton-rocm"):
        assert "placeholder" in CATALOGUE.placeholder(name), name
    assert CATALOGUE.placeholder("torch") == CATALOGUE.placeholder("numpy") == ""


def test_the_rocm_that_pip_fails_on() -> None:
    pin = CATALOGUE.replaced("rocm", "7.14.0")
    assert pin is not None and pin.use == "7.14.0.post1" and "recursion" in pin.reason
    assert CATALOGUE.replaced("rocm", "7.14.1") is None


# -- mirrors ----------------------------------------------------------------------------------------------------------


def test_mirrors_take_every_place() -> None:
    catalogue = load(
        Settings(
            pytorch_url="http://127.0.0.1:1/pt",
            amd_7_url="http://127.0.0.1:2/rocm/whl-multi-arch/",
            amd_10_url="http://127.0.0.1:3/next",
        )
    )
    urls = {family.name: family.url for family in catalogue.families}
    assert urls["pytorch.org rocm6.4"] == "http://127.0.0.1:1/pt/whl/rocm6.4/"
    assert urls["pytorch.org nightly rocm7.14"] == "http://127.0.0.1:1/pt/whl/nightly/rocm7.14/"
    assert urls["AMD 7.14 multi-arch"] == "http://127.0.0.1:2/rocm/whl-multi-arch/"
    assert urls["AMD per-family"] == "http://127.0.0.1:2/rocm/whl/{family}/"
    assert urls["AMD 10.x"] == urls["AMD nightly 10.x"] == "http://127.0.0.1:3/next/"
    unlisted = catalogue.unlisted("stable", parse_rocm("7.3"))
    assert unlisted is not None and unlisted.url == "http://127.0.0.1:1/pt/whl/rocm7.3/"
    # Nothing escapes to a public host.
    asked = [family.url for family in catalogue.families if family.ask]
    assert all(url == "" or "127.0.0.1" in url for url in asked)


def test_streams_are_host_names_and_credentials_stay() -> None:
    assert roots(amd_10="https://me:pw@stable.repo.example/x/")["amd_10_nightly"] == "https://me:pw@nightly.repo.example/x/"
    assert roots(amd_7="https://mirror.example/seven")["amd_7_families"] == ""


# -- a user's files ---------------------------------------------------------------------------------------------------


def test_a_folder_of_files_merges_in_order(tmp_path: Path) -> None:
    (tmp_path / "10-site.toml").write_text(
        """
[family."site torch"]
publisher = "pytorch.org"
channel = "stable"
rocm = "7.3"
style = "fat"
url = "https://wheels.site.example/rocm7.3"
source = "our build farm"
[family."AMD 10.x"]
ask = false
[coverage."pytorch.org 6.4"]
gfx = "gfx90a"
[forbidden.evil]
reason = "site policy"
source = "policy"
[pairing."2.9.1"]
remove = true
""",
        encoding="utf-8",
    )
    (tmp_path / "20-more.toml").write_text('[forbidden.evil]\nreason = "newer policy"\n', encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not TOML at all [", encoding="utf-8")
    catalogue = load(Settings(catalogue_path=(str(tmp_path),)))
    assert [f.name for f in catalogue.families_for("stable", (7, 3))] == ["site torch"]
    assert catalogue.families_for("stable", (7, 3))[0].url == "https://wheels.site.example/rocm7.3/"
    assert [f.name for f in catalogue.families_for("stable", (10, 0))] == []
    assert catalogue.lacks_kernels("2.9.1+rocm6.4", "gfx942") and not catalogue.lacks_kernels("2.9.1+rocm6.4", "gfx90a")
    assert catalogue.forbidden("evil") == "newer policy"
    assert catalogue.pairing("2.9.1") is None and catalogue.pairing("2.9.0") is not None


def test_all_faults_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    one.write_text('[family."x"]\nurl = "ftp://x"\nstyle = "thick"\nrocm = "six"\n[colours]\nred = 1\n', encoding="utf-8")
    two.write_text('coverage = 3\n[pairing."two"]\ntriton = "x y"\n[driver."7.0"]\nbinding = "no"\n', encoding="utf-8")
    with pytest.raises(BadConfiguration) as caught:
        load(Settings(catalogue_path=(str(one), str(two))))
    error = caught.value
    assert error.exit_code == 45 and "docs/reference/catalogue.md" in error.hint
    text = "\n".join(error.details)
    for word in (
        "family.x.url must", "family.x.style must be one of fat", "family.x.rocm must be a ROCm version", "family.x is new and needs channel",
        "[colours] is not a section", "coverage must be a table", 'pairing.two: the key', "driver.7.0.binding must be true or false",
    ):  # fmt: skip
        assert word in text, word
    assert all(re.match(r"\S*(one|two)\.toml: ", line) for line in error.details)


@pytest.mark.parametrize("content", [b"[family", b"\xff\xfe\x00", b"a = " + b"[" * 5000])
def test_files_that_cannot_be_read_are_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    missing = str(tmp_path / "missing.toml")
    with pytest.raises(BadConfiguration) as caught:
        load(Settings(catalogue_path=(str(path), missing)))
    assert len(caught.value.details) == 2
    assert str(path) in caught.value.details[0] and missing in caught.value.details[1]
