"""Layers, extension, matching, placeholders, the user's own word, CUDA names, fingerprints."""

from __future__ import annotations

import itertools
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmpip.model.errors import BadConfiguration, Refused
from rocmpip.model.recipe import RecipeContext, ResolvedRecipe
from rocmpip.model.rocm import parse_rocm
from rocmpip.recipe import book as book_module
from rocmpip.recipe.book import RecipeBook, load_book, shipped_folder
from rocmpip.recipe.explain import explain
from rocmpip.recipe.override import apply_user
from rocmpip.recipe.placeholders import MEANINGS, fill
from rocmpip.recipe.refusal import refuse_conflicts
from rocmpip.recipe.schema import When
from rocmpip.recipe.when import Match, match, rocm_matches

HERE = RecipeContext(
    gfx=("gfx90a",),
    rocm=parse_rocm("7.2.1"),
    torch="2.12.0+rocm7.2",
    python="3.12",
    rocm_path="/opt/rocm",
    jobs=4,
    site_packages="/v/site",
)


def write(folder: Path, text: str, name: str = "foo") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.toml"
    path.write_text(f'schema = 1\n[package]\nname = "{name}"\n' + text)
    return path


def resolve(folder: Path, text: str, context: RecipeContext = HERE, version: str = "1.5", name: str = "foo") -> ResolvedRecipe:
    write(folder, text, name)
    return load_book([("user", folder)]).resolve(name, version, context)


def env_of(resolved: ResolvedRecipe) -> dict[str, str]:
    return {value.key: value.value for value in resolved.env}


# -- shipped recipes are found -------------------------------------------------------------------------------------


def test_shipped_recipes_in_the_repository() -> None:
    assert shipped_folder() == Path(__file__).parents[2] / "recipes"
    assert (shipped_folder() / "flash-attn.toml").is_file()


def test_shipped_recipes_inside_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site-packages/rocmpip"
    (package / "recipe").mkdir(parents=True)
    (package / "_recipes").mkdir()
    monkeypatch.setattr(book_module, "__file__", str(package / "recipe/book.py"))
    assert shipped_folder() == package / "_recipes"


@pytest.mark.slow
def test_the_wheel_holds_every_recipe_and_the_data(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=root,
        check=True,
        capture_output=True,
        timeout=120,
    )
    names = set(zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist())
    assert {f"rocmpip/_recipes/{path.name}" for path in shipped_folder().glob("*.toml")} <= names
    assert {"rocmpip/recipe/data/allowed.toml", "rocmpip/recipe/data/needs.toml"} <= names


# -- layers --------------------------------------------------------------------------------------------------------


def test_the_highest_layer_counts_alone(tmp_path: Path) -> None:
    write(tmp_path / "low", '[build.env]\nFOO_A = "low"\nFOO_B = "low"\n')
    write(tmp_path / "high", '[build.env]\nFOO_A = "high"\n')
    resolved = load_book([("shipped", tmp_path / "low"), ("user", tmp_path / "high")]).resolve("foo", "1", HERE)
    assert env_of(resolved) == {"FOO_A": "high"}
    assert resolved.layer == "user"


def test_a_recipe_that_extends_itself_lies_over_the_lower_one(tmp_path: Path) -> None:
    write(tmp_path / "a", '[build.env]\nFOO_A = "a"\nFOO_B = "a"\nFOO_C = "a"\n')
    write(tmp_path / "b", 'extends = "foo"\n[build.env]\nFOO_B = "b"\n')
    write(tmp_path / "c", 'extends = "foo"\n[build.env]\nFOO_C = "c"\n')
    layers = [("shipped", tmp_path / "a"), ("site", tmp_path / "b"), ("--recipe", tmp_path / "c/foo.toml")]
    resolved = load_book(layers).resolve("foo", "1", HERE)
    assert env_of(resolved) == {"FOO_A": "a", "FOO_B": "b", "FOO_C": "c"}
    assert env_of(load_book(layers[:2]).resolve("foo", "1", HERE)) == {"FOO_A": "a", "FOO_B": "b", "FOO_C": "a"}


def test_a_template_of_a_higher_layer_serves_lower_recipes(tmp_path: Path) -> None:
    write(tmp_path / "a", '[build.env]\nFOO_A = "{gfx:;}"\n', "_base")
    write(tmp_path / "a", 'extends = "_base"\n')
    write(tmp_path / "b", 'extends = "_base"\n[build.env]\nMAX_JOBS = "{jobs}"\n', "_base")
    (tmp_path / "a/_base.toml").write_text('schema = 1\n[package]\nname = "_base"\n[build.env]\nGPU_ARCHS = "{gfx:;}"\n')
    resolved = load_book([("shipped", tmp_path / "a"), ("user", tmp_path / "b")]).resolve("foo", "1", HERE)
    assert env_of(resolved) == {"GPU_ARCHS": "gfx90a", "MAX_JOBS": "4"}


@pytest.mark.parametrize("pair", [("_a", "_b"), ("_a", "_a")])
def test_circles_are_told(pair: tuple[str, str], tmp_path: Path) -> None:
    first, second = pair
    write(tmp_path, f'extends = "{second}"\n', first)
    if first != second:
        write(tmp_path, f'extends = "{first}"\n', second)
    with pytest.raises(BadConfiguration):
        load_book([("user", tmp_path)])


def test_names_aliases_and_spellings() -> None:
    book = load_book([("shipped", shipped_folder())])
    for spelling in ("flash-attn", "flash_attn", "Flash.Attn", "FLASH-ATTN"):
        recipe = book.get(spelling)
        assert recipe is not None
        assert recipe.name == "flash-attn"
    triton = book.get("pytorch-triton-rocm")
    assert triton is not None
    assert triton.name == "triton"
    assert book.get("numpy") is None
    assert "_torch-extension" not in book.names()
    assert book.get("_torch-extension") is not None
    with pytest.raises(KeyError):
        book.resolve("numpy", "1", HERE)
    assert book.torch_conflicts("numpy", "1", HERE) == ()
    assert book.ready_wheels("numpy", HERE) == ()


def test_a_layer_can_be_left_out_with_a_reason(tmp_path: Path) -> None:
    write(tmp_path / "p", '[build.env]\nFOO_A = "x"\n')
    seen: dict[str, str] = {}

    def accept(layer: str, folder: Path, digests: dict[str, str]) -> str:
        seen.update(digests)
        return "not trusted" if layer == "project" else ""

    book = load_book([("project", tmp_path / "p")], accept=accept)  # type: ignore[arg-type]
    assert book.names() == ()
    assert book.skipped == (f"{tmp_path / 'p'}: not trusted",)
    assert set(seen) == {"foo.toml"}
    assert len(seen["foo.toml"]) == 64


def test_a_left_out_layer_is_not_even_parsed(tmp_path: Path) -> None:
    (tmp_path / "foo.toml").write_text("broken = \n")
    assert load_book([("project", tmp_path)], accept=lambda *_: "not trusted").names() == ()


# -- when ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "version", "holds"),
    [
        (">=6.4", "6.4", True),
        (">=6.4", "6.3.4", False),
        (">=6.4", "10.0", True),
        ("<=7.2", "7.2.1", True),
        (">7.2", "7.2.4", False),
        (">7.2", "7.14", True),
        ("==7.2", "7.2.1", True),
        ("==7.2.1", "7.2", False),
        ("!=7.0", "7.0.2", False),
        (">=6.4,<8", "7.14", True),
        (">=6.4,<8", "10.0", False),
        ("<10", "7.14.0", True),
        ("==7.2.*", "7.2.3", True),
        (">=7", "7.0", True),
        ("<7", "7.0", False),
    ],
)
def test_rocm_versions_are_numbers(bounds: str, version: str, holds: bool) -> None:
    assert rocm_matches(bounds, parse_rocm(version)) is holds


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        (When(gfx=("gfx90a", "gfx942")), True), (When(gfx=("gfx942",)), False), (When(gfx=("gfx9*",)), True), (When(gfx_any=("gfx1*", "gfx90a")), True),
        (When(gfx_any=("gfx1*",)), False), (When(gfx_outside=("gfx942",)), True), (When(gfx_outside=("gfx90a", "gfx942")), False), (When(rocm=">=7"), True),
        (When(rocm="<7"), False), (When(python="==3.12.*"), True), (When(python="<3.12"), False), (When(python=">=3.9"), True), (When(torch=">=2.12"), True),
        (When(torch="==2.12.0"), True), (When(torch=">=2.13"), False), (When(version=">=1,<2"), True), (When(version=">=2"), False), (When(backend=("x",)), False),
        (When(version=">=1", rocm=">=7", gfx=("gfx90a",), python=">=3.10", torch="<3"), True), (When(version=">=1", rocm="<7"), False), (When(), True),
    ],
)  # fmt: skip
def test_conditions(when: When, expected: bool) -> None:
    assert match(when, "1.5", HERE, "") is (Match.YES if expected else Match.NO)


def test_conditions_over_several_targets() -> None:
    both = RecipeContext(gfx=("gfx90a:xnack-", "gfx1100"))
    assert match(When(gfx=("gfx90a", "gfx1100")), "1", both, "") is Match.YES
    assert match(When(gfx=("gfx90a",)), "1", both, "") is Match.NO
    assert match(When(gfx_any=("gfx11*",)), "1", both, "") is Match.YES
    assert match(When(gfx_outside=("gfx90a",)), "1", both, "") is Match.YES


def test_what_is_not_known_does_not_match() -> None:
    nothing = RecipeContext()
    for when in (
        When(gfx=("gfx*",)),
        When(gfx_any=("gfx*",)),
        When(gfx_outside=("gfx942",)),
        When(rocm=">=1"),
        When(python=">=3"),
    ):
        assert match(when, "1", nothing, "") is Match.NO
    assert match(When(torch=">=1"), "1", nothing, "") is Match.TORCH_UNKNOWN
    assert match(When(torch=">=1", rocm=">=1"), "1", nothing, "") is Match.NO
    assert match(When(version=">=1"), "no-version", nothing, "") is Match.NO
    assert match(When(version=">=1"), None, nothing, "") is Match.YES


def test_later_clauses_win_and_each_value_tells_its_clause(tmp_path: Path) -> None:
    text = """
[build]
requires = ["cmake>=3.20", "ninja"]
memory_per_job = 2
[build.env]
FOO_A = "base"
FOO_B = "base"
FOO_C = "base"
[[when]]
gfx = "gfx90a"
[when.build]
requires = ["cmake>=3.26,<4"]
memory_per_job = 4
[when.build.env]
FOO_A = "first"
FOO_B = "first"
[[when]]
rocm = ">=7"
drop = ["FOO_C", "ninja"]
[when.build.env]
FOO_B = "second"
[[when]]
rocm = "<7"
[when.build.env]
FOO_B = "never"
"""
    resolved = resolve(tmp_path, text)
    assert env_of(resolved) == {"FOO_A": "first", "FOO_B": "second"}
    assert resolved.requires == ("cmake<4,>=3.26",)
    assert resolved.memory_per_job == 4
    where = {value.key: value.clause for value in resolved.env}
    assert where == {"FOO_A": "foo.toml [[when]] #1 (gfx gfx90a)", "FOO_B": "foo.toml [[when]] #2 (rocm >=7)"}
    rows = {(row.section, row.key): row.clause for row in explain(resolved)}
    assert rows["build.requires", "cmake"] == "foo.toml [[when]] #1 (gfx gfx90a)"
    assert rows["build", "memory_per_job"] == "foo.toml [[when]] #1 (gfx gfx90a)"
    assert rows["build", "isolation"] == "built-in"


def test_every_row_of_every_explanation_has_a_clause() -> None:
    book = load_book([("shipped", shipped_folder())])
    for name in book.names():
        for row in book.resolve(name, book.recipes[name].tested or "1", HERE).explanation:
            assert row.clause, (name, row)


# -- back ends -----------------------------------------------------------------------------------------------------


def test_back_end_by_gpu_by_word_and_by_export() -> None:
    book = load_book([("shipped", shipped_folder())])
    assert book.resolve("flash-attn", "2.8.3", HERE).backend == "ck"
    assert book.resolve("flash-attn", "2.8.3", RecipeContext(gfx=("gfx90a",), backend="triton")).backend == "triton"
    assert book.backend_asked("flash-attn", {"FLASH_ATTENTION_TRITON_AMD_ENABLE": "TRUE"}) == "triton"
    assert book.backend_asked("flash-attn", {"FLASH_ATTENTION_TRITON_AMD_ENABLE": "1"}) == ""
    assert book.backend_asked("deepspeed", {"DS_BUILD_OPS": "1"}) == "prebuilt"
    assert book.backend_asked("numpy", {}) == ""
    with pytest.raises(Refused, match="no back end 'cuda'"):
        book.resolve("flash-attn", "2.8.3", RecipeContext(gfx=("gfx90a",), backend="cuda"))
    with pytest.raises(Refused, match="depends on the GPU"):
        book.resolve("flash-attn", "2.8.3", RecipeContext())
    # Another package's back end is no reason to fail where only indexes and torch are asked for.
    assert book.torch_conflicts("flash-attn", "2.8.3", RecipeContext(gfx=("gfx90a",), backend="prebuilt"))


# -- conflicts that steer torch ------------------------------------------------------------------------------------


def test_torch_conflicts_for_steering() -> None:
    book = load_book([("shipped", shipped_folder())])
    no_torch = RecipeContext(gfx=("gfx942",), rocm=parse_rocm("7.14"), python="3.12")
    (flash,) = book.torch_conflicts("flash-attn", "2.8.3.post2", no_torch)
    assert (flash.torch, flash.version) == (">=2.14", "<=2.8.3.post2")
    assert book.torch_conflicts("flash-attn", "2.8.3.post2", RecipeContext(gfx=("gfx1100",), rocm=parse_rocm("7.14"))) == ()
    assert {each.torch for each in book.torch_conflicts("deepspeed", None, no_torch)} == {">=2.14"}
    assert [each.torch for each in book.torch_conflicts("apex", "1.12.0", no_torch)] == ["!=2.12.*"]
    assert len(book.torch_conflicts("apex", None, no_torch)) == len(book.releases("apex"))
    resolved = book.resolve("flash-attn", "2.8.3.post2", no_torch)
    assert [conflict.certain for conflict in resolved.conflicts] == [False]
    assert resolved.refusals == ()


def test_refusals_become_errors_with_a_way_out() -> None:
    book = load_book([("shipped", shipped_folder())])
    late = RecipeContext(gfx=("gfx942",), rocm=parse_rocm("7.14"), torch="2.14.1")
    resolved = book.resolve("flash-attn", "2.8.3.post2", late)
    with pytest.raises(Refused) as caught:
        refuse_conflicts(resolved)
    assert caught.value.exit_code == 44
    assert "C++20" in caught.value.message
    assert "torch<2.14" in caught.value.hint
    assert "flash-attn.toml" in caught.value.why
    refuse_conflicts(resolved, building=False)  # a ready wheel would be free of it
    with pytest.raises(Refused):
        refuse_conflicts(book.resolve("natten", "1", late), building=False)
    refuse_conflicts(book.resolve("deepspeed", "0.19.8", late))


def test_refused_packages_say_so_where_no_gpu_is_known() -> None:
    book = load_book([("shipped", shipped_folder())])
    assert book.resolve("grouped-gemm", "0.3.0", RecipeContext()).refusals


# -- placeholders --------------------------------------------------------------------------------------------------


def test_every_placeholder(tmp_path: Path) -> None:
    names = [name for name in MEANINGS if name != "gfx"]
    lines = "\n".join(f'FOO_{number} = "<{{{name}}}>"'.replace("<", "a").replace(">", "b") for number, name in enumerate(names))
    resolved = resolve(tmp_path, f'[[backend]]\nname = "ck"\n[build.env]\nFOO_GFX = "{{gfx}}"\n{lines}\n', HERE)
    got = {name: env_of(resolved)[f"FOO_{number}"][1:-1] for number, name in enumerate(names)}
    assert got == {
        "gfx:;": "gfx90a", "gfx:,": "gfx90a", "gfx: ": "gfx90a", "rocm_path": "/opt/rocm", "hip_path": "/opt/rocm", "rocm": "7.2.1", "rocm_minor": "7.2", "rocm_nodot": "72",
        "jobs": "4", "python": "3.12", "python_nodot": "312", "torch": "2.12.0", "torch_minor": "2.12", "version": "1.5", "site_packages": "/v/site", "backend": "ck",
    }  # fmt: skip
    assert env_of(resolved)["FOO_GFX"] == "gfx90a"


def test_targets_are_joined_as_the_package_wants(tmp_path: Path) -> None:
    two = RecipeContext(gfx=("gfx90a", "gfx1100"), rocm=parse_rocm("7.2"))
    resolved = resolve(tmp_path, '[build.env]\nFOO_A = "{gfx:;}"\nFOO_B = "{gfx:,}"\nFOO_C = "{gfx: }"\n', two)
    assert env_of(resolved) == {"FOO_A": "gfx90a;gfx1100", "FOO_B": "gfx90a,gfx1100", "FOO_C": "gfx90a gfx1100"}


def test_one_target_where_one_is_taken(tmp_path: Path) -> None:
    text = '[build.env]\nAMDGPU_TARGET = "{gfx}"\n'
    assert env_of(resolve(tmp_path, text)) == {"AMDGPU_TARGET": "gfx90a"}
    with pytest.raises(Refused, match="one GPU at a time"):
        resolve(tmp_path, text, RecipeContext(gfx=("gfx90a", "gfx942")))
    with pytest.raises(Refused, match="none is known"):
        resolve(tmp_path, text, RecipeContext())


def test_what_is_not_known_is_left_out_with_a_note(tmp_path: Path) -> None:
    resolved = resolve(tmp_path, '[build.env]\nFOO_A = "{rocm_path}/x"\nFOO_B = "y"\n', RecipeContext(gfx=("gfx90a",)))
    assert env_of(resolved) == {"FOO_B": "y"}
    assert resolved.notes == ("FOO_A is left out: {rocm_path} is not known here",)


@given(
    st.lists(st.sampled_from(["gfx90a", "gfx942", "gfx1100"]), min_size=1, max_size=4, unique=True),
    st.sampled_from([";", ",", " "]),
)
def test_joining_never_loses_a_target(gfx: list[str], separator: str) -> None:
    assert fill("{gfx:%s}" % separator, {}, tuple(gfx)).text.split(separator) == gfx  # noqa: UP031


# -- the user's own word -------------------------------------------------------------------------------------------


def test_exports_and_config_settings_win_except_over_force(tmp_path: Path) -> None:
    text = """
[build.env]
MAX_JOBS = "{jobs}"
GPU_ARCHS = { value = "{gfx:;}", force = true, note = "the targets of this run" }
FOO_A = "recipe"
[build.config_settings]
"--build-option" = ["build_ext", "-j4"]
"cmake.define.X" = { value = "1", force = true }
"""
    resolved = resolve(tmp_path, text)
    theirs = {"MAX_JOBS": "2", "GPU_ARCHS": "gfx942", "FOO_A": "", "UNRELATED": "x"}
    env, settings, notes = apply_user(resolved, theirs, ("--build-option=clean", "cmake.define.X=2", "own=3"))
    assert env == {"MAX_JOBS": "2", "GPU_ARCHS": "gfx90a", "FOO_A": "recipe"}
    assert settings == ("--build-option=clean", "cmake.define.X=1", "own=3")
    told = "\n".join(notes)
    assert "your MAX_JOBS=2 is used instead of MAX_JOBS=4" in told
    assert "your GPU_ARCHS=gfx942 is not used" in told
    assert "the targets of this run" in told
    assert "cmake.define.X" in told
    assert len(notes) == 4


def test_nothing_is_told_where_nothing_differs(tmp_path: Path) -> None:
    resolved = resolve(tmp_path, '[build.env]\nFOO_A = "x"\n[build.config_settings]\na = "b"\n')
    assert apply_user(resolved, {"FOO_A": "x"}, ("a=b",)) == ({"FOO_A": "x"}, ("a=b",), ())
    assert apply_user(resolved, {}, ()) == ({"FOO_A": "x"}, ("a=b",), ())


# -- CUDA names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "extras", "rocm", "name", "got"),
    [
        ("cupy-cuda12x", (), "7.2", "cupy-rocm-7-0", ()),
        ("CuPy_CUDA11x", (), "7.0", "cupy-rocm-7-0", ()),
        ("cupy-cuda12x", (), "6.4", "cupy", ()),
        ("cupy-cuda12x", (), "10.0", "cupy", ()),
        ("cupy-cuda12x", (), "", "cupy-rocm-7-0", ()),
        ("jax", ("cuda12",), "7.14", "jax", ("rocm7-local",)),
        ("jax[cuda12]", (), "10.1", "jax", ("rocm10-local",)),
        ("jax", ("cuda13", "k8s"), "7.14", "jax", ("rocm7-local", "k8s")),
        ("onnxruntime-gpu", (), "7.2", "onnxruntime-migraphx", ()),
        ("onnxruntime-gpu", (), "6.4", "onnxruntime-rocm", ()),
        ("tensorflow[and-cuda]", (), "6.4", "tensorflow-rocm", ()),
    ],
)
def test_cuda_names(asked: str, extras: tuple[str, ...], rocm: str, name: str, got: tuple[str, ...]) -> None:
    book = load_book([("shipped", shipped_folder())])
    mapped = book.mapped_name(asked, extras, RecipeContext(rocm=parse_rocm(rocm) if rocm else None))
    assert mapped is not None
    assert (mapped.name, mapped.extras) == (name, got)
    assert mapped.because
    assert ".toml [[cuda_name]]" in mapped.clause


@pytest.mark.parametrize("asked", ["jax", "cupy", "torch", "onnxruntime", "numpy", "jax[rocm7-local]", "tensorflow"])
def test_other_names_stay(asked: str) -> None:
    assert load_book([("shipped", shipped_folder())]).mapped_name(asked) is None


# -- git releases --------------------------------------------------------------------------------------------------


def test_releases_give_versions_and_commits() -> None:
    book = load_book([("shipped", shipped_folder())])
    versions = [row.version for row in book.releases("apex")]
    assert versions == sorted(versions, key=lambda text: [int(part) for part in text.split(".")], reverse=True)
    assert book.releases("deepspeed") == ()
    for row in book.releases("xformers"):
        resolved = book.resolve("xformers", row.version, RecipeContext(gfx=("gfx942",), rocm=parse_rocm("7.1"), torch="2.10.0"))
        assert resolved.source.commit == row.commit
        assert resolved.source.submodules


def test_source_alone() -> None:
    book = load_book([("shipped", shipped_folder())])
    assert book.source("apex").kind == "git"
    assert book.source("apex").commit == ""
    assert len(book.source("apex", "1.12.0").commit) == 40
    assert book.source("flash-attn").kind == "sdist"
    assert book.source("jax").kind == "none"
    assert book.source("numpy").kind == "sdist"


# -- fingerprint ---------------------------------------------------------------------------------------------------

BASE = '[build]\nrequires = ["ninja"]\n[build.env]\nFOO_A = "x"\nMAX_JOBS = "{jobs}"\nROCM_HOME = "{rocm_path}"\nGPU_ARCHS = "{gfx:;}"\n'


def test_the_digest_follows_what_reaches_the_build(tmp_path: Path) -> None:
    def digest(text: str, context: RecipeContext = HERE) -> str:
        return resolve(tmp_path, text, context).digest

    base = digest(BASE)
    assert digest("# a comment\n" + BASE) == base
    assert digest(BASE + '[runtime]\nFOO_R = "1"\n') == base
    jobs = RecipeContext(
        gfx=("gfx90a",), rocm=parse_rocm("7.2.1"), torch="2.12.0", python="3.12", rocm_path="/elsewhere", jobs=64
    )
    assert digest(BASE, jobs) == base
    changed = [
        BASE.replace('"x"', '"y"'),
        BASE.replace("ninja", "ninja>=1.11"),
        BASE + 'FOO_B = "z"\n',
        BASE + '[build.config_settings]\na = "b"\n',
        BASE.replace("[build]\n", "[build]\nisolation = true\n"),
        BASE.replace("[build]\n", '[build]\nprepare = [["python", "x.py"]]\n'),
        BASE + f'[source]\nkind = "git"\nurl = "https://host.example/x"\ncommit = "{"a" * 40}"\n',
        BASE + "[verify]\ndevice_code = true\n",
    ]
    digests = [digest(text) for text in changed]
    digests.append(digest(BASE, RecipeContext(gfx=("gfx1100",), rocm=parse_rocm("7.2.1"), rocm_path="/opt/rocm")))
    assert all(each != base for each in digests)
    assert all(one != other for one, other in itertools.combinations(digests, 2))


def test_a_system_need_takes_its_packages_from_the_table(tmp_path: Path) -> None:
    text = '[system]\ntools = ["cmake>=3.26,<4", "c++"]\nheaders = [{ name = "my/own.h", apt = "libmy-dev", reason = "why" }]\ncmake = ["@torch"]\nlibraries = ["libaio.so"]\n'
    needs = {(need.kind, need.name): need for need in resolve(tmp_path, text).system}
    assert needs["tool", "cmake"].specifier == ">=3.26,<4"
    assert needs["tool", "cmake"].apt == "cmake"
    assert needs["header", "my/own.h"].apt == "libmy-dev"
    assert needs["cmake", "hipblaslt"].therock == "rocm[libraries,devel]"
    assert sum(kind == "cmake" for kind, _ in needs) == 18
    assert needs["library", "libaio.so"].dnf == "libaio-devel"


def test_every_need_of_every_shipped_recipe_says_how_to_get_it() -> None:
    book: RecipeBook = load_book([("shipped", shipped_folder())])
    for name in (*book.names(), "_torch-extension"):
        for need in book.resolve(name, book.recipes[name].tested or "1", HERE).system:
            assert need.apt, (name, need)
            assert need.dnf, (name, need)
