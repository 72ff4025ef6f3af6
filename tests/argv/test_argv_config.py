"""pip's configuration files and variables, as pip reads and orders them."""

from __future__ import annotations

from typing import Any

import pytest

from rocmpip.argv.config import PipConfig, environment_items, merge, normal_key, parse_pip_config
from rocmpip.model.errors import InputError


def test_keys_are_normalised() -> None:
    assert [normal_key(key) for key in ("INDEX_URL", "index-url", "--Index_Url")] == ["index-url"] * 3
    assert parse_pip_config("[global]\nNo_Index = 1\n") == {"global": {"no-index": "1"}}


def test_a_later_file_replaces_key_by_key_and_an_empty_value_takes_away() -> None:
    config = merge(
        [
            ("/etc/pip.conf", {"global": {"index-url": "a", "timeout": "1", "cert": "c"}}),
            ("~/pip.conf", {"global": {"index-url": "b", "cert": ""}, "install": {"timeout": "2"}}),
        ]
    )
    assert list(config.items("install")) == [("index-url", "b"), ("timeout", "1"), ("timeout", "2")]
    assert list(config.items("download")) == [("index-url", "b"), ("timeout", "1")]
    assert config.files == ("/etc/pip.conf", "~/pip.conf")


def test_variables_without_empty_ones_and_those_pip_ignores() -> None:
    env = {"PIP_INDEX_URL": "x", "PIP_CERT": "", "PIP_VERSION": "1", "PIP_HELP": "1", "PIPX_HOME": "/p", "pip_x": "1"}
    assert list(environment_items(env)) == [("index-url", "x")]


@pytest.mark.parametrize("text", ["index-url = x\n", "[global\n", "[global]\n[global]\n"])
def test_what_is_no_configuration_file_is_an_error_with_its_name(text: str) -> None:
    with pytest.raises(InputError, match=r"Configuration file could not be loaded") as caught:
        parse_pip_config(text, "/home/me/pip.conf")
    assert "/home/me/pip.conf" in caught.value.why + caught.value.hint


def test_order_configuration_environment_command_line(ask: Any) -> None:
    config = PipConfig({"global": {"extra-index-url": "https://a.example", "timeout": "9"}, "install": {"retries": "1"}})
    env = {"PIP_EXTRA_INDEX_URL": "https://b.example https://c.example", "PIP_RETRIES": "2", "PIP_DEFAULT_TIMEOUT": "8"}
    request, _ = ask("install", "x --extra-index-url https://d.example --retries 3", env=env, config=config)
    assert request.index.extra_index_urls == ("https://b.example", "https://c.example", "https://d.example")
    assert (request.index.retries, request.index.timeout) == (3, 8.0)


def test_isolated_takes_no_variables(ask: Any) -> None:
    request, _ = ask("install", "--isolated x", env={"PIP_INDEX_URL": "https://e.example", "PIP_PRE": "1"})
    assert request.index.index_url == ""
    assert request.isolated
    assert not request.pre
    assert "--isolated" not in request.options


def test_no_build_isolation_reads_backwards_from_the_environment_as_in_pip(ask: Any) -> None:
    assert not ask("install", "x", env={"PIP_NO_BUILD_ISOLATION": "1"})[0].no_build_isolation
    assert ask("install", "x", env={"PIP_NO_BUILD_ISOLATION": "0"})[0].no_build_isolation


@pytest.mark.parametrize("value", ["1", "false"])
def test_no_cache_dir_takes_the_cache_off_whatever_it_says(ask: Any, value: str) -> None:
    request, _ = ask("install", "x", env={"PIP_NO_CACHE_DIR": value})
    assert request.no_cache
    assert "--no-cache-dir" in request.options


def test_requirements_and_constraints_of_the_environment(ask: Any) -> None:
    files = {"/project/c.txt": "torch<3", "/project/r.txt": "numpy"}
    request, _ = ask("install", "x", env={"PIP_CONSTRAINT": "c.txt", "PIP_REQUIREMENT": "r.txt"}, files=files)
    assert [line.name for line in request.requirements] == ["x", "numpy"]
    assert [(line.name, line.constraint) for line in request.constraints] == [("torch", True)]
    assert request.constraint_files == ("/project/c.txt",)
