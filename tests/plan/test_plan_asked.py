"""A request's lines go to the right hands."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from packaging.specifiers import SpecifierSet

from rocmpip.model.errors import NoPlan
from rocmpip.model.packages import RequirementLine
from rocmpip.model.request import IndexOptions, Request
from rocmpip.model.rocm import cuda_label
from rocmpip.plan.asked import Asked, file_of, marker_holds, name_of_line, read_filename, sort_request

LINUX = {"sys_platform": "linux", "platform_system": "Linux", "python_version": "3.12", "python_full_version": "3.12.1"}


def line(text: str, **more: object) -> RequirementLine:
    return RequirementLine(text=text, origin="command line", **more)  # type: ignore[arg-type]


def sort(*lines: RequirementLine, constraints: tuple[RequirementLine, ...] = (), cuda: bool = False) -> Asked:
    family = {"torch", "torchvision", "torchaudio", "triton"}
    is_family: Callable[[str], bool] = family.__contains__
    return sort_request(
        Request("install", tuple(lines), constraints, IndexOptions(), ()),
        LINUX,
        is_family=is_family,
        has_recipe=lambda name: name in ("flash-attn", "deepspeed"),
        forbidden=lambda name: "it is CUDA's" if name.startswith("nvidia-cu") else None,
        cuda=cuda,
    )


def test_family_recipes_and_the_rest_are_told_apart() -> None:
    asked = sort(
        line("torch>=2.6", name="torch", specifier=">=2.6", extras=("opt-einsum",)),
        line("torch<3", name="torch", specifier="<3"),
        line("flash-attn==2.8.3", name="flash-attn", specifier="==2.8.3"),
        line("torchmetrics", name="torchmetrics"),
        constraints=(
            line("torch!=2.7.0", name="torch", specifier="!=2.7.0", constraint=True),
            line("torchaudio<2.9", name="torchaudio", specifier="<2.9", constraint=True),
        ),
    )
    assert asked.family == {"torch": SpecifierSet(">=2.6,<3,!=2.7.0")}
    assert asked.family_constraints == {"torchaudio": SpecifierSet("<2.9")}
    assert asked.extras == {"torch": ("opt-einsum",)}
    assert asked.recipes == {"flash-attn": SpecifierSet("==2.8.3")}
    assert [one.name for one in asked.plain] == ["torch", "torch", "flash-attn", "torchmetrics"]


def test_a_false_marker_takes_a_line_out_of_everything() -> None:
    asked = sort(
        line('torch>=2.6 ; sys_platform == "win32"', name="torch", specifier=">=2.6", marker='sys_platform == "win32"')
    )
    assert not asked.family and not asked.plain and len(asked.off) == 1


def test_files_named_by_url_or_path_are_read() -> None:
    asked = sort(
        line("./pkg-1.0-py3-none-any.whl", path="/x/pkg-1.0-py3-none-any.whl"),
        line(
            "torch @ https://h.example/torch-2.9.1%2Brocm6.4-cp312-cp312-linux_x86_64.whl",
            name="torch",
            url="https://h.example/torch-2.9.1%2Brocm6.4-cp312-cp312-linux_x86_64.whl",
        ),
        line("-e .", path="/x", editable=True),
        line("git+https://h.example/x.git", url="git+https://h.example/x.git"),
    )
    assert [(one.name, one.version) for one in asked.direct] == [("pkg", "1.0"), ("torch", "2.9.1+rocm6.4")]
    assert len(asked.loose) == 2


@pytest.mark.parametrize(
    ("text", "more", "word"),
    [
        ("nvidia-cublas-cu12", {"name": "nvidia-cublas-cu12"}, "CUDA package"),
        (
            "https://h.example/torch-2.9.1%2Bcu128-cp312-cp312-linux_x86_64.whl",
            {"url": "https://h.example/torch-2.9.1%2Bcu128-cp312-cp312-linux_x86_64.whl"},
            "not a ROCm build",
        ),
        (
            "/x/torchvision-0.24.1-cp312-cp312-linux_x86_64.whl",
            {"path": "/x/torchvision-0.24.1-cp312-cp312-linux_x86_64.whl"},
            "not a ROCm build",
        ),
        (
            "flash-attn @ https://h.example/flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl",
            {
                "name": "flash-attn",
                "url": "https://h.example/flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl",
            },
            "a CUDA build of flash-attn",
        ),
        (
            "/x/torch_scatter-2.1.2+pt25cu124-cp312-cp312-linux_x86_64.whl",
            {"path": "/x/torch_scatter-2.1.2+pt25cu124-cp312-cp312-linux_x86_64.whl"},
            "a CUDA build of torch-scatter",
        ),
    ],
)
def test_cuda_named_outright_is_refused(text: str, more: dict[str, str], word: str) -> None:
    with pytest.raises(NoPlan) as caught:
        sort(line(text, **more))
    assert word in caught.value.message
    assert caught.value.hint


FILES = "https://me:secret@h.example/"


@pytest.mark.parametrize(
    ("name", "place", "read", "word"),
    [
        ("torch", "torch-2.5.1%2Bcu121-cp312-cp312-linux_x86_64.whl", "torch==2.5.1", "read as torch==2.5.1"),
        ("torch", "torch-2.5.1-cp312-cp312-linux_x86_64.whl", "torch==2.5.1", "read as torch==2.5.1"),
        ("torch", "torch-2.9.1+rocm6.4-cp312-cp312-linux_x86_64.whl", "torch==2.9.1+rocm6.4", "read as torch==2.9.1+rocm6.4"),
        ("torch", "torch-2.5.1.tar.gz", "torch==2.5.1", "read as torch==2.5.1"),
        ("torch", "main.zip", "", "is left out"),
        ("flash-attn", "flash_attn-2.8.3+cu12torch2.8-cp312-cp312-linux_x86_64.whl", "flash-attn==2.8.3", "a CUDA build"),
        ("einops", "einops-0.8.0-py3-none-any.whl", None, ""),
        ("flash-attn", "flash_attn-2.8.3-cp312-cp312-linux_x86_64.whl", None, ""),
    ],
)
def test_a_constraint_that_names_a_file(name: str, place: str, read: str | None, word: str) -> None:
    """A file of the torch family can never be taken from elsewhere than its ROCm index, so its version is what counts."""
    written = line(f"{name} @ {FILES}{place}", name=name, url=FILES + place, hashes=("sha256:00",), constraint=True)
    asked = sort(line(name, name=name), constraints=(written,))
    if read is None:
        assert (asked.constraints, asked.notes) == ((written,), ())
        return
    assert [f"{one.name}{one.specifier}" for one in asked.constraints] == ([read] if read else [])
    assert not any(one.url or one.hashes for one in asked.constraints)
    [note] = asked.notes
    assert word in note and "(command line)" in note and "secret" not in note
    bounds = asked.family if name == "torch" else asked.recipes
    assert bounds[name] == SpecifierSet(read.removeprefix(name))


def test_a_constraint_on_a_torch_that_only_comes_along_counts() -> None:
    url = FILES + "torch-2.5.1%2Bcu121-cp312-cp312-linux_x86_64.whl"
    asked = sort(line("accelerate", name="accelerate"), constraints=(line("torch", name="torch", url=url, constraint=True),))
    assert asked.family_constraints == {"torch": SpecifierSet("==2.5.1")}


def test_without_an_amd_gpu_cuda_files_are_nobodys_business() -> None:
    url = FILES + "torch_scatter-2.1.2+pt25cu124-cp312-cp312-linux_x86_64.whl"
    written = line("torch-scatter", name="torch-scatter", url=url)
    assert len(sort(written, constraints=(written,), cuda=True).direct) == 1
    assert sort(constraints=(written,), cuda=True).constraints == (written,)


@pytest.mark.parametrize(
    ("version", "cuda"),
    [
        ("2.9.1+cu128", True),
        ("2.1.2+pt25cu124", True),
        ("2.8.3+cu12torch2.8cxx11abiTRUE", True),
        ("1.0+cuda12", True),
        ("2.9.1", False),
        ("2.9.1+cpu", False),
        ("2.9.1+rocm6.4", False),
        ("3.7.1+git0263a6a6.rocm7.14.0", False),
        ("1.0+focus22", False),
    ],
)
def test_labels_that_name_a_cuda(version: str, cuda: bool) -> None:
    assert cuda_label(version) is cuda


@pytest.mark.parametrize(
    ("filename", "expected"),
    [
        ("torch-2.9.1+rocm6.4-cp312-cp312-manylinux_2_28_x86_64.whl", ("torch", "2.9.1+rocm6.4", True)),
        ("flash_attn-2.8.3.post2.tar.gz", ("flash-attn", "2.8.3.post2", False)),
        ("nonsense.whl", ("", "", True)),
        ("nonsense.zip", ("", "", False)),
    ],
)
def test_read_filename(filename: str, expected: tuple[str, str, bool]) -> None:
    assert read_filename(filename) == expected


def test_small_readers() -> None:
    assert file_of(line("x", url="git+https://h.example/a.zip")) == ""
    assert file_of(line("x", url="https://h.example/a/b-1.tar.gz?x=1#sha256=0")) == "b-1.tar.gz"
    assert marker_holds("not a marker at all", LINUX)
    assert name_of_line("Torch_Vision>=1 ; x") == "torch-vision"
    assert name_of_line("") == ""
