"""The whole request: our options beside pip's, what is handed on, groups, scripts, unknown options."""

from __future__ import annotations

from typing import Any

import pytest

from rocmpip.argv.refusals import refuse_combinations
from rocmpip.argv.render import uninstall_options
from rocmpip.argv.request import need_requirements
from rocmpip.argv.table import Option
from rocmpip.model.errors import InputError, UsageError


def test_a_cluster_with_a_glued_value(ask: Any) -> None:
    request, _ = ask("install", "-qqUrfile.txt", files={"/project/file.txt": "torch"})
    assert (request.quiet, request.upgrade, request.requirement_files) == (2, True, ("/project/file.txt",))


def test_our_options_are_taken_out(ask: Any) -> None:
    argv = (
        "--gfx gfx942,gfx1100 torch --gfx=gfx90a --rocm 6.4 --channel nightly --json --recipe r.toml --recipe /abs.toml --jobs 3 "
        "--keep-build --only-ready --rebuild a,B --hsa-override --map-cuda-names --python /py"
    )
    request, ours = ask("install", argv)
    assert ours.gfx == ("gfx942", "gfx1100", "gfx90a")
    assert (ours.rocm, ours.channel, ours.json, ours.jobs) == ("6.4", "nightly", True, 3)
    assert ours.recipe == ("/project/r.toml", "/abs.toml")
    assert ours.rebuild == ("a", "B")
    assert ours.keep_build
    assert ours.only_ready
    assert ours.hsa_override
    assert ours.map_cuda_names
    assert ours.python == request.python == "/py"
    assert request.options == ()
    assert [line.name for line in request.requirements] == ["torch"]
    assert request.argv == tuple(argv.split())


def test_a_value_that_looks_like_ours_is_a_value(ask: Any) -> None:
    request, ours = ask("install", "--log --json torch")
    assert not ours.json
    assert request.options == ("--log", "--json")


@pytest.mark.parametrize("argv", ["--jobs 0", "--jobs x", "--channel beta", "--gf gfx942", "--jso", "--json=1"])
def test_our_options_are_checked_and_never_abbreviated(ask: Any, argv: str) -> None:
    with pytest.raises(UsageError):
        ask("install", argv)


def test_python_before_the_command_gives_way_to_the_one_behind_it(ask: Any) -> None:
    assert ask("install", "x", python="/before")[0].python == "/before"
    assert ask("install", "--python /behind x", python="/before")[0].python == "/behind"
    assert ask("install", "x", env={"PIP_PYTHON": "/variable"})[0].python == "/variable"


def test_what_is_not_handed_on(ask: Any) -> None:
    argv = (
        "-i https://a.example --extra-index-url https://b.example -f /w --proxy http://p.example --dry-run --report r.json "
        "--isolated --python /py -c c.txt -r r.txt torch --no-index --only-deps"
    )
    request, _ = ask("install", argv, files={"/project/c.txt": "", "/project/r.txt": ""})
    assert request.options == ()
    assert (request.dry_run, request.report, request.index.proxy) == (True, "r.json", "http://p.example")


def test_the_fields_of_a_request(ask: Any) -> None:
    argv = (
        "-U --upgrade-strategy eager --force-reinstall -I --no-deps --ignore-requires-python --no-build-isolation -C a=b "
        "--target t --prefix p --root r --user --platform linux_x86_64 --python-version 3.12 --abi cp312 --implementation cp "
        "--cert ~/ca.pem --client-cert c.pem --cache-dir ~/cache --keyring-provider import --no-input -vv x"
    )
    request, _ = ask("install", argv, env={"HOME": "/home/me"})
    assert request.upgrade
    assert request.force_reinstall
    assert request.ignore_installed
    assert request.no_deps
    assert request.ignore_requires_python
    assert request.no_build_isolation
    assert (request.upgrade_strategy, request.config_settings, request.verbose) == ("eager", ("a=b",), 2)
    assert (request.target, request.prefix, request.root, request.user) == ("t", "p", "r", True)
    assert (request.platforms, request.python_version) == (("linux_x86_64",), "3.12")
    assert (request.abis, request.implementation) == (("cp312",), "cp")
    assert (request.index.cert, request.index.client_cert, request.cache_dir) == ("/home/me/ca.pem", "c.pem", "/home/me/cache")
    assert (request.index.keyring_provider, request.index.no_input) == ("import", True)
    assert request.requirements[0].config_settings == ("a=b",)


def test_the_pip_that_runs_decides_what_an_abbreviation_means(ask: Any) -> None:
    assert ask("install", "--only=numpy x", pip_version=(24, 0))[0].only_binary == ("numpy",)
    with pytest.raises(UsageError, match=r"^ambiguous option: --only \(--only-binary, --only-dependencies"):
        ask("install", "--only=numpy x", pip_version=(26, 3))


def test_options_newer_than_the_table(ask: Any) -> None:
    known = {"--brand-new": 1, "--brand-flag": 0}
    request, _ = ask("install", "--brand-new v --brand-flag --brand-new=w torch", arity=known.get)
    assert request.options == ("--brand-new", "v", "--brand-flag", "--brand-new=w")
    assert [line.name for line in request.requirements] == ["torch"]
    with pytest.raises(UsageError, match="no such option: --other"):
        ask("install", "--other torch", arity=known.get)


def test_further_options_of_a_command(ask: Any) -> None:
    check = Option("check", "flag", ("--check",))
    write = Option("format", "store", ("--format",))
    request, ours = ask("lock", "--check --format pylock -o out.toml x", extra=(check, write))
    assert ours.extra == (("check", ""), ("format", "pylock"))
    assert request.output == "out.toml"


def test_dependency_groups(ask: Any) -> None:
    text = '[dependency-groups]\nDev = ["torch>=2", {include-group = "test"}]\ntest = ["pytest"]\n'
    request, _ = ask(
        "install",
        "--group dev --group sub/pyproject.toml:test",
        files={"/project/pyproject.toml": text, "/project/sub/pyproject.toml": text},
    )
    assert [line.name for line in request.requirements] == ["torch", "pytest", "pytest"]
    assert request.requirements[0].origin == "pyproject.toml:dev"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[project]\n", "table was missing"),
        ("dependency-groups = 1\n", "table was malformed"),
        ("[dependency-groups]\nx = []\n", "Dependency group 'dev' not found"),
        ('[dependency-groups]\ndev = [{include-group = "b"}]\nb = [{include-group = "Dev"}]\n', "Cyclic"),
        ("[dependency-groups]\ndev = [1]\n", "Invalid dependency group item"),
        ('[dependency-groups]\ndev = ["x=="]\n', "resolution failed"),
        ("[dependency-groups]\ndev = []\nDEV = []\n", "Duplicate"),
        ("[[", "Error parsing"),
    ],
)
def test_bad_dependency_groups(ask: Any, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ask("install", "--group dev", files={"/project/pyproject.toml": text})


def test_a_group_from_another_file_is_refused_in_pips_words(ask: Any) -> None:
    with pytest.raises(UsageError, match=r"--group error: group paths use"):
        ask("install", "--group other.toml:dev")


def test_a_script(ask: Any) -> None:
    text = "# /// script\n# requires-python = '>=3.11'\n# dependencies = [\n#   'torch',\n# ]\n# ///\nimport torch\n"
    request, _ = ask("install", "--requirements-from-script s.py", files={"/project/s.py": text}, python_fits=lambda spec: True)
    assert [line.name for line in request.requirements] == ["torch"]
    with pytest.raises(InputError, match="requires a different Python"):
        ask("install", "--requirements-from-script s.py", files={"/project/s.py": text}, python_fits=lambda spec: False)
    with pytest.raises(InputError, match="does not contain 'script' metadata"):
        ask("install", "--requirements-from-script s.py", files={"/project/s.py": "import torch\n"})


def test_lock_files_are_left_to_pip(ask: Any) -> None:
    request, _ = ask("install", "-r pylock.toml -r pylock.dev.toml --group pylock.toml:docs")
    assert request.pylocks == ("/project/pylock.toml", "/project/pylock.dev.toml", "/project/pylock.toml")
    assert request.requirements == ()


@pytest.mark.parametrize(
    "argv", ["--require-hashes --no-require-hashes x", "--pre --only-final y x", "--only-deps --no-deps x"]
)
def test_what_pip_refuses_together(ask: Any, argv: str) -> None:
    with pytest.raises(InputError):
        ask("install", argv)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("--user --target t x", "Can not combine '--user' and '--target'"),
        ("--python-version 3.1 --only-binary :all:", "Can not use any platform or abi specific options unless installing via"),
        ("--platform linux_x86_64 --only-binary :all: x", "Can not use any platform or abi specific options"),
        ("--abi cp312 --target t x", "either --no-deps must be set, or --only-binary=:all: must be set"),
        ("--abi cp312 --target t --only-binary :all: --no-binary y x", "either --no-deps must be set"),
        ("--implementation cp --dry-run --no-deps -r pylock.toml", "are not supported when selecting requirements from"),
        ("--no-build-isolation --build-constraint b.txt x", "--build-constraint cannot be used with --no-build-isolation."),
    ],
)
def test_what_pip_refuses_before_it_looks_at_requirements(ask: Any, argv: str, message: str) -> None:
    request, _ = ask("install", argv, files={"/project/b.txt": ""})
    with pytest.raises(InputError) as caught:
        refuse_combinations(request)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("install", "--python-version 3.12 --only-binary :all: --target t x"),
        ("install", "--platform linux_x86_64 --no-deps --dry-run x"),
        ("download", "--platform linux_x86_64 --only-binary :all: x"),
        ("install", "--only-binary :all: --user x"),
    ],
)
def test_what_pip_takes_together(ask: Any, command: str, argv: str) -> None:
    request, _ = ask(command, argv)
    refuse_combinations(request)
    assert [line.name for line in request.requirements] == ["x"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ("--updgrade x", ("--updgrade",)),
        ("--re x", ("--re",)),
        ("-Z", ("-Z",)),
        ("--no-index=1 x", ("--no-index=1",)),
        ("x --index-url", ("--index-url",)),
        ("--retries many x", ("--retries", "many")),
        ("--group a:b", ("--group", "a:b")),
        ("--gfx", ()),
        ("--jobs x", ()),
        ("--json=1", ()),
    ],
)
def test_the_words_with_which_pip_refuses_an_option(ask: Any, argv: str, words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as caught:
        ask("install", argv)
    assert caught.value.words == words


def test_options_for_uninstall() -> None:
    options = (
        "--upgrade",
        "--break-system-packages",
        "--log",
        "--target",
        "--quiet",
        "--target",
        "x",
        "--root-user-action",
        "ignore",
    )
    kept = ("--break-system-packages", "--log", "--target", "--quiet", "--root-user-action", "ignore")
    assert uninstall_options(options) == kept


def test_the_words_for_plain_pip(ask: Any) -> None:
    words = "-q --gfx gfx942 --log --json torch --python=/py -U --json --rocm=6.4 --python /py --jobs 2 -- numpy"
    _, ours = ask("install", words)
    assert ours.plain == tuple("-q --log --json torch -U -- numpy".split())


def test_a_command_that_names_nothing(ask: Any) -> None:
    for argv in ("-U", "-c c.txt"):
        with pytest.raises(InputError, match=r'^You must give at least one requirement to install \(see "pip help install"\)$'):
            need_requirements(ask("install", argv, files={"/project/c.txt": ""})[0])
    with pytest.raises(InputError, match=r'\(maybe you meant "pip download ./w"\?\)'):
        need_requirements(ask("download", "-f ./w")[0])
    for argv in ("x", "-r r.txt", "-e ./p"):
        need_requirements(ask("install", argv, files={"/project/r.txt": ""}, kinds={"/project/p": "project"})[0])
