"""`rocmpip router` and `rocmpip run` as processes: their output, exit codes, and what is left when they end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rocmpip.app.router import command_environment
from rocmpip.model.request import IndexOptions
from tests.index.index_server import Site, json_page
from tests.router.router_upstream import ask


@pytest.fixture
def site() -> Iterator[Site]:
    with Site({"/simple/six/": json_page("six", [{"filename": "six-1.zip", "url": "six-1.zip"}])}) as site:
        yield site


@pytest.fixture
def env(site: Site, tmp_path: Path) -> dict[str, str]:
    """A machine without AMD hardware whose index is ``site``."""
    (tmp_path / "sysroot").mkdir()
    return {
        **os.environ,
        "ROCMPIP_SYSROOT": str(tmp_path / "sysroot"),
        "ROCMPIP_CACHE_DIR": str(tmp_path / "cache"),
        "ROCMPIP_STATE_DIR": str(tmp_path / "state"),
        "PIP_INDEX_URL": f"{site.url}/simple",
    }


def start(env: dict[str, str], *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rocmpip", *words]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def line_of(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_router_alone_serves_until_it_is_told_to_end(env: dict[str, str], number: signal.Signals, code: int) -> None:
    with start(env, "router") as child:
        url = line_of(child)
        answer = ask(f"{url}six/", Accept="application/vnd.pypi.simple.v1+json")
        assert [row["filename"] for row in json.loads(answer.body)["files"]] == ["six-1.zip"]
        child.send_signal(number)
        rest, words = child.communicate(timeout=20)
    assert (child.returncode, rest) == (code, "")
    assert "Traceback" not in words
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", urlsplit(url).port or 0))


def test_json_is_one_envelope_for_every_outcome(env: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = subprocess.run(
            [sys.executable, "-m", "rocmpip", "router", "--json", "--port", str(taken.getsockname()[1])],
            env=env,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    told = json.loads(done.stdout)
    assert (done.returncode, told["ok"], told["errors"][0]["code"]) == (2, False, 2)


def test_run_gives_the_command_the_router_and_returns_its_code(env: dict[str, str], site: Site) -> None:
    code = (
        "import os, sys, urllib.request as u\n"
        "print(u.urlopen(os.environ['PIP_INDEX_URL'] + 'six/').read().decode())\n"
        "print(os.environ['UV_DEFAULT_INDEX'] == os.environ['PIP_INDEX_URL'], sys.argv[1:])\n"
        "sys.exit(7)"
    )
    with start(env, "run", "--", sys.executable, "-c", code, "--json", "-r", "x") as child:
        out, err = child.communicate(timeout=30)
    assert child.returncode == 7, err
    assert "six-1.zip" in out
    assert "True ['--json', '-r', 'x']" in out


@pytest.mark.parametrize("words", [["run"], ["run", "--", "no-such-program"]])
def test_run_without_a_program_is_a_usage_error(env: dict[str, str], words: list[str]) -> None:
    with start(env, *words) as child:
        out, err = child.communicate(timeout=30)
    assert (child.returncode, out) == (2, "")
    assert "next:" in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_command_ends_with_us(env: dict[str, str], number: signal.Signals) -> None:
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    with start(env, "run", sys.executable, "-c", code) as child:
        command = int(line_of(child))
        child.send_signal(number)
        child.wait(timeout=20)
    assert child.returncode == (143 if number == signal.SIGTERM else -9)
    until = time.monotonic() + 20
    while Path(f"/proc/{command}/stat").exists() and time.monotonic() < until:
        if Path(f"/proc/{command}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return  # ended; whoever inherited it has not looked yet
        time.sleep(0.01)
    assert time.monotonic() < until


def test_the_commands_environment(tmp_path: Path) -> None:
    env = {
        "PATH": "/bin",
        "PIP_EXTRA_INDEX_URL": "https://cuda.example/whl",
        "PIP_FIND_LINKS": "/cuda",
        "UV_EXTRA_INDEX_URL": "https://cuda.example/whl",
        "UV_INDEX": "https://cuda.example/whl",
        "UV_TORCH_BACKEND": "cu128",
        "http_proxy": "http://proxy.example:3128",
    }
    made = command_environment(env, "http://127.0.0.1:1/t/simple/", folder=tmp_path, index=IndexOptions())
    assert not any("cuda" in value or "cu128" in value for value in made.values())
    assert made["UV_DEFAULT_INDEX"] == made["PIP_INDEX_URL"] == "http://127.0.0.1:1/t/simple/"
    assert made["no_proxy"] == made["NO_PROXY"] == "127.0.0.1"
    assert made["PATH"] == "/bin"
