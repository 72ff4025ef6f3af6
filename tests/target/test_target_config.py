"""pip's configuration files where pip finds them, and the files a command line names."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmpip.argv.text import LIMIT
from rocmpip.model.errors import InputError
from rocmpip.target.config import config_files, read_config
from rocmpip.target.files import read_local, reader


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_order_of_files(tmp_path: Path) -> None:
    env = {"HOME": "/home/me", "XDG_CONFIG_DIRS": "/one:/two", "PIP_CONFIG_FILE": str(tmp_path / "gone")}
    places = [str(path) for path in config_files(env, "/venv")]
    assert places == [
        "/one/pip/pip.conf",
        "/two/pip/pip.conf",
        "/etc/pip.conf",
        "/home/me/.pip/pip.conf",
        "/home/me/.config/pip/pip.conf",
        "/venv/pip.conf",
        str(tmp_path / "gone"),
    ]


def test_a_named_file_takes_the_users_place(tmp_path: Path) -> None:
    named = write(tmp_path / "named.conf", "[global]\ntimeout = 4\n")
    write(tmp_path / "home/.config/pip/pip.conf", "[global]\ntimeout = 3\nretries = 9\n")
    env = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_DIRS": str(tmp_path / "etc")}
    assert dict(read_config(env, str(tmp_path / "venv")).items("install"))["retries"] == "9"
    config = read_config({**env, "PIP_CONFIG_FILE": str(named)}, str(tmp_path / "venv"))
    assert dict(config.items("install")).get("timeout") == "4"
    assert "retries" not in dict(config.items("install"))


def test_the_null_device_means_none(tmp_path: Path) -> None:
    write(tmp_path / "venv/pip.conf", "[global]\ntimeout = 3\n")
    assert read_config({"PIP_CONFIG_FILE": os.devnull}, str(tmp_path / "venv")).files == ()


def test_isolated_leaves_the_users_files_out(tmp_path: Path) -> None:
    write(tmp_path / "home/.pip/pip.conf", "[global]\ntimeout = 3\n")
    write(tmp_path / "venv/pip.conf", "[global]\nretries = 1\n")
    env = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_DIRS": str(tmp_path / "etc")}
    keys = dict(read_config(env, str(tmp_path / "venv"), isolated=True).items("install"))
    assert keys.get("retries") == "1"
    assert "timeout" not in keys


@pytest.mark.pip
def test_the_places_are_those_that_pip_names(venv: Callable[..., Path], clean_env: dict[str, str], tmp_path: Path) -> None:
    python = venv(with_pip=True)
    env = {**clean_env, "HOME": str(tmp_path), "XDG_CONFIG_DIRS": "/a:/b", "XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    env.pop("PIP_CONFIG_FILE")
    said = subprocess.run([python, "-m", "pip", "config", "debug"], env=env, capture_output=True, text=True, check=True).stdout
    named = [line.strip().rpartition(", exists: ")[0] for line in said.splitlines() if ", exists: " in line]
    ours = [str(path) for path in config_files(env, str(python.parent.parent))]
    assert sorted(named) == sorted(ours)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"no section = 1", b"#" * (2 * 1024 * 1024)])
def test_what_is_no_configuration(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "pip.conf").write_bytes(data)
    with pytest.raises(InputError, match=r"Configuration file could not be loaded"):
        read_config({"HOME": "/gone", "XDG_CONFIG_DIRS": "/gone"}, str(tmp_path))


def test_a_file_is_read_by_path_and_by_url(tmp_path: Path) -> None:
    path = write(tmp_path / "a b.txt", "torch\n")
    read = reader(lambda url: f"from {url}")
    assert read(str(path)) == b"torch\n"
    assert read(path.as_uri()) == b"torch\n"
    assert read("https://x.example/r.txt") == "from https://x.example/r.txt"


def test_a_pipe_and_a_device_are_read_within_the_limit(tmp_path: Path) -> None:
    assert read_local(os.devnull) == b""
    with pytest.raises(InputError, match="too large"):
        read_local("/dev/zero")


def test_a_large_file_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "big.txt"
    with path.open("wb") as stream:
        stream.truncate(LIMIT * 3)
    with pytest.raises(InputError, match=r"at most 32 MiB|too large: 96 MiB"):
        read_local(str(path))


def test_a_folder_is_an_os_error_as_in_pip(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_local(str(tmp_path))


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the copy of a pipe lies in a memory file of Linux")
def test_a_pipe_can_be_read_again_by_pip(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, b"torch\n")
        os.close(writing)
        assert read_local(f"/dev/fd/{reading}") == b"torch\n"
        assert read_local(f"/dev/fd/{reading}") == b"torch\n"
        assert os.read(reading, 10) == b""
        assert os.get_inheritable(reading)
    finally:
        os.close(reading)
