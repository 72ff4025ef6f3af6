"""The environment in which pip sees the router alone; real pips are asked what they make of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from rocmpip.model.request import IndexOptions
from rocmpip.target.run import neutral_environment

ROUTER = "http://127.0.0.1:9/token/simple/"


def neutral(env: Mapping[str, str], index: IndexOptions | None = None, **more: str) -> dict[str, str]:
    return neutral_environment(env, router_url=ROUTER, empty_folder="/empty", index=index, **more)


def test_the_users_sources_are_gone_and_the_router_is_all_there_is() -> None:
    env = {
        "PATH": "/bin",
        "PIP_INDEX_URL": "https://x.example",
        "PIP_REQUIREMENT": "r.txt",
        "PIP_CONSTRAINT": "c.txt",
        "PIP_TARGET": "/t",
        "PIP_PYTHON": "/p",
        "PIP_ISOLATED": "1",
        "PIP_VERBOSE": "3",
        "PIP_CACHE_DIR": "/cache",
        "PIP_BREAK_SYSTEM_PACKAGES": "1",
        "PIPX_HOME": "/pipx",
    }
    result = neutral(env)
    assert {name: value for name, value in result.items() if name.startswith("PIP_")} == {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": ROUTER,
        "PIP_EXTRA_INDEX_URL": ROUTER,
        "PIP_FIND_LINKS": "/empty",
        "PIP_NO_INDEX": "0",
        "PIP_CACHE_DIR": "/cache",
        "PIP_BREAK_SYSTEM_PACKAGES": "1",
    }
    assert (result["PATH"], result["PIPX_HOME"]) == ("/bin", "/pipx")


def test_how_servers_are_reached_is_said_again() -> None:
    index = IndexOptions(
        cert="/ca.pem",
        client_cert="/c.pem",
        trusted_hosts=("a", "b"),
        timeout=3,
        retries=0,
        keyring_provider="disabled",
        no_input=True,
    )
    result = neutral({}, index, netrc="/netrc", constraint="/c.txt", build_constraint="/b.txt")
    assert (result["PIP_CERT"], result["PIP_CLIENT_CERT"], result["PIP_TRUSTED_HOST"]) == ("/ca.pem", "/c.pem", "a b")
    assert (result["PIP_TIMEOUT"], result["PIP_RETRIES"], result["PIP_KEYRING_PROVIDER"]) == ("3", "0", "disabled")
    assert (result["PIP_NO_INPUT"], result["NETRC"]) == ("1", "/netrc")
    assert (result["PIP_CONSTRAINT"], result["PIP_BUILD_CONSTRAINT"]) == ("/c.txt", "/b.txt")


@pytest.mark.parametrize(
    ("env", "index", "proxy", "direct"),
    [
        ({}, IndexOptions(), None, "127.0.0.1"),
        ({"HTTPS_PROXY": "http://p"}, IndexOptions(), "http://p", "127.0.0.1"),
        ({"HTTPS_PROXY": "http://p", "NO_PROXY": "a.example"}, IndexOptions(), "http://p", "a.example,127.0.0.1"),
        ({"NO_PROXY": "loses.example", "no_proxy": "wins.example"}, IndexOptions(), None, "wins.example,127.0.0.1"),
        ({"no_proxy": "*"}, IndexOptions(), None, "*"),
        ({"no_proxy": "127.0.0.1, a"}, IndexOptions(), None, "127.0.0.1,a"),
        ({"https_proxy": "http://old", "no_proxy": "a"}, IndexOptions(proxy="http://new"), "http://new", "127.0.0.1"),
        ({"HTTPS_PROXY": "http://p"}, IndexOptions(no_proxy_env=True), None, "127.0.0.1"),
    ],
)
def test_proxies_go_by_variables_and_except_the_router(
    env: dict[str, str], index: IndexOptions, proxy: str | None, direct: str
) -> None:
    result = neutral(env, index)
    assert result.get("https_proxy", result.get("HTTPS_PROXY")) == proxy
    assert result["no_proxy"] == result["NO_PROXY"] == direct
    assert "PIP_PROXY" not in result


def test_pips_proxy_option_leaves_the_certificates_of_the_environment_aside() -> None:
    env = {"REQUESTS_CA_BUNDLE": "/a.pem", "CURL_CA_BUNDLE": "/b.pem", "SSL_CERT_FILE": "/c.pem"}
    for index in (IndexOptions(proxy="http://p"), IndexOptions(no_proxy_env=True)):
        assert {name for name in neutral(env, index) if name in env} == {"SSL_CERT_FILE"}
    assert {name for name in neutral(env, IndexOptions(cert="/ca.pem")) if name in env} == set(env)


@pytest.mark.pip
def test_pip_sees_nothing_else(venv: Callable[..., Path], clean_env: dict[str, str], tmp_path: Path) -> None:
    python = venv(with_pip=True)
    home = tmp_path / "home"
    (home / ".config/pip").mkdir(parents=True)
    (home / ".config/pip/pip.conf").write_text("[global]\nextra-index-url = https://leak.example/user\nno-index = true\n")
    (python.parent.parent / "pip.conf").write_text("[install]\nfind-links = https://leak.example/site\n")
    env = {
        **clean_env,
        "HOME": str(home),
        "PIP_EXTRA_INDEX_URL": "https://leak.example/variable",
        "PIP_FIND_LINKS": "https://leak.example",
    }
    env.pop("PIP_CONFIG_FILE")
    before = subprocess.run([python, "-m", "pip", "config", "debug"], env=env, capture_output=True, text=True, check=True)
    assert before.stdout.count("leak.example") == 4
    after = subprocess.run(
        [python, "-m", "pip", "config", "debug"], env=neutral(env), capture_output=True, text=True, check=True
    )
    assert "leak.example" not in after.stdout
    assert ROUTER in after.stdout
