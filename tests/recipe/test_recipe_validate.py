"""The validator against recipes that attack, that are wrong, and that are garbage: refused, all told, nothing run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocmpip.model.errors import BadConfiguration
from rocmpip.recipe.book import load_book, shipped_folder
from rocmpip.recipe.decode import decode
from rocmpip.recipe.faults import Faults

HEAD = 'schema = 1\n[package]\nname = "evil"\n'
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def faults_of(text: str | bytes, folder: Path, name: str = "evil.toml") -> tuple[str, ...]:
    """The faults that loading one recipe file tells; () when it is in order."""
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    try:
        load_book([("user", folder / name)])
    except BadConfiguration as problem:
        assert problem.exit_code == 45
        assert problem.details
        assert problem.hint
        return problem.details
    return ()


def env(name: str, value: str = "x") -> str:
    return HEAD + f"[build.env]\n{name} = {value!r}\n"


NEVER = [
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "PATH",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_COUNT",
    "GIT_EXEC_PATH",
    "BASH_ENV",
    "ENV",
    "IFS",
    "PS4",
    "PIP_INDEX_URL",
    "PIP_CONFIG_FILE",
    "UV_INDEX_URL",
    "ROCMPIP_PYTHON",
    "HOME",
    "TMPDIR",
    "NETRC",
    "HTTPS_PROXY",
    "GH_TOKEN",
    "AWS_SECRET",
    "SSL_CERT_FILE",
    "CC",
    "CXX",
    "PERL5LIB",
    "NODE_OPTIONS",
    "GCONV_PATH",
    "CMAKE_TOOLCHAIN_FILE",
    "VLLM_ROCM_WHEEL_INDEX",
    "VLLM_PRECOMPILED_WHEEL_LOCATION",
    "ld_preload",
    "MAX JOBS",
    "A=B",
    "",
    "OTHER_PACKAGE_FLAG",
]


@pytest.mark.parametrize("name", NEVER)
def test_variables_that_steer_what_code_runs_are_refused(name: str, tmp_path: Path) -> None:
    told = faults_of(HEAD + f'[build.env]\n"{name}" = "x"\n', tmp_path)
    assert len(told) == 1
    assert "build.env" in told[0]


@pytest.mark.parametrize("name", ["git", "pip", "python", "ld", "path", "ssh"])
def test_a_package_name_opens_no_forbidden_prefix(name: str, tmp_path: Path) -> None:
    text = f'schema = 1\n[package]\nname = "{name}"\n[build.env]\n{name.upper()}_COMMAND = "x"\n'
    told = faults_of(text, tmp_path, f"{name}.toml")
    assert bool(told) == (name != "path")  # PATH_COMMAND is nobody's variable but the package's own


@pytest.mark.parametrize(
    "name",
    [
        "PYTORCH_ROCM_ARCH",
        "GPU_ARCHS",
        "HIP_ARCHS",
        "HIP_ARCHITECTURES",
        "CMAKE_ARGS",
        "MAX_JOBS",
        "BUILD_TARGET",
        "DS_BUILD_OPS",
        "FLASH_ATTENTION_FORCE_BUILD",
        "VLLM_TARGET_DEVICE",
        "EVIL_FLAG",
    ],
)
def test_variables_of_rocm_builds_and_of_the_package_are_allowed(name: str, tmp_path: Path) -> None:
    assert faults_of(env(name), tmp_path) == ()


@pytest.mark.parametrize(
    "value",
    [
        "$(touch owned)",
        "`touch owned`",
        "${HOME}",
        "$HOME",
        "a; touch owned",
        "a ;touch owned",
        "a | sh",
        "a && b",
        "a > /tmp/x",
        "a < b",
        "../up",
        "x/../../y",
        "/etc/passwd",
        "-I/usr/include",
        "-DX=/opt/rocm",
        "a:/b",
        "{gfx",
        "gfx}",
        "{}",
        "{unknown}",
        "{gfx:|}",
        "{gfx!r}",
        "{0}",
        "{{gfx}}",
        "{rocm_path.__class__}",
        "a\u0000b",
        "a\u001b[31mb",
        "a\nb",
        "x" * 5000,
        "-L../lib",
        "{rocm_path}/../../etc",
        "dir;../x",
    ],
)
def test_shell_text_paths_and_bad_placeholders_are_refused(value: str, tmp_path: Path) -> None:
    quoted = value.encode("unicode_escape").decode().replace("\\x", "\\u00")
    for place in ("build.env]\nEVIL_A", "runtime]\nEVIL_A", "build.config_settings]\na"):
        told = faults_of(HEAD + f'[{place} = "{quoted}"\n', tmp_path)
        assert len(told) == 1, (value, told)
    assert not (tmp_path / "owned").exists()
    assert not Path("owned").exists()


@pytest.mark.parametrize(
    "value",
    [
        "gfx90a;gfx942",
        "{gfx:;}",
        "{gfx:,}",
        "{gfx: }",
        "-DA=on -DGPU_TARGETS={gfx:;}",
        "{rocm_path}/bin/hipcc",
        "third_party/ck",
        "",
        "-j{jobs}",
        "1",
        "a..b",
    ],
)
def test_honest_values_are_allowed(value: str, tmp_path: Path) -> None:
    assert faults_of(HEAD + f'[build.env]\nEVIL_A = "{value}"\n', tmp_path) == ()


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c touch% owned",
        "ssh://git@host/x",
        "git@host:x/y",
        "git://host/x",
        "file:///etc",
        "http://host/x",
        "https://user:secret@host/x",
        "https://host/x?y=z",
        "https://host/x#y",
        "https://host/../x",
        "--upload-pack=touch owned",
        "/local/repository",
        "../repository",
        "https:///x",
        "https://host:99999/x",
        "HTTPS://",
        "https://ho st/x",
        "https://-oProxyCommand=x/y",
        "ext::https://host/x",
        "https://host/x;touch owned",
        "git+https://host/x",
        "https://[::1/x",
    ],
)
def test_sources_other_than_git_over_https_are_refused(url: str, tmp_path: Path) -> None:
    told = faults_of(HEAD + f'[source]\nkind = "git"\nurl = "{url}"\ncommit = "{COMMIT}"\n', tmp_path)
    assert len(told) == 1
    assert "source.url" in told[0]
    assert "secret" not in told[0]


@pytest.mark.parametrize(
    "commit", ["main", "v1.0", "0123abc", COMMIT.upper(), COMMIT + "0", "", "HEAD", "-x", COMMIT[:-1] + "g"]
)
def test_commits_are_full(commit: str, tmp_path: Path) -> None:
    text = HEAD + f'[source]\nkind = "git"\nurl = "https://host.example/x/y"\ncommit = "{commit}"\n'
    assert any("commit" in line for line in faults_of(text, tmp_path))


@pytest.mark.parametrize("path", ["../x", "/etc", "a/../../b", "~/x", "C:\\\\x", "a\\\\..\\\\b", "..", "a/..", "a\\u0000b"])
def test_paths_stay_inside_the_source(path: str, tmp_path: Path) -> None:
    text = HEAD + f'[source]\nkind = "git"\nurl = "https://host.example/x/y"\ncommit = "{COMMIT}"\nsubdirectory = "{path}"\n'
    assert any("subdirectory" in line for line in faults_of(text, tmp_path))
    assert any("prepare" in line for line in faults_of(HEAD + f'[build]\nprepare = [["python", "{path}/x.py"]]\n', tmp_path))


@pytest.mark.parametrize(
    "step",
    [
        '["sh", "-c", "touch owned"]',
        '["bash", "x.py"]',
        '["python", "-c", "import os"]',
        '["python", "-m", "pip"]',
        '["python"]',
        "[]",
        '["python", "/x.py"]',
        '["python", "../x.py"]',
        '["/usr/bin/python", "x.py"]',
        '["python", "x.py", "$(id)"]',
        '["python", "x.py", "../y"]',
        '["python", "x.sh"]',
        '["git", "clone"]',
        '["python", 3]',
        '"python x.py"',
        "3",
        '["python3", "x.py"]',
        '["python", "x.py", "{nope}"]',
    ],
)
def test_prepare_runs_scripts_of_the_source_alone(step: str, tmp_path: Path) -> None:
    told = faults_of(HEAD + f"[build]\nprepare = [{step}]\n", tmp_path)
    assert told
    assert all("build.prepare" in line for line in told)


def test_prepare_in_order(tmp_path: Path) -> None:
    assert (
        faults_of(HEAD + '[build]\nprepare = [["python", "tools/amd_build/build_amd.py", "--arch", "{gfx:;}"]]\n', tmp_path)
        == ()
    )


@pytest.mark.parametrize(
    "line",
    [
        'requires = ["x @ https://host.example/x.whl"]',
        'requires = ["x @ file:///etc"]',
        'requires = ["-r other.txt"]',
        'requires = ["--index-url=x"]',
        'requires = ["not a requirement!"]',
        "requires = [1]",
        'requires = "x"',
    ],
)
def test_requirements_come_from_indexes(line: str, tmp_path: Path) -> None:
    assert len(faults_of(HEAD + f"[build]\n{line}\n", tmp_path)) == 1
    assert len(faults_of(HEAD + f"[metadata]\n{line}\n", tmp_path)) == 1


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[package]\nname = 'evil'\n", "schema"),
        ("schema = 2\n[package]\nname = 'evil'\n", "schema"),
        ("schema = true\n[package]\nname = 'evil'\n", "schema"),
        ("schema = 1.0\n[package]\nname = 'evil'\n", "schema"),
        ("schema = 1\n", "package"),
        ("schema = 1\npackage = 3\n", "package"),
        ("schema = 1\n[package]\n", "package.name"),
        ("schema = 1\n[package]\nname = 5\n", "package.name"),
        ("schema = 1\n[package]\nname = '../evil'\n", "package.name"),
        ("schema = 1\n[package]\nname = 'other'\n", ""),
        (HEAD + "colour = 'red'\n", "package.colour"),
        (HEAD + "aliases = 'x'\n", "package.aliases"),
        (HEAD + "extends = 'numpy'\n", "package.extends"),
        (HEAD + "extends = '_nothing'\n", "package.extends"),
        (HEAD + "extends = 'evil'\n", "package.extends"),
        (HEAD + "[whatever]\nx = 1\n", "whatever"),
        (HEAD + "[build]\nisolation = 'yes'\n", "build.isolation"),
        (HEAD + "[build]\nmemory_per_job = '4 GB'\n", "build.memory_per_job"),
        (HEAD + "[build]\nmemory_per_job = -1\n", "build.memory_per_job"),
        (HEAD + "[build]\nmemory_per_job = nan\n", "build.memory_per_job"),
        (HEAD + "[build]\nmemory_per_job = true\n", "build.memory_per_job"),
        (HEAD + "[build.env]\nMAX_JOBS = 4\n", "build.env.MAX_JOBS"),
        (HEAD + "[build.env]\nMAX_JOBS = { value = '4', sudo = true }\n", "build.env.MAX_JOBS.sudo"),
        (HEAD + "[build.env]\nMAX_JOBS = { force = true }\n", "build.env.MAX_JOBS.value"),
        (HEAD + "[build.env]\nMAX_JOBS = { value = '4', force = 1 }\n", "build.env.MAX_JOBS.force"),
        (HEAD + "[build]\nenv = ['MAX_JOBS=4']\n", "build.env"),
        (HEAD + "[build.config_settings]\n'--index-url' = 'x'\n", "build.config_settings"),
        (HEAD + "[build.ulimits]\ncore = 1\n", "build.ulimits.core"),
        (HEAD + "[build.ulimits]\nstack = 'unlimited'\n", "build.ulimits.stack"),
        (HEAD + "[source]\nkind = 'svn'\n", "source.kind"),
        (HEAD + f"[source]\nkind = 'git'\ncommit = '{COMMIT}'\n", "source.url"),
        (HEAD + "[source]\nkind = 'git'\nurl = 'https://host.example/x'\n", "source.commit"),
        (HEAD + "[source]\nurl = 'https://host.example/x'\n", "source.kind"),
        (HEAD + "[source]\nkind = 'none'\n", "source.reason"),
        (HEAD + "[[when]]\nnotes = ['x']\n", "when[1]"),
        (HEAD + "[[when]]\nversion = 'new'\n", "when[1].version"),
        (HEAD + "[[when]]\nrocm = '~=7.2'\n", "when[1].rocm"),
        (HEAD + "[[when]]\ngfx = 'mi300'\n", "when[1].gfx"),
        (HEAD + "[[when]]\nbackend = 'ck'\n", "when[1].backend"),
        (HEAD + "[[when]]\ngfx = 'gfx942'\n[when.package]\nname = 'x'\n", "when[1].package"),
        (HEAD + "[when]\ngfx = 'gfx942'\n", "when"),
        (HEAD + "[[conflict]]\nmessage = 'x'\nway_out = 'y'\n", "conflict[1].when"),
        (HEAD + "[[conflict]]\nwhen = { torch = '>=2' }\nway_out = 'y'\n", "conflict[1].message"),
        (HEAD + "[[conflict]]\nwhen = { torch = '>=2' }\nmessage = 'x'\n", "conflict[1].way_out"),
        (HEAD + "[[conflict]]\nwhen = { torch = '>=2', cuda = '12' }\nmessage = 'x'\nway_out = 'y'\n", "conflict[1].when.cuda"),
        (HEAD + "[[conflict]]\nwhen = { torch = '>=2' }\nmessage = 'x'\nway_out = 'y'\nscope = 'all'\n", "conflict[1].scope"),
        (HEAD + "[refuse]\nmessage = 'x'\n", "refuse.way_out"),
        (HEAD + "[[wheels]]\nindex = 'http://host.example/'\n", "wheels[1].index"),
        (HEAD + "[[wheels]]\nindex = 'https://u:p@host.example/'\n", "wheels[1].index"),
        (HEAD + "[[wheels]]\nindex = 'https://host.example/{nope}/'\n", "wheels[1].index"),
        (HEAD + "[[wheels]]\nindex = 'default'\nname = 'Not Normal'\n", "wheels[1].name"),
        (HEAD + "[[wheels]]\nindex = 'default'\nlocal = '+rocm'\n", "wheels[1].local"),
        (HEAD + "[system]\ntools = ['../../bin/sh']\n", "system.tools"),
        (HEAD + "[system]\ntools = ['cmake>=three']\n", "system.tools"),
        (HEAD + "[system]\ncmake = ['@nothing']\n", "system.cmake"),
        (HEAD + "[system]\nheaders = ['../etc/passwd']\n", "system.headers"),
        (HEAD + "[system]\nheaders = [{ name = 'a.h', yum = 'x' }]\n", "system.headers"),
        (HEAD + "[verify]\nimport = 'os; x'\n", "verify.import"),
        (HEAD + "[verify]\nmust_not_link = ['../x']\n", "verify.must_not_link"),
        (HEAD + "[[release]]\nversion = '1'\ncommit = 'main'\n", "release[1].commit"),
        (HEAD + "[[cuda_name]]\nnames = []\nname = 'x'\n", "cuda_name[1].names"),
        (HEAD + "[metadata]\nrequires = 2026-01-01\n", "metadata.requires"),
    ],
)
def test_each_wrong_key_is_told_by_its_path(text: str, where: str, tmp_path: Path) -> None:
    if text.startswith("schema = 1\n[package]\nname = 'other'"):
        (tmp_path / "evil.toml").write_text(text)
        with pytest.raises(BadConfiguration) as caught:
            load_book([("user", tmp_path)])
        assert "evil.toml: package.name" in caught.value.details[0]
        return
    told = faults_of(text, tmp_path)
    assert any(f"evil.toml: {where}" in line for line in told), told


def test_all_faults_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(
        "schema = 1\n[package]\nname = 'one'\n[build.env]\nLD_PRELOAD = 'x'\nPATH = 'y'\nMAX_JOBS = 3\n[bild]\n"
    )
    (tmp_path / "two.toml").write_text(
        "schema = 1\n[package]\nname = 'two'\n[source]\nkind = 'git'\nurl = 'ext::sh'\ncommit = 'main'\n"
    )
    (tmp_path / "three.toml").write_text("schema = \n")
    with pytest.raises(BadConfiguration) as caught:
        load_book([("user", tmp_path)])
    told = "\n".join(caught.value.details)
    for word in ("LD_PRELOAD", "env.PATH", "MAX_JOBS", "bild", "source.url", "source.commit", "three.toml: is not TOML"):
        assert word in told
    assert len(caught.value.details) == 7
    assert "7 faults" in caught.value.message


@pytest.mark.parametrize(
    "content",
    [
        b"schema = 1\x00\n",
        b"\xff\xfe\x00",
        b"schema = '\xe9'\n",
        b"x = " + b"[" * 5000 + b"]" * 5000,
        b"x = " + b"{a=" * 3000 + b"1" + b"}" * 3000,
        b"[" + b"a." * 3000 + b"b]\n",
        b"#" * (300 * 1024),
        b"x = " + b"9" * 10000,
        b"x = 1\nx = 2\n",
        b"x = 99999-99-99\n",
        b"",
        b"\xef\xbb\xbf",
        b"[[a]]\n[a]\n",
        b"x = inf\n",
        b'"" = 1\n',
        b"x = [" + b"1," * 100_000 + b"]",
    ],
)
def test_broken_files_are_told_not_crashed_on(content: bytes, tmp_path: Path) -> None:
    assert faults_of(content, tmp_path)


def test_what_is_no_regular_file_is_told_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "gone.toml").symlink_to(tmp_path / "nothing")
    (tmp_path / "loop.toml").symlink_to(tmp_path / "loop.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(BadConfiguration) as caught:
        load_book([("user", tmp_path)])
    assert len(caught.value.details) == 4
    assert load_book([("user", tmp_path / "missing")]).names() == ()


def test_a_flood_of_faults_is_counted(tmp_path: Path) -> None:
    lines = "\n".join(f"k{number} = 1" for number in range(250))
    told = faults_of(HEAD + lines, tmp_path)
    assert len(told) == 101
    assert told[-1] == "… and 150 more"


def test_faults_hold_no_terminal_escapes(tmp_path: Path) -> None:
    told = faults_of(HEAD + '"k\\u001b[31m" = "\\u001b[0m"\n', tmp_path)
    assert told
    assert all(char.isprintable() for line in told for char in line)


def test_shipped_recipes_are_in_order() -> None:
    assert len(load_book([("shipped", shipped_folder())]).names()) >= 30


KEYS = st.sampled_from(
    [
        "schema",
        "package",
        "source",
        "metadata",
        "wheels",
        "system",
        "build",
        "when",
        "conflict",
        "runtime",
        "verify",
        "refuse",
        "release",
        "backend",
        "cuda_name",
        "name",
        "version",
        "gfx",
        "env",
        "requires",
        "kind",
        "url",
        "commit",
        "prepare",
        "tools",
        "message",
        "drop",
        "notes",
        "index",
        "MAX_JOBS",
        "names",
        "torch",
        "extends",
    ]
)
LEAVES = st.one_of(
    st.none().map(lambda _: 1),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.just("evil"),
    st.just("{gfx:;}"),
    st.just(">=1"),
    st.just("git"),
    st.dates(),
    st.just("gfx942"),
    st.just(COMMIT),
    st.just("https://host.example/x"),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(KEYS, st.text(max_size=6)), inner, max_size=5)
    ),
    max_leaves=25,
)


@given(st.dictionaries(st.one_of(KEYS, st.text(max_size=6)), VALUES, max_size=8))
@settings(max_examples=300, deadline=None)
def test_any_data_decodes_or_is_told(data: dict[str, object]) -> None:
    faults = Faults(file="x.toml")
    recipe = decode({"schema": 1, **data}, faults)
    assert faults.lines or recipe.name
    assert all(char.isprintable() for line in faults.lines for char in line)


@given(st.binary(max_size=400))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_load_or_are_told(tmp_path: Path, content: bytes) -> None:
    assert faults_of(content, tmp_path)


@given(st.text(alphabet="${}`;|&<>.:/\\ abgfx_\n", max_size=30))
@settings(max_examples=300, deadline=None)
def test_no_value_with_shell_text_passes(value: str) -> None:
    faults = Faults(file="x.toml")
    decode({"schema": 1, "package": {"name": "evil"}, "build": {"env": {"EVIL_A": value}}}, faults)
    if any(char in value for char in "$`|&<>\n") or "../" in value or value.startswith("/"):
        assert faults.lines
