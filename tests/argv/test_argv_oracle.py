"""Any command line, environment and configuration: what we read, and hand on, is what the installed pip reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pip
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocmpip.argv.config import merge, parse_pip_config
from rocmpip.argv.request import parse_request
from rocmpip.argv.table import OURS, Option, command_grammar
from rocmpip.model.errors import RocmpipError
from rocmpip.model.request import Request
from rocmpip.target.pip import read_version

VERSION = read_version(pip.__version__)
COMMANDS = ("install", "download", "wheel") + (("lock",) if VERSION >= (25, 1) else ())

VALUES: dict[str, tuple[str, ...]] = {
    "retries": ("3", "0", "0x10"),
    "resume_retries": ("2",),
    "timeout": ("5", "2.5"),
    "keyring_provider": ("auto", "disabled"),
    "exists_action": ("s", "w"),
    "use_feature": ("fast-deps",),
    "use_deprecated": ("legacy-resolver",),
    "progress_bar": ("off", "on"),
    "upgrade_strategy": ("eager", "only-if-needed"),
    "root_user_action": ("warn", "ignore"),
    "config_settings": ("--global-option=x", "a=b", "a="),
    "no_binary": (":all:", ":none:", "Foo_Bar,baz", "x,:none:,y", ":all:,:none:,z"),
    "only_binary": (":all:", ":none:", "foo.bar", "baz"),
    "all_releases": ("Foo", ":all:", ":none:"),
    "only_final": ("foo", ":none:"),
    "python_version": ("3.11", "310"),
    "groups": ("dev", "pyproject.toml:docs"),
    "uploaded_prior_to": ("2026-01-02T00:00:00Z",),
    "refresh_package": (":all:", "torch"),
    "index_url": ("https://a.example/simple", "https://u:p@b.example/simple"),
}
LEFT_OUT = {"help", "version", "python", "scripts", "groups"}
"""Not compared: what ends the parse, and what pip reads from other files at once."""

NOT_HANDED_ON = {
    "requirements",
    "constraints",
    "build_constraints",
    "editables",
    "index_url",
    "extra_index_urls",
    "find_links",
    "no_index",
    "proxy",
    "no_proxy_env",
    "isolated_mode",
    "dry_run",
    "json_report_file",
    "refresh_package",
    "only_dependencies",
    # :all: of --all-releases is --pre.
    "pre",
    "release_control",
}


def spellings(option: Option, names: Sequence[str]) -> st.SearchStrategy[str]:
    """The option's names and every abbreviation that means it alone."""
    every = list(names)
    short = [
        name[:end]
        for name in option.longs
        for end in range(4, len(name))
        if name[:end] not in names and sum(other.startswith(name[:end]) for other in names) == 1
    ]
    return st.sampled_from([*option.longs, *option.shorts, *(word for word in short if word not in every)])


@st.composite
def one_option(draw: st.DrawFn, command: str) -> list[str]:
    grammar = command_grammar(command, VERSION)
    options = sorted({row for row in grammar.longs.values() if row.dest not in LEFT_OUT}, key=lambda row: row.longs)
    option = draw(st.sampled_from(options))
    name = draw(spellings(option, list(grammar.longs)))
    if not option.takes_value:
        return [name + draw(st.sampled_from(["", "q", "vq"])) if not name.startswith("--") else name]
    value = draw(st.sampled_from(VALUES.get(option.dest, ("value", "a b", "-dash", "~/x", ""))))
    if name.startswith("--"):
        return draw(st.sampled_from([[name, value], [f"{name}={value}"]]))
    return [name, value] if not value else draw(st.sampled_from([[name, value], [name + value], ["-q" + name[1:] + value]]))


@st.composite
def command_lines(draw: st.DrawFn) -> tuple[str, list[str], dict[str, str], str]:
    command = draw(st.sampled_from(COMMANDS))
    words: list[str] = []
    for _ in range(draw(st.integers(0, 5))):
        words += draw(one_option(command))
        words += draw(st.sampled_from([[], ["torch"], ["-"]]))
    if draw(st.booleans()):
        words += ["--", "--not-an-option", "-r"]
    env = draw(st.dictionaries(*environment()))
    config = draw(st.sampled_from(CONFIGS)).replace("COMMAND", command)
    return command, words, env, config


def environment() -> tuple[st.SearchStrategy[str], st.SearchStrategy[str]]:
    names = st.sampled_from(
        ["EXTRA_INDEX_URL", "FIND_LINKS", "CONSTRAINT", "TRUSTED_HOST", "INDEX_URL", "NO_BINARY", "ONLY_BINARY", "PREFIX"]
    ).map("PIP_{}".format)
    return names, st.sampled_from(["https://e.example/", "a b", "", ":all:"])


CONFIGS = (
    "",
    "[global]\nindex-url = https://c.example/simple\nextra_index_url =\n  https://d.example/\n  https://e.example/\n",
    "[global]\ntimeout = 60\nno-cache-dir = false\n[COMMAND]\ntimeout = 7\nno-binary = foo\n",
    "[global]\nno-build-isolation = true\nquiet = 2\nverbose = true\nno-compile = yes\nuser = false\n",
    "[COMMAND]\n--find-links = /a /b\nprefer-binary = 1\nonly-binary = :all:\ncert =\n[freeze]\ntimeout = 1\n",
)


def ours(command: str, argv: Sequence[str], env: Mapping[str, str], config: str) -> Request | RocmpipError:
    try:
        request, _ = parse_request(
            argv,
            command=command,
            env=env,
            config=merge([("pip.conf", parse_pip_config(config))]),
            cwd="/project",
            read=lambda place: "",
            kind=lambda path: "project",
            pip_version=VERSION,
        )
        return request
    except RocmpipError as problem:
        return problem


def comparable(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in NOT_HANDED_ON}


@given(command_lines())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_options_handed_on_mean_what_the_user_said(oracle: Any, line: tuple[str, list[str], dict[str, str], str]) -> None:
    command, argv, env, config = line
    before = oracle(command, argv, env=env, config=config)
    request = ours(command, argv, env, config)
    if "error" in before:
        assert isinstance(request, RocmpipError), before["error"]
        return
    if isinstance(request, RocmpipError):
        # pip itself refuses these a step later, when it reads the requirements.
        assert not request.message.startswith(("no such", "ambiguous", "option ")), request.message
        return
    after = oracle(command, request.options)
    assert "error" not in after, after
    assert comparable(after["values"]) == comparable(before["values"])
    said = before["values"]
    index = request.index
    if said["no_index"]:
        assert index.no_index
        assert not index.index_url
    else:
        default = oracle(command, [])["values"]["index_url"]
        assert (index.index_url or default) == said["index_url"]
        assert index.extra_index_urls == tuple(dict.fromkeys(filter(None, said["extra_index_urls"])))
    assert index.proxy == (said["proxy"] or "")
    assert request.files == tuple(
        place if place.startswith("https:") else f"/project/{place}" if place else "/project" for place in expected_files(said)
    )
    assert (request.dry_run, request.report) == (bool(said.get("dry_run")), said.get("json_report_file") or "")


def expected_files(said: Mapping[str, Any]) -> list[str]:
    return [*said["constraints"], *said["requirements"], *said.get("build_constraints", [])]


@pytest.mark.parametrize(
    "argv",
    [
        "--requ r.txt",
        "--re",
        "--no-such",
        "-Z",
        "-qZ",
        "-r",
        "--timeout x",
        "--retries 1.5",
        "--upgrade=1",
        "-C novalue",
        "--no-binary=-x",
    ],
)
def test_refusals_are_in_pips_words(oracle: Any, argv: str) -> None:
    theirs = oracle("install", argv.split())
    mine = ours("install", argv.split(), {}, "")
    assert isinstance(mine, RocmpipError)
    assert mine.message == theirs["error"]
    assert mine.exit_code == (2 if "binary" not in argv else mine.exit_code)


@pytest.mark.parametrize("env", [{"PIP_NO_INDEX": "maybe"}, {"PIP_QUIET": "-1"}, {"PIP_TIMEOUT": "soon"}])
def test_bad_variables_are_refused_as_pip_refuses_them(oracle: Any, env: dict[str, str]) -> None:
    assert "error" in oracle("install", [], env=env)
    assert isinstance(ours("install", [], env, ""), RocmpipError)


def test_our_options_change_no_abbreviation_of_pips() -> None:
    grammar = command_grammar("install", VERSION)
    assert all(name in grammar.ours for row in OURS for name in row.longs)
    assert not set(grammar.ours) & set(grammar.longs)
