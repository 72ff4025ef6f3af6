"""What [system] names is looked for before work; everything missing at once, with the lines that bring it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocmpip.build.preflight import missing_needs, refuse_missing
from rocmpip.model.errors import Refused
from rocmpip.model.recipe import ResolvedRecipe, SystemNeed
from rocmpip.model.rocm import parse_rocm


def recipe(*needs: SystemNeed, requires: tuple[str, ...] = ()) -> ResolvedRecipe:
    return ResolvedRecipe("pkg", "1.0", "shipped", "p", "d", system=needs, requires=requires)


def program(folder: Path, name: str, says: str, code: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\nexit {code}\n")
    path.chmod(0o755)


def missing(root: Path, *needs: SystemNeed, requires: tuple[str, ...] = (), **env: str) -> list[str]:
    found = missing_needs(
        recipe(*needs, requires=requires), rocm_root=str(root / "rocm"), hip_root=str(root / "rocm"),
        env={"PATH": str(root / "bin") + ":/bin:/usr/bin", **env},
    )  # fmt: skip
    return [str(one) for one in found]


def test_tools_with_bounds(tmp_path: Path) -> None:
    program(tmp_path / "bin", "mycmake", "mycmake version 3.18.4")
    assert missing(tmp_path, SystemNeed("tool", "mycmake", ">=3.12,<4")) == []
    assert missing(tmp_path, SystemNeed("tool", "mycmake")) == []
    assert missing(tmp_path, SystemNeed("tool", "mycmake", ">=3.20")) == ["program mycmake >=3.20 (here: mycmake 3.18.4)"]
    assert missing(tmp_path, SystemNeed("tool", "mynone", reason="it makes tea")) == ["program mynone: it makes tea"]


def test_a_tool_of_the_rocm_root(tmp_path: Path) -> None:
    program(tmp_path / "rocm/bin", "myhipcc", "HIP version: 6.4.43482-0f2d60242")
    program(tmp_path / "rocm/lib/llvm/bin", "myclang", "AMD clang version 19.0.0git (roc-6.4.0)")
    assert missing(tmp_path, SystemNeed("tool", "myhipcc", ">=6.0"), SystemNeed("tool", "myclang", ">=19")) == []


def test_a_tool_that_does_not_tell_or_does_not_run(tmp_path: Path) -> None:
    program(tmp_path / "bin", "mute", "")
    assert "does not tell its version" in missing(tmp_path, SystemNeed("tool", "mute", ">=1"))[0]


def test_a_tool_that_the_build_requirements_bring(tmp_path: Path) -> None:
    need = SystemNeed("tool", "myninja", ">=1.10")
    assert missing(tmp_path, need, requires=("MyNinja>=1.11",)) == []
    assert missing(tmp_path, need) != []


def test_headers(tmp_path: Path) -> None:
    header = tmp_path / "rocm/include/hip/my_runtime.h"
    header.parent.mkdir(parents=True)
    need = SystemNeed("header", "hip/my_runtime.h")
    assert missing(tmp_path, need) == ["header hip/my_runtime.h"]
    header.write_text("")
    assert missing(tmp_path, need) == []
    other = tmp_path / "other/hip"
    other.mkdir(parents=True)
    (other / "my_other.h").write_text("")
    assert missing(tmp_path, SystemNeed("header", "hip/my_other.h"), CPATH=str(tmp_path / "other")) == []


@pytest.mark.parametrize("place", ["lib/cmake/MyBlas/MyBlas-config.cmake", "lib64/cmake/myblas-1.0/myblas-config.cmake",
                                   "share/cmake/MyBlas/MyBlasConfig.cmake"])  # fmt: skip
def test_cmake_packages(place: str, tmp_path: Path) -> None:
    need = SystemNeed("cmake", "MyBlas")
    assert missing(tmp_path, need) == ["CMake package MyBlas"]
    path = tmp_path / "rocm" / place
    path.parent.mkdir(parents=True)
    path.write_text("")
    assert missing(tmp_path, need) == []


def test_libraries(tmp_path: Path) -> None:
    need = SystemNeed("library", "libmyaio.so")
    assert missing(tmp_path, need) == ["library libmyaio.so"]
    (tmp_path / "rocm/lib").mkdir(parents=True)
    (tmp_path / "rocm/lib/libmyaio.so").write_text("")
    assert missing(tmp_path, need) == []


def test_all_at_once_with_three_lines(tmp_path: Path) -> None:
    needs = (
        SystemNeed("tool", "nocmake", ">=3.20", apt="cmake", dnf="cmake"),
        SystemNeed("header", "no/aio.h", apt="libaio-dev", dnf="libaio-devel"),
        SystemNeed("cmake", "nohipblas", apt="hipblas-dev cmake", dnf="hipblas-devel", therock="rocm[libraries,devel]"),
    )
    mine = recipe(*needs)
    found = missing_needs(mine, rocm_root=str(tmp_path), hip_root=str(tmp_path), env={"PATH": "/bin"})
    with pytest.raises(Refused) as caught:
        refuse_missing(mine, found)
    problem = caught.value
    assert problem.exit_code == 44 and "3 things" in problem.message
    assert all(word in problem.why for word in ("nocmake", "no/aio.h", "nohipblas"))
    assert "apt-get install cmake libaio-dev hipblas-dev" in problem.hint, "each package once"
    assert "dnf install cmake libaio-devel hipblas-devel" in problem.hint
    assert "rocm[libraries,devel]" in problem.hint


def test_nothing_missing_is_no_refusal() -> None:
    try:
        refuse_missing(recipe(), ())
    except Refused as problem:
        pytest.fail(f"refused for nothing: {problem}")


HIPCC = SystemNeed("tool", "hipcc", apt="hipcc")


@pytest.mark.parametrize(
    ("says", "named", "told"),
    [
        # Debian 12's, Ubuntu's with AMD's packages, and one that tells nothing.
        ("HIP version: 5.2.21153-0", "6.4", "program hipcc of ROCm 6.4 (here: that of ROCm 5.2): "),
        ("HIP version: 5.2.21153-0", "5.2.3", ""),
        ("HIP version: 6.4.43482-0f2d60242 AMD clang version 19.0.0git (roc-6.4.0 25133)", "6.4.1", ""),
        ("HIP version: 7.1.25424 AMD clang version 20.0.0git (roc-7.1.0 25425)", "7.2", "(here: that of ROCm 7.1): "),
        ("", "7.2", "(here: that of ROCm unknown): "),
    ],
)
def test_a_rocm_that_is_only_named(says: str, named: str, told: str, tmp_path: Path) -> None:
    """--rocm names one that no root has: the hipcc on PATH would silently compile with another."""
    program(tmp_path / "bin", "hipcc", says)
    env = {"PATH": f"{tmp_path / 'bin'}:/bin"}
    found = [str(one) for one in missing_needs(recipe(HIPCC), rocm_root="", hip_root="", env=env, only_named=parse_rocm(named))]
    assert len(found) == bool(told) and all(told in one and "--rocm" in one for one in found)
    if found:
        with pytest.raises(Refused) as caught:
            refuse_missing(
                recipe(HIPCC), missing_needs(recipe(HIPCC), rocm_root="", hip_root="", env=env, only_named=parse_rocm(named))
            )
        assert "apt-get" not in str(caught.value.hint)  # Debian's would be the hipcc that is here
    # What compiles nothing needs no compiler, and a ROCm that has a root, or is all that is known, needs no such look.
    assert not missing_needs(recipe(), rocm_root="", hip_root="", env=env, only_named=parse_rocm(named))
    assert not missing_needs(recipe(HIPCC), rocm_root="", hip_root="", env=env)
