"""Settings: the order of sources, what a project may not say, every fault at once, and edits that keep comments."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from rocmpip.model.errors import BadConfiguration, UsageError
from rocmpip.model.settings import Settings
from rocmpip.store.settings import load_settings
from rocmpip.store.settings_file import set_value, unset_value
from rocmpip.store.settings_table import BY_KEY, ROWS, read_value
from tests.support import commands


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    project = tmp_path / "project" / "src"
    project.mkdir(parents=True)
    return {
        "site": tmp_path / "site.toml",
        "user": tmp_path / "home/.config/rocmpip/config.toml",
        "project": tmp_path / "project/pyproject.toml",
        "cwd": project,
        "home": tmp_path / "home",
    }


def load(places: dict[str, Path], flags: dict[str, object] | None = None, trusted: bool = False, **env: str) -> Settings:
    return load_settings(
        flags or {},
        {"HOME": str(places["home"]), **env},
        str(places["cwd"]),
        trusted=lambda path: trusted and path == places["project"],
        site=places["site"],
    )


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_table_and_dataclass_have_the_same_fields() -> None:
    fields = {field.name for field in structs.fields(Settings)} - {"where", "notes"}
    assert fields == set(BY_KEY)
    assert all(row.help.endswith(".") or row.help.endswith(")") for row in ROWS)


def test_built_in(places: dict[str, Path]) -> None:
    settings = load(places)
    assert settings.channel == "stable"
    assert settings.where == {}
    assert settings.cache_dir == str(places["home"] / ".cache/rocmpip")
    assert settings.state_dir == str(places["home"] / ".local/state/rocmpip")


def test_each_source_wins_over_those_below(places: dict[str, Path]) -> None:
    write(places["site"], 'rocm = "6.0"\nchannel = "nightly"\n')
    assert (load(places).rocm, load(places).where["rocm"]) == ("6.0", str(places["site"]))
    write(places["user"], 'rocm = "6.1"\n')
    assert (load(places).rocm, load(places).where["rocm"]) == ("6.1", str(places["user"]))
    write(places["project"], '[tool.rocmpip]\nrocm = "6.2"\n')
    assert load(places).rocm == "6.2"
    assert "[tool.rocmpip]" in load(places).where["rocm"]
    assert load(places, ROCMPIP_ROCM="6.3").rocm == "6.3"
    flagged = load(places, {"rocm": "6.4"}, ROCMPIP_ROCM="6.3")
    assert (flagged.rocm, flagged.where["rocm"], flagged.channel) == ("6.4", "--rocm", "nightly")


def test_what_was_not_said_does_not_count(places: dict[str, Path]) -> None:
    settings = load(places, {"rocm": None, "gfx": (), "python": "", "jobs": None}, ROCMPIP_ROCM="", ROCMPIP_JOBS="0")
    assert settings.rocm == ""
    assert settings.where == {"jobs": "ROCMPIP_JOBS"}


def test_kinds(places: dict[str, Path]) -> None:
    write(
        places["user"],
        'gfx = "gfx942;gfx90a:xnack-"\nrecipe-path = ["r", "~/s", "/t"]\ncache_dir = "c"\njobs = 8\nhsa_override = true\n'
        'amd_7_url = "https://mirror.example/rocm/whl-multi-arch/"\n',
    )
    settings = load(places, ROCMPIP_CATALOGUE_PATH=f"a{os.pathsep}/b", ROCMPIP_MAP_CUDA_NAMES="on")
    folder = places["user"].parent
    assert settings.gfx == ("gfx942", "gfx90a:xnack-")
    assert settings.recipe_path == (str(folder / "r"), str(places["home"] / "s"), "/t")
    assert settings.catalogue_path == (str(places["cwd"] / "a"), "/b")
    assert settings.cache_dir == str(folder / "c")
    assert (settings.jobs, settings.hsa_override, settings.map_cuda_names) == (8, True, True)


def test_none_and_several_targets(places: dict[str, Path]) -> None:
    held = load(places, ROCMPIP_GFX="None", ROCMPIP_ROCM="none")
    assert (held.gfx, held.rocm) == (("none",), "none")
    assert load(places, {"gfx": ("gfx942,gfx90a", "gfx1100")}).gfx == ("gfx942", "gfx90a", "gfx1100")
    with pytest.raises(UsageError, match="--gfx: 'none' is not a gfx target"):
        load(places, {"gfx": "none,gfx942"})


def test_a_bad_flag_is_a_usage_error(places: dict[str, Path]) -> None:
    write(places["user"], "jobs = -1\n")
    with pytest.raises(UsageError, match="--rocm: 'six' is not a ROCm version") as caught:
        load(places, {"rocm": "six"})
    assert caught.value.exit_code == 2


CODE_KEYS = ["python", "pytorch_url", "amd_7_url", "amd_10_url", "cache_dir", "state_dir", "recipe_path", "catalogue_path"]


def test_a_project_says_where_code_comes_from_only_when_trusted(places: dict[str, Path]) -> None:
    assert [row.key for row in ROWS if row.needs_trust] == CODE_KEYS
    lines = [f'{key} = "file:///evil"' if key.endswith("url") else f'{key} = "/evil"' for key in CODE_KEYS]
    write(places["project"], "[tool.rocmpip]\n" + "\n".join(lines) + '\ngfx = ["gfx1100"]\n')
    held = load(places)
    assert held.gfx == ("gfx1100",)
    assert all("evil" not in str(getattr(held, key)) for key in CODE_KEYS)
    assert "pytorch_url" in held.notes[0]
    assert "trust" in held.notes[0]
    free = load(places, trusted=True)
    assert all("evil" in str(getattr(free, key)) for key in CODE_KEYS)
    assert free.notes == ()


def test_by_default_the_trust_file_is_asked(places: dict[str, Path]) -> None:
    from rocmpip.store.trust import TrustStore, state_folder

    env = {"HOME": str(places["home"])}
    write(places["project"], '[tool.rocmpip]\npytorch_url = "https://mirror.example"\n')
    assert load_settings({}, env, str(places["cwd"]), site=places["site"]).pytorch_url == ""
    TrustStore(state_folder(env)).trust(pyproject=places["project"])
    assert load_settings({}, env, str(places["cwd"]), site=places["site"]).pytorch_url == "https://mirror.example"
    write(places["project"], '[tool.rocmpip]\npytorch_url = "https://other.example"\n')
    assert load_settings({}, env, str(places["cwd"]), site=places["site"]).pytorch_url == ""


def test_every_fault_is_told_at_once_with_file_and_key(places: dict[str, Path]) -> None:
    write(places["site"], 'chanel = "test"\n')
    write(places["user"], 'channel = "beta"\njobs = -1\n')
    write(places["project"], '[tool.rocmpip]\ngfx = ["gfx9x"]\n')
    with pytest.raises(BadConfiguration) as caught:
        load(places, ROCMPIP_PYTORCH_URL="ftp://me:secret@host/")
    text = "\n".join(caught.value.details)
    assert len(caught.value.details) == 5
    assert "'chanel' (did you mean channel?)" in text
    assert f"{places['user']}: channel: 'beta' is not one of stable, test, nightly" in text
    assert f"{places['user']}: jobs" in text
    assert "'gfx9x' is not a gfx target" in text
    assert "ROCMPIP_PYTORCH_URL" in text
    assert "secret" not in text
    assert caught.value.exit_code == 45


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", b"= = =", b'rocm = "6.4"\nrocm = "6.4"\n', b"[" * 100_000, b"#" * (2 << 20)]
)
def test_a_broken_user_file_is_told(places: dict[str, Path], content: bytes) -> None:
    places["user"].parent.mkdir(parents=True)
    places["user"].write_bytes(content)
    with pytest.raises(BadConfiguration, match=str(places["user"])):
        load(places)


def test_a_folder_in_place_of_the_file_is_told(places: dict[str, Path]) -> None:
    places["user"].mkdir(parents=True)
    with pytest.raises(BadConfiguration, match="cannot be read"):
        load(places)


def test_a_pyproject_that_does_not_speak_of_us_may_be_broken(places: dict[str, Path]) -> None:
    write(places["project"], "[project\nname = rocmpip?\n")
    assert load(places).rocm == ""
    write(places["project"], "[tool.rocmpip]\nrocm = \n")
    with pytest.raises(BadConfiguration, match=r"pyproject\.toml"):
        load(places)
    write(places["project"], '[tool]\nrocmpip = "yes"\n')
    with pytest.raises(BadConfiguration, match="not a table"):
        load(places)


def test_named_config_and_xdg(places: dict[str, Path], tmp_path: Path) -> None:
    write(tmp_path / "named.toml", 'rocm = "7.0"\n')
    write(tmp_path / "xdg/rocmpip/config.toml", 'rocm = "7.1"\n')
    assert load(places, ROCMPIP_CONFIG=str(tmp_path / "named.toml")).rocm == "7.0"
    assert load(places, XDG_CONFIG_HOME=str(tmp_path / "xdg")).rocm == "7.1"
    assert load(places, ROCMPIP_CONFIG=os.devnull, XDG_CONFIG_HOME=str(tmp_path / "xdg")).rocm == ""
    assert load(places, XDG_CACHE_HOME="/x").cache_dir == "/x/rocmpip"


def test_without_a_home_folders_still_have_a_value(places: dict[str, Path]) -> None:
    settings = load_settings({}, {}, str(places["cwd"]), site=places["site"])
    assert Path(settings.cache_dir).is_absolute()
    assert settings.cache_dir != settings.state_dir


@given(
    st.sampled_from(ROWS),
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.text()), st.dates()),
)
def test_any_value_is_read_or_refused_in_words(row: object, raw: object) -> None:
    assert isinstance(row, type(ROWS[0]))
    try:
        value = read_value(row, raw, Path("/base"), "/home")
    except ValueError as problem:
        assert "is not" in str(problem) or "unknown target feature" in str(problem)
    else:
        assert type(value) is type(getattr(Settings(), row.key))


def test_set_keeps_comments_and_spelling_and_unset_takes_out(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.toml"
    set_value(path, "rocm", "6.4")
    assert path.read_text() == 'rocm = "6.4"\n'
    assert path.parent.stat().st_mode & 0o077 == 0
    path.write_text('# mine\npytorch-url = "https://a.example"  # mirror\n\njobs = 2\n')
    path.chmod(0o600)
    set_value(path, "pytorch_url", "https://b.example")
    set_value(path, "gfx", ("gfx942", "gfx90a"))
    assert path.read_text() == ('# mine\npytorch-url = "https://b.example"  # mirror\n\njobs = 2\ngfx = ["gfx942", "gfx90a"]\n')
    assert path.stat().st_mode & 0o777 == 0o600
    assert unset_value(path, "pytorch_url")
    assert not unset_value(path, "pytorch_url")
    assert path.read_text() == '# mine\n\njobs = 2\ngfx = ["gfx942", "gfx90a"]\n'
    assert [child.name for child in path.parent.iterdir()] == ["config.toml"]


def test_set_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("jobs = 1\n")
    (tmp_path / "config.toml").symlink_to(real)
    set_value(tmp_path / "config.toml", "jobs", 3)
    assert (tmp_path / "config.toml").is_symlink()
    assert real.read_text() == "jobs = 3\n"


def test_a_broken_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("= broken")
    with pytest.raises(BadConfiguration):
        set_value(path, "jobs", 3)
    assert path.read_text() == "= broken"


def rocmpip(*argv: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return commands.rocmpip(*argv, cwd=cwd, env={**os.environ, **env})


def test_the_command(tmp_path: Path) -> None:
    env = {"ROCMPIP_CONFIG": str(tmp_path / "c.toml"), "ROCMPIP_JOBS": "3"}
    assert rocmpip("settings", "set", "gfx", "gfx942", cwd=tmp_path, **env).returncode == 0
    shown = rocmpip("settings", cwd=tmp_path, **env)
    assert f"gfx             gfx942  ({tmp_path}/c.toml)" in shown.stdout
    assert "jobs            3  (ROCMPIP_JOBS)" in shown.stdout
    told = commands.envelope(rocmpip("settings", "--json", cwd=tmp_path, **env))
    assert told["ok"] is True
    assert {"key": "jobs", "value": 3, "source": "ROCMPIP_JOBS", "variable": "ROCMPIP_JOBS"} in told["result"]["settings"]
    undone = json.loads(rocmpip("settings", "unset", "gfx", "--json", cwd=tmp_path, **env).stdout)
    assert undone["result"]["removed"] is True
    bad = rocmpip("settings", "set", "channel", "beta", "--json", cwd=tmp_path, **env)
    assert (bad.returncode, json.loads(bad.stdout)["errors"][0]["code"]) == (2, 2)
    assert rocmpip("settings", "set", "nonsense", "1", cwd=tmp_path, **env).returncode == 2
    (tmp_path / "c.toml").write_text("jobs = 'many'\n")
    env.pop("ROCMPIP_JOBS")
    wrong = rocmpip("settings", "--json", cwd=tmp_path, **env)
    assert (wrong.returncode, json.loads(wrong.stdout)["errors"][0]["code"]) == (45, 45)


def test_credentials_are_not_shown(tmp_path: Path) -> None:
    env = {"ROCMPIP_CONFIG": os.devnull, "ROCMPIP_PYTORCH_URL": "https://me:secret@mirror.example/"}
    shown = rocmpip("settings", cwd=tmp_path, **env).stdout + rocmpip("settings", "--json", cwd=tmp_path, **env).stdout
    assert "secret" not in shown
    assert "mirror.example" in shown


def test_loading_without_files_parses_no_toml(tmp_path: Path) -> None:
    code = (
        "import sys; from rocmpip.store.settings import load_settings; "
        f"load_settings({{}}, {{'HOME': {str(tmp_path)!r}}}, {str(tmp_path)!r}); "
        "print(sorted({'tomllib', 'tomli', 'tomlkit', 'click', 'difflib', 'packaging'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
