"""Shared by the tests of the command line: pip's own parser as an oracle, and a request over files in memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rocmpip.argv.config import PipConfig
from rocmpip.argv.request import Ours, parse_request
from rocmpip.model.request import Request

Oracle = Callable[..., dict[str, Any]]
Ask = Callable[..., tuple[Request, Ours]]


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    """``oracle(command, argv, env={}, config="")`` → the installed pip's values and arguments, or its error."""
    home = tmp_path_factory.mktemp("home")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "XDG_"))}
    script = str(Path(__file__).with_name("pip_oracle.py"))
    with subprocess.Popen(
        [sys.executable, script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**env, "HOME": str(home)},
        cwd=home,
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        stdin, stdout = child.stdin, child.stdout

        def ask(command: str, argv: Sequence[str], *, env: Mapping[str, str] | None = None, config: str = "") -> dict[str, Any]:
            stdin.write(json.dumps({"command": command, "argv": list(argv), "env": env or {}, "config": config}) + "\n")
            stdin.flush()
            answer = json.loads(stdout.readline())
            assert isinstance(answer, dict)
            return answer

        yield ask
        stdin.close()


@pytest.fixture
def ask() -> Ask:
    """``ask("install", "-r r.txt torch", files={...})`` → (Request, Ours) in the folder /work-of-tests, without a disk."""

    def read(
        command: str,
        argv: str | Sequence[str],
        *,
        files: Mapping[str, str | bytes] | None = None,
        kinds: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        config: PipConfig | None = None,
        **more: Any,
    ) -> tuple[Request, Ours]:
        def content(place: str) -> str | bytes:
            found = (files or {}).get(place)
            if found is None:
                raise FileNotFoundError(2, "No such file or directory", place)
            return found

        return parse_request(
            argv.split() if isinstance(argv, str) else list(argv),
            command=command,
            env=env or {},
            config=config or PipConfig(),
            cwd="/project",
            read=content,
            kind=lambda path: (kinds or {}).get(path, ""),
            **more,
        )

    return read
