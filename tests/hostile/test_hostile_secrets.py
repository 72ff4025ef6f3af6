"""Passwords and tokens of indexes: in no output, no JSON, no cache, no log, no report, no wheel and no crash file."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.hostile.target import Target

pytestmark = pytest.mark.pip

PASSWORD = "pw-5f1c9e2b"
TOKEN = "token-77aa31"


@pytest.fixture
def guarded(target: Target, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The PyPI side asks for a password; the fixture is the index URL that has it."""
    handler = target.replica.pypi._server.RequestHandlerClass
    original = handler.do_GET
    wanted = "Basic " + base64.b64encode(f"user:{PASSWORD}".encode()).decode()

    def get(self: object) -> None:
        if self.headers.get("Authorization") != wanted:  # type: ignore[attr-defined]
            self.send_response(401)  # type: ignore[attr-defined]
            self.send_header("WWW-Authenticate", 'Basic realm="x"')  # type: ignore[attr-defined]
            self.send_header("Content-Length", "0")  # type: ignore[attr-defined]
            self.end_headers()  # type: ignore[attr-defined]
            return
        original(self)

    monkeypatch.setattr(handler, "do_GET", get)
    yield f"http://user:{PASSWORD}@{urlsplit(target.replica.pypi.url).netloc}/simple"


def nowhere(target: Target, said: str) -> None:
    for secret in (PASSWORD, TOKEN, base64.b64encode(f"user:{PASSWORD}".encode()).decode()):
        assert secret not in said
        for path in target.folder.rglob("*"):
            if path.is_file() and not path.is_symlink() and path.name not in ("secret.txt", ".netrc"):
                assert secret.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("way", ["url", "netrc", "file"])
def test_credentials_work_and_stay_out_of_sight(target: Target, guarded: str, way: str) -> None:
    words, env = ["torch", "tiny-torch-ext", "--report", "r.json", "-v"], {}
    if way == "url":
        env = {"PIP_INDEX_URL": guarded}
    elif way == "file":
        words += ["-r", target.file("secret.txt", f"--index-url {guarded}\neinops\n")]
    else:
        host = urlsplit(guarded).hostname
        netrc = target.folder / "home" / ".netrc"
        netrc.write_text(f"machine {host}\nlogin user\npassword {PASSWORD}\n")
        netrc.chmod(0o600)
    done = target.ok("install", *words, **env)
    nowhere(target, done.stdout + done.stderr)
    told = target.run("install", "--dry-run", "--json", "--force-reinstall", *words, **env)
    nowhere(target, told.stdout + told.stderr)


def test_failures_tell_no_secret(target: Target, guarded: str) -> None:
    wrong = guarded.replace("user:", "user:wrong-")
    url = urlsplit(guarded)
    cases = [
        (["einops", "--index-url", wrong], 42),
        (["einops", "--index-url", f"http://{url.hostname}:{url.port}/simple?token={TOKEN}"], 42),
        (["nothing-of-that-name", "--index-url", guarded], 40),
        (["einops", "--proxy", f"http://user:{PASSWORD}@127.0.0.1:1", "--retries", "0"], 42),
        (["-e", f"git+http://user:{PASSWORD}@127.0.0.1:1/x.git"], 1),
        ([f"einops @ http://user:{PASSWORD}@127.0.0.1:1/einops-0.8.1-py3-none-any.whl", "--retries", "0"], 42),
        (["-r", target.file("secret.txt", f"--index-url {guarded}\ntorch==\n")], 1),
    ]
    for words, code in cases:
        done = target.run("install", "--dry-run", "--json", *words)
        assert done.returncode == code, done.stdout
        nowhere(target, done.stdout + done.stderr)
        done = target.run("install", *words)
        assert done.returncode != 0
        nowhere(target, done.stdout + done.stderr)


def test_a_failed_build_tells_no_secret(target: Target, guarded: str) -> None:
    done = target.run("install", "torch", "broken-torch-ext", PIP_INDEX_URL=guarded)
    assert done.returncode == 41
    nowhere(target, done.stdout + done.stderr)
