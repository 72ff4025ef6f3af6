"""What was resolved becomes a plan with reasons."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmpip.model.packages import File
from rocmpip.plan.assemble import Facts, Installed, Resolved, assemble, build_words, closure, leftovers, requirements_of
from rocmpip.plan.markers import Markers

LINUX = {"sys_platform": "linux", "platform_system": "Linux", "python_version": "3.12", "extra": ""}


def wheel(name: str, version: str) -> File:
    return File(
        f"{name}-{version}-py3-none-any.whl",
        f"https://h.example/{name}-{version}-py3-none-any.whl",
        {"sha256": "0" * 64},
    )


def facts(**more: object) -> Facts:
    given_: dict[str, object] = {
        "installed": {},
        "roots": {},
        "environment": LINUX,
        "is_family": {"torch", "torchvision", "triton-rocm"}.__contains__,
    }
    return Facts(**{**given_, **more})  # type: ignore[arg-type]


def test_order_is_torch_family_builds_rest_and_each_has_its_reason() -> None:
    plan = assemble(
        [
            Resolved("accelerate", "1.0", wheel("accelerate", "1.0"), ("torch>=2",), requested=True),
            Resolved("flash-attn", "2.8.3", wheel("flash_attn", "2.8.3"), ("torch", "einops"), requested=True),
            Resolved("einops", "0.8", wheel("einops", "0.8")),
            Resolved("torch", "2.9.1+rocm6.4", wheel("torch", "2.9.1+rocm6.4"), ("triton-rocm==3.5.1",)),
            Resolved("triton-rocm", "3.5.1", wheel("triton_rocm", "3.5.1")),
        ],
        facts(
            roots={"accelerate": ((), "command line"), "flash-attn": ((), "r.txt:2")},
            recipes={"flash-attn": "flash-attn"},
        ),
    )
    assert [item.name for item in plan.items] == ["torch", "triton-rocm", "flash-attn", "accelerate", "einops"]
    rows = {item.name: item for item in plan.items}
    assert (rows["flash-attn"].action, rows["flash-attn"].origin) == ("build", "build")
    assert rows["flash-attn"].because[0] == "asked for (r.txt:2)"
    assert rows["torch"].because == ("required by accelerate, flash-attn",)
    assert not rows["torch"].direct and rows["accelerate"].direct


def test_a_wrong_torch_is_replaced_and_said() -> None:
    plan = assemble(
        [Resolved("torch", "2.9.1+rocm6.4", wheel("torch", "2.9.1+rocm6.4"), requested=True)],
        facts(installed={"torch": Installed("torch", "2.9.1+cu128")}, roots={"torch": ((), "command line")}),
    )
    (item,) = plan.items
    assert (item.action, item.installed_version) == ("replace", "2.9.1+cu128")
    assert "replaces 2.9.1+cu128, which is a CUDA build" in item.because


def test_kept_packages_are_listed_too() -> None:
    plan = assemble(
        [Resolved("accelerate", "1.0", wheel("accelerate", "1.0"), ("torch>=2", "numpy"), requested=True)],
        facts(
            installed={
                "torch": Installed("torch", "2.9.1+rocm6.4", ("sympy",)),
                "sympy": Installed("sympy", "1.13"),
                "numpy": Installed("numpy", "2.0"),
                "unrelated": Installed("unrelated", "1"),
            },
            roots={"accelerate": ((), "command line")},
            held={"torch": "2.9.1+rocm6.4"},
        ),
    )
    rows = {item.name: item for item in plan.items}
    assert set(rows) == {"accelerate", "torch", "sympy", "numpy"}
    assert rows["torch"].action == "keep" and any("held" in reason for reason in rows["torch"].because)
    assert rows["sympy"].because == ("required by torch", "already installed and fits")


def test_a_wheelhouse_wheel_is_installed_not_built() -> None:
    plan = assemble(
        [Resolved("flash-attn", "2.8.3", wheel("flash_attn", "2.8.3"), requested=True)],
        facts(
            roots={"flash-attn": ((), "command line")},
            recipes={"flash-attn": "flash-attn"},
            wheelhouse={"flash-attn": wheel("flash_attn", "2.8.3")},
        ),
    )
    assert (plan.items[0].action, plan.items[0].origin) == ("install", "wheelhouse")


def test_requirements_follow_markers_and_extras() -> None:
    texts = ("a", "b ; sys_platform == 'win32'", "c ; extra == 'x'", "not a requirement !!")
    assert [one.name for one in requirements_of(texts, (), Markers(LINUX))] == ["a"]
    assert [one.name for one in requirements_of(texts, ("x",), Markers(LINUX))] == ["a", "c"]


def test_closure_ends_on_cycles_and_keeps_extras() -> None:
    packages = {"a": ("b[x]",), "b": ("a", "c ; extra == 'x'"), "c": ()}
    assert closure({"a": ()}, packages, LINUX) == {"a": ["b"], "b": ["a"], "c": ["b"]}


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), max_size=4).map(tuple), max_size=6))
def test_closure_reaches_all_and_ends(packages: dict[str, tuple[str, ...]]) -> None:
    reached = closure({"a": ()}, packages, LINUX)
    assert all(child in reached for name in reached for child in packages.get(name, ()))


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("2.9.1+cpu", "a CPU build"),
        ("2.9.1+cu128", "a CUDA build"),
        ("2.9.1+rocm10.0", "a build for ROCm 10.0"),
        ("2.9.1", "an unlabelled build (PyPI's are CUDA)"),
        ("2.9.0a0+git1234", "not marked as a ROCm build"),
    ],
)
def test_build_words(version: str, words: str) -> None:
    assert build_words(version) == words


def test_leftovers_are_only_unneeded_cuda_packages() -> None:
    def forbidden(name: str) -> str | None:
        return "CUDA" if name.startswith("nvidia-") and name != "nvidia-ml-py" else None

    installed = ["nvidia-cublas-cu12", "nvidia-ml-py", "numpy", "nvidia-nccl-cu12"]
    assert leftovers(installed, ["nvidia-nccl-cu12"], forbidden) == ("nvidia-cublas-cu12",)
