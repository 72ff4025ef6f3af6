"""``rocmpip recipe``: list, show, check, new, trust, in text and in JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rocmpip.app.recipe import load_layers
from rocmpip.cli.group import run
from rocmpip.model.errors import UsageError
from rocmpip.model.settings import Settings
from rocmpip.recipe.book import load_book, shipped_folder
from rocmpip.recipe.decode import decode
from rocmpip.recipe.document import page
from rocmpip.recipe.faults import Faults
from rocmpip.recipe.placeholders import MEANINGS

DOCS = Path(__file__).parents[2] / "docs"
Ask = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without AMD hardware, a home of one's own, an empty project as working folder."""
    for name in ("home", "project", "sysroot"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ROCMPIP_SYSROOT", str(tmp_path / "sysroot"))
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


@pytest.fixture
def ask(home: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    def call(*words: str) -> tuple[int, dict[str, Any]]:
        code = run(["recipe", *words, "--json"])
        told = json.loads(capsys.readouterr().out)
        assert set(told) == {"rocmpip", "schema", "command", "ok", "result", "errors"}
        assert told["command"] == "recipe"
        assert told["ok"] is (code == 0)
        return code, told if code else told["result"]

    return call


def recipe(folder: Path, text: str = "", name: str = "foo") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(f'schema = 1\n[package]\nname = "{name}"\n' + text)
    return folder / f"{name}.toml"


def test_list(ask: Ask) -> None:
    code, result = ask("list")
    rows = {row["name"]: row for row in result["recipes"]}
    assert code == 0
    assert rows["flash-attn"]["way"] == "build"
    assert rows["vllm"]["way"] == "ready wheels, else build"
    assert rows["natten"]["way"] == "refused"
    assert all(row["summary"] and row["layer"] == "shipped" for row in rows.values())


def test_show_prints_each_value_with_its_clause(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(["recipe", "show", "flash-attn", "--gfx", "gfx942", "--rocm", "7.2", "--torch", "2.12.0", "--python", "3.12"]) == 0
    )
    out = capsys.readouterr().out
    lines = [line for line in out.splitlines() if " = " in line and not line.startswith("  must_not_link")]
    assert len(lines) > 15
    assert all("# " in line for line in lines)
    assert "no known version reads it" in next(line for line in lines if "HIP_ARCHS" in line)
    assert "[[when]] #1 (backend ck)" in next(line for line in lines if "GPU_ARCHS" in line and "HIP" not in line)
    assert "flash-attn 2.8.3.post2" in out


def test_show_as_json(ask: Ask) -> None:
    _, result = ask(
        "show", "flash_attn", "--gfx", "gfx90a", "--gfx", "gfx942", "--rocm", "7.2", "--torch", "2.14.1", "--python", "3.12"
    )
    assert result["resolved"] is True
    assert result["env"]["GPU_ARCHS"] == "gfx90a;gfx942"
    assert result["backend"] == "ck"
    assert result["context"]["gfx"] == ["gfx90a", "gfx942"]
    assert any("C++20" in conflict["message"] for conflict in result["conflicts"])
    assert all(row["clause"] for row in result["rows"] if row["section"] != "note")


def test_show_with_another_version_and_back_end(ask: Ask) -> None:
    _, result = ask("show", "flash-attn", "--gfx", "gfx942", "--backend", "triton", "--version", "2.7.4.post1")
    assert result["version"] == "2.7.4.post1"
    assert result["runtime"] == {"FLASH_ATTENTION_TRITON_AMD_ENABLE": "TRUE"}
    code, told = ask("show", "flash-attn", "--gfx", "gfx942", "--backend", "cuda")
    assert code == 44
    assert "ck, triton" in told["errors"][0]["hint"]


def test_show_tells_what_your_variables_change(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_JOBS", "77")
    monkeypatch.setenv("GPU_ARCHS", "gfx950")
    _, result = ask("show", "flash-attn", "--gfx", "gfx942")
    told = "\n".join(result["overridden"])
    assert "MAX_JOBS=77 is used instead" in told
    assert "GPU_ARCHS=gfx950 is not used" in told


def test_an_exported_switch_chooses_the_back_end(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLASH_ATTENTION_TRITON_AMD_ENABLE", "TRUE")
    assert ask("show", "flash-attn", "--gfx", "gfx942")[1]["backend"] == "triton"


def test_show_without_a_gpu_prints_the_clauses(ask: Ask) -> None:
    code, result = ask("show", "flash-attn")
    assert code == 0
    assert result["resolved"] is False
    assert "--gfx" in result["hint"]
    assert any(row["value"] == "{gfx:;}" for row in result["rows"])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("show", "no-such-package"), 2),
        (("show",), 2),
        (("check", "missing.toml"), 2),
        (("check",), 2),
        (("trust", "missing"), 2),
        (("trust", "."), 2),
        (("new", "../evil"), 2),
        (("new", "_template"), 2),
        (("list", "--recipe", "missing.toml"), 2),
        (("show", "flash-attn", "--gfx", "mi300"), 2),
        (("nonsense",), 2),
    ],
)
def test_wrong_use_is_told(ask: Ask, words: tuple[str, ...], code: int) -> None:
    got, told = ask(*words)
    assert got == code
    assert told["errors"][0]["code"] == code
    assert told["errors"][0]["message"]


def test_check_tells_all_faults(ask: Ask, home: Path) -> None:
    good = recipe(home / "a", '[build.env]\nFOO_A = "x"\n')
    assert ask("check", str(good))[1]["recipes"] == [{"name": "foo", "path": str(good)}]
    bad = recipe(home / "b", '[build.env]\nLD_PRELOAD = "x"\nPATH = "$(touch owned)"\n[bild]\n')
    worse = recipe(home / "c", '[source]\nkind = "git"\nurl = "ext::sh"\n')
    code, told = ask("check", str(bad), str(good), str(worse))
    assert code == 45
    assert len(told["errors"][0]["details"]) == 6
    assert not list(home.rglob("owned"))


@pytest.mark.parametrize("name", ["fast-rope", "flash-attn"])
def test_new_writes_a_recipe_that_is_in_order(ask: Ask, home: Path, name: str) -> None:
    code, result = ask("new", name)
    assert code == 0
    path = home / f"home/.config/rocmpip/recipes/{name}.toml"
    assert result["path"] == str(path)
    assert ask("check", str(path))[0] == 0
    again, told = ask("new", name)
    assert again == 2
    assert "--output" in told["errors"][0]["hint"]
    _, shown = ask("show", name, "--gfx", "gfx90a", "--version", "2.8.3")
    assert shown["layer"] == "user"
    assert shown["env"]["MAX_JOBS"]
    assert ask("new", name, "--output", str(home))[1]["path"] == str(home / f"{name}.toml")


def test_a_project_recipe_does_nothing_until_trusted_and_not_after_it_changes(ask: Ask, home: Path) -> None:
    path = recipe(
        home / "project/.rocmpip/recipes",
        '[build.env]\nFOO_A = "x"\n[build]\nprepare = [["python", "gen.py"]]\n'.replace("[build]\n", ""),
        "foo",
    )
    path.write_text(
        'schema = 1\n[package]\nname = "foo"\n[build]\nprepare = [["python", "gen.py"]]\n[build.env]\nFOO_A = "x"\n'
    )

    def active() -> bool:
        return ask("show", "foo", "--gfx", "gfx90a")[0] == 0

    assert not active()
    assert "rocmpip recipe trust" in ask("list")[1]["skipped"][0]
    _, result = ask("trust", ".")
    assert result["recipes"][0]["sets"] == ["FOO_A"]
    assert result["recipes"][0]["runs"] == ["python gen.py"]
    assert active()
    assert ask("list")[1]["skipped"] == []
    path.write_text(path.read_text().replace('"x"', '"y"'))
    assert not active()
    assert "changed since" in ask("list")[1]["skipped"][0]
    ask("trust", ".rocmpip/recipes")
    assert active()
    recipe(home / "project/.rocmpip/recipes", "", "bar")
    assert not active()
    ask("trust", ".")
    assert active()
    assert ask("trust", "--forget", ".")[1]["forgotten"] is True
    assert not active()


def test_a_faulty_project_recipe_is_not_trusted(ask: Ask, home: Path) -> None:
    recipe(home / "project/.rocmpip/recipes", '[build.env]\nLD_PRELOAD = "x"\n')
    code, told = ask("trust", ".")
    assert code == 45
    assert "LD_PRELOAD" in told["errors"][0]["details"][0]
    assert ask("list")[0] == 0


def test_project_settings_can_be_trusted(ask: Ask, home: Path) -> None:
    (home / "project/pyproject.toml").write_text('[tool.rocmpip]\npytorch_url = "https://mirror.example"\n')
    assert ask("trust", ".")[1]["settings"].endswith("pyproject.toml")


def test_layers_in_order(home: Path) -> None:
    recipe(home / "home/.config/rocmpip/recipes", '[build.env]\nFOO_A = "user"\n')
    recipe(home / "more", '[build.env]\nFOO_A = "path"\n')
    named = recipe(home / "named", '[build.env]\nFOO_A = "named"\n', "foo")
    env = {"HOME": str(home / "home")}

    def layer(settings: Settings, *files: str) -> str:
        found = load_layers(settings, env, str(home / "project"), files).get("foo")
        assert found is not None
        return found.clauses[0].env[0].value

    assert layer(Settings()) == "user"
    assert layer(Settings(recipe_path=(str(home / "more"),))) == "path"
    assert layer(Settings(recipe_path=(str(home / "more"),)), str(named)) == "named"
    with pytest.raises(UsageError, match="no recipe file"):
        load_layers(Settings(), env, str(home), ("missing.toml",))


def test_a_named_recipe_may_have_any_file_name(ask: Ask, home: Path) -> None:
    path = recipe(home / "x").rename(home / "try-this.toml")
    assert ask("show", "foo", "--recipe", str(path))[1]["layer"] == "--recipe"


# -- the pages -----------------------------------------------------------------------------------------------------


def test_the_page_of_recipes_is_current() -> None:
    made = page(load_book([("shipped", shipped_folder())]))
    assert (DOCS / "reference/recipes.md").read_text(encoding="utf-8") == made, (
        "python -m rocmpip.recipe.document > docs/reference/recipes.md"
    )


def test_the_format_page_has_every_key_and_placeholder() -> None:
    text = (DOCS / "reference/recipe-format.md").read_text(encoding="utf-8")
    for name in MEANINGS:
        assert "{" + name + "}" in text
    faults = Faults(file="x")
    decode(
        {
            "schema": 1,
            "package": {"name": "x", "?": 1},
            "source": {"?": 1},
            "build": {"?": 1, "ulimits": {"?": 1}},
            "system": {"?": 1},
            "verify": {"?": 1},
            "?": 1,
        },
        faults,
    )
    allowed = {
        word.strip(" )") for line in faults.lines if "(allowed: " in line for word in line.split("(allowed: ")[1].split(",")
    }
    assert {"memory_per_job", "submodules", "cuda_name", "must_not_link"} <= allowed
    assert [word for word in allowed if word not in text] == []
